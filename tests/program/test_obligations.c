/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that oblige ops: of the tensors of pairs, and of weights in prefill alone. The bits are
 * those of one rank; what cannot be is refused with a line that says what fits.
 */
#include "rank_world.h"

#include <string.h>

static const world_step steps[] = {
    {.new_tokens = {7, 5, 11, 4}}, {.new_tokens = {1, 1, 1, 1}}, {.new_tokens = {3, 1, 2, 0}}};
enum { STEPS = sizeof steps / sizeof steps[0] };

static const world_desc experts = {.d = 512,
                                   .n_heads = 8,
                                   .n_kv_heads = 4,
                                   .head_dim = 64,
                                   .ffw = 512,
                                   .vocab = 128,
                                   .n_experts = 8,
                                   .n_chosen = 2,
                                   .type = OCTAVO_WEIGHT_F32,
                                   .is_exact = true,
                                   .has_bias = true};

typedef struct rule_case {
    octavo_mesh mesh;
    const char *all, *prefill;
    const char *message; /* of a refusal; NULL: it is honoured */
    bool stays;          /* weights may not move */
} rule_case;

static bool run(const world *w, const rule_case *c, world_mesh *m, world_results *results,
                octavo_error *error) {
    octavo_rules rules;
    const int groups = c->mesh.degree[OCTAVO_MESH_DATA];
    octavo_rules_init(&rules);
    if (octavo_rules_replace(&rules, c->all, c->prefill, NULL, error))
        fail_msg("%s", error->message);
    *m = (world_mesh){
        .mesh = c->mesh, .rules = &rules, .n_threads = 1, .can_move_weights = !c->stays};
    for (int g = 0; g <= groups; g++)
        m->group_begin[g] = g * WORLD_SEQUENCES / groups;
    const bool is_legal = world_run_ranks(w, m, steps, STEPS, results, error);
    octavo_rules_deinit(&rules);
    return is_legal;
}

static void check(const rule_case *cases, size_t n) {
    world w;
    world_results want = {0};
    world_make(&w, &experts);
    world_run_whole(&w, steps, STEPS, 1, &want);
    for (size_t i = 0; i < n; i++) {
        world_mesh m;
        world_results got = {0};
        octavo_error error = {0};
        const bool is_legal = run(&w, &cases[i], &m, &got, &error);
        if (is_legal != (cases[i].message == NULL))
            fail_msg("case %zu: %s", i, is_legal ? "is not refused" : error.message);
        if (!is_legal && !strstr(error.message, cases[i].message))
            fail_msg("case %zu: %s", i, error.message);
        if (is_legal && (memcmp(got.logits, want.logits, got.n_logits * sizeof(float)) != 0 ||
                         memcmp(got.traces, want.traces, got.n_traces * sizeof(float)) != 0))
            fail_msg("case %zu: other bits", i);
        world_results_free(&got);
    }
    world_results_free(&want);
    world_free(&w);
}

static void test_pairs(void **state) {
    static const rule_case cases[] = {
        {{{1, 2, 1, 2}}, "{\"moe_out_ted\": [null, \"expert\", \"model\"]}", NULL, NULL, false},
        {{{1, 2, 1, 2}},
         "{\"activation_ffw_ted\": [\"model\", \"expert\", null]}",
         NULL,
         NULL,
         false},
        {{{2, 2, 1, 1}}, "{\"moe_hidden_tef\": [\"data\", \"expert\", null]}", NULL, NULL, false},
        {{{1, 1, 2, 2}},
         "{\"moe_hidden_tef\": [\"seq\", null, \"model\"], \"moe_out_ted\": "
         "[\"seq\", null, null]}",
         NULL,
         NULL,
         false},
        /* experts otherwise than their weights, which move */
        {{{1, 2, 1, 2}}, "{\"moe_out_ted\": [null, null, null]}", NULL, NULL, false},
        {{{1, 2, 1, 2}},
         "{\"moe_out_ted\": [null, [\"expert\", \"model\"], null]}",
         NULL,
         NULL,
         false},
        {{{1, 2, 1, 1}}, "{\"moe_out_ted\": [\"expert\", null, null]}", NULL, NULL, false},
        {{{1, 2, 1, 2}},
         "{\"moe_out_ted\": [null, null, null]}",
         NULL,
         "rule of moe_out_ted (axis e, degree 1): moe_weights_edf would have to move in the step "
         "and "
         "cannot, since that cuts no panels of 32 outputs; give the axis (expert)",
         true},
        {{{2, 2, 1, 1}},
         "{\"moe_hidden_tef\": [\"data\", \"expert\", null], \"moe_out_ted\": "
         "[null, \"expert\", null]}",
         NULL,
         "rule of moe_out_ted (axis t, degree 1): pairs of a layer are the same in all their "
         "tensors; give it (data), as moe_hidden_tef has it, or leave one of the rules out",
         false},
        {{{1, 2, 1, 2}},
         "{\"moe_hidden_tef\": [null, \"expert\", null], \"moe_out_ted\": "
         "[null, \"model\", null]}",
         NULL,
         "rule of moe_out_ted (axis e, degree 2): pairs of a layer are the same",
         false},
    };
    (void)state;
    check(cases, sizeof cases / sizeof cases[0]);
}

