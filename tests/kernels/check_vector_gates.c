/* SPDX-License-Identifier: Apache-2.0
 *
 * Gates: what vector.h promises.
 */
#include "base/number.h"
#include "check_vector.h"
#include "kernels/scalar/vector_scalar.h"

#include <math.h>

/* --- gates --- */

typedef void gate_fn(float *out, const float *gate, const float *up, int64_t n);

/* act(g), and the relative error that vector.h allows there. */
typedef double act_fn(double g, double *error);

static double silu(double g, double *error) {
    *error = 0x1p-20;
    return g / (1.0 + exp(-g));
}

static double gelu_tanh(double g, double *error) {
    double z = 2.0 * sqrt(2.0 / acos(-1.0)) * (g + 0.044715 * g * g * g);
    *error = 0x1p-20 * (g < 0.0 ? 1.0 - z : 1.0);
    return g / (1.0 + exp(-z));
}

static double gelu(double g, double *error) {
    *error = 0x1p-20 * (g < 0.0 && g > -40.0 ? 1.0 + 0.5 * g * g : 1.0);
    return g < -40.0 ? 0.0 : g * 0.5 * erfc(-g * sqrt(0.5));
}

static double relu2(double g, double *error) {
    *error = 0x1p-24; /* of the square */
    return g <= 0.0 ? 0.0 : g * g;
}

static void gate_with(tester *t, gate_fn *level, gate_fn *scalar_fn, act_fn *act, int64_t n,
                      tester_fill fill) {
    float *gate = vector_filled(t, "gate", n, fill), *up = vector_filled(t, "up", n, fill);
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        gate[i] *= tester_random(t) % 4 == 0 ? 20.0f : 1.0f; /* through to where exp ends */
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n), single = 0.0f;
    float *over_gate = vector_copied(t, "over gate", gate, n),
          *over_up = vector_copied(t, "over up", up, n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
    tester_seal(t, gate);
    tester_seal(t, up);
    level(got, gate, up, n);
    scalar_fn(scalar, gate, up, n);
    level(over_gate, over_gate, up, n);
    level(over_up, gate, over_up, n);
    for (int64_t i = 0; i < n; i++) {
        double error = 0.0, a = act((double)gate[i], &error), u = (double)up[i];
        want[i] = a * u;
        bound[i] = isfinite(want[i]) ? (error * fabs(a) + 1e-30) * fabs(u) : 0.0;
        bound[i] += ULP * fabs(want[i]) + TINY;
    }
    tester_near_f32(t, "out", got, want, bound, n);
    tester_near_f32(t, "scalar", scalar, want, bound, n);
    tester_equal_f32(t, "out over gate", over_gate, got, n);
    tester_equal_f32(t, "out over up", over_up, got, n);
    for (int64_t i = 0; i < n; i++) {
        level(&single, gate + i, up + i, 1);
        tester_equal_f32(t, "element by itself", &single, got + i, 1);
    }
    float *alone = vector_floats(t, "without up", n), *ones = vector_floats(t, "ones", n);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1.0f;
    level(got, gate, ones, n);
    level(alone, gate, NULL, n);
    tester_equal_f32(t, "without up", alone, got, n);
}

static void gate_silu_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    gate_with(t, k->level->gate_silu, k->scalar->gate_silu, silu, n, fill);
}

static void gate_gelu_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    gate_with(t, k->level->gate_gelu_tanh, k->scalar->gate_gelu_tanh, gelu_tanh, n, fill);
}

static void gate_gelu_erf_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    gate_with(t, k->level->gate_gelu, k->scalar->gate_gelu, gelu, n, fill);
}

static void bench_gate(tester *t, gate_fn *gate_mul) {
    float *gate = vector_filled(t, "gate", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
    float *up = vector_filled(t, "up", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 20 * BENCH});
         tester_run(t);)
        gate_mul(out, gate, up, BENCH);
}

void check_gate_silu(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, gate_silu_once);
    bench_gate(t, k->level->gate_silu);
}

void check_gate_gelu_tanh(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, gate_gelu_once);
    bench_gate(t, k->level->gate_gelu_tanh);
}

void check_gate_gelu(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, gate_gelu_erf_once);
    bench_gate(t, k->level->gate_gelu);
}

/* Plain arithmetic, so the same bits at every level. */
static void gate_relu2_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    float *gate = vector_filled(t, "gate", n, fill), *up = vector_filled(t, "up", n, fill);
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n);
    gate_with(t, k->level->gate_relu2, k->scalar->gate_relu2, relu2, n, fill);
    k->level->gate_relu2(got, gate, up, n);
    k->scalar->gate_relu2(scalar, gate, up, n);
    tester_equal_f32(t, "scalar's bits", got, scalar, n);
}

void check_gate_relu2(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, gate_relu2_once);
    bench_gate(t, k->level->gate_relu2);
}

static void gate_swiglu_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    const float limit = 7.0f;
    float *gate = vector_filled(t, "gate", n, fill), *up = vector_filled(t, "up", n, fill);
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        gate[i] *= tester_random(t) % 4 == 0 ? 20.0f : 1.0f;
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n), single = 0.0f;
    float *over_gate = vector_copied(t, "over gate", gate, n),
          *over_up = vector_copied(t, "over up", up, n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
    tester_seal(t, gate);
    tester_seal(t, up);
    k->level->gate_swiglu(got, gate, up, limit, n);
    k->scalar->gate_swiglu(scalar, gate, up, limit, n);
    k->level->gate_swiglu(over_gate, over_gate, up, limit, n);
    k->level->gate_swiglu(over_up, gate, over_up, limit, n);
    for (int64_t i = 0; i < n; i++) {
        double g = gate[i] > limit ? (double)limit : (double)gate[i];
        double u = up[i] > limit ? (double)limit : up[i] < -limit ? -(double)limit : (double)up[i];
        double act = g / (1.0 + exp(-(double)OCTAVO_SWIGLU_ALPHA * g)), error = fabs(act) * 0x1p-20;
        if (g < 0.0) error *= 1.0 - (double)OCTAVO_SWIGLU_ALPHA * g;
        want[i] = act * (u + 1.0);
        bound[i] = isfinite(want[i]) ? (error + 1e-30) * fabs(u + 1.0) : 0.0;
        bound[i] += ULP * (fabs(want[i]) + 8.0 * fabs(act)) + TINY; /* u + 1 may cancel */
    }
    tester_near_f32(t, "out", got, want, bound, n);
    tester_near_f32(t, "scalar", scalar, want, bound, n);
    tester_equal_f32(t, "out over gate", over_gate, got, n);
    tester_equal_f32(t, "out over up", over_up, got, n);
    for (int64_t i = 0; i < n; i++) {
        k->level->gate_swiglu(&single, gate + i, up + i, limit, 1);
        tester_equal_f32(t, "element by itself", &single, got + i, 1);
    }
}

void check_gate_swiglu(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, gate_swiglu_once);
    float *gate = vector_filled(t, "gate", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
    float *up = vector_filled(t, "up", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 24 * BENCH});
         tester_run(t);)
        k->level->gate_swiglu(out, gate, up, 7.0f, BENCH);
}
