/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic: what vector.h promises of each entry.
 */
#include "base/number.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/vector.h"
#include "tester.h"

#include <math.h>
#include <string.h>

typedef struct pair {
    const octavo_vector_kernels *scalar, *level;
} pair;

enum {
    SMALL = 70,   /* all lengths up to this: every tail of every vector width */
    LONG = 1500,  /* a random length up to this */
    BENCH = 4096, /* length of a benchmark's row */
    FLOAT = sizeof(float),
};

#define ULP  0x1p-24  /* relative error of one rounding */
#define TINY 0x1p-149 /* absolute error of one rounding among the denormals */

static float *floats(tester *t, const char *name, int64_t n) {
    return tester_buffer(t, name, (size_t)n * FLOAT, FLOAT);
}

static double *doubles(tester *t, const char *name, int64_t n) {
    return tester_buffer(t, name, (size_t)n * sizeof(double), sizeof(double));
}

static float *filled(tester *t, const char *name, int64_t n, tester_fill fill) {
    float *x = floats(t, name, n);
    tester_fill_f32(t, x, n, fill);
    return x;
}

static float *copied(tester *t, const char *name, const float *from, int64_t n) {
    float *x = floats(t, name, n);
    if (n > 0) memcpy(x, from, (size_t)n * FLOAT);
    return x;
}

/* Calls `one` for every small length and a longer one, with every fill. */
static void for_shapes(tester *t, const pair *k,
                       void (*one)(tester *t, const pair *k, int64_t n, tester_fill fill)) {
    for (int fill = 0; fill <= TESTER_FILL_NONFINITE; fill++) {
        for (int64_t i = 0; i <= SMALL + 1; i++) {
            int64_t n = i <= SMALL ? i : tester_between(t, SMALL, LONG);
            tester_context(t, "n=%d fill=%s", (int)n, tester_fill_name((tester_fill)fill));
            one(t, k, n, (tester_fill)fill);
            tester_release(t);
        }
    }
    tester_context(t, "bench");
}

/* --- sum_squares --- */

static void sum_squares_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    int64_t begin = n > 0 ? tester_between(t, 0, n) : 0;
    float *x = filled(t, "x", n, fill);
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

static void check_sum_squares(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, sum_squares_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    volatile float sink = 0.0f;
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = BENCH * FLOAT, .ops = 2 * BENCH});
         tester_run(t);)
        sink = k->level->sum_squares(x, 0, BENCH);
    (void)sink;
}

/* --- sum --- */

static void sum_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    int64_t begin = n > 0 ? tester_between(t, 0, n) : 0;
    float *x = filled(t, "x", n, fill);
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

static void check_sum(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, sum_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    volatile float sink = 0.0f;
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = BENCH * FLOAT, .ops = BENCH});
         tester_run(t);)
        sink = k->level->sum(x, 0, BENCH);
    (void)sink;
}

/* --- scale_mul --- */

static void scale_mul_with(tester *t, const pair *k, const float *x, const float *weight, int64_t n,
                           tester_fill fill) {
    float scale = tester_uniform(t, -2.0f, 2.0f);
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n);
    float *place = copied(t, "in place", x, n);
    k->level->scale_mul(got, x, scale, weight, n);
    k->scalar->scale_mul(scalar, x, scale, weight, n);
    k->level->scale_mul(place, place, scale, weight, n);
    tester_equal_f32(t, "out", got, scalar, n);
    tester_equal_f32(t, "in place", place, scalar, n);
    if (fill == TESTER_FILL_HUGE) return; /* x * scale alone may overflow */
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
    for (int64_t i = 0; i < n; i++) {
        double w = weight ? (double)weight[i] : 1.0;
        want[i] = (double)x[i] * (double)scale * w;
        bound[i] = 2.01 * ULP * fabs(want[i]) + TINY * (1.0 + fabs(w));
    }
    tester_near_f32(t, "out", got, want, bound, n);
}

static void scale_mul_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    float *x = filled(t, "x", n, fill), *weight = filled(t, "weight", n, fill);
    tester_seal(t, x);
    tester_seal(t, weight);
    scale_mul_with(t, k, x, weight, n, fill);
    scale_mul_with(t, k, x, NULL, n, fill);
}

