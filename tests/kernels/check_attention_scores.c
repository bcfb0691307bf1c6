/* SPDX-License-Identifier: Apache-2.0
 *
 * Dot products of query rows and keys: in the order of lanes, or as pairs of bf16.
 */
#include "base/number.h"
#include "check_attention.h"

#include <math.h>

/* The bits of a score depend neither on rows or places that are computed along, nor on whether keys
 * were widened first, nor on the memory that is asked for meanwhile. */
static void check_alone(tester *t, const attention_pair *k, const float *all, const float *q,
                        int64_t stride, const sample_words *w, int n_rows, int d, int g) {
    const int r = (int)tester_between(t, 0, n_rows - 1);
    float *one = sample_floats(t, "one", BLOCK), *columns = sample_floats(t, "columns", d * GROUP);
    uint8_t *memory = tester_buffer(t, "memory", 3 * 1024, 64);
    octavo_ahead ahead = {.at = memory,
                          .left = 320,
                          .run = memory,
                          .slot = memory,
                          .run_bytes = 320,
                          .run_stride = 512,
                          .slot_stride = 1024,
                          .runs = 2,
                          .runs_left = 2,
                          .slots_left = 3,
                          .steps = (int)tester_between(t, 0, 40)};
    k->level->scores[k->type](one, q + r * stride, stride, 1, w->groups, g, g + 1, d, &ahead);
    tester_equal_f32(t, "score alone", one + g * GROUP, all + r * BLOCK + g * GROUP, GROUP);
    if (ahead.steps < 0 || ahead.slots_left < 0 || ahead.at > memory + 3 * 1024)
        tester_fail(t, "asks for memory past what there is");
    k->level->widen_keys[k->type](columns, w->groups[g], d);
    sample_words wide = {0};
    wide.groups[g] = (const void *)columns;
    k->level->scores[F32](one, q + r * stride, stride, 1, wide.groups, g, g + 1, d, NULL);
    tester_equal_f32(t, "score widened", one + g * GROUP, all + r * BLOCK + g * GROUP, GROUP);
}

static void check_scores_once(tester *t, const attention_pair *k, int d, int n_rows,
                              tester_fill fill) {
    const int stride = d + (int)tester_between(t, 0, 5);
    float *q = sample_filled(t, "q", (int64_t)n_rows * stride, fill);
    float *got = sample_floats(t, "s", (int64_t)n_rows * BLOCK);
    sample_rows v = sample_rows_make(t, k->type, d, n_rows % 4 != 3, true);
    sample_words w = sample_words_make(t, k, &v);
    const int first = v.begin / GROUP, last = round_up(v.end, GROUP) / GROUP;
    tester_seal(t, q);
    tester_context(t, "d=%d rows=%d groups=[%d, %d)", d, n_rows, first, last);
    k->level->scores[k->type](got, q, stride, n_rows, w.groups, first, last, d, NULL);
    for (int r = 0; r < n_rows; r++) {
        for (int j = v.begin; j < v.end; j++) {
            double want = 0.0, sum = 0.0;
            float exact = 0.0f;
            for (int i = 0; i < d; i++) {
                const float key = sample_lane(&v, j, i);
                const double x = (double)q[r * stride + i] * (double)key;
                want += x;
                sum += fabs(x);
                exact = plus_product(k, exact, q[r * stride + i], key);
            }
            double bound = (d + 1) * ULP * sum;
            tester_near_f32(t, "s", &got[r * BLOCK + j], &want, &bound, 1);
            tester_equal_f32(t, "s in the order of lanes", &got[r * BLOCK + j], &exact, 1);
        }
    }
    check_alone(t, k, got, q, stride, &w, n_rows, d, (int)tester_between(t, first, last - 1));
    tester_release(t);
}

static void bench_scores(tester *t, const attention_pair *k, int n, const char *label) {
    const int d = 128;
    float *q = sample_filled(t, "q", n * d, TESTER_FILL_NORMAL),
          *s = sample_floats(t, "s", n * BLOCK);
    sample_rows v = sample_rows_make(t, k->type, d, true, true);
    sample_words w = sample_words_make(t, k, &v);
    tester_bench(t, label, &(tester_work){.ops = 2.0 * n * d * BLOCK});
    while (tester_run(t))
        k->level->scores[k->type](s, q, d, n, w.groups, 0, BLOCK / GROUP, d, NULL);
}

void check_scores(tester *t, const void *arg) {
    const attention_pair *k = arg;
    static const tester_fill fills[] = {TESTER_FILL_NORMAL, TESTER_FILL_OUTLIER,
                                        TESTER_FILL_ALTERNATE};
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows++)
            check_scores_once(t, k, widths[w], n_rows, fills[n_rows % 3]);
    }
    bench_scores(t, k, 1, "rows=1 d=128");
    bench_scores(t, k, 4, "rows=4 d=128");
    bench_scores(t, k, 96, "rows=96 d=128");
}

static void check_pair_scores_once(tester *t, const attention_pair *k, int d, int n_rows) {
    const int stride = (d + 1) / 2 + (int)tester_between(t, 0, 3);
    float *q = sample_bf16_filled(t, "q", (int64_t)n_rows * d, TESTER_FILL_NORMAL);
    uint32_t *pairs = tester_buffer(t, "pairs", (size_t)(n_rows * stride) * 4, 4);
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < d; i += 2)
            pairs[r * stride + i / 2] = octavo_f32_bits(q[r * d + i]) >> 16 |
                                        (i + 1 < d ? octavo_f32_bits(q[r * d + i + 1]) : 0);
    }
    sample_rows v = sample_rows_make(t, BF16, d, n_rows % 4 != 3, true);
    sample_words w = sample_words_make(t, k, &v);
    const int first = v.begin / GROUP, last = round_up(v.end, GROUP) / GROUP;
    float *got = sample_floats(t, "s", (int64_t)n_rows * BLOCK),
          *one = sample_floats(t, "one", BLOCK);
    tester_seal(t, pairs);
    tester_context(t, "d=%d rows=%d groups=[%d, %d)", d, n_rows, first, last);
    k->level->pair_scores(got, pairs, stride, n_rows, w.groups, first, last, d, NULL);
    for (int r = 0; r < n_rows; r++) {
        for (int j = v.begin; j < v.end; j++) {
            double want = 0.0, sum = 0.0;
            for (int i = 0; i < d; i++) {
                const double x = (double)q[r * d + i] * (double)sample_lane(&v, j, i);
                want += x;
                sum += fabs(x);
            }
            double bound = (d + 1) * ULP * sum + 1e-36;
            tester_near_f32(t, "s", &got[r * BLOCK + j], &want, &bound, 1);
        }
        for (int g = first; g < last; g++) { /* alone: the same bits */
            k->level->pair_scores(one, pairs + r * stride, stride, 1, w.groups, g, g + 1, d, NULL);
            tester_equal_f32(t, "score alone", one + g * GROUP, got + r * BLOCK + g * GROUP, GROUP);
        }
    }
    tester_release(t);
}

void check_pair_scores(tester *t, const void *arg) {
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows++)
            check_pair_scores_once(t, arg, widths[w], n_rows);
    }
}
