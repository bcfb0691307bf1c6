/* SPDX-License-Identifier: Apache-2.0
 *
 * The running softmax: over a block, joined to another part of the row, with a sink.
 */
#include "base/number.h"
#include "check_attention.h"

#include <math.h>
#include <string.h>

static double key_scale(const octavo_logit *logit, int j) {
    return logit->key_scales ? (double)logit->key_scales[j] : 1.0;
}

static double logit_of(double x, int j, const octavo_logit *logit) {
    double s = x * key_scale(logit, j) * (double)logit->scale, cap = (double)logit->soft_cap;
    if (cap != 0.0) s = cap * tanh(s / cap);
    return s - (double)logit->slope * fabs((double)logit->first + j);
}

static void check_softmax_once(tester *t, const attention_pair *k, const octavo_logit *logit,
                               float before, int begin, int end) {
    float *x = sample_filled(t, "x", BLOCK, TESTER_FILL_NORMAL), *s = sample_floats(t, "s", BLOCK);
    for (int j = begin; j < end; j++)
        x[j] *= 8.0f;
    memcpy(s, x, BLOCK * FLOAT);
    for (int j = 0; j < BLOCK; j++) { /* dot products of keys that are not seen */
        if (j < begin || j >= end) s[j] = j % 2 ? NAN : INFINITY;
    }
    const float sum_before = before == -INFINITY ? 0.0f : 3.5f;
    float max = before, sum = sum_before;
    float *twin = sample_copied(t, "twin", s, BLOCK), twin_max = max, twin_sum = sum, rescale;
    k->level->softmax(s, 1, begin, end, logit, &max, &sum, &rescale);
    float twin_rescale;
    k->twin->softmax(twin, 1, begin, end, logit, &twin_max, &twin_sum, &twin_rescale);
    tester_equal_f32(t, "p at the level below", s, twin, BLOCK);
    tester_equal_f32(t, "sum at the level below", &sum, &twin_sum, 1);

    /* f32 rounds the logit and its distance to the maximum, and the cap adds what it may */
    double top = (double)before, size = fabs((double)before), want_sum = 0.0, sum_bound = 0.0;
    if (before == -INFINITY) size = 0.0;
    for (int j = begin; j < end; j++) {
        top = fmax(top, logit_of((double)x[j], j, logit));
        size = fmax(size, fabs((double)x[j] * key_scale(logit, j) * (double)logit->scale));
        size = fmax(size, (double)logit->slope * fabs((double)logit->first + j));
    }
    const double error = 4.0 * ULP * (2.0 * size + 1.0) + 2.0 * EXP * fabs((double)logit->soft_cap);
    if (!(fabs((double)max - top) <= error)) tester_fail(t, "max is %g", (double)max);
    for (int j = 0; j < BLOCK; j++) {
        const bool is_seen = j >= begin && j < end;
        double want = is_seen ? exp(logit_of((double)x[j], j, logit) - top) : 0.0;
        double bound = is_seen ? want * (2.0 * error + EXP) + 1e-37 : 0.0;
        if (logit->round_weights) {
            bound += want * 0x1p-8;
            if (octavo_bf16_to_f32(octavo_f32_to_bf16(s[j])) != s[j])
                tester_fail(t, "p[%d] is no bf16: %a", j, (double)s[j]);
        }
        const double scale = logit->value_scales ? (double)logit->value_scales[j] : 1.0;
        const double scaled = want * scale, scaled_bound = (bound + want * ULP) * scale;
        tester_near_f32(t, "p", &s[j], &scaled, &scaled_bound, 1);
        if (logit->round_weights) want = (double)s[j], bound = 0.0; /* what is summed */
        want_sum += want;
        sum_bound += bound;
    }
    const double want_rescale = before == -INFINITY ? 0.0 : exp((double)before - top);
    const double rescale_bound = want_rescale * (2.0 * error + EXP) + 1e-37;
    tester_near_f32(t, "rescale", &rescale, &want_rescale, &rescale_bound, 1);
    want_sum += want_rescale * (double)sum_before;
    sum_bound += rescale_bound * (double)sum_before + 16.0 * ULP * want_sum;
    tester_near_f32(t, "sum", &sum, &want_sum, &sum_bound, 1);
    if ((double)before > top - 1e-9 && max == before && rescale != 1.0f)
        tester_fail(t, "rescale without a new maximum is %g", (double)rescale);
}

