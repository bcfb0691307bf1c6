/* SPDX-License-Identifier: Apache-2.0
 *
 * The order contract, and the proof that neither ranks nor batches change a matmul: computed whole,
 * as 2, 4 and 8 parts of whole slices joined by the tree, in any batch, row place and panel range,
 * it has the same bits at every level of this machine.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "kernels/matmul.h"
#include "kernels/vector.h"
#include "weight_samples.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* --- slices --- */

static void check_slices(int64_t extent, int64_t unit) {
    const octavo_slices slices = octavo_slices_make(extent, unit);
    const int n = slices.n;
    const int64_t units = (extent + unit - 1) / unit;
    assert_true(n == 1 || n == 2 || n == 4 || n == 8);
    assert_int_equal(slices.cut[0], 0);
    assert_int_equal(slices.cut[n], extent);
    for (int i = 0; i < n; i++) {
        if (i > 0) assert_int_equal(slices.cut[i], i * units / n * unit);
        if (n > 1) assert_true(slices.cut[i + 1] - slices.cut[i] >= OCTAVO_MIN_SLICE);
    }
    /* no larger number would have done */
    for (int m = 2 * n; m <= OCTAVO_MAX_SLICES; m *= 2) {
        bool is_short = false;
        for (int i = 0; i < m; i++) {
            int64_t begin = i * units / m * unit;
            int64_t end = i + 1 == m ? extent : (i + 1) * units / m * unit;
            is_short = is_short || end - begin < OCTAVO_MIN_SLICE;
        }
        assert_true(is_short);
    }
}

static void test_slices(void **state) {
    static const int64_t units[] = {1, 2, 32, 64, 80, 96, 128, 160, 256, 512, 576};
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(units); i++) {
        for (int64_t extent = 0; extent <= 1100; extent++)
            check_slices(extent, units[i]);
        for (int64_t n = 1; n < 150; n++)
            check_slices(n * units[i], units[i]);
    }
    assert_int_equal(octavo_slices_make(576, 32).n, 4);
    assert_int_equal(octavo_slices_make(896, 32).n, 4);
    assert_int_equal(octavo_slices_make(1024, 128).n, 8);
    assert_int_equal(octavo_slices_make(1024, 256).n, 4);
    assert_int_equal(octavo_slices_make(255, 1).n, 1);
}

static void test_unit(void **state) {
    (void)state;
    assert_int_equal(octavo_slices_unit(64, 32), 64);
    assert_int_equal(octavo_slices_unit(80, 32), 160);
    assert_int_equal(octavo_slices_unit(96, 256), 768);
    assert_int_equal(octavo_slices_unit(1, 1), 1);
    assert_int_equal(octavo_slices_unit(7, 1), 7);
}

/* --- the tree --- */

/* Numbers of which every other order of addition gives something else. */
static void test_tree(void **state) {
    enum { WIDTH = 37 };
    float parts[OCTAVO_MAX_SLICES * 40], want[WIDTH], p[OCTAVO_MAX_SLICES];
    uint64_t random = 5;
    int n_other = 0;
    (void)state;
    for (int i = 0; i < OCTAVO_MAX_SLICES * 40; i++)
        parts[i] = sample_uniform(&random);
    for (int j = 0; j < WIDTH; j++) {
        float ascending = 0.0f;
        for (int i = 0; i < OCTAVO_MAX_SLICES; i++)
            ascending += p[i] = parts[i * 40 + j];
        want[j] = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
        n_other += ascending != want[j];
    }
    assert_true(n_other > WIDTH / 4);
    octavo_tree_add(parts, OCTAVO_MAX_SLICES, 40, WIDTH);
    assert_memory_equal(parts, want, sizeof want);

    float single[2] = {3.0f, -0.0f};
    octavo_tree_add(single, 1, 2, 2);
    assert_true(single[0] == 3.0f && single[1] == 0.0f);
}

/* --- matmul --- */

typedef struct problem {
    octavo_matmul_args args; /* whole, into `out` */
    octavo_slices slices;
    uint8_t *weight;
    float *x;
    octavo_q8_block *q;
    float *bias;
    float *out, *other; /* [n_rows][n] */
    size_t out_bytes;
} problem;