static void check_scale_mul(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, scale_mul_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    float *weight = filled(t, "weight", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 2 * BENCH});
         tester_run(t);)
        k->level->scale_mul(out, x, 0.7f, weight, BENCH);
}

/* --- add --- */

static void add_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    float *a = filled(t, "a", n, fill), *b = filled(t, "b", n, fill);
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n);
    float *over_a = copied(t, "over a", a, n), *over_b = copied(t, "over b", b, n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
    tester_seal(t, a);
    tester_seal(t, b);
    k->level->add(got, a, b, n);
    k->scalar->add(scalar, a, b, n);
    k->level->add(over_a, over_a, b, n);
    k->level->add(over_b, a, over_b, n);
    for (int64_t i = 0; i < n; i++) {
        want[i] = (double)a[i] + (double)b[i];
        bound[i] = ULP * fabs(want[i]);
    }
    tester_equal_f32(t, "out", got, scalar, n);
    tester_equal_f32(t, "out over a", over_a, scalar, n);
    tester_equal_f32(t, "out over b", over_b, scalar, n);
    tester_near_f32(t, "out", got, want, bound, n);
}

static void check_add(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, add_once);
    float *a = filled(t, "a", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    float *b = filled(t, "b", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = BENCH});
         tester_run(t);)
        k->level->add(out, a, b, BENCH);
}

/* --- shift --- */

static void shift_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    float by = tester_uniform(t, -2.0f, 2.0f);
    float *x = filled(t, "x", n, fill), *place = copied(t, "in place", x, n);
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
    tester_seal(t, x);
    k->level->shift(got, x, by, n);
    k->scalar->shift(scalar, x, by, n);
    k->level->shift(place, place, by, n);
    for (int64_t i = 0; i < n; i++) {
        want[i] = (double)x[i] - (double)by;
        bound[i] = ULP * fabs(want[i]);
    }
    tester_equal_f32(t, "out", got, scalar, n);
    tester_equal_f32(t, "in place", place, scalar, n);
    tester_near_f32(t, "out", got, want, bound, n);
}

static void check_shift(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, shift_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 2 * BENCH * FLOAT, .ops = BENCH});
         tester_run(t);)
        k->level->shift(out, x, 0.7f, BENCH);
}

/* --- rope --- */

typedef void rope_fn(float *x, const float *cs, int64_t n_pairs);

/* x0 is x[i * step], x1 lies `apart` behind it. */
static void rope_with(tester *t, rope_fn *level, rope_fn *scalar_fn, int64_t n, int64_t step,
                      int64_t apart, tester_fill fill) {
    float *x = filled(t, "x", 2 * n, fill), *cs = floats(t, "cs", 2 * n);
    for (int64_t i = 0; i < n; i++) {
        float angle = tester_uniform(t, -3.2f, 3.2f);
        cs[2 * i] = cosf(angle);
        cs[2 * i + 1] = sinf(angle);
    }
    double *want = doubles(t, "want", 2 * n), *bound = doubles(t, "bound", 2 * n);
    for (int64_t i = 0; i < n; i++) {
        double x0 = (double)x[i * step], x1 = (double)x[i * step + apart];
        double c = (double)cs[2 * i], s = (double)cs[2 * i + 1];
        want[i * step] = x0 * c - x1 * s;
        want[i * step + apart] = x1 * c + x0 * s;
        bound[i * step] = 2.01 * ULP * (fabs(x0 * c) + fabs(x1 * s)) + 2 * TINY;
        bound[i * step + apart] = 2.01 * ULP * (fabs(x1 * c) + fabs(x0 * s)) + 2 * TINY;
    }
    float *scalar = copied(t, "scalar", x, 2 * n);
    tester_seal(t, cs);
    level(x, cs, n);
    scalar_fn(scalar, cs, n);
    tester_equal_f32(t, "x", x, scalar, 2 * n);
    tester_near_f32(t, "x", x, want, bound, 2 * n);
}

static void rope_half_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    rope_with(t, k->level->rope_half, k->scalar->rope_half, n, 1, n, fill);
}

static void rope_pairwise_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    rope_with(t, k->level->rope_pairwise, k->scalar->rope_pairwise, n, 2, 1, fill);
}

