/* SPDX-License-Identifier: Apache-2.0
 *
 * Random rules on random meshes: whatever a partition makes of them, ranks give the bits of the
 * whole program. No axis has more ranks than slices here.
 */
#include "rank_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const world_step steps[] = {{.new_tokens = {5, 3, 4, 1}}, {.new_tokens = {1, 1, 1, 1}}};
enum { STEPS = sizeof steps / sizeof steps[0] };

static const octavo_mesh meshes[] = {
    {{1, 1, 1, 2}}, {{2, 1, 1, 1}}, {{1, 2, 1, 1}}, {{1, 1, 2, 1}}, {{1, 1, 1, 4}},
    {{1, 2, 1, 2}}, {{2, 1, 1, 2}}, {{1, 1, 2, 2}}, {{2, 2, 1, 1}}, {{2, 1, 2, 1}},
    {{1, 2, 2, 1}}, {{1, 1, 4, 1}}, {{4, 1, 1, 1}},
};

/* Each mesh axis splits one of the tensor's axes, or none; text of it in `what`. */
static octavo_override random_override(char *what, size_t size) {
    octavo_override o = {.tensor = (int)(world_random() % OCTAVO_NAMED_TENSORS)};
    const octavo_named_tensor *tensor = octavo_named_tensor_at(o.tensor);
    const uint32_t phases = world_random() % 3;
    o.is_in[OCTAVO_PHASE_PREFILL] = phases != 1;
    o.is_in[OCTAVO_PHASE_GENERATE] = phases != 2;
    o.spec.n = (int)strlen(tensor->axes);
    for (int a = 0; a < OCTAVO_MESH_AXES; a++) {
        const int axis = (int)(world_random() % (uint32_t)(o.spec.n + 1));
        if (axis < o.spec.n) o.spec.split[axis] = octavo_split_add(o.spec.split[axis], a);
    }
    const size_t used = strlen(what);
    snprintf(what + used, size - used, " %s%s%s", tensor->name, o.is_in[0] ? " p" : "",
             o.is_in[1] ? " g" : "");
    for (int i = 0; i < o.spec.n; i++) {
        strncat(what, i ? "," : "(", size - strlen(what) - 1);
        for (int k = 0; k < o.spec.split[i].n; k++)
            strncat(what, (const char *[]){"d", "e", "s", "m"}[o.spec.split[i].axis[k]],
                    size - strlen(what) - 1);
    }
    strncat(what, ")", size - strlen(what) - 1);
    return o;
}

/* True if the rules are legal. */
static bool check_rules(const world *w, const world_results *want, uint32_t seed) {
    char what[512] = "";
    octavo_rules rules;
    octavo_error error;
    world_results got = {0};
    world_seed(seed);
    octavo_rules_init(&rules);
    world_mesh m = {.mesh = meshes[world_random() % (sizeof meshes / sizeof meshes[0])],
                    .rules = &rules,
                    .n_threads = 1,
                    .can_move_weights = seed % 4 != 0};
    snprintf(what, sizeof what, "seed %u, %d,%d,%d,%d:", seed, m.mesh.degree[0], m.mesh.degree[1],
             m.mesh.degree[2], m.mesh.degree[3]);
    const int n = 1 + (int)(world_random() % 3), groups = m.mesh.degree[OCTAVO_MESH_DATA];
    for (int i = 0; i < n; i++) {
        const octavo_override o = random_override(what, sizeof what);
        assert_int_equal(octavo_rules_add(&rules, &o, &error), OCTAVO_OK);
    }
    for (int g = 0; g <= groups; g++)
        m.group_begin[g] = g * WORLD_SEQUENCES / groups;
    if (getenv("VERBOSE")) fprintf(stderr, "%s\n", what);
    const bool is_legal = world_run_ranks(w, &m, steps, STEPS, &got, &error);
    if (!is_legal && getenv("VERBOSE")) fprintf(stderr, "  %s\n", error.message);
    if (is_legal && (memcmp(got.logits, want->logits, got.n_logits * sizeof(float)) != 0 ||
                     memcmp(got.hidden, want->hidden, got.n_hidden * sizeof(float)) != 0 ||
                     memcmp(got.traces, want->traces, got.n_traces * sizeof(float)) != 0))
        fail_msg("%s: other bits", what);
    world_results_free(&got);
    octavo_rules_deinit(&rules);
    return is_legal;
}

