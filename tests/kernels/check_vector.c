/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic: what vector.h promises of each entry.
 */
#include "check_vector.h"

#include "base/number.h"
#include "kernels/scalar/vector_scalar.h"

#include <math.h>

/* --- scale_mul --- */

static void scale_mul_with(tester *t, const vector_pair *k, const float *x, const float *weight,
                           int64_t n, tester_fill fill) {
    float scale = tester_uniform(t, -2.0f, 2.0f);
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n);
    float *place = vector_copied(t, "in place", x, n);
    k->level->scale_mul(got, x, scale, weight, n);
    k->scalar->scale_mul(scalar, x, scale, weight, n);
    k->level->scale_mul(place, place, scale, weight, n);
    tester_equal_f32(t, "out", got, scalar, n);
    tester_equal_f32(t, "in place", place, scalar, n);
    if (fill == TESTER_FILL_HUGE) return; /* x * scale alone may overflow */
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
    for (int64_t i = 0; i < n; i++) {
        double w = weight ? (double)weight[i] : 1.0;
        want[i] = (double)x[i] * (double)scale * w;
        bound[i] = 2.01 * ULP * fabs(want[i]) + TINY * (1.0 + fabs(w));
    }
    tester_near_f32(t, "out", got, want, bound, n);
}

static void scale_mul_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    float *x = vector_filled(t, "x", n, fill), *weight = vector_filled(t, "weight", n, fill);
    tester_seal(t, x);
    tester_seal(t, weight);
    scale_mul_with(t, k, x, weight, n, fill);
    scale_mul_with(t, k, x, NULL, n, fill);
}

static void check_scale_mul(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, scale_mul_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
    float *weight = vector_filled(t, "weight", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = 2 * BENCH});
         tester_run(t);)
        k->level->scale_mul(out, x, 0.7f, weight, BENCH);
}

/* --- add --- */

static void add_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    float *a = vector_filled(t, "a", n, fill), *b = vector_filled(t, "b", n, fill);
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n);
    float *over_a = vector_copied(t, "over a", a, n), *over_b = vector_copied(t, "over b", b, n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
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
    const vector_pair *k = arg;
    vector_for_shapes(t, k, add_once);
    float *a = vector_filled(t, "a", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
    float *b = vector_filled(t, "b", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 3 * BENCH * FLOAT, .ops = BENCH});
         tester_run(t);)
        k->level->add(out, a, b, BENCH);
}

/* --- shift --- */

static void shift_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    float by = tester_uniform(t, -2.0f, 2.0f);
    float *x = vector_filled(t, "x", n, fill), *place = vector_copied(t, "in place", x, n);
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
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
    const vector_pair *k = arg;
    vector_for_shapes(t, k, shift_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 2 * BENCH * FLOAT, .ops = BENCH});
         tester_run(t);)
        k->level->shift(out, x, 0.7f, BENCH);
}

/* --- rope --- */

typedef void rope_fn(float *x, const float *cs, int64_t n_pairs);

/* x0 is x[i * step], x1 lies `apart` behind it. */
static void rope_with(tester *t, rope_fn *level, rope_fn *scalar_fn, int64_t n, int64_t step,
                      int64_t apart, tester_fill fill) {
    float *x = vector_filled(t, "x", 2 * n, fill), *cs = vector_floats(t, "cs", 2 * n);
    for (int64_t i = 0; i < n; i++) {
        float angle = tester_uniform(t, -3.2f, 3.2f);
        cs[2 * i] = cosf(angle);
        cs[2 * i + 1] = sinf(angle);
    }
    double *want = vector_doubles(t, "want", 2 * n), *bound = vector_doubles(t, "bound", 2 * n);
    for (int64_t i = 0; i < n; i++) {
        double x0 = (double)x[i * step], x1 = (double)x[i * step + apart];
        double c = (double)cs[2 * i], s = (double)cs[2 * i + 1];
        want[i * step] = x0 * c - x1 * s;
        want[i * step + apart] = x1 * c + x0 * s;
        bound[i * step] = 2.01 * ULP * (fabs(x0 * c) + fabs(x1 * s)) + 2 * TINY;
        bound[i * step + apart] = 2.01 * ULP * (fabs(x1 * c) + fabs(x0 * s)) + 2 * TINY;
    }
    float *scalar = vector_copied(t, "scalar", x, 2 * n);
    tester_seal(t, cs);
    level(x, cs, n);
    scalar_fn(scalar, cs, n);
    tester_equal_f32(t, "x", x, scalar, 2 * n);
    tester_near_f32(t, "x", x, want, bound, 2 * n);
}

static void rope_half_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    rope_with(t, k->level->rope_half, k->scalar->rope_half, n, 1, n, fill);
}

static void rope_pairwise_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    rope_with(t, k->level->rope_pairwise, k->scalar->rope_pairwise, n, 2, 1, fill);
}

static void bench_rope(tester *t, rope_fn *rope) {
    enum { PAIRS = 64 };
    float *x = vector_filled(t, "x", 2 * PAIRS, TESTER_FILL_NORMAL),
          *cs = vector_floats(t, "cs", 2 * PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        cs[2 * i] = 0.8f;
        cs[2 * i + 1] = 0.6f;
    }
    tester_work work = {.bytes = 4 * PAIRS * FLOAT, .ops = 6 * PAIRS};
    for (tester_bench(t, "head of 128", &work); tester_run(t);)
        rope(x, cs, PAIRS);
}

