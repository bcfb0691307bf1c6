/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights times values: in the order of places, or as pairs of bf16.
 */
#include "check_attention.h"

#include <math.h>

/* Row by row, in two parts, from panels: the same bits. */
static void check_values_again(tester *t, const attention_pair *k, const sample_rows *v,
                               const float *acc, const float *rescale, const float *p, int n_rows,
                               const float *want) {
    const int width = round_up(v->d, 16), d = v->d;
    const int cut = (int)tester_between(t, v->begin, v->end);
    float *split = sample_copied(t, "split", acc, (int64_t)n_rows * width);
    float *panel = sample_copied(t, "panel", acc, (int64_t)n_rows * width);
    float *panels = sample_floats(t, "panels", (int64_t)width * BLOCK);
    for (int r = 0; r < n_rows; r++) {
        float *row = split + r * width;
        const float *weights = p + r * BLOCK;
        k->level->values[k->type](row, width, rescale + r, weights, 1, v->slots, v->offset,
                                  v->begin, cut, d, NULL);
        k->level->values[k->type](row, width, NULL, weights, 1, v->slots, v->offset, cut, v->end, d,
                                  NULL);
        tester_equal_f32(t, "acc in parts", row, want + r * width, d);
    }
    k->level->widen_values[k->type](panels, v->slots, v->offset, v->begin, v->end, d);
    for (int j = v->begin; j < v->end; j++) {
        for (int i = 0; i < d; i++) {
            const float want_lane = sample_lane(v, j, i);
            tester_equal_f32(t, "panel", &panels[(i / 16 * BLOCK + j) * 16 + i % 16], &want_lane,
                             1);
        }
    }
    k->level->panel_values(panel, width, rescale, p, n_rows, panels, v->begin, v->end, d);
    for (int r = 0; r < n_rows; r++)
        tester_equal_f32(t, "acc from panels", panel + r * width, want + r * width, d);
}

static void check_values_once(tester *t, const attention_pair *k, int d, int n_rows,
                              bool is_whole) {
    sample_rows v = sample_rows_make(t, k->type, d, is_whole, false);
    const int width = round_up(d, 16);
    float *acc = sample_filled(t, "acc", (int64_t)n_rows * width, TESTER_FILL_NORMAL);
    float *got = sample_copied(t, "got", acc, (int64_t)n_rows * width);
    float *p = sample_floats(t, "p", (int64_t)n_rows * BLOCK);
    float *rescale = sample_floats(t, "rescale", n_rows);
    for (int i = 0; i < n_rows * BLOCK; i++)
        p[i] = tester_uniform(t, 0.0f, 1.0f);
    for (int r = 0; r < n_rows; r++)
        rescale[r] = tester_uniform(t, 0.0f, 1.0f);
    tester_seal(t, p);
    tester_context(t, "d=%d rows=%d places=[%d, %d)", d, n_rows, v.begin, v.end);
    k->level->values[k->type](got, width, rescale, p, n_rows, v.slots, v.offset, v.begin, v.end, d,
                              NULL);
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < d; i++) {
            double want = (double)acc[r * width + i] * (double)rescale[r], sum = fabs(want);
            float exact = acc[r * width + i] * rescale[r];
            for (int j = v.begin; j < v.end; j++) {
                const float value = sample_lane(&v, j, i);
                double x = (double)p[r * BLOCK + j] * (double)value;
                want += x;
                sum += fabs(x);
                exact = plus_product(k, exact, p[r * BLOCK + j], value);
            }
            double bound = (v.end - v.begin + 2) * ULP * sum;
            tester_near_f32(t, "acc", &got[r * width + i], &want, &bound, 1);
            tester_equal_f32(t, "acc in the order of places", &got[r * width + i], &exact, 1);
        }
    }
    check_values_again(t, k, &v, acc, rescale, p, n_rows, got);
    tester_release(t);
}

static void bench_values(tester *t, const attention_pair *k, int n, const char *label) {
    const int d = 128;
    sample_rows v = sample_rows_make(t, k->type, d, true, false);
    float *acc = sample_filled(t, "acc", n * d, TESTER_FILL_ZERO);
    float *p = sample_filled(t, "p", n * BLOCK, TESTER_FILL_NORMAL);
    tester_bench(t, label, &(tester_work){.ops = 2.0 * n * d * BLOCK});
    while (tester_run(t))
        k->level->values[k->type](acc, d, NULL, p, n, v.slots, v.offset, 0, BLOCK, d, NULL);
}

