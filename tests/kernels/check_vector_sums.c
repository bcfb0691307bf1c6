/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of a row and the norms made of them: what vector.h promises.
 */
#include "base/number.h"
#include "check_vector.h"
#include "kernels/scalar/vector_scalar.h"

#include <math.h>

/* --- sum_squares --- */

static void sum_squares_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    int64_t begin = n > 0 ? tester_between(t, 0, n) : 0;
    float *x = vector_filled(t, "x", n, fill);
    tester_seal(t, x);
    double want = 0.0;
    for (int64_t i = begin; i < n; i++)
        want += (double)x[i] * (double)x[i];
    double count = (double)(n - begin);
    double bound = (count / OCTAVO_SUM_LANES + 6) * ULP * want + (count + 1) * TINY;
    float got = k->level->sum_squares(x, begin, n);
    float scalar = k->scalar->sum_squares(x, begin, n);
    tester_equal_f32(t, "sum", &got, &scalar, 1);
    tester_near_f32(t, "sum", &got, &want, &bound, 1);
}

void check_sum_squares(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, sum_squares_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    volatile float sink = 0.0f;
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = BENCH * FLOAT, .ops = 2 * BENCH});
         tester_run(t);)
        sink = k->level->sum_squares(x, 0, BENCH);
    (void)sink;
}

/* --- sum --- */

static void sum_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    int64_t begin = n > 0 ? tester_between(t, 0, n) : 0;
    float *x = vector_filled(t, "x", n, fill);
    tester_seal(t, x);
    double want = 0.0, size = 0.0;
    for (int64_t i = begin; i < n; i++) {
        want += (double)x[i];
        size += fabs((double)x[i]);
    }
    double bound = ((double)(n - begin) / OCTAVO_SUM_LANES + 6) * ULP * size;
    float got = k->level->sum(x, begin, n);
    float scalar = k->scalar->sum(x, begin, n);
    tester_equal_f32(t, "sum", &got, &scalar, 1);
    if (fill != TESTER_FILL_HUGE) tester_near_f32(t, "sum", &got, &want, &bound, 1);
}

void check_sum(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, sum_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    volatile float sink = 0.0f;
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = BENCH * FLOAT, .ops = BENCH});
         tester_run(t);)
        sink = k->level->sum(x, 0, BENCH);
    (void)sink;
}

/* --- octavo_rms_norm --- */

static void rms_norm_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    if (n == 0 || fill == TESTER_FILL_HUGE) return; /* the sum of squares overflows */
    float eps = 1e-6f;
    float *x = vector_filled(t, "x", n, fill),
          *weight = vector_filled(t, "weight", n, TESTER_FILL_NORMAL);
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
    octavo_slices slices = octavo_slices_make(n, 1);
    tester_seal(t, x);
    tester_seal(t, weight);
    octavo_rms_norm(k->level, got, x, weight, &slices, eps);
    octavo_rms_norm(k->scalar, scalar, x, weight, &slices, eps);
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    double scale = 1.0 / sqrt(sum / (double)n + (double)eps);
    for (int64_t i = 0; i < n; i++) {
        want[i] = (double)x[i] * scale * (double)weight[i];
        bound[i] = ((double)n / OCTAVO_SUM_LANES / 2 + 12) * ULP * fabs(want[i]) + 3 * TINY;
    }
    tester_equal_f32(t, "out", got, scalar, n);
    if (fill != TESTER_FILL_NONFINITE) tester_near_f32(t, "out", got, want, bound, n);
}

void check_rms_norm(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, rms_norm_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
    float *weight = vector_filled(t, "weight", BENCH, TESTER_FILL_NORMAL);
    octavo_slices slices = octavo_slices_make(BENCH, 1);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 4 * BENCH});
         tester_run(t);)
        octavo_rms_norm(k->level, out, x, weight, &slices, 1e-6f);
}

/* --- octavo_layer_norm --- */

static void layer_norm_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    if (n == 0 || fill == TESTER_FILL_HUGE) return; /* the sum of squares overflows */
    float eps = 1e-5f;
    float *x = vector_filled(t, "x", n, fill),
          *weight = vector_filled(t, "weight", n, TESTER_FILL_NORMAL);
    float *bias = vector_filled(t, "bias", n, TESTER_FILL_NORMAL),
          *place = vector_copied(t, "in place", x, n);
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
    octavo_slices slices = octavo_slices_make(n, 1);
    tester_seal(t, x);
    tester_seal(t, weight);
    tester_seal(t, bias);
    octavo_layer_norm(k->level, got, x, weight, bias, &slices, eps);
    octavo_layer_norm(k->scalar, scalar, x, weight, bias, &slices, eps);
    octavo_layer_norm(k->level, place, place, weight, bias, &slices, eps);
    tester_equal_f32(t, "out", got, scalar, n);
    tester_equal_f32(t, "in place", place, got, n);
    if (fill == TESTER_FILL_NONFINITE) return;
    double mean = 0.0, size = 0.0, squares = 0.0, few = (double)n / OCTAVO_SUM_LANES / 2 + 12;
    for (int64_t i = 0; i < n; i++) {
        mean += (double)x[i] / (double)n;
        size += fabs((double)x[i]) / (double)n;
    }
    for (int64_t i = 0; i < n; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    double scale = 1.0 / sqrt(squares / (double)n + (double)eps);
    double shifted = few * ULP * size; /* error of each x - mean */
    for (int64_t i = 0; i < n; i++) {
        double y = (double)x[i] - mean, w = (double)weight[i];
        want[i] = y * scale * w + (double)bias[i];
        bound[i] = (few * ULP * fabs(y) + shifted) * scale * fabs(w) + 2 * ULP * fabs(want[i]) +
                   shifted * scale * fabs(y * scale * w) + 3 * TINY;
    }
    tester_near_f32(t, "out", got, want, bound, n);
}

void check_layer_norm(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, layer_norm_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
    float *weight = vector_filled(t, "weight", BENCH, TESTER_FILL_NORMAL);
    octavo_slices slices = octavo_slices_make(BENCH, 1);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 4 * BENCH * FLOAT, .ops = 8 * BENCH});
         tester_run(t);)
        octavo_layer_norm(k->level, out, x, weight, weight, &slices, 1e-5f);
}
