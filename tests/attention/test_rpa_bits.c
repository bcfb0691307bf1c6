/* SPDX-License-Identifier: Apache-2.0
 *
 * Same bits: a row does not change with chunks, threads, pages, neighbours or what unread memory
 * holds; and they are the right ones, over several kv splits too.
 */
#include "../unit.h"
#include "kernels/order.h"
#include "rpa_case.h"
#include "rpa_context.h"
#include "rpa_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define F32  OCTAVO_DTYPE_F32
#define F16  OCTAVO_DTYPE_F16
#define BF16 OCTAVO_DTYPE_BF16

#define E4M3 OCTAVO_DTYPE_FP8_E4M3
#define E5M2 OCTAVO_DTYPE_FP8_E5M2
#define INT8 OCTAVO_DTYPE_INT8

#define HEADS(n_q, n_kv, d, q, kv)                                                                 \
    .n_q_heads = n_q, .n_kv_heads = n_kv, .head_dim = d, .q_dtype = q, .kv_dtype = kv

/* Of the published contract. */
static const rpa_shape shapes[] = {
    {HEADS(6, 2, 64, F32, F32)},
    {HEADS(3, 3, 80, F32, F16), .has_sink = true},
    {HEADS(4, 1, 33, F16, BF16), .window = 20},
    {HEADS(7, 1, 16, BF16, BF16), .soft_cap = 30.0, .has_sink = true},
    {HEADS(5, 5, 1, F32, F16), .window = 1, .soft_cap = -3.0, .has_sink = true},
    {HEADS(2, 2, 200, F16, F16), .window = 70, .soft_cap = 50.0, .q_scale = 0.5},
    {HEADS(2, 1, 512, BF16, F32), .q_scale = 0.3},
    {HEADS(9, 3, 7, F32, BF16), .window = 3},
    {HEADS(6, 2, 64, BF16, E4M3), .has_sink = true},
    {HEADS(3, 3, 37, F16, E5M2), .window = 30, .q_scale = 0.1},
    {HEADS(8, 2, 18, F32, INT8), .q_scale = 0.05},
};

/* Beyond it. */
static const rpa_shape wider_shapes[] = {
    {HEADS(4, 2, 40, F32, BF16), .has_alibi = true},
    {HEADS(6, 3, 24, BF16, BF16), .precision = OCTAVO_ATTENTION_BF16},
    {HEADS(4, 2, 33, F16, BF16), .chunk = 24, .has_head_scales = true},
    {HEADS(4, 4, 16, F32, E4M3), .is_quantised_on_the_way = true},
    {HEADS(2, 1, 50, BF16, INT8), .is_quantised_on_the_way = true, .has_head_scales = true},
    {HEADS(4, 2, 20, F16, E5M2), .is_quantised_on_the_way = true, .has_alibi = true,
     .soft_cap = 20.0},
    {HEADS(6, 2, 32, F32, F16), .output_scale = 0.02, .out_dtype = E4M3},
    {HEADS(4, 4, 48, BF16, BF16), .window = 33, .output_scale = 0.01, .out_dtype = INT8},
};

/* Only in the engine's layout. */
static const rpa_shape column_shapes[] = {
    {HEADS(4, 2, 40, F32, BF16), .value_dim = 24},
    {HEADS(3, 1, 19, F16, F16), .value_dim = 50},
    {HEADS(5, 1, 72, BF16, BF16), .value_dim = 64, .value_in_key = true},
    {HEADS(2, 1, 576, F32, F32), .value_dim = 512, .value_in_key = true},
    {HEADS(2, 1, 5, F32, F32), .value_dim = 3, .value_in_key = true},
    {HEADS(4, 2, 22, F32, E4M3), .value_dim = 5, .has_sink = true},
};

/* Units in the last place of the output's type, and what is added where it is subnormal. */
static double relative_bound(octavo_dtype dtype) {
    switch (dtype) {
    case F32:
        return 0x1p-19;
    case F16:
        return 0x1p-10;
    case BF16:
        return 0x1p-7;
    default:
        return dtype == E4M3 ? 0x1p-4 : 0x1p-3;
    }
}

static double absolute_bound(octavo_dtype dtype) {
    return dtype == F16 ? 0x1p-24 : dtype == E4M3 ? 0x1p-10 : dtype == INT8 ? 0.5 : 0.0;
}

/* The value that is nearest in a type that clips. */
static double clipped(double x, octavo_dtype dtype) {
    const double most = dtype == E4M3 ? 448.0 : dtype == INT8 ? 127.0 : (double)INFINITY;
    return x > most ? most : x < -most ? (dtype == INT8 && x < -128.0 ? -128.0 : -most) : x;
}

