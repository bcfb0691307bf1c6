/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of ranks against the whole program on one rank: the same bits as long as no axis has
 * more ranks than slices, in either phase, for any mesh.
 */
#include "rank_world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The whole prompt of three sequences, a step in which all have one token, and mixed ones. */
static const world_step steps[] = {
    {.new_tokens = {7, 5, 11, 0}}, {.new_tokens = {1, 1, 1, 0}}, {.new_tokens = {3, 1, 2, 9}},
    {.new_tokens = {1, 1, 1, 1}},  {.new_tokens = {0, 0, 1, 1}},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

/* Four slices of d, f and heads. */
static const world_desc dense = {.d = 512,
                                 .n_heads = 8,
                                 .n_kv_heads = 4,
                                 .head_dim = 64,
                                 .ffw = 512,
                                 .vocab = 203,
                                 .type = OCTAVO_WEIGHT_F32,
                                 .is_exact = true};

static double worst(const float *a, const float *b, size_t n) {
    double most = 0.0, largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (fabs((double)a[i]) > largest) largest = fabs((double)a[i]);
        if (!(fabs((double)a[i] - (double)b[i]) <= most)) most = fabs((double)a[i] - (double)b[i]);
    }
    return most / (largest > 0.0 ? largest : 1.0);
}

static void compare(const world_results *a, const world_results *b, bool is_exact,
                    const char *what) {
    assert_int_equal(a->n_logits, b->n_logits);
    const double logits = worst(a->logits, b->logits, a->n_logits);
    const double hidden = worst(a->hidden, b->hidden, a->n_hidden);
    const double traces = worst(a->traces, b->traces, a->n_traces);
    const double bound = is_exact ? 0.0 : 1e-5;
    if (!(logits <= bound && hidden <= bound && traces <= bound))
        fail_msg("%s: logits are off by %g, hidden rows by %g, traces by %g", what, logits, hidden,
                 traces);
    if (is_exact) {
        assert_memory_equal(a->logits, b->logits, a->n_logits * sizeof(float));
        assert_memory_equal(a->hidden, b->hidden, a->n_hidden * sizeof(float));
        assert_memory_equal(a->traces, b->traces, a->n_traces * sizeof(float));
    }
}

static void check_mesh(const world *w, const world_results *want, octavo_mesh mesh, int n_threads,
                       bool is_exact) {
    char what[80];
    world_results got = {0};
    octavo_error error;
    const int groups = mesh.degree[OCTAVO_MESH_DATA];
    world_mesh m = {.mesh = mesh, .n_threads = n_threads};
    for (int g = 0; g <= groups; g++)
        m.group_begin[g] = g * WORLD_SEQUENCES / groups;
    snprintf(what, sizeof what, "data=%d,expert=%d,seq=%d,model=%d", mesh.degree[0], mesh.degree[1],
             mesh.degree[2], mesh.degree[3]);
    if (!world_run_ranks(w, &m, steps, STEPS, &got, &error))
        fail_msg("%s: %s", what, error.message);
    compare(want, &got, is_exact, what);
    world_results_free(&got);
}

static void check_world(const world_desc *desc, const octavo_mesh *meshes, int n_meshes,
                        bool is_exact) {
    world w;
    world_results want = {0};
    world_make(&w, desc);
    world_run_whole(&w, steps, STEPS, 2, &want);
    for (int i = 0; i < n_meshes; i++)
        check_mesh(&w, &want, meshes[i], octavo_mesh_ranks(&meshes[i]) <= 4 ? 1 + i % 2 : 1,
                   is_exact);
    world_results_free(&want);
    world_free(&w);
}

static const octavo_mesh some[] = {
    {{1, 1, 1, 2}}, {{1, 1, 1, 4}}, {{2, 1, 1, 1}}, {{1, 2, 1, 2}}, {{1, 1, 2, 2}}, {{2, 1, 2, 1}},
};
enum { SOME = sizeof some / sizeof some[0] };

static void test_dense(void **state) {
    static const octavo_mesh more[] = {
        {{1, 1, 1, 1}}, {{1, 2, 1, 1}}, {{1, 1, 2, 1}}, {{2, 1, 1, 2}},
        {{2, 2, 2, 1}}, {{1, 1, 4, 2}}, {{4, 1, 1, 2}},
    };
    (void)state;
    check_world(&dense, some, SOME, true);
    check_world(&dense, more, sizeof more / sizeof more[0], true);
}

/* Eight slices. */
static void test_eight(void **state) {
    static const octavo_mesh eight = {{1, 1, 1, 8}};
    world_desc desc = dense;
    (void)state;
    desc.d = desc.ffw = 1024;
    desc.n_heads = 16;
    desc.n_kv_heads = 8;
    check_world(&desc, &eight, 1, true);
}

/* Quantised rows move as they are, and biases and factors come after the sums. */
static void test_quantised(void **state) {
    world_desc desc = dense;
    (void)state;
    desc.type = OCTAVO_WEIGHT_Q8_0;
    desc.is_exact = false;
    desc.has_bias = desc.is_tied = true;
    check_world(&desc, some, SOME, true);
}

static void test_norms(void **state) {
    world_desc desc = dense;
    (void)state;
    desc.is_layer_norm = desc.has_whole_qk_norm = true;
    check_world(&desc, some, SOME, true);
    desc = dense;
    desc.has_head_norm = desc.has_bias = true;
    check_world(&desc, some, SOME, true);
}