static void check_world(const world_desc *desc, uint32_t first, int n) {
    world w;
    world_results want = {0};
    int n_legal = 0;
    world_seed(1);
    world_make(&w, desc);
    world_run_whole(&w, steps, STEPS, 1, &want);
    for (int i = 0; i < n; i++)
        n_legal += check_rules(&w, &want, first + (uint32_t)i);
    if (getenv("VERBOSE")) fprintf(stderr, "%d of %d\n", n_legal, n);
    assert_true(n_legal > n / 2);
    world_results_free(&want);
    world_free(&w);
}

static int count(int n) {
    return getenv("COUNT") ? atoi(getenv("COUNT")) : n / UNIT_STRIDE;
}

static void test_dense(void **state) {
    (void)state;
    check_world(&(world_desc){.d = 512,
                              .n_heads = 8,
                              .n_kv_heads = 4,
                              .head_dim = 64,
                              .ffw = 512,
                              .vocab = 101,
                              .type = OCTAVO_WEIGHT_Q8_0,
                              .has_bias = true,
                              .has_positions = true,
                              .is_layer_norm = true},
                100, count(50));
}

static void test_experts(void **state) {
    (void)state;
    check_world(&(world_desc){.d = 512,
                              .n_heads = 8,
                              .n_kv_heads = 4,
                              .head_dim = 64,
                              .ffw = 512,
                              .vocab = 101,
                              .n_experts = 9,
                              .n_chosen = 3,
                              .type = OCTAVO_WEIGHT_F32,
                              .is_exact = true,
                              .has_whole_qk_norm = true,
                              .has_bias = true},
                1000, count(50));
}

/* Lanes of heads: kept split, and gathered where a head is needed. */
static void test_lanes(void **state) {
    static const char *const texts[] = {
        "{\"query_tnh\": [null, null, \"seq\"]}",
        "{\"attn_o_tnh\": [null, \"model\", \"seq\"]}",
        "{\"query_tnh\": [\"data\", \"model\", \"seq\"], \"attn_o_tnh\": [\"data\", \"seq\", "
        "\"model\"]}",
        "{\"query_tnh\": [\"data\", null, [\"model\", \"seq\"]], \"attn_o_tnh\": [\"model\", "
        "null, \"seq\"]}",
    };
    static const octavo_mesh some[] = {
        {{1, 1, 2, 1}}, {{1, 1, 4, 1}}, {{1, 1, 2, 2}}, {{2, 1, 2, 1}}};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        world w;
        world_results want = {0};
        world_desc desc = {.d = 512,
                           .n_heads = 8,
                           .n_kv_heads = 4,
                           .head_dim = 64,
                           .ffw = 512,
                           .vocab = 101,
                           .type = kind == 0 ? OCTAVO_WEIGHT_F32 : OCTAVO_WEIGHT_Q8_0,
                           .is_exact = kind == 0,
                           .has_head_norm = kind == 0,
                           .has_bias = true};
        world_make(&w, &desc);
        world_run_whole(&w, steps, STEPS, 1, &want);
        for (int i = 0; i < 16; i++) {
            octavo_rules rules;
            octavo_error error;
            world_results got = {0};
            world_mesh m = {
                .mesh = some[i % 4], .rules = &rules, .n_threads = 1, .n_processes = i % 3};
            const int groups = m.mesh.degree[OCTAVO_MESH_DATA];
            for (int g = 0; g <= groups; g++)
                m.group_begin[g] = g * WORLD_SEQUENCES / groups;
            octavo_rules_init(&rules);
            if (octavo_rules_replace(&rules, texts[i / 4], NULL, NULL, &error) ||
                !world_run_ranks(&w, &m, steps, STEPS, &got, &error))
                fail_msg("%s, mesh %d: %s", texts[i / 4], i % 4, error.message);
            if (memcmp(got.logits, want.logits, got.n_logits * sizeof(float)) != 0)
                fail_msg("%s, mesh %d: other bits", texts[i / 4], i % 4);
            world_results_free(&got);
            octavo_rules_deinit(&rules);
        }
        world_results_free(&want);
        world_free(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dense), cmocka_unit_test(test_experts),
                                       cmocka_unit_test(test_lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