static void bench_rope(tester *t, rope_fn *rope) {
    enum { PAIRS = 64 };
    float *x = filled(t, "x", 2 * PAIRS, TESTER_FILL_NORMAL), *cs = floats(t, "cs", 2 * PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        cs[2 * i] = 0.8f;
        cs[2 * i + 1] = 0.6f;
    }
    tester_work work = {.bytes = 4 * PAIRS * FLOAT, .ops = 6 * PAIRS};
    for (tester_bench(t, "head of 128", &work); tester_run(t);)
        rope(x, cs, PAIRS);
}

static void check_rope_half(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, rope_half_once);
    bench_rope(t, k->level->rope_half);
}

static void check_rope_pairwise(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, rope_pairwise_once);
    bench_rope(t, k->level->rope_pairwise);
}

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

static void gate_with(tester *t, gate_fn *level, gate_fn *scalar_fn, act_fn *act, int64_t n,
                      tester_fill fill) {
    float *gate = filled(t, "gate", n, fill), *up = filled(t, "up", n, fill);
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        gate[i] *= tester_random(t) % 4 == 0 ? 20.0f : 1.0f; /* through to where exp ends */
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n), single = 0.0f;
    float *over_gate = copied(t, "over gate", gate, n), *over_up = copied(t, "over up", up, n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
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
    float *alone = floats(t, "without up", n), *ones = floats(t, "ones", n);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1.0f;
    level(got, gate, ones, n);
    level(alone, gate, NULL, n);
    tester_equal_f32(t, "without up", alone, got, n);
}

static void gate_silu_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    gate_with(t, k->level->gate_silu, k->scalar->gate_silu, silu, n, fill);
}

static void gate_gelu_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    gate_with(t, k->level->gate_gelu_tanh, k->scalar->gate_gelu_tanh, gelu_tanh, n, fill);
}

static void gate_gelu_erf_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    gate_with(t, k->level->gate_gelu, k->scalar->gate_gelu, gelu, n, fill);
}

static void bench_gate(tester *t, gate_fn *gate_mul) {
    float *gate = filled(t, "gate", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    float *up = filled(t, "up", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 20 * BENCH});
         tester_run(t);)
        gate_mul(out, gate, up, BENCH);
}

static void check_gate_silu(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, gate_silu_once);
    bench_gate(t, k->level->gate_silu);
}

static void check_gate_gelu_tanh(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, gate_gelu_once);
    bench_gate(t, k->level->gate_gelu_tanh);
}

static void check_gate_gelu(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, gate_gelu_erf_once);
    bench_gate(t, k->level->gate_gelu);
}

static void gate_swiglu_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    const float limit = 7.0f;
    float *gate = filled(t, "gate", n, fill), *up = filled(t, "up", n, fill);
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        gate[i] *= tester_random(t) % 4 == 0 ? 20.0f : 1.0f;
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n), single = 0.0f;
    float *over_gate = copied(t, "over gate", gate, n), *over_up = copied(t, "over up", up, n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
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

static void check_gate_swiglu(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, gate_swiglu_once);
    float *gate = filled(t, "gate", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    float *up = filled(t, "up", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 24 * BENCH});
         tester_run(t);)
        k->level->gate_swiglu(out, gate, up, 7.0f, BENCH);
}

/* --- exp --- */

static void near_exp(tester *t, const char *what, const float *got, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double want = exp((double)x[i]), bound = want * 0x1p-21;
        if (want < 0x1p-126 * (1.0 + 0x1p-21) && got[i] == 0.0f) continue;
        if (fabsf(got[i]) < 0x1p-126f)
            tester_fail(t, "%s of %a is %a", what, (double)x[i], (double)got[i]);
        if (isinf(want)) bound = 0.0;
        tester_near_f32(t, what, got + i, &want, &bound, 1);
    }
}

static void exp_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    float *x = filled(t, "x", n, fill), single = 0.0f;
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        x[i] = tester_uniform(t, -110.0f, 95.0f);
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n);
    float *place = copied(t, "in place", x, n);
    tester_seal(t, x);
    k->level->exp(got, x, n);
    k->scalar->exp(scalar, x, n);
    k->level->exp(place, place, n);
    near_exp(t, "exp", got, x, n);
    near_exp(t, "scalar exp", scalar, x, n);
    tester_equal_f32(t, "in place", place, got, n);
    for (int64_t i = 0; i < n; i++) {
        k->level->exp(&single, x + i, 1);
        tester_equal_f32(t, "element by itself", &single, got + i, 1);
    }
}

