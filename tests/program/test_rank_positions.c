/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that have different positions of the sequences in their caches, or share the positions of
 * long ones that all have: the bits of one rank, and what moves is what was planned.
 */
#include "rank_world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SPLIT = OCTAVO_KV_SPLIT };

/* Prompts at the edges of splits, so that each has something; then steps of one token each. */
static const world_step steps[] = {
    {{9, 5, 3, 12}, {0, SPLIT - 2, 2 * SPLIT - 1, 0}},
    {{6, 11, 7, 1}, {SPLIT - 3, 2 * SPLIT - 4, 3 * SPLIT - 3, 300}},
    {{1, 1, 1, 1}, {0}},
    {{7, 3, 9, 2}, {2 * SPLIT - 3, 3 * SPLIT - 1, 4 * SPLIT - 5, SPLIT - 1}},
    {{1, 1, 1, 1}, {4 * SPLIT, 0, 0, 0}},
    {{1, 1, 0, 1}, {0, 4 * SPLIT - 1, 0, 0}},
    {{2, 1, 4, 1}, {0}},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

static const world_desc small = {.d = 512,
                                 .n_heads = 8,
                                 .n_kv_heads = 2,
                                 .head_dim = 64,
                                 .ffw = 512,
                                 .vocab = 103,
                                 .n_pages = 260,
                                 .type = OCTAVO_WEIGHT_F32,
                                 .is_exact = true};

static void compare(const world_results *a, const world_results *b, const char *what) {
    assert_int_equal(a->n_logits, b->n_logits);
    if (memcmp(a->logits, b->logits, a->n_logits * sizeof(float)) != 0 ||
        memcmp(a->hidden, b->hidden, a->n_hidden * sizeof(float)) != 0 ||
        memcmp(a->traces, b->traces, a->n_traces * sizeof(float)) != 0)
        fail_msg("%s: other bits", what);
}

static void set_groups(world_mesh *m) {
    const int groups = m->mesh.degree[OCTAVO_MESH_DATA];
    for (int g = 0; g <= groups; g++)
        m->group_begin[g] = g * WORLD_SEQUENCES / groups;
}

/* Bytes that all ranks got by the collectives of attention's records alone, where nothing else goes
 * from all to all. */
static double moved(const world_mesh *m) {
    return (double)(m->traffic.bytes[OCTAVO_COLLECTIVE_ALL_TO_ALL] +
                    m->traffic.bytes[OCTAVO_COLLECTIVE_ALL_GATHER]);
}

static void check(const world *w, const world_results *want, world_mesh m, const char *text) {
    octavo_rules rules;
    world_results got = {0};
    octavo_error error;
    char what[200];
    snprintf(what, sizeof what, "%d,%d,%d,%d in %d processes, %s", m.mesh.degree[0],
             m.mesh.degree[1], m.mesh.degree[2], m.mesh.degree[3], m.n_processes, text);
    octavo_rules_init(&rules);
    if (octavo_rules_replace(&rules, text, NULL, NULL, &error)) fail_msg("%s", error.message);
    m.rules = &rules;
    set_groups(&m);
    if (!world_run_ranks(w, &m, steps, STEPS, &got, &error))
        fail_msg("%s: %s", what, error.message);
    compare(want, &got, what);
    assert_true(moved(&m) > 0);
    world_results_free(&got);
    octavo_rules_deinit(&rules);
}

static const char *const by_seq = "{\"keyvalue_skh\": [[\"data\", \"seq\"], \"model\", null]}";

/* Each `every`th of the list. */
static void check_all(const world_desc *desc, size_t every) {
    static const struct {
        world_mesh mesh;
        const char *rule; /* NULL: by_seq */
    } list[] = {
        {{.mesh = {{1, 1, 2, 1}}, .n_threads = 2}, NULL},
        {{.mesh = {{1, 1, 4, 1}}, .n_threads = 1}, NULL},
        {{.mesh = {{2, 1, 2, 1}}, .n_threads = 1}, NULL},
        {{.mesh = {{1, 1, 2, 2}}, .n_threads = 1}, NULL},
        {{.mesh = {{1, 1, 3, 1}}, .n_threads = 1}, NULL},
        {{.mesh = {{1, 2, 2, 1}}, .n_threads = 1},
         "{\"keyvalue_skh\": [[\"seq\", \"expert\"], null, null]}"},
        {{.mesh = {{2, 1, 2, 1}}, .n_threads = 1}, "{\"keyvalue_skh\": [\"seq\", null, null]}"},
        {{.mesh = {{1, 1, 1, 2}}, .n_threads = 1},
         "{\"keyvalue_skh\": [\"model\", null, null], \"attn_o_tnh\": [\"model\", null, null]}"},
        {{.mesh = {{1, 1, 2, 1}}, .n_threads = 1},
         "{\"keyvalue_skh\": [\"seq\", null, null], \"attn_o_tnh\": [null, \"seq\", null]}"},
        {{.mesh = {{1, 1, 2, 1}}, .n_threads = 1, .n_processes = 2}, NULL},
        {{.mesh = {{1, 1, 4, 1}}, .n_threads = 1, .n_processes = 2}, NULL},
        {{.mesh = {{2, 1, 2, 1}}, .n_threads = 1, .n_processes = 4}, NULL},
        {{.mesh = {{1, 1, 2, 2}}, .n_threads = 1, .n_processes = 3}, NULL},
    };
    world w;
    world_results want = {0};
    world_make(&w, desc);
    world_run_whole(&w, steps, STEPS, 2, &want);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i += every)
        check(&w, &want, list[i].mesh, list[i].rule ? list[i].rule : by_seq);
    world_results_free(&want);
    world_free(&w);
}