static void check_row(const rpa_stream *s, const void *out, int position) {
    const int dv = rpa_value_dim(&s->shape);
    const octavo_dtype dtype = rpa_out_dtype(&s->shape);
    double *row = malloc((size_t)dv * sizeof *row), bound;
    assert_non_null(row);
    for (int a = 0; a < s->shape.n_q_heads; a++) {
        rpa_stream_row(s, position, a, row, &bound);
        for (int i = 0; i < dv; i++) {
            double got =
                rpa_value(out, dtype, ((int64_t)position * s->shape.n_q_heads + a) * dv + i);
            double want = clipped(row[i], dtype);
            double limit = bound + absolute_bound(dtype);
            if (dtype != INT8) limit += relative_bound(dtype) * fabs(want);
            if (!(fabs(got - want) <= limit))
                fail_msg("position %d head %d lane %d: %.9g, want %.9g +- %.3g", position, a, i,
                         got, want, limit);
        }
    }
    free(row);
}

static void check_same(const rpa_stream *s, const void *want, const rpa_way *way) {
    void *got = rpa_stream_run(s, way);
    const size_t row = rpa_stream_output_bytes(s) / (size_t)s->n;
    for (int p = 0; p < s->n; p++) {
        if (memcmp((uint8_t *)got + (size_t)p * row, (const uint8_t *)want + (size_t)p * row, row))
            fail_msg("position %d differs: %s, %d threads, pages of %d (%u), chunks of %d after "
                     "%d, %d neighbours, layout %d, %d queries and %d pages a block%s",
                     p, way->isa, way->n_threads, way->page_size, (unsigned)way->shuffle,
                     way->chunk, way->start, way->neighbours, (int)way->layout,
                     way->queries_per_block, way->pages_per_block, way->is_tight ? ", tight" : "");
    }
    free(got);
}

/* Ways in one layout; `whole` for a sequence that must come in one chunk. */
static void check_ways(const rpa_stream *s, const char *isa, octavo_kv_layout layout,
                       const void *want) {
    const int n = s->n, one = s->shape.type == OCTAVO_ATTENTION_DECODER ? 1 : n;
    const int seven = one == 1 ? 7 : n, many = one == 1 ? 64 : n, late = one == 1 ? 60 : 0;
    const rpa_way ways[] = {
        {isa, 2, 64, 5, 0, n, 0, layout, 0, 0, false},
        {isa, 2, 16, 0, 0, one, 0, layout, 0, 3, false},
        {isa, 1, 8, 3, 0, seven, 0, layout, 2, 0, true},
        {isa, 3, 1, 9, 0, many, 0, layout, 5, 200, false},
        {isa, 3, 8, 4, 0, n, 2, layout, 0, 0, true},
        {isa, 2, 7, 8, 0, one, 4, layout, 0, 0, false},
        {isa, 1, 64, 2, 0, seven, 3, layout, 0, 1, false},
        {isa, 2, 1, 7, late, one == 1 ? 3 : n, 2, layout, 1, 0, false},
    };
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        check_same(s, want, &ways[w]);
}

