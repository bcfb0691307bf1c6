/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that go only to the ranks of their experts: the bits of one rank, on any mesh and over
 * processes, and no more bytes than the choices ask for.
 */
#include "rank_world.h"

#include <stdio.h>
#include <string.h>

static const world_step steps[] = {
    {.new_tokens = {7, 5, 11, 0}}, {.new_tokens = {1, 1, 1, 0}}, {.new_tokens = {3, 1, 2, 9}},
    {.new_tokens = {1, 1, 1, 1}},  {.new_tokens = {0, 0, 1, 1}},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

/* Tokens are split over the ranks of experts, and nothing else is. */
static const char split_tokens[] =
    "{\"activation_td\": [[\"data\", \"expert\"], null], \"emb_weight_vd\": null, "
    "\"moe_router_de\": "
    "null, \"ffw_weight_df\": null, \"ffw_weight_fd\": null, \"moe_weights_edf\": [\"expert\", "
    "null, "
    "null], \"moe_weights_efd\": [\"expert\", null, null], \"prelogit_td\": [\"data\", null], "
    "\"activation_ffw_td\": [[\"data\", \"expert\"], null], \"vocab_dv\": null, \"vocab_vd\": "
    "null, "
    "\"logits_tv\": [\"data\", null], \"activation_attention_td\": [\"data\", null], "
    "\"attn_o_tnh\": [\"data\", null, null]}";

static world_desc experts(int n_experts, int n_chosen) {
    return (world_desc){.d = 512,
                        .n_heads = 8,
                        .n_kv_heads = 4,
                        .head_dim = 64,
                        .ffw = 256,
                        .vocab = 101,
                        .n_experts = n_experts,
                        .n_chosen = n_chosen,
                        .type = OCTAVO_WEIGHT_F32,
                        .is_exact = true};
}

static void run(const world *w, world_mesh *m, const world_step *list, int n,
                world_results *results) {
    octavo_rules rules;
    octavo_error error;
    const int groups = m->mesh.degree[OCTAVO_MESH_DATA];
    octavo_rules_init(&rules);
    if (octavo_rules_replace(&rules, split_tokens, NULL, NULL, &error))
        fail_msg("%s", error.message);
    m->rules = &rules;
    m->n_threads = m->n_threads ? m->n_threads : 1;
    for (int g = 0; g <= groups; g++)
        m->group_begin[g] = g * WORLD_SEQUENCES / groups;
    if (!world_run_ranks(w, m, list, n, results, &error)) fail_msg("%s", error.message);
    m->rules = NULL;
    octavo_rules_deinit(&rules);
}

static void check(const world_desc *desc) {
    static const world_mesh list[] = {
        {.mesh = {{1, 2, 1, 1}}},
        {.mesh = {{1, 4, 1, 1}}, .n_threads = 2},
        {.mesh = {{2, 2, 1, 1}}},
        {.mesh = {{1, 2, 1, 2}}},
        {.mesh = {{1, 8, 1, 1}}},
        {.mesh = {{1, 2, 1, 1}}, .n_processes = 2},
        {.mesh = {{1, 4, 1, 1}}, .n_processes = 3, .n_threads = 2},
        {.mesh = {{2, 2, 1, 1}}, .n_processes = 2},
        {.mesh = {{2, 4, 1, 1}}, .n_processes = 4},
    };
    world w;
    world_results want = {0};
    world_make(&w, desc);
    world_run_whole(&w, steps, STEPS, 1, &want);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        world_mesh m = list[i];
        world_results got = {0};
        run(&w, &m, steps, STEPS, &got);
        if (m.planned[OCTAVO_COLLECTIVE_ALL_TO_ALL] <= 0.0) fail_msg("mesh %zu: not routed", i);
        if (memcmp(got.logits, want.logits, got.n_logits * sizeof(float)) != 0 ||
            memcmp(got.hidden, want.hidden, got.n_hidden * sizeof(float)) != 0 ||
            memcmp(got.traces, want.traces, got.n_traces * sizeof(float)) != 0)
            fail_msg("mesh %zu: other bits", i);
        world_results_free(&got);
    }
    world_results_free(&want);
    world_free(&w);
}

static void test_bits(void **state) {
    (void)state;
    world_desc desc = experts(20, 3);
    check(&desc);
    desc.has_bias = true;
    desc.type = OCTAVO_WEIGHT_Q8_0; /* rows move as they are quantised */
    desc.is_exact = false;
    check(&desc);
}

/* Bytes that moved by choices: all other all-to-alls move what is planned. */
static double routed_bytes(const world_mesh *m) {
    return (double)m->traffic.bytes[OCTAVO_COLLECTIVE_ALL_TO_ALL] -
           (m->planned[OCTAVO_COLLECTIVE_ALL_TO_ALL] - m->routed);
}

enum { TOKENS = 40 };

static void measure(const world *w, int n_ranks, double *moved, double *planned) {
    static const world_step step = {.new_tokens = {10, 10, 10, 10}};
    world_mesh m = {.mesh = {{1, n_ranks, 1, 1}}};
    world_results got = {0};
    run(w, &m, &step, 1, &got);
    *moved = routed_bytes(&m);
    *planned = m.routed;
    world_results_free(&got);
}

/* A token's row goes to one rank at most, and one comes back: 1 of n is there already. */
static void test_one_expert(void **state) {
    const world_desc desc = experts(16, 1);
    const double row = desc.d * sizeof(float), most = 2.0 * TOKENS * row;
    world w;
    (void)state;
    world_make(&w, &desc);
    for (int n = 2; n <= 8; n *= 2) {
        double moved, planned;
        measure(&w, n, &moved, &planned);
        const double rows = moved / row;
        if (moved <= 0.0 || moved > most || rows != 2.0 * (int)(rows / 2.0))
            fail_msg("%d ranks: %g rows moved", n, rows);
        const double expected = most * (n - 1) / n;
        if (planned < 0.999 * expected || planned > 1.001 * expected)
            fail_msg("%d ranks: %g bytes planned, not %g", n, planned, expected);
    }
    world_free(&w);
}

/* Where every token has all experts rows come back from everywhere, and may go there. */
static void test_all_experts(void **state) {
    const world_desc desc = experts(4, 4);
    const double row = desc.d * sizeof(float);
    world w;
    (void)state;
    world_make(&w, &desc);
    for (int n = 2; n <= 4; n *= 2) {
        double moved, planned;
        measure(&w, n, &moved, &planned);
        const double once = (n - 1) * TOKENS * row;
        if (planned <= 0.0 || moved != planned || (moved != once && moved != 2.0 * once))
            fail_msg("%d ranks: %g bytes moved, %g planned", n, moved, planned);
    }
    world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_one_expert),
                                       cmocka_unit_test(test_all_experts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
