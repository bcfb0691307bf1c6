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

static const rpa_shape shapes[] = {
    /* heads, width, types, window, cap, q_scale, sink */
    {6, 2, 64, F32, F32, 0, 0.0, 0.0, false},   {3, 3, 80, F32, F16, 0, 0.0, 0.0, true},
    {4, 1, 33, F16, BF16, 20, 0.0, 0.0, false}, {7, 1, 16, BF16, BF16, 0, 30.0, 0.0, true},
    {5, 5, 1, F32, F16, 1, -3.0, 0.0, true},    {2, 2, 200, F16, F16, 70, 50.0, 0.5, false},
    {2, 1, 512, BF16, F32, 0, 0.0, 0.3, false}, {9, 3, 7, F32, BF16, 3, 0.0, 0.0, false},
};

/* Units in the last place of the output's type. */
static double relative_bound(octavo_dtype dtype) {
    return dtype == OCTAVO_DTYPE_F32   ? ldexp(1.0, -19)
           : dtype == OCTAVO_DTYPE_F16 ? 0x1p-10
                                       : 0x1p-7;
}

static void check_row(const rpa_stream *s, const void *out, int position) {
    const int d = s->shape.head_dim;
    double *row = malloc((size_t)d * sizeof *row), bound;
    assert_non_null(row);
    for (int a = 0; a < s->shape.n_q_heads; a++) {
        rpa_stream_row(s, position, a, row, &bound);
        for (int i = 0; i < d; i++) {
            double got = rpa_value(out, s->shape.q_dtype,
                                   ((int64_t)position * s->shape.n_q_heads + a) * d + i);
            double limit = bound + relative_bound(s->shape.q_dtype) * fabs(row[i]);
            if (s->shape.q_dtype == OCTAVO_DTYPE_F16) limit += 0x1p-24;
            if (!(fabs(got - row[i]) <= limit))
                fail_msg("position %d head %d lane %d: %.9g, want %.9g +- %.3g", position, a, i,
                         got, row[i], limit);
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
                     "%d, %d neighbours",
                     p, way->isa, way->n_threads, way->page_size, (unsigned)way->shuffle,
                     way->chunk, way->start, way->neighbours);
    }
    free(got);
}

static void rows_do_not_depend_on_the_way(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        const int n = shapes[k].head_dim > 100 ? 75 : 135;
        rpa_stream s = rpa_stream_make(&shapes[k], n, (uint32_t)k + 1);
        for (int i = 0; rpa_level(i) != NULL; i++) {
            const char *isa = rpa_level(i);
            if (i > 2) continue; /* attention has no code of its own for higher levels */
            void *want = rpa_stream_run(&s, &(rpa_way){isa, 1, 16, 0, 0, n, 0});
            for (int p = 0; p < n; p += p < 8 ? 1 : 13)
                check_row(&s, want, p);
            const rpa_way ways[] = {
                {isa, 2, 64, 5, 0, n, 0}, {isa, 2, 16, 0, 0, 1, 0}, {isa, 1, 8, 3, 0, 7, 0},
                {isa, 3, 1, 9, 0, 64, 0}, {isa, 3, 8, 4, 0, n, 2},  {isa, 2, 7, 8, 0, 1, 4},
                {isa, 1, 64, 2, 0, 7, 3}, {isa, 2, 1, 7, 60, 3, 2},
            };
            for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
                check_same(&s, want, &ways[w]);
            free(want);
        }
        rpa_stream_free(&s);
    }
}

/* Over kv splits: rows on both sides of each bound, splits computed by one item or joined from
 * several (long decodes on many threads). */
static void splits_join_the_same_way(void **state) {
    (void)state;
    static const rpa_shape long_shapes[] = {
        {3, 1, 16, F32, F16, 0, 0.0, 0.0, true},
        {2, 2, 8, BF16, BF16, OCTAVO_KV_SPLIT + 100, 0.0, 0.0, false},
        {2, 1, 8, F32, F32, 70, 0.0, 0.0, false},
    };
    const int n = 2 * OCTAVO_KV_SPLIT + 40, late = 2 * OCTAVO_KV_SPLIT - 6;
    for (size_t k = 0; k < sizeof long_shapes / sizeof long_shapes[0]; k++) {
        rpa_stream s = rpa_stream_make(&long_shapes[k], n, 100 + (uint32_t)k);
        for (int i = 0; rpa_level(i) != NULL && i < 3; i++) {
            const char *isa = rpa_level(i);
            void *want = rpa_stream_run(&s, &(rpa_way){isa, 1, 16, 0, 0, n, 0});
            static const int rows[] = {0, OCTAVO_KV_SPLIT - 1, OCTAVO_KV_SPLIT,
                                       2 * OCTAVO_KV_SPLIT - 1, 2 * OCTAVO_KV_SPLIT + 1};
            for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
                check_row(&s, want, rows[r]);
            check_same(&s, want, &(rpa_way){isa, 3, 64, 11, late, 1, 0});
            check_same(&s, want, &(rpa_way){isa, 1, 64, 0, late, 1, 0});
            check_same(&s, want, &(rpa_way){isa, 2, 16, 3, late - 9, 5, 0});
            check_same(&s, want, &(rpa_way){isa, 2, 8, 12, 1000, 500, 0});
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
    uint8_t *key = (uint8_t *)s->keys + (size_t)bad * bytes;
    uint8_t *value = (uint8_t *)s->values + (size_t)bad * bytes;
    uint8_t saved[2][256];
    assert_true(bytes <= sizeof saved[0]);
    memcpy(saved[0], key, bytes);
    memcpy(saved[1], value, bytes);
    memset(key, 0xff, bytes);
    memset(value, 0xff, bytes);
    float *got = rpa_stream_run(s, way);
    assert_memory_equal(got, want, (size_t)(bad * row) * sizeof *got);
    for (int i = bad * row; i < s->n * row; i++)
        assert_true(isnan(got[i]));
    memcpy(key, saved[0], bytes);
    memcpy(value, saved[1], bytes);
    free(got);
}

static void rows_ignore_what_they_do_not_see(void **state) {
    (void)state;
    static const octavo_dtype types[] = {F32, F16, BF16};
    const int n = 100;
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        for (int heads = 1; heads <= 3; heads += 2) {
            const rpa_shape shape = {heads, 1, 24, F32, types[k], 0, 0.0, 0.0, false};
            rpa_stream s = rpa_stream_make(&shape, n, 5);
            for (int i = 0; rpa_level(i) != NULL && i < 3; i++) {
                const rpa_way way = {rpa_level(i), 1, 16, 0, 0, n, 0};
                void *want = rpa_stream_run(&s, &way);
                for (int bad = 62; bad < 74; bad++) /* every place in a tile and in a block */
                    check_bad_position(&s, &way, want, bad);
                free(want);
            }
            rpa_stream_free(&s);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_do_not_depend_on_the_way),
        cmocka_unit_test(splits_join_the_same_way),
        cmocka_unit_test(rows_ignore_what_they_do_not_see),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