/* Both ends of the range, float by float, and the places where the power of two changes. */
static void exp_edges(tester *t, const pair *k) {
    const float centres[] = {OCTAVO_EXP_HIGH, OCTAVO_EXP_LOW, 0.0f, INFINITY, -INFINITY,
                             0.34657359f,     -0.34657359f,   1.0f, 88.37626f};
    enum { AROUND = 64 };
    for (size_t c = 0; c < OCTAVO_COUNT(centres); c++) {
        float *x = floats(t, "x", 2 * AROUND), *got = floats(t, "out", 2 * AROUND);
        float up = centres[c], down = centres[c];
        for (int i = 0; i < AROUND; i++) {
            x[AROUND + i] = up;
            x[AROUND - 1 - i] = down;
            up = nextafterf(up, INFINITY);
            down = nextafterf(down, -INFINITY);
        }
        tester_context(t, "around %a", (double)centres[c]);
        k->level->exp(got, x, 2 * AROUND);
        near_exp(t, "exp", got, x, 2 * AROUND);
        tester_release(t);
    }
}

static void check_exp(tester *t, const void *arg) {
    const pair *k = arg;
    exp_edges(t, k);
    for_shapes(t, k, exp_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 2 * BENCH * FLOAT, .ops = 16 * BENCH});
         tester_run(t);)
        k->level->exp(out, x, BENCH);
}

/* --- softmax --- */

static void softmax_oracle(double *want, double *bound, const float *x, int64_t n) {
    double max = (double)-INFINITY, sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        max = (double)x[i] > max ? (double)x[i] : max;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - max);
    for (int64_t i = 0; i < n; i++) {
        double below = fabs((double)x[i] - max);
        want[i] = exp((double)x[i] - max) / sum;
        bound[i] = want[i] * (0x1p-20 + ULP * (double)n / OCTAVO_SUM_LANES) + 0x1p-126;
        if (want[i] > 0.0) bound[i] += want[i] * ULP * below;
    }
}

static void softmax_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    float *x = filled(t, "x", n, fill);
    if (fill == TESTER_FILL_OUTLIER) { /* masked positions among ordinary ones */
        for (int64_t i = 0; i < n; i++)
            x[i] = tester_random(t) % 3 == 0 ? -INFINITY : tester_uniform(t, -40.0f, 40.0f);
    }
    float *scalar = copied(t, "scalar", x, n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
    softmax_oracle(want, bound, x, n);
    k->level->softmax(x, n);
    k->scalar->softmax(scalar, n);
    tester_near_f32(t, "x", x, want, bound, n);
    tester_near_f32(t, "scalar", scalar, want, bound, n);
}

static void check_softmax(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, softmax_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 2 * BENCH * FLOAT, .ops = 20 * BENCH});
         tester_run(t);)
        k->level->softmax(x, BENCH);
}

/* --- soft_cap --- */

static void soft_cap_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    static const float caps[] = {50.0f, 30.0f, 1.0f, 0.01f, 3e4f};
    float cap = caps[tester_random(t) % OCTAVO_COUNT(caps)], single = 0.0f;
    float *x = filled(t, "x", n, fill);
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        x[i] *= cap * 2.0f;
    float *got = copied(t, "got", x, n), *scalar = copied(t, "scalar", x, n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
    for (int64_t i = 0; i < n; i++) {
        want[i] = (double)cap * tanh((double)x[i] / (double)cap);
        bound[i] = (double)cap * 0x1p-21;
    }
    k->level->soft_cap(got, cap, n);
    k->scalar->soft_cap(scalar, cap, n);
    tester_near_f32(t, "x", got, want, bound, n);
    tester_near_f32(t, "scalar", scalar, want, bound, n);
    for (int64_t i = 0; i < n; i++) {
        single = x[i];
        k->level->soft_cap(&single, cap, 1);
        tester_equal_f32(t, "element by itself", &single, got + i, 1);
    }
}