static void problem_init(problem *p, octavo_weight_type type, bool is_q8, int64_t n_rows, int64_t n,
                         int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    const size_t row_bytes = weight_row_bytes(type, k);
    uint64_t random = 77 + (uint64_t)type;
    *p = (problem){.slices = octavo_slices_make(k, info->record_inputs)};
    p->out_bytes = (size_t)(n_rows * n) * sizeof(float);
    uint8_t *rows = octavo_alloc_aligned((size_t)n * row_bytes);
    p->weight = octavo_alloc_aligned(octavo_weight_bytes(type, n, k));
    p->x = octavo_alloc_aligned((size_t)(n_rows * k) * sizeof *p->x);
    p->q = octavo_alloc_aligned((size_t)(n_rows * k / OCTAVO_BLOCK) * sizeof *p->q);
    p->bias = octavo_alloc_aligned((size_t)n * sizeof *p->bias);
    p->out = octavo_alloc_aligned(p->out_bytes);
    p->other = octavo_alloc_aligned(p->out_bytes);
    assert_true(rows && p->weight && p->x && p->q && p->bias && p->out && p->other);

    weight_sample_fill(type, WEIGHT_SAMPLE_NORMAL, rows, n, k, &random);
    for (int64_t o = 0; o < n; o += OCTAVO_PANEL)
        octavo_weight_pack(type, p->weight + octavo_weight_bytes(type, o, k),
                           rows + (size_t)o * row_bytes, row_bytes,
                           n - o < OCTAVO_PANEL ? (int)(n - o) : OCTAVO_PANEL, k);
    octavo_free_aligned(rows);
    for (int64_t i = 0; i < n_rows * k; i++)
        p->x[i] = sample_uniform(&random);
    for (int64_t i = 0; i < n_rows * k / OCTAVO_BLOCK; i++)
        q8_sample_block(p->q + i, p->x + i * OCTAVO_BLOCK);
    for (int64_t i = 0; i < n; i++)
        p->bias[i] = sample_uniform(&random);
    p->args = (octavo_matmul_args){
        .type = type,
        .weight = p->weight,
        .n = n,
        .k = k,
        .slices = &p->slices,
        .slice_end = p->slices.n,
        .x = is_q8 ? (const void *)p->q : p->x,
        .x_stride = is_q8 ? (size_t)(k / OCTAVO_BLOCK) * sizeof *p->q : (size_t)k * sizeof *p->x,
        .is_q8 = is_q8,
        .n_rows = n_rows,
        .out = p->out,
        .out_stride = n,
        .bias = p->bias,
    };
}

static void problem_deinit(problem *p) {
    octavo_free_aligned(p->weight);
    octavo_free_aligned(p->x);
    octavo_free_aligned(p->q);
    octavo_free_aligned(p->bias);
    octavo_free_aligned(p->out);
    octavo_free_aligned(p->other);
}