/* Infinite logits as IEEE arithmetic has them; NaN must not get lost. */
static void check_softmax_edges(tester *t, const attention_pair *k) {
    const octavo_logit logit = {.scale = 1.0f};
    float *s = sample_floats(t, "s", BLOCK), max, sum, rescale;
    for (int j = 0; j < BLOCK; j++)
        s[j] = -INFINITY;
    max = -INFINITY, sum = 0.0f;
    k->level->softmax(s, 1, 0, BLOCK, &logit, &max, &sum, &rescale);
    if (max != -INFINITY || sum != 0.0f || rescale != 0.0f || s[5] != 0.0f)
        tester_fail(t, "a block of -inf gives max %g sum %g", (double)max, (double)sum);
    for (int j = 0; j < BLOCK; j++)
        s[j] = -3e38f;
    max = -INFINITY, sum = 0.0f;
    k->level->softmax(s, 1, 1, 2, &logit, &max, &sum, &rescale);
    if (s[1] != 1.0f || sum != 1.0f || s[0] != 0.0f)
        tester_fail(t, "a lowest logit alone weighs %g", (double)s[1]);
    static const octavo_logit logits[] = {
        {.scale = 1.0f},
        {.scale = 1.0f, .soft_cap = 20.0f},
        {.scale = 1.0f, .slope = 0.5f, .first = -80.0f},
        {.scale = 1.0f, .round_weights = true},
    };
    for (int l = 0; l < (int)OCTAVO_COUNT(logits); l++) {
        for (int j = 0; j < BLOCK; j++)
            s[j] = j == 17 ? octavo_f32_from_bits(0x7fc00155u) : 0.25f;
        max = 0.5f, sum = 1.0f;
        k->level->softmax(s, 1, 0, BLOCK, &logits[l], &max, &sum, &rescale);
        if (!isnan(s[17]) || !isnan(sum)) tester_fail(t, "a NaN got lost (logit %d)", l);
    }
}

/* Rows in one call are rows in a call each. */
static void check_softmax_rows(tester *t, const attention_pair *k, const octavo_logit *logit,
                               int begin, int end) {
    enum { ROWS = 5 };
    float *s = sample_filled(t, "s", ROWS * BLOCK, TESTER_FILL_NORMAL);
    float *one = sample_copied(t, "one", s, ROWS * BLOCK);
    float max[ROWS] = {-INFINITY, -3.0f, 0.0f, 2.0f, 50.0f}, sum[ROWS] = {0, 1, 2, 3, 4};
    float rescale[ROWS];
    float one_max[ROWS], one_sum[ROWS], one_rescale[ROWS];
    memcpy(one_max, max, sizeof max);
    memcpy(one_sum, sum, sizeof sum);
    k->level->softmax(s, ROWS, begin, end, logit, max, sum, rescale);
    for (int r = 0; r < ROWS; r++)
        k->level->softmax(one + r * BLOCK, 1, begin, end, logit, one_max + r, one_sum + r,
                          one_rescale + r);
    tester_equal_f32(t, "p of rows", s, one, ROWS * BLOCK);
    tester_equal_f32(t, "max of rows", max, one_max, ROWS);
    tester_equal_f32(t, "sum of rows", sum, one_sum, ROWS);
    tester_equal_f32(t, "rescale of rows", rescale, one_rescale, ROWS);
}