static void test_dealt_caches(void **state) {
    world_desc desc = small;
    (void)state;
    check_all(&desc, 1);
    desc.n_kv_heads = 4;
    desc.type = OCTAVO_WEIGHT_Q8_0;
    desc.is_exact = false;
    desc.has_bias = desc.has_head_norm = true;
    check_all(&desc, 3);
}

/* One kv head: more heads do not help, so ranks that have all positions share them, if these are
 * planned to be many. */
static void test_shared_splits(void **state) {
    static const octavo_mesh meshes[] = {{{1, 1, 2, 1}}, {{1, 1, 4, 1}}, {{1, 2, 2, 1}}};
    world w;
    world_desc desc = small;
    world_results want = {0};
    (void)state;
    desc.n_kv_heads = 1;
    world_make(&w, &desc);
    world_run_whole(&w, steps, STEPS, 1, &want);
    for (int i = 0; i < 6; i++) {
        world_results got = {0};
        octavo_error error;
        double bytes[2];
        for (int is_long = 0; is_long < 2; is_long++) {
            world_mesh m = {.mesh = meshes[i % 3],
                            .n_threads = 1,
                            .n_processes = i < 3 ? 0 : 2,
                            .kv_length = is_long ? 1 << 20 : SPLIT};
            set_groups(&m);
            if (!world_run_ranks(&w, &m, steps, STEPS, &got, &error))
                fail_msg("mesh %d: %s", i, error.message);
            compare(&want, &got, is_long ? "shared" : "not shared");
            world_results_free(&got);
            bytes[is_long] = moved(&m);
        }
        assert_true(bytes[1] > bytes[0]);
    }
    world_results_free(&want);
    world_free(&w);
}

/* What ranks get from one another is what was planned for contexts of that length. */
static void test_traffic(void **state) {
    static const world_step step = {{1, 3, 1, 3}, {4093, 4090, 4000, 3900}};
    static const octavo_mesh meshes[] = {{{1, 1, 2, 1}}, {{1, 1, 4, 1}}, {{2, 1, 2, 1}}};
    octavo_rules rules;
    octavo_error error;
    world w;
    (void)state;
    octavo_rules_init(&rules);
    assert_int_equal(octavo_rules_replace(&rules, by_seq, NULL, NULL, &error), OCTAVO_OK);
    world_make(&w, &small);
    for (int i = 0; i < 3; i++) {
        world_mesh m = {.mesh = meshes[i], .rules = &rules, .n_threads = 1, .kv_length = 4096};
        world_results got = {0};
        double all = 0.0;
        set_groups(&m);
        if (!world_run_ranks(&w, &m, &step, 1, &got, &error)) fail_msg("%s", error.message);
        for (int c = OCTAVO_COLLECTIVE_ALL_REDUCE; c < OCTAVO_COLLECTIVES; c++) {
            all += (double)m.traffic.bytes[c];
            if (fabs((double)m.traffic.bytes[c] - m.planned[c]) > 0.5)
                fail_msg("mesh %d, %s: %lld bytes moved, %g planned", i,
                         octavo_collective_name((octavo_collective)c),
                         (long long)m.traffic.bytes[c], m.planned[c]);
        }
        assert_true(all > 0.0);
        world_results_free(&got);
    }
    world_free(&w);
    octavo_rules_deinit(&rules);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dealt_caches),
                                       cmocka_unit_test(test_shared_splits),
                                       cmocka_unit_test(test_traffic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
