/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic in portable C: what the other levels are compared with.
 */
#include "kernels/scalar/vector_scalar.h"

#include "base/compiler.h"

/* The sum of OCTAVO_SUM_LANES lanes, by the tree. */
static float add_lanes(float *lanes) {
    octavo_tree_add(lanes, OCTAVO_SUM_LANES, 1, 1);
    return lanes[0];
}

static float sum_squares(const float *x, int64_t begin, int64_t end) {
    float lanes[OCTAVO_SUM_LANES] = {0};
    for (int64_t i = begin; i < end; i++)
        lanes[(i - begin) % OCTAVO_SUM_LANES] += x[i] * x[i];
    return add_lanes(lanes);
}

static float sum(const float *x, int64_t begin, int64_t end) {
    float lanes[OCTAVO_SUM_LANES] = {0};
    for (int64_t i = begin; i < end; i++)
        lanes[(i - begin) % OCTAVO_SUM_LANES] += x[i];
    return add_lanes(lanes);
}

static void scale_mul(float *out, const float *x, float scale, const float *weight, int64_t n) {
    if (!weight) {
        for (int64_t i = 0; i < n; i++)
            out[i] = x[i] * scale;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] * scale) * weight[i];
}

static void add(float *out, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static void shift(float *out, const float *x, float by, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] - by;
}

static void rope_half(float *x, const float *cs, int64_t n_pairs) {
    for (int64_t i = 0; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[i], &x[i + n_pairs], &cs[2 * i]);
}

static void rope_pairwise(float *x, const float *cs, int64_t n_pairs) {
    for (int64_t i = 0; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[2 * i], &x[2 * i + 1], &cs[2 * i]);
}

static void gate_silu(float *out, const float *gate, const float *up, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = gate[i] / (1.0f + octavo_exp_scalar(-gate[i])) * (up ? up[i] : 1.0f);
}

static void gate_gelu_tanh(float *out, const float *gate, const float *up, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gate[i];
        float z = g * (OCTAVO_GELU_Z3 * (g * g) + OCTAVO_GELU_Z1);
        out[i] = g / (1.0f + octavo_exp_scalar(-z)) * (up ? up[i] : 1.0f);
    }
}

static float gelu(float g) {
    static const float c[] = {OCTAVO_GELU_C8, OCTAVO_GELU_C7, OCTAVO_GELU_C6,
                              OCTAVO_GELU_C5, OCTAVO_GELU_C4, OCTAVO_GELU_C3,
                              OCTAVO_GELU_C2, OCTAVO_GELU_C1, OCTAVO_GELU_C0};
    float size = fabsf(g), u = 1.0f / (1.0f + OCTAVO_GELU_U * size), h = c[0];
    for (size_t i = 1; i < OCTAVO_COUNT(c); i++)
        h = h * u + c[i];
    h = h * u * octavo_exp_scalar(-0.5f * (g * g));
    return (g > 0.0f ? g : 0.0f) - (size < OCTAVO_GELU_END ? size : OCTAVO_GELU_END) * h;
}

static void gate_gelu(float *out, const float *gate, const float *up, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = gelu(gate[i]) * (up ? up[i] : 1.0f);
}

static void gate_relu2(float *out, const float *gate, const float *up, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gate[i] <= 0.0f ? 0.0f : gate[i];
        out[i] = g * g * (up ? up[i] : 1.0f);
    }
}

static void gate_swiglu(float *out, const float *gate, const float *up, float limit, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gate[i] > limit ? limit : gate[i], u = up[i] > limit ? limit : up[i];
        u = u < -limit ? -limit : u;
        out[i] = g / (1.0f + octavo_exp_scalar(-(OCTAVO_SWIGLU_ALPHA * g))) * (u + 1.0f);
    }
}

static void exp_row(float *out, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = octavo_exp_scalar(x[i]);
}

static void softmax(float *x, int64_t n) {
    float max = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max; /* a NaN is left out here and enters through the sum */
    float lanes[OCTAVO_SUM_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        x[i] = octavo_exp_scalar(x[i] - max);
        lanes[i % OCTAVO_SUM_LANES] += x[i];
    }
    float sum = add_lanes(lanes);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* tanh|y| = (1 - t) / (1 + t) with t = exp(-2|y|), which cannot overflow. */
static void soft_cap(float *x, float cap, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float y = x[i] / cap;
        float t = octavo_exp_scalar(-2.0f * fabsf(y));
        x[i] = cap * copysignf((1.0f - t) / (1.0f + t), y);
    }
}

static void quantise_block(octavo_q8_block *out, const float *x) {
    uint32_t max_bits = 0; /* of |x|: floats without sign order as their bits, NaN above infinity */
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        uint32_t bits = octavo_f32_bits(x[i]) & 0x7fffffffu;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    *out = (octavo_q8_block){0};
    if (max_bits >= 0x7f800000u) {
        out->d = NAN;
        return;
    }
    float max = octavo_f32_from_bits(max_bits);
    float inverse = 127.0f / max;
    if (!isfinite(inverse)) return;
    out->d = max / 127.0f;
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        float rounded = x[i] * inverse + OCTAVO_ROUND_MAGIC - OCTAVO_ROUND_MAGIC;
        out->q[i] = (int8_t)rounded;
        out->sum[i / 16] = (int16_t)(out->sum[i / 16] + out->q[i]);
    }
}

#include "kernels/vector_entries_tmpl.h"

void octavo_vector_kernels_scalar(octavo_vector_kernels *kernels) {
    *kernels = entries;
}