static void check_shapes(const rpa_shape *some, size_t count, bool has_rows, bool has_columns) {
    for (size_t k = 0; k < count; k++) {
        const int n = some[k].head_dim > 100 ? 75 : 135;
        const octavo_kv_layout first = has_rows ? OCTAVO_KV_ROWS : OCTAVO_KV_COLUMNS;
        rpa_stream s = rpa_stream_make(&some[k], n, (uint32_t)k + 1);
        for (int i = 0; rpa_level(i) != NULL; i++) {
            const char *isa = rpa_level(i);
            void *want = rpa_stream_run(&s, &(rpa_way){isa, 1, 16, 0, 0, n, 0, first, 0, 0, false});
            for (int p = 0; p < n; p += p < 8 ? 1 : 13)
                check_row(&s, want, p);
            if (has_rows) check_ways(&s, isa, OCTAVO_KV_ROWS, want);
            if (has_columns) check_ways(&s, isa, OCTAVO_KV_COLUMNS, want);
            free(want);
        }
        rpa_stream_free(&s);
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void rows_do_not_depend_on_the_way(void **state) {
    (void)state;
    check_shapes(shapes, COUNT(shapes), true, true);
}

static void nor_do_those_beyond_the_contract(void **state) {
    (void)state;
    check_shapes(wider_shapes, COUNT(wider_shapes), true, true);
}

static void nor_those_of_the_engines_layout(void **state) {
    (void)state;
    check_shapes(column_shapes, COUNT(column_shapes), false, true);
}

static void nor_those_of_an_encoder(void **state) {
    (void)state;
    static const rpa_shape encoders[] = {
        {HEADS(4, 2, 40, F32, BF16), .type = OCTAVO_ATTENTION_ENCODER},
        {HEADS(3, 1, 16, BF16, F16), .type = OCTAVO_ATTENTION_ENCODER, .window = 9,
         .has_alibi = true},
        {HEADS(2, 2, 24, F16, F32), .type = OCTAVO_ATTENTION_ENCODER, .chunk = 50,
         .has_sink = true},
    };
    check_shapes(encoders, COUNT(encoders), true, true);
}

/* Over kv splits: rows on both sides of each bound, splits computed by one item or joined from
 * several (long decodes on many threads). */
static void splits_join_the_same_way(void **state) {
    (void)state;
    static const rpa_shape long_shapes[] = {
        {HEADS(3, 1, 16, F32, F16), .has_sink = true},
        {HEADS(2, 2, 8, BF16, BF16), .window = OCTAVO_KV_SPLIT + 100},
        {HEADS(2, 1, 8, F32, F32), .window = 70},
        {HEADS(2, 1, 8, F32, E4M3), .chunk = OCTAVO_KV_SPLIT / 2 + 33},
    };
    const int n = 2 * OCTAVO_KV_SPLIT + 40, late = 2 * OCTAVO_KV_SPLIT - 6;
    for (size_t k = 0; k < sizeof long_shapes / sizeof long_shapes[0]; k++) {
        rpa_stream s = rpa_stream_make(&long_shapes[k], n, 100 + (uint32_t)k);
        for (int i = 0; rpa_level(i) != NULL && i < 3; i++) {
            const char *isa = rpa_level(i);
            void *want =
                rpa_stream_run(&s, &(rpa_way){isa, 1, 16, 0, 0, n, 0, OCTAVO_KV_ROWS, 0, 0, false});
            static const int rows[] = {0, OCTAVO_KV_SPLIT - 1, OCTAVO_KV_SPLIT,
                                       2 * OCTAVO_KV_SPLIT - 1, 2 * OCTAVO_KV_SPLIT + 1};
            for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
                check_row(&s, want, rows[r]);
            check_same(&s, want,
                       &(rpa_way){isa, 3, 64, 11, late, 1, 0, OCTAVO_KV_ROWS, 0, 0, false});
            check_same(&s, want,
                       &(rpa_way){isa, 1, 64, 0, late, 1, 0, OCTAVO_KV_ROWS, 0, 0, false});
            check_same(&s, want,
                       &(rpa_way){isa, 2, 16, 3, late - 9, 5, 0, OCTAVO_KV_ROWS, 0, 0, false});
            check_same(&s, want,
                       &(rpa_way){isa, 2, 8, 12, 1000, 500, 0, OCTAVO_KV_ROWS, 0, 9, false});
            check_same(&s, want,
                       &(rpa_way){isa, 3, 16, 5, late, 1, 0, OCTAVO_KV_COLUMNS, 0, 0, false});
            check_same(&s, want,
                       &(rpa_way){isa, 1, 9, 6, late, 2, 0, OCTAVO_KV_COLUMNS, 0, 50, false});
            free(want);
        }
        rpa_stream_free(&s);
    }
}

/* Keys and values that only later rows of the chunk see leave the earlier rows alone, whatever they
 * hold. */
static void check_bad_position(rpa_stream *s, const rpa_way *way, const void *want, int bad) {
    const int row = s->shape.n_q_heads * s->shape.head_dim;
    const size_t bytes =
        (size_t)(s->shape.n_kv_heads * s->shape.head_dim) * octavo_dtype_size(s->shape.kv_dtype);
    uint8_t *const arrays[] = {s->keys, s->values, s->cached_keys, s->cached_values};
    uint8_t saved[4][256];
    assert_true(bytes <= sizeof saved[0]);
    for (int i = 0; i < 4; i++) {
        memcpy(saved[i], arrays[i] + (size_t)bad * bytes, bytes);
        memset(arrays[i] + (size_t)bad * bytes, 0xff, bytes);
    }
    float *got = rpa_stream_run(s, way);
    assert_memory_equal(got, want, (size_t)(bad * row) * sizeof *got);
    for (int i = bad * row; i < s->n * row; i++)
        assert_true(isnan(got[i]));
    for (int i = 0; i < 4; i++)
        memcpy(arrays[i] + (size_t)bad * bytes, saved[i], bytes);
    free(got);
}

static void check_bad_positions(rpa_stream *s, const rpa_way *way) {
    void *want = rpa_stream_run(s, way);
    for (int bad = 62; bad < 74; bad++) /* every place in a tile and in a block */
        check_bad_position(s, way, want, bad);
    free(want);
}

static void rows_ignore_what_they_do_not_see(void **state) {
    (void)state;
    static const octavo_dtype types[] = {F32, F16, BF16, E4M3, E5M2};
    for (size_t k = 0; k < COUNT(types) * 4; k++) {
        const rpa_shape shape = {.n_q_heads = k % 2 ? 3 : 1,
                                 .n_kv_heads = 1,
                                 .head_dim = 24,
                                 .q_dtype = F32,
                                 .kv_dtype = types[k / 4],
                                 .precision = (octavo_attention_precision)(k / 2 % 2)};
        rpa_stream s = rpa_stream_make(&shape, 100, 5);
        for (int i = 0; rpa_level(i) != NULL; i++) {
            rpa_way way = {.isa = rpa_level(i), .n_threads = 1, .page_size = 16, .chunk = s.n};
            check_bad_positions(&s, &way);
            way.layout = OCTAVO_KV_COLUMNS;
            check_bad_positions(&s, &way);
        }
        rpa_stream_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_do_not_depend_on_the_way),
        cmocka_unit_test(nor_do_those_beyond_the_contract),
        cmocka_unit_test(nor_those_of_the_engines_layout),
        cmocka_unit_test(nor_those_of_an_encoder),
        cmocka_unit_test(splits_join_the_same_way),
        cmocka_unit_test(rows_ignore_what_they_do_not_see),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