static void test_prefill_weights(void **state) {
    static const rule_case cases[] = {
        {{{1, 1, 1, 2}}, NULL, "{\"ffw_weight_df\": [\"model\", null]}", NULL, false},
        {{{1, 1, 1, 2}}, NULL, "{\"attn_o_weight_nhd\": [null, null, \"model\"]}", NULL, false},
        {{{1, 1, 1, 4}},
         NULL,
         "{\"vocab_dv\": [null, null], \"vocab_vd\": [null, null]}",
         NULL,
         false},
        {{{1, 2, 1, 2}}, NULL, "{\"moe_weights_edf\": [null, null, null]}", NULL, false},
        {{{1, 2, 1, 2}},
         NULL,
         "{\"moe_weights_efd\": [[\"expert\", \"model\"], null, null]}",
         NULL,
         false},
        /* as in generate: nothing to do */
        {{{1, 1, 1, 2}},
         NULL,
         "{\"ffw_weight_df\": [null, \"model\"], \"norm_scale\": null}",
         NULL,
         true},
        {{{1, 1, 1, 2}},
         NULL,
         "{\"ffw_weight_df\": [null, null]}",
         "rule of ffw_weight_df for prefill (axis f, degree 1): it cannot be moved so in a step",
         true},
        {{{1, 1, 1, 2}},
         NULL,
         "{\"emb_weight_vd\": [null, \"model\"]}",
         "rule of emb_weight_vd for prefill (axis v, degree 1): tables and matrices of heads are "
         "used "
         "where they lie; give it (model), as in generate",
         false},
        {{{1, 1, 1, 2}},
         NULL,
         "{\"attn_o_weight_nhd\": [null, \"model\", null]}",
         "a head's width is not split",
         false},
        {{{1, 1, 1, 2}},
         NULL,
         "{\"norm_scale\": [\"model\"]}",
         "rule of norm_scale for prefill (axis d, degree 2): vectors lie in both phases as "
         "generate",
         false},
        {{{1, 2, 1, 2}},
         NULL,
         "{\"moe_weights_edf\": [null, null, null], \"moe_out_ted\": [null, "
         "\"expert\", null]}",
         "rule of moe_weights_edf for prefill (axis e, degree 1): other rules of the layer have "
         "its "
         "experts or tokens otherwise",
         false},
    };
    (void)state;
    check(cases, sizeof cases / sizeof cases[0]);
}

/* The whole weight comes to each rank, in prefill and not in generate. */
static void test_moves(void **state) {
    static const rule_case cases[] = {
        {{{1, 1, 1, 2}}, NULL, NULL, NULL, false},
        {{{1, 1, 1, 2}}, NULL, "{\"ffw_weight_df\": null, \"ffw_hidden_tf\": null}", NULL, false},
    };
    double planned[2];
    world w;
    (void)state;
    world_make(&w, &experts);
    for (int i = 0; i < 2; i++) {
        world_mesh m;
        world_results got = {0};
        octavo_error error = {0};
        if (!run(&w, &cases[i], &m, &got, &error)) fail_msg("%s", error.message);
        planned[i] = m.planned[OCTAVO_COLLECTIVE_ALL_GATHER];
        world_results_free(&got);
    }
    /* gate and up, of which each of two ranks lacks a half */
    const double lacking = 2.0 * 2.0 * 512.0 * 512.0 * sizeof(float) / 2.0;
    if (planned[1] < lacking || planned[0] >= lacking)
        fail_msg("%g bytes gathered without the rule, %g with it", planned[0], planned[1]);
    world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs),
                                       cmocka_unit_test(test_prefill_weights),
                                       cmocka_unit_test(test_moves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