void check_values(tester *t, const void *arg) {
    const attention_pair *k = arg;
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows += n_rows < 8 ? 1 : 5)
            check_values_once(t, k, widths[w], n_rows, n_rows % 2 == 0);
    }
    bench_values(t, k, 1, "rows=1 d=128");
    bench_values(t, k, 4, "rows=4 d=128");
    const int d = 128, n = 96;
    float *panels = sample_filled(t, "panels", d * BLOCK, TESTER_FILL_NORMAL);
    float *acc = sample_filled(t, "acc", n * d, TESTER_FILL_ZERO);
    float *p = sample_filled(t, "p", n * BLOCK, TESTER_FILL_NORMAL);
    tester_bench(t, "panels rows=96 d=128", &(tester_work){.ops = 2.0 * n * d * BLOCK});
    while (tester_run(t))
        k->level->panel_values(acc, d, NULL, p, n, panels, 0, BLOCK, d);
}

/* Places that are not seen hold NaN, as what lies in a cache may. */
static void check_pair_values_once(tester *t, const attention_pair *k, int d, int n_rows,
                                   bool is_whole) {
    sample_rows v = sample_rows_make(t, BF16, d, is_whole, false);
    const int width = round_up(d, 16);
    float *acc = sample_filled(t, "acc", (int64_t)n_rows * width, TESTER_FILL_NORMAL);
    float *got = sample_copied(t, "got", acc, (int64_t)n_rows * width);
    float *parts = sample_copied(t, "parts", acc, (int64_t)n_rows * width);
    float *p = sample_bf16_filled(t, "p", (int64_t)n_rows * BLOCK, TESTER_FILL_NORMAL);
    float *rescale = sample_floats(t, "rescale", n_rows);
    for (int r = 0; r < n_rows; r++)
        rescale[r] = tester_uniform(t, 0.0f, 1.0f);
    uint32_t *panels = tester_buffer(t, "panels", (size_t)width * BLOCK / 2 * 4, 64);
    tester_context(t, "d=%d rows=%d places=[%d, %d)", d, n_rows, v.begin, v.end);
    k->level->pair_up(panels, v.slots, v.offset, v.begin, v.end, d);
    /* what the call is about may be less than what is there */
    const int begin = (int)tester_between(t, v.begin, v.end - 1);
    const int end = (int)tester_between(t, begin + 1, v.end);
    for (int m = 0; m < BLOCK / 2; m++) {
        const uint32_t nan = (2 * m < begin || 2 * m >= end ? 0x7fc0u : 0) |
                             (2 * m + 1 < begin || 2 * m + 1 >= end ? 0x7fc00000u : 0);
        for (int i = 0; i < width; i++)
            panels[(i / GROUP * BLOCK / 2 + m) * GROUP + i % GROUP] |= nan;
    }
    tester_seal(t, panels);
    k->level->pair_values(got, width, rescale, p, n_rows, panels, begin, end, d);
    const int cut = (int)tester_between(t, begin / 2, end / 2) * 2;
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < d; i++) {
            double want = (double)acc[r * width + i] * (double)rescale[r], sum = fabs(want);
            for (int j = begin; j < end; j++) {
                const double x = (double)p[r * BLOCK + j] * (double)sample_lane(&v, j, i);
                want += x;
                sum += fabs(x);
            }
            double bound = (end - begin + 2) * ULP * sum + 1e-36;
            tester_near_f32(t, "acc", &got[r * width + i], &want, &bound, 1);
        }
        /* row by row and cut between pairs: the same bits */
        float *row = parts + r * width;
        const int middle = cut > begin ? cut : begin;
        k->level->pair_values(row, width, rescale + r, p + r * BLOCK, 1, panels, begin, middle, d);
        k->level->pair_values(row, width, NULL, p + r * BLOCK, 1, panels, middle, end, d);
        tester_equal_f32(t, "acc in parts", row, got + r * width, d);
    }
    tester_release(t);
}

void check_pair_values(tester *t, const void *arg) {
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows += n_rows < 8 ? 1 : 5) {
            for (int turn = 0; turn < 3; turn++)
                check_pair_values_once(t, arg, widths[w], n_rows, turn == 0);
        }
    }
}