static void check_soft_cap(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, soft_cap_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 2 * BENCH * FLOAT, .ops = 20 * BENCH});
         tester_run(t);)
        k->level->soft_cap(x, 30.0f, BENCH);
}

/* --- quantise_q8 --- */

static void near_block(tester *t, const octavo_q8_block *block, const float *x) {
    double max = 0.0;
    bool is_finite = true;
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        is_finite = is_finite && isfinite(x[i]);
        max = fmax(max, fabs((double)x[i]));
    }
    if (isnan(block->d) != !is_finite) tester_fail(t, "d is %g", (double)block->d);
    int sum[2] = {0};
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        int q = block->q[i];
        sum[i / 16] += q;
        if (q < -127) tester_fail(t, "q[%d] is %d", i, q);
        if (!is_finite && q != 0) tester_fail(t, "q[%d] is %d beside a NaN", i, q);
        if (!is_finite) continue;
        /* half a step, and the rounding of d, of 127 / max and of the product */
        double bound = max / 127.0 * (0.5 + 4 * 127 * ULP) + 128 * TINY;
        if (block->d == 0.0f) bound = 127.0 * 0x1p-128; /* where 127 / max is infinite */
        if (fabs((double)block->d * q - (double)x[i]) > bound)
            tester_fail(t, "q[%d] is %d for %a, d %a", i, q, (double)x[i], (double)block->d);
    }
    if (sum[0] != block->sum[0] || sum[1] != block->sum[1])
        tester_fail(t, "sums are %d %d, not %d %d", block->sum[0], block->sum[1], sum[0], sum[1]);
}

static void quantise_with(tester *t, const pair *k, const float *x, int64_t n_blocks) {
    size_t bytes = (size_t)n_blocks * sizeof(octavo_q8_block);
    octavo_q8_block *got = tester_buffer(t, "out", bytes, _Alignof(octavo_q8_block));
    octavo_q8_block *scalar = tester_buffer(t, "scalar", bytes, _Alignof(octavo_q8_block));
    k->level->quantise_q8(got, x, n_blocks * OCTAVO_BLOCK);
    k->scalar->quantise_q8(scalar, x, n_blocks * OCTAVO_BLOCK);
    for (int64_t b = 0; b < n_blocks; b++) {
        near_block(t, &got[b], x + b * OCTAVO_BLOCK);
        tester_equal_f32(t, "d", &got[b].d, &scalar[b].d, 1);
        tester_equal_bytes(t, "q", got[b].q, scalar[b].q, sizeof got[b].q);
    }
}

/* With 127 among them the scale is 1, and k + 1/2 must go to the even neighbour. */
static void quantise_ties(tester *t, const pair *k) {
    float *x = floats(t, "x", OCTAVO_BLOCK);
    octavo_q8_block *got =
        tester_buffer(t, "out", sizeof(octavo_q8_block), _Alignof(octavo_q8_block));
    for (int i = 0; i < OCTAVO_BLOCK; i++)
        x[i] = i == 0 ? -127.0f : (float)(i - 16) * 7.0f + 0.5f;
    k->level->quantise_q8(got, x, OCTAVO_BLOCK);
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        if ((float)got->q[i] != rintf(x[i]))
            tester_fail(t, "%g became %d", (double)x[i], got->q[i]);
    }
    tester_release(t);
}

static void quantise_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    int64_t n_blocks = n % 9;
    float *x = filled(t, "x", n_blocks * OCTAVO_BLOCK, fill);
    if (n_blocks > 0 && n % 2) { /* blocks around the smallest maximum that has an inverse */
        for (int64_t i = 0; i < OCTAVO_BLOCK; i++)
            x[i] = tester_uniform(t, -0x1p-120f, 0x1p-120f) * (n % 4 == 1 ? 1.0f : 0.015f);
    }
    tester_seal(t, x);
    quantise_with(t, k, x, n_blocks);
}