static int64_t panels_of(int64_t n) {
    return (n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
}

/* As `parts` ranks would: each computes a subtree of slices, then the partial sums are added. */
static void check_ranks(const octavo_matmul_kernels *kernels, const problem *p, int parts) {
    const int share = p->slices.n / parts;
    const int64_t size = p->args.n_rows * p->args.n;
    float *sums = octavo_alloc_aligned((size_t)parts * p->out_bytes);
    assert_non_null(sums);
    for (int rank = 0; rank < parts; rank++) {
        octavo_matmul_args args = p->args;
        args.slice_begin = rank * share;
        args.slice_end = (rank + 1) * share;
        args.out = sums + rank * size;
        args.bias = NULL;
        octavo_matmul(kernels, &args, 0, panels_of(args.n));
    }
    octavo_tree_add(sums, parts, size, size);
    for (int64_t i = 0; i < size; i++)
        sums[i] += p->bias[i % p->args.n];
    assert_memory_equal(sums, p->out, p->out_bytes);
    octavo_free_aligned(sums);
}

/* Batches of `batch` rows, panels in two ranges. */
static void check_batches(const octavo_matmul_kernels *kernels, const problem *p, int64_t batch) {
    const int64_t n_panels = panels_of(p->args.n);
    memset(p->other, 0xff, p->out_bytes);
    for (int64_t row = 0; row < p->args.n_rows; row += batch) {
        octavo_matmul_args args = p->args;
        args.x = (const uint8_t *)args.x + (size_t)row * args.x_stride;
        args.n_rows = args.n_rows - row < batch ? args.n_rows - row : batch;
        args.out = p->other + row * args.out_stride;
        octavo_matmul(kernels, &args, n_panels / 2, n_panels);
        octavo_matmul(kernels, &args, 0, n_panels / 2);
    }
    assert_memory_equal(p->other, p->out, p->out_bytes);
}

static void check_matmul_order(const octavo_matmul_kernels *kernels, octavo_weight_type type,
                               bool is_q8, int64_t n_rows, int64_t n, int64_t k) {
    static const int64_t batches[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 64, 67};
    problem p;
    problem_init(&p, type, is_q8, n_rows, n, k);
    memset(p.out, 0xff, p.out_bytes);
    octavo_matmul(kernels, &p.args, 0, panels_of(n));
    for (int parts = 1; parts <= p.slices.n; parts *= 2)
        check_ranks(kernels, &p, parts);
    for (size_t i = 0; i < OCTAVO_COUNT(batches); i++)
        check_batches(kernels, &p, batches[i]);
    problem_deinit(&p);
}

static void check_level(octavo_cpu_flags flags) {
    static const int64_t widths[] = {32, 256, 576, 896, 2048, 4864};
    octavo_matmul_kernels kernels;
    octavo_matmul_kernels_init(&kernels, flags);
    for (int t = 0; t < OCTAVO_WEIGHT_TYPES; t++) {
        const octavo_weight_info *info = octavo_weight_info_of((octavo_weight_type)t);
        for (size_t i = 0; i < OCTAVO_COUNT(widths); i++) {
            if (widths[i] % info->source_inputs) continue;
            const bool is_large = widths[i] > 1024;
            for (int is_q8 = 0; is_q8 <= info->is_quantised; is_q8++)
                check_matmul_order(&kernels, (octavo_weight_type)t, is_q8, is_large ? 9 : 67,
                                   is_large ? 33 : 70, widths[i]);
        }
    }
}

static void test_matmul_order(void **state) {
    size_t n_levels;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    const octavo_cpu_flags here = octavo_cpu_detect();
    (void)state;
    for (size_t i = 0; i < n_levels; i++) {
        if ((levels[i].flags & here) != levels[i].flags) continue;
        print_message("    level %s\n", levels[i].name);
        check_level(levels[i].flags);
    }
}

/* --- norm --- */

/* A norm over 1, 2, 4 and 8 ranks: each holds its slices of the row alone, at an address of its
 * own, and sends the sum of their subtree; the row's parts are then scaled where they lie. The
 * square root hides most differences in the last place, so it takes many rows to see a wrong order:
 * gives whether adding the slices from left to right would have shown in this one. */
static bool check_norm_order(const octavo_vector_kernels *kernels, int64_t d, int64_t unit,
                             uint64_t random) {
    enum { WIDEST = 4864, PAD = 3 };
    static float x[WIDEST], weight[WIDEST], want[WIDEST], shard[WIDEST + PAD], got[WIDEST];
    const octavo_slices slices = octavo_slices_make(d, unit);
    const float eps = 1e-6f;
    float ascending = 0.0f;
    for (int64_t i = 0; i < d; i++) {
        x[i] = sample_uniform(&random) * 30.0f;
        weight[i] = sample_uniform(&random);
    }
    octavo_rms_norm(kernels, want, x, weight, &slices, eps);
    for (int n_ranks = 1; n_ranks <= slices.n; n_ranks *= 2) {
        const int each = slices.n / n_ranks;
        float sums[OCTAVO_MAX_SLICES];
        for (int r = 0; r < n_ranks; r++) {
            const int64_t *cut = slices.cut + r * each;
            float parts[OCTAVO_MAX_SLICES];
            memcpy(shard + PAD, x + cut[0], (size_t)(cut[each] - cut[0]) * sizeof *x);
            for (int i = 0; i < each; i++)
                parts[i] = kernels->sum_squares(shard + PAD, cut[i] - cut[0], cut[i + 1] - cut[0]);
            octavo_tree_add(parts, each, 1, 1);
            sums[r] = parts[0];
        }
        octavo_tree_add(sums, n_ranks, 1, 1);
        const float scale = 1.0f / sqrtf(sums[0] / (float)d + eps);
        for (int r = 0; r < n_ranks; r++) {
            const int64_t begin = slices.cut[r * each], end = slices.cut[(r + 1) * each];
            kernels->scale_mul(got + begin, x + begin, scale, weight + begin, end - begin);
        }
        assert_memory_equal(got, want, (size_t)d * sizeof *want);
    }
    for (int i = 0; i < slices.n; i++)
        ascending += kernels->sum_squares(x, slices.cut[i], slices.cut[i + 1]);
    kernels->scale_mul(got, x, 1.0f / sqrtf(ascending / (float)d + eps), weight, d);
    return memcmp(got, want, (size_t)d * sizeof *want) != 0;
}

static void test_norm_order(void **state) {
    static const int64_t widths[] = {64, 300, 576, 640, 896, 2048, 4864};
    size_t n_levels;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    const octavo_cpu_flags here = octavo_cpu_detect();
    (void)state;
    assert_int_equal(octavo_slices_make(2048, 256).n, 8);
    for (size_t i = 0; i < n_levels; i++) {
        octavo_vector_kernels kernels;
        int n_other = 0;
        if ((levels[i].flags & here) != levels[i].flags) continue;
        octavo_vector_kernels_init(&kernels, levels[i].flags);
        for (size_t j = 0; j < OCTAVO_COUNT(widths); j++)
            for (uint64_t row = 1; row <= 100; row++)
                n_other += check_norm_order(&kernels, widths[j], row % 2 ? 1 : 32, row * 7919);
        print_message("    level %s: %d rows would show another order\n", levels[i].name, n_other);
        assert_true(n_other > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),     cmocka_unit_test(test_unit),
        cmocka_unit_test(test_tree),       cmocka_unit_test(test_matmul_order),
        cmocka_unit_test(test_norm_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
