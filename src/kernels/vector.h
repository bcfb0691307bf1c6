/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic: norms, rope, gates, softmax, activation quantising. All rows are f32 and
 * contiguous; pointers need no alignment and lengths may be anything from 0. `out` may be the same
 * as an input where it says so and may not overlap otherwise.
 *
 * Unless a bound is stated a result is the same at every level: plain multiplications and
 * additions, each rounded once, in the order of kernels/order.h.
 */
#ifndef OCTAVO_KERNELS_VECTOR_H
#define OCTAVO_KERNELS_VECTOR_H

#include "base/cpu.h"
#include "kernels/matmul.h"
#include "kernels/order.h"

#include <stdint.h>

typedef struct octavo_vector_kernels {
    /* Sum of x[i]^2 over [begin, end): OCTAVO_SUM_LANES lanes, then the tree. One slice of a norm.
     */
    float (*sum_squares)(const float *x, int64_t begin, int64_t end);
    /* Sum of x[i] over [begin, end), in the same order. */
    float (*sum)(const float *x, int64_t begin, int64_t end);
    /* out[i] = (x[i] * scale) * weight[i]; weight NULL = 1. out may be x. */
    void (*scale_mul)(float *out, const float *x, float scale, const float *weight, int64_t n);
    /* out[i] = a[i] + b[i]; out may be a or b. */
    void (*add)(float *out, const float *a, const float *b, int64_t n);
    /* out[i] = x[i] - by; out may be x. */
    void (*shift)(float *out, const float *x, float by, int64_t n);
    /* Rotates n_pairs pairs of one head: (x0, x1) -> (x0 c - x1 s, x1 c + x0 s). cs [n_pairs][2]
     * holds (c, s). half: pair i is x[i], x[i + n_pairs] (NeoX); pairwise: x[2i], x[2i + 1]
     * (GPT-J). In place. */
    void (*rope_half)(float *x, const float *cs, int64_t n_pairs);
    void (*rope_pairwise)(float *x, const float *cs, int64_t n_pairs);
    /* out[i] = act(gate[i]) * up[i]; up NULL = 1. out may be gate or up.
     * silu: g / (1 + exp(-g)); gelu_tanh: 0.5 g (1 + tanh(z / 2)), z = 2 sqrt(2/pi) (g + 0.044715
     * g^3); gelu: 0.5 g (1 + erf(g / sqrt 2)), z = g^2 / 2. Relative error of act under 2^-20, for
     * both gelus under 2^-20 (1 + |z|) where g < 0, or absolute under 1e-30. A gate of +inf gives
     * inf * up, of -inf NaN (gelu: 0 * up); NaN stays NaN. */
    void (*gate_silu)(float *out, const float *gate, const float *up, int64_t n);
    void (*gate_gelu_tanh)(float *out, const float *gate, const float *up, int64_t n);
    void (*gate_gelu)(float *out, const float *gate, const float *up, int64_t n);
    /* out[i] = max(gate[i], 0)^2 * up[i]; up NULL = 1, out may be gate or up. NaN stays NaN. */
    void (*gate_relu2)(float *out, const float *gate, const float *up, int64_t n);
    /* out[i] = g / (1 + exp(-1.702 g)) * (u + 1), g = gate[i] of at most limit, u = up[i] within
     * -limit and limit (limit > 0, finite); out may be gate or up. Relative error of the quotient
     * under 2^-20 (1 + 1.702 |g|), or absolute under 1e-30. A gate of -inf gives NaN; NaN stays. */
    void (*gate_swiglu)(float *out, const float *gate, const float *up, float limit, int64_t n);
    /* out[i] = exp(x[i]), relative error under 2^-21; results below 2^-126 are 0, exp(-inf) too;
     * beyond the largest float infinity. out may be x. */
    void (*exp)(float *out, const float *x, int64_t n);
    /* Softmax in place: x[i] = exp(x[i] - max) / sum, sum in OCTAVO_SUM_LANES lanes. Relative error
     * under 2^-20 + 2^-24 (|x[i] - max| + n / OCTAVO_SUM_LANES), or absolute under 2^-126. -inf
     * gives 0; where the maximum is infinite or anything is NaN, all are NaN. */
    void (*softmax)(float *x, int64_t n);
    /* x[i] = cap * tanh(x[i] / cap), in place, cap > 0; absolute error under cap * 2^-21. */
    void (*soft_cap)(float *x, float cap, int64_t n);
    /* n a multiple of 32: out [n / 32]. See octavo_q8_block. */
    void (*quantise_q8)(octavo_q8_block *out, const float *x, int64_t n);
} octavo_vector_kernels;

void octavo_vector_kernels_init(octavo_vector_kernels *kernels, octavo_cpu_flags flags);
void octavo_vector_kernels_avx2(octavo_vector_kernels *kernels);
void octavo_vector_kernels_avx512(octavo_vector_kernels *kernels);
void octavo_vector_kernels_neon(octavo_vector_kernels *kernels);

/* RMS norm of one row: out[i] = x[i] * (1 / sqrt(mean(x^2) + eps)) * weight[i]; the mean's sum by
 * slices (kernels/order.h). weight NULL = 1. out may be x. */
void octavo_rms_norm(const octavo_vector_kernels *kernels, float *out, const float *x,
                     const float *weight, const octavo_slices *slices, float eps);

/* Layer norm of one row: y = x - mean(x), out[i] = y[i] * (1 / sqrt(mean(y^2) + eps)) * weight[i] +
 * bias[i]; both means' sums by slices. weight NULL = 1, bias NULL = 0. out may be x. */
void octavo_layer_norm(const octavo_vector_kernels *kernels, float *out, const float *x,
                       const float *weight, const float *bias, const octavo_slices *slices,
                       float eps);

#endif