static void test_experts(void **state) {
    world_desc desc = dense;
    (void)state;
    desc.n_experts = 20;
    desc.n_chosen = 3;
    check_world(&desc, some, SOME, true);
    desc.has_bias = true;
    desc.type = OCTAVO_WEIGHT_Q8_0;
    desc.is_exact = false;
    check_world(&desc, some, SOME, true);
}

/* Heads, widths and experts that ranks do not divide, and more ranks than some have. */
static void test_uneven(void **state) {
    static const octavo_mesh odd[] = {
        {{1, 1, 1, 2}}, {{1, 1, 1, 3}}, {{1, 1, 1, 5}}, {{3, 1, 1, 1}}, {{1, 3, 1, 1}},
        {{1, 1, 3, 1}}, {{1, 3, 1, 2}}, {{2, 1, 3, 1}}, {{1, 1, 2, 3}}, {{1, 5, 1, 2}},
    };
    world_desc desc = {.d = 96,
                       .n_heads = 6,
                       .n_kv_heads = 2,
                       .head_dim = 16,
                       .ffw = 160,
                       .vocab = 101,
                       .type = OCTAVO_WEIGHT_F32,
                       .is_exact = true,
                       .has_bias = true};
    (void)state;
    check_world(&desc, odd, sizeof odd / sizeof odd[0], false);
    desc.n_experts = 7;
    desc.n_chosen = 2;
    check_world(&desc, odd, sizeof odd / sizeof odd[0], false);
    desc.n_heads = 3;
    desc.n_kv_heads = 1;
    desc.is_layer_norm = true;
    check_world(&desc, odd, sizeof odd / sizeof odd[0], false);
    desc.head_dim = 32;
    desc.type = OCTAVO_WEIGHT_Q8_0; /* cut at blocks */
    check_world(&desc, odd, sizeof odd / sizeof odd[0], false);
}

/* What ranks get from one another is what was planned. */
static void test_traffic(void **state) {
    static const world_step step = {.new_tokens = {1, 3, 1, 3}};
    world w;
    world_desc desc = dense;
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        desc.has_bias = kind == 1;
        if (kind == 1) desc.type = OCTAVO_WEIGHT_Q8_0;
        desc.is_exact = kind == 0;
        world_make(&w, &desc);
        for (int i = 0; i < SOME; i++) {
            world_mesh m = {.mesh = some[i], .n_threads = 1};
            world_results got = {0};
            octavo_error error;
            const int groups = m.mesh.degree[OCTAVO_MESH_DATA];
            for (int g = 0; g <= groups; g++)
                m.group_begin[g] = g * WORLD_SEQUENCES / groups;
            if (!world_run_ranks(&w, &m, &step, 1, &got, &error)) fail_msg("%s", error.message);
            for (int c = OCTAVO_COLLECTIVE_ALL_REDUCE; c < OCTAVO_COLLECTIVES; c++) {
                const double moved = (double)m.traffic.bytes[c];
                /* a permutation leaves some where it is, which plans do not count on */
                const bool is_less = c == OCTAVO_COLLECTIVE_PERMUTE && moved < m.planned[c];
                if (!is_less && fabs(moved - m.planned[c]) > 0.5)
                    fail_msg("mesh %d, %s: %g bytes moved, %g planned", i,
                             octavo_collective_name((octavo_collective)c), moved, m.planned[c]);
            }
            world_results_free(&got);
        }
        world_free(&w);
    }
}

/* Ranks of several processes, of which each has every second or third one, or one alone. */
static void test_processes(void **state) {
    static const world_mesh list[] = {
        {.mesh = {{1, 1, 1, 2}}, .n_processes = 2}, {.mesh = {{1, 1, 1, 4}}, .n_processes = 2},
        {.mesh = {{2, 1, 1, 1}}, .n_processes = 2}, {.mesh = {{1, 2, 1, 2}}, .n_processes = 3},
        {.mesh = {{2, 1, 2, 1}}, .n_processes = 4}, {.mesh = {{1, 1, 2, 2}}, .n_processes = 2},
    };
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        world w;
        world_results want = {0};
        world_desc desc = dense;
        desc.has_bias = desc.has_whole_qk_norm = true;
        desc.n_experts = kind == 0 ? 0 : 9;
        desc.n_chosen = 2;
        desc.is_tied = kind == 1;
        world_make(&w, &desc);
        world_run_whole(&w, steps, STEPS, 1, &want);
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
            world_mesh m = list[i];
            world_results got = {0};
            octavo_error error;
            const int groups = m.mesh.degree[OCTAVO_MESH_DATA];
            m.n_threads = 1;
            m.can_move_weights = kind == 1;
            for (int g = 0; g <= groups; g++)
                m.group_begin[g] = g * WORLD_SEQUENCES / groups;
            if (!world_run_ranks(&w, &m, steps, STEPS, &got, &error)) fail_msg("%s", error.message);
            compare(&want, &got, true, "processes");
            world_results_free(&got);
        }
        world_results_free(&want);
        world_free(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),     cmocka_unit_test(test_eight),
        cmocka_unit_test(test_quantised), cmocka_unit_test(test_norms),
        cmocka_unit_test(test_experts),   cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_traffic),   cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
