/* SPDX-License-Identifier: Apache-2.0
 *
 * The readable reference of octavo_vector_kernels, and the constants of its exp, which every level
 * evaluates in the same way (with fused multiply-adds where it has them).
 *
 * exp(x), x in [OCTAVO_EXP_LOW, OCTAVO_EXP_HIGH]:
 *   n = x / ln 2 to the nearest integer, r = x - n ln 2        |r| <= 0.347
 *   exp(x) = 2^n (1 + r + r^2 (C0 + C1 r + C2 r^2 + C3 r^3))   minimax, 2^-23.1 relative
 * n comes from adding OCTAVO_ROUND_MAGIC, and is then the low bits of the sum. ln 2 is split so
 * that n LN2_HIGH is exact. The factor 2^n is an addition to the exponent's bits, and the two
 * limits keep the result in the normal range. 2^-22.4 relative at worst over every third bit
 * pattern.
 */
#ifndef OCTAVO_KERNELS_SCALAR_VECTOR_SCALAR_H
#define OCTAVO_KERNELS_SCALAR_VECTOR_SCALAR_H

#include "base/number.h"
#include "kernels/vector.h"

#include <math.h>

#define OCTAVO_EXP_HIGH     88.72283f    /* above: infinity, the largest float is exp of this */
#define OCTAVO_EXP_LOW      (-87.33654f) /* below: 0, this gives the least normal float */
#define OCTAVO_EXP_LOG2E    1.44269504f
#define OCTAVO_EXP_LN2_HIGH 0.693359375f
#define OCTAVO_EXP_LN2_LOW  (-2.12194440e-4f)
#define OCTAVO_EXP_C0       0.499992281f
#define OCTAVO_EXP_C1       0.166671157f
#define OCTAVO_EXP_C2       0.0418905504f
#define OCTAVO_EXP_C3       0.00831247773f

/* gelu_tanh(g) = g / (1 + exp(-z)), z = g (GELU_Z1 + GELU_Z3 g^2), since
 * (1 + tanh(z / 2)) / 2 = 1 / (1 + exp(-z)). */
#define OCTAVO_GELU_Z1 1.59576912f   /* 2 sqrt(2/pi) */
#define OCTAVO_GELU_Z3 0.0713548163f /* 2 sqrt(2/pi) 0.044715 */

/* gelu(g) = max(g, 0) - |g| h, h = erfc(|g| / sqrt 2) / 2 = exp(-g^2 / 2) u (C0 + C1 u + ... + C8
 * u^8), u = 1 / (1 + GELU_U |g|); minimax, 2^-25.6 relative up to where exp ends. |g| is limited to
 * GELU_END in the product, beyond which h is 0, so that infinity gives no NaN. */
#define OCTAVO_GELU_U   0.212132034f /* 0.3 / sqrt 2 */
#define OCTAVO_GELU_END 14.0f
#define OCTAVO_GELU_C0  0.08459400235f
#define OCTAVO_GELU_C1  0.08535761735f
#define OCTAVO_GELU_C2  0.0741695586f
#define OCTAVO_GELU_C3  0.10746313165f
#define OCTAVO_GELU_C4  (-0.04732560712f)
#define OCTAVO_GELU_C5  0.27386038045f
#define OCTAVO_GELU_C6  (-0.2561393799f)
#define OCTAVO_GELU_C7  0.24278177645f
#define OCTAVO_GELU_C8  (-0.06476148965f)

#define OCTAVO_SWIGLU_ALPHA 1.702f

/* 1.5 * 2^23: adding and subtracting it rounds a float below 2^22 to the nearest even integer. */
#define OCTAVO_ROUND_MAGIC 12582912.0f

static inline float octavo_exp_scalar(float x) {
    if (isnan(x)) return x;
    if (x > OCTAVO_EXP_HIGH) return INFINITY;
    if (x < OCTAVO_EXP_LOW) return 0.0f;
    float shifted = x * OCTAVO_EXP_LOG2E + OCTAVO_ROUND_MAGIC;
    float n = shifted - OCTAVO_ROUND_MAGIC;
    float r = x - n * OCTAVO_EXP_LN2_HIGH - n * OCTAVO_EXP_LN2_LOW;
    float p = OCTAVO_EXP_C3;
    p = p * r + OCTAVO_EXP_C2;
    p = p * r + OCTAVO_EXP_C1;
    p = p * r + OCTAVO_EXP_C0;
    p = p * (r * r) + r;
    p = p + 1.0f;
    return octavo_f32_from_bits(octavo_f32_bits(p) + (octavo_f32_bits(shifted) << 23));
}

/* Rotates one pair by the angle of cs = (cos, sin). */
static inline void octavo_rope_pair_scalar(float *x0, float *x1, const float *cs) {
    float a = *x0, b = *x1;
    *x0 = a * cs[0] - b * cs[1];
    *x1 = b * cs[0] + a * cs[1];
}

void octavo_vector_kernels_scalar(octavo_vector_kernels *kernels);

#endif