static void check_quantise_q8(tester *t, const void *arg) {
    const pair *k = arg;
    quantise_ties(t, k);
    for_shapes(t, k, quantise_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    octavo_q8_block *out = tester_buffer(t, "out", BENCH / OCTAVO_BLOCK * sizeof *out, 4);
    tester_work work = {.bytes = BENCH * FLOAT + BENCH / OCTAVO_BLOCK * sizeof *out,
                        .ops = 3 * BENCH};
    for (tester_bench(t, "n=4096", &work); tester_run(t);)
        k->level->quantise_q8(out, x, BENCH);
}

/* --- octavo_rms_norm --- */

static void rms_norm_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    if (n == 0 || fill == TESTER_FILL_HUGE) return; /* the sum of squares overflows */
    float eps = 1e-6f;
    float *x = filled(t, "x", n, fill), *weight = filled(t, "weight", n, TESTER_FILL_NORMAL);
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
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

static void check_rms_norm(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, rms_norm_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    float *weight = filled(t, "weight", BENCH, TESTER_FILL_NORMAL);
    octavo_slices slices = octavo_slices_make(BENCH, 1);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 4 * BENCH});
         tester_run(t);)
        octavo_rms_norm(k->level, out, x, weight, &slices, 1e-6f);
}

/* --- octavo_layer_norm --- */

static void layer_norm_once(tester *t, const pair *k, int64_t n, tester_fill fill) {
    if (n == 0 || fill == TESTER_FILL_HUGE) return; /* the sum of squares overflows */
    float eps = 1e-5f;
    float *x = filled(t, "x", n, fill), *weight = filled(t, "weight", n, TESTER_FILL_NORMAL);
    float *bias = filled(t, "bias", n, TESTER_FILL_NORMAL), *place = copied(t, "in place", x, n);
    float *got = floats(t, "out", n), *scalar = floats(t, "scalar", n);
    double *want = doubles(t, "want", n), *bound = doubles(t, "bound", n);
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

static void check_layer_norm(tester *t, const void *arg) {
    const pair *k = arg;
    for_shapes(t, k, layer_norm_once);
    float *x = filled(t, "x", BENCH, TESTER_FILL_NORMAL), *out = floats(t, "out", BENCH);
    float *weight = filled(t, "weight", BENCH, TESTER_FILL_NORMAL);
    octavo_slices slices = octavo_slices_make(BENCH, 1);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 4 * BENCH * FLOAT, .ops = 8 * BENCH});
         tester_run(t);)
        octavo_layer_norm(k->level, out, x, weight, weight, &slices, 1e-5f);
}

void check_vector(tester *t);

void check_vector(tester *t) {
    octavo_vector_kernels scalar, level;
    octavo_vector_kernels_init(&scalar, 0);
    octavo_vector_kernels_init(&level, tester_flags(t));
    pair k = {&scalar, &level};
    const struct {
        const char *name;
        tester_function *function;
        void (*check)(tester *t, const void *arg);
    } entries[] = {
        {"sum_squares", (tester_function *)level.sum_squares, check_sum_squares},
        {"sum", (tester_function *)level.sum, check_sum},
        {"scale_mul", (tester_function *)level.scale_mul, check_scale_mul},
        {"add", (tester_function *)level.add, check_add},
        {"shift", (tester_function *)level.shift, check_shift},
        {"rope_half", (tester_function *)level.rope_half, check_rope_half},
        {"rope_pairwise", (tester_function *)level.rope_pairwise, check_rope_pairwise},
        {"gate_silu", (tester_function *)level.gate_silu, check_gate_silu},
        {"gate_gelu_tanh", (tester_function *)level.gate_gelu_tanh, check_gate_gelu_tanh},
        {"gate_gelu", (tester_function *)level.gate_gelu, check_gate_gelu},
        {"gate_swiglu", (tester_function *)level.gate_swiglu, check_gate_swiglu},
        {"exp", (tester_function *)level.exp, check_exp},
        {"softmax", (tester_function *)level.softmax, check_softmax},
        {"soft_cap", (tester_function *)level.soft_cap, check_soft_cap},
        {"quantise_q8", (tester_function *)level.quantise_q8, check_quantise_q8},
        {"rms_norm", (tester_function *)level.sum_squares, check_rms_norm},
        {"layer_norm", (tester_function *)level.sum, check_layer_norm},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(entries); i++)
        tester_check(t, entries[i].name, entries[i].function, entries[i].check, &k);
}