void check_softmax(tester *t, const void *arg) {
    const attention_pair *k = arg;
    static const float befores[] = {-INFINITY, -40.0f, 0.0f, 2.0f, 300.0f};
    static _Alignas(64) float scales[2][BLOCK];
    for (int j = 0; j < BLOCK; j++) {
        scales[0][j] = tester_uniform(t, 0.01f, 2.0f);
        scales[1][j] = j % 9 ? tester_uniform(t, 0.001f, 40.0f) : 0.0f;
    }
    const octavo_logit logits[] = {
        {.scale = 1.0f},
        {.scale = 0.125f},
        {.scale = -1.0f},
        {.scale = 1.0f, .soft_cap = 30.0f},
        {.scale = 0.3f, .soft_cap = -5.0f},
        {.scale = 40.0f, .soft_cap = 50.0f},
        {.scale = 1.0f, .slope = 0.25f, .first = -100.0f},
        {.scale = 0.5f, .slope = 0.01f, .first = -20.0f, .soft_cap = 9.0f},
        {.scale = 0.2f, .round_weights = true},
        {.scale = 0.2f, .round_weights = true, .slope = 0.125f, .first = -1.0f},
        {.scale = 0.3f, .key_scales = scales[0]},
        {.scale = 0.3f, .value_scales = scales[1]},
        {.scale = 2.0f, .soft_cap = 20.0f, .key_scales = scales[0], .value_scales = scales[1]},
    };
    for (size_t b = 0; b < sizeof befores / sizeof befores[0]; b++) {
        for (size_t l = 0; l < sizeof logits / sizeof logits[0]; l++) {
            for (int turn = 0; turn < 8; turn++) {
                int begin = 0, end = BLOCK;
                if (turn > 0) {
                    begin = (int)tester_between(t, 0, BLOCK - 1);
                    end = (int)tester_between(t, begin + 1, BLOCK);
                }
                tester_context(t, "places=[%d, %d) max=%g logit=%d", begin, end, (double)befores[b],
                               (int)l);
                check_softmax_once(t, k, &logits[l], befores[b], begin, end);
                if (b == 0) check_softmax_rows(t, k, &logits[l], begin, end);
                tester_release(t);
            }
        }
    }
    tester_context(t, "edges");
    check_softmax_edges(t, k);
    enum { ROWS = 4 };
    float *x = sample_filled(t, "x", ROWS * BLOCK, TESTER_FILL_NORMAL);
    float *s = sample_floats(t, "s", ROWS * BLOCK);
    tester_bench(t, "rows=4", &(tester_work){.bytes = 2 * ROWS * BLOCK * FLOAT});
    while (tester_run(t)) {
        float max[ROWS] = {0}, sum[ROWS] = {0}, rescale[ROWS];
        memcpy(s, x, ROWS * BLOCK * FLOAT);
        k->level->softmax(s, ROWS, 0, BLOCK, &(octavo_logit){.scale = 0.125f}, max, sum, rescale);
    }
}

void check_merge(tester *t, const void *arg) {
    const attention_pair *k = arg;
    static const float maxima[] = {-INFINITY, -90.0f, -1.0f, 0.0f, 0.5f, 200.0f};
    enum { COUNT = sizeof maxima / sizeof maxima[0] };
    for (int c = 0; c < COUNT * COUNT; c++) {
        const int n = 16 * (1 + c % 5);
        const float a = maxima[c / COUNT], b = maxima[c % COUNT];
        float *x = sample_filled(t, "x", n, TESTER_FILL_NORMAL),
              *y = sample_filled(t, "y", n, TESTER_FILL_NORMAL);
        float *got = sample_floats(t, "got", n);
        memcpy(got, x, (size_t)n * FLOAT);
        float max = a, sum = a == -INFINITY ? 0.0f : 2.0f;
        const float l = b == -INFINITY ? 0.0f : 3.0f;
        const double top = fmax((double)a, (double)b), base = top == (double)-INFINITY ? 0.0 : top;
        const double old = exp((double)a - base), new = exp((double)b - base);
        const double want_sum = (double)sum * old + (double)l * new;
        const double sum_bound = want_sum * 2.0 * EXP + 1e-36;
        tester_context(t, "n=%d max=%g m=%g", n, (double)a, (double)b);
        k->level->merge(got, &max, &sum, y, b, l, n);
        if ((double)max != top) tester_fail(t, "max is %g", (double)max);
        tester_near_f32(t, "sum", &sum, &want_sum, &sum_bound, 1);
        for (int i = 0; i < n; i++) {
            const double p = (double)x[i] * old, q = (double)y[i] * new, want = p + q;
            const double bound = (fabs(p) + fabs(q)) * (EXP + 2.0 * ULP) + 1e-36;
            tester_near_f32(t, "out", &got[i], &want, &bound, 1);
        }
        tester_release(t);
    }
}

void check_sink(tester *t, const void *arg) {
    const attention_pair *k = arg;
    static const float logits[] = {-INFINITY, -100.0f, -0.5f, 0.0f, 3.0f, 120.0f};
    for (size_t i = 0; i < sizeof logits / sizeof logits[0]; i++) {
        const float before = tester_uniform(t, -2.0f, 2.0f);
        float max = before, sum = 4.0f;
        const float rescale = k->level->sink(logits[i], &max, &sum);
        const double top = fmax((double)before, (double)logits[i]);
        const double want = exp((double)before - top), bound = want * EXP + 1e-37;
        const double want_sum = 4.0 * want + exp((double)logits[i] - top);
        const double sum_bound = 2.0 * EXP * want_sum;
        tester_context(t, "logit=%g max=%g", (double)logits[i], (double)before);
        if ((double)max != top) tester_fail(t, "max is %g", (double)max);
        tester_near_f32(t, "rescale", &rescale, &want, &bound, 1);
        tester_near_f32(t, "sum", &sum, &want_sum, &sum_bound, 1);
    }
}