static void check_rope_half(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, rope_half_once);
    bench_rope(t, k->level->rope_half);
}

static void check_rope_pairwise(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, rope_pairwise_once);
    bench_rope(t, k->level->rope_pairwise);
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

static void exp_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    float *x = vector_filled(t, "x", n, fill), single = 0.0f;
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        x[i] = tester_uniform(t, -110.0f, 95.0f);
    float *got = vector_floats(t, "out", n), *scalar = vector_floats(t, "scalar", n);
    float *place = vector_copied(t, "in place", x, n);
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
static void exp_edges(tester *t, const vector_pair *k) {
    const float centres[] = {OCTAVO_EXP_HIGH, OCTAVO_EXP_LOW, 0.0f, INFINITY, -INFINITY,
                             0.34657359f,     -0.34657359f,   1.0f, 88.37626f};
    enum { AROUND = 64 };
    for (size_t c = 0; c < OCTAVO_COUNT(centres); c++) {
        float *x = vector_floats(t, "x", 2 * AROUND), *got = vector_floats(t, "out", 2 * AROUND);
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
    const vector_pair *k = arg;
    exp_edges(t, k);
    vector_for_shapes(t, k, exp_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL),
          *out = vector_floats(t, "out", BENCH);
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

static void softmax_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    float *x = vector_filled(t, "x", n, fill);
    if (fill == TESTER_FILL_OUTLIER) { /* masked positions among ordinary ones */
        for (int64_t i = 0; i < n; i++)
            x[i] = tester_random(t) % 3 == 0 ? -INFINITY : tester_uniform(t, -40.0f, 40.0f);
    }
    float *scalar = vector_copied(t, "scalar", x, n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
    softmax_oracle(want, bound, x, n);
    k->level->softmax(x, n);
    k->scalar->softmax(scalar, n);
    tester_near_f32(t, "x", x, want, bound, n);
    tester_near_f32(t, "scalar", scalar, want, bound, n);
}

static void check_softmax(tester *t, const void *arg) {
    const vector_pair *k = arg;
    vector_for_shapes(t, k, softmax_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    for (tester_bench(t, "n=4096", &(tester_work){.bytes = 2 * BENCH * FLOAT, .ops = 20 * BENCH});
         tester_run(t);)
        k->level->softmax(x, BENCH);
}

/* --- soft_cap --- */

static void soft_cap_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    static const float caps[] = {50.0f, 30.0f, 1.0f, 0.01f, 3e4f};
    float cap = caps[tester_random(t) % OCTAVO_COUNT(caps)], single = 0.0f;
    float *x = vector_filled(t, "x", n, fill);
    for (int64_t i = 0; i < n && fill == TESTER_FILL_NORMAL; i++)
        x[i] *= cap * 2.0f;
    float *got = vector_copied(t, "got", x, n), *scalar = vector_copied(t, "scalar", x, n);
    double *want = vector_doubles(t, "want", n), *bound = vector_doubles(t, "bound", n);
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
    const vector_pair *k = arg;
    vector_for_shapes(t, k, soft_cap_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL);
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

static void quantise_with(tester *t, const vector_pair *k, const float *x, int64_t n_blocks) {
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
static void quantise_ties(tester *t, const vector_pair *k) {
    float *x = vector_floats(t, "x", OCTAVO_BLOCK);
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

static void quantise_once(tester *t, const vector_pair *k, int64_t n, tester_fill fill) {
    int64_t n_blocks = n % 9;
    float *x = vector_filled(t, "x", n_blocks * OCTAVO_BLOCK, fill);
    if (n_blocks > 0 && n % 2) { /* blocks around the smallest maximum that has an inverse */
        for (int64_t i = 0; i < OCTAVO_BLOCK; i++)
            x[i] = tester_uniform(t, -0x1p-120f, 0x1p-120f) * (n % 4 == 1 ? 1.0f : 0.015f);
    }
    tester_seal(t, x);
    quantise_with(t, k, x, n_blocks);
}

static void check_quantise_q8(tester *t, const void *arg) {
    const vector_pair *k = arg;
    quantise_ties(t, k);
    vector_for_shapes(t, k, quantise_once);
    float *x = vector_filled(t, "x", BENCH, TESTER_FILL_NORMAL);
    octavo_q8_block *out = tester_buffer(t, "out", BENCH / OCTAVO_BLOCK * sizeof *out, 4);
    tester_work work = {.bytes = BENCH * FLOAT + BENCH / OCTAVO_BLOCK * sizeof *out,
                        .ops = 3 * BENCH};
    for (tester_bench(t, "n=4096", &work); tester_run(t);)
        k->level->quantise_q8(out, x, BENCH);
}

void check_vector(tester *t);

void check_vector(tester *t) {
    octavo_vector_kernels scalar, level;
    octavo_vector_kernels_init(&scalar, 0);
    octavo_vector_kernels_init(&level, tester_flags(t));
    vector_pair k = {&scalar, &level};
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
        {"gate_relu2", (tester_function *)level.gate_relu2, check_gate_relu2},
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
