/* SPDX-License-Identifier: Apache-2.0
 *
 * Four f32 at a time: the operations that vector_tmpl.h is written in, for AArch64 files. What they
 * do with NaN and with zeros of both signs is what AVX2's do.
 */
#ifndef OCTAVO_KERNELS_ARM_VECTOR_OPS_NEON_H
#define OCTAVO_KERNELS_ARM_VECTOR_OPS_NEON_H

#include <arm_neon.h>
#include <math.h>
#include <stdint.h>

typedef float32x4_t vec;
enum { VEC_WIDTH = 4 };

/* Lanes [0, n) all ones, the others zero; n 0..4. */
static inline uint32x4_t vec_mask(int n) {
    static const uint32_t ones_zeros[8] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    return vld1q_u32(ones_zeros + 4 - n);
}
/* Lanes where the mask is ones, the others 0. */
static inline vec vec_keep(vec a, uint32x4_t mask) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), mask));
}

static inline vec vec_set(float x) {
    return vdupq_n_f32(x);
}
static inline vec vec_load(const float *x) {
    return vld1q_f32(x);
}
static inline void vec_store(float *x, vec a) {
    vst1q_f32(x, a);
}
/* Aligned to the vector. */
static inline vec vec_load_aligned(const float *x) {
    return vld1q_f32(x);
}
static inline void vec_store_aligned(float *x, vec a) {
    vst1q_f32(x, a);
}
/* The even and the odd ones of 2 * VEC_WIDTH elements. */
static inline void vec_load_pairs(const float *x, vec *even, vec *odd) {
    float32x4x2_t both = vld2q_f32(x);
    *even = both.val[0];
    *odd = both.val[1];
}
/* The first n lanes; the others are `rest`, and memory behind the first n is not touched. */
static inline vec vec_load_part(const float *x, int n, vec rest) {
    float lanes[VEC_WIDTH];
    vst1q_f32(lanes, rest);
    for (int i = 0; i < VEC_WIDTH - 1 && i < n; i++)
        lanes[i] = x[i];
    return n < VEC_WIDTH ? vld1q_f32(lanes) : vld1q_f32(x);
}
static inline void vec_store_part(float *x, vec a, int n) {
    float lanes[VEC_WIDTH];
    vst1q_f32(lanes, a);
    for (int i = 0; i < n; i++)
        x[i] = lanes[i];
}
/* Lanes from n on become zero. */
static inline vec vec_keep_part(vec a, int n) {
    return vec_keep(a, vec_mask(n));
}

static inline vec vec_add(vec a, vec b) {
    return vaddq_f32(a, b);
}
static inline vec vec_sub(vec a, vec b) {
    return vsubq_f32(a, b);
}
static inline vec vec_mul(vec a, vec b) {
    return vmulq_f32(a, b);
}
static inline vec vec_div(vec a, vec b) {
    return vdivq_f32(a, b);
}
/* a b + c and c - a b, rounded once. */
static inline vec vec_fma(vec a, vec b, vec c) {
    return vfmaq_f32(c, a, b);
}
static inline vec vec_fnma(vec a, vec b, vec c) {
    return vfmsq_f32(c, a, b);
}
static inline vec vec_abs(vec a) {
    return vabsq_f32(a);
}
/* |a| must be a: it has no sign yet. */
static inline vec vec_with_sign_of(vec a, vec sign) {
    return vbslq_f32(vdupq_n_u32(0x80000000u), sign, a);
}
/* Pairs (a, b) times (c, s) as complex numbers: (a c - b s, b c + a s), not fused. */
static inline vec vec_rotate_pairs(vec ab, vec cs) {
    const uint32x4_t signs = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u)); /* of the even ones */
    vec sin = vtrn2q_f32(cs, cs);
    sin = vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(sin), signs));
    return vaddq_f32(vmulq_f32(ab, vtrn1q_f32(cs, cs)), vmulq_f32(vrev64q_f32(ab), sin));
}
/* The smaller and the larger; b where a is NaN. */
static inline vec vec_min(vec a, vec b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
static inline vec vec_max(vec a, vec b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
static inline float vec_first(vec a) {
    return vgetq_lane_f32(a, 0);
}
/* Upper half onto lower half. */
static inline float vec_reduce_max(vec a) {
    a = vec_max(a, vextq_f32(a, a, 2));
    return vec_first(vec_max(a, vextq_f32(a, a, 1)));
}
static inline float vec_reduce_add(vec a) {
    a = vaddq_f32(a, vextq_f32(a, a, 2));
    return vec_first(vaddq_f32(a, vextq_f32(a, a, 1)));
}

/* a times 2 to the integer that the low bits of `n` hold; no lane may leave the normal range. */
static inline vec vec_add_exponent(vec a, vec n) {
    uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(n), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(a), exponent));
}
/* a, but 0 where x < low, infinity where x > high, NaN where x is NaN. */
static inline vec vec_limit(vec a, vec x, float low, float high) {
    uint32x4_t is_in = vcgeq_f32(x, vdupq_n_f32(low)), is_low = vcleq_f32(x, vdupq_n_f32(high));
    return vbslq_f32(is_low, vec_keep(a, is_in), vmulq_f32(x, vdupq_n_f32(INFINITY)));
}
/* The same where no x is too high. */
static inline vec vec_limit_low(vec a, vec x, float low) {
    return vbslq_f32(vceqq_f32(x, x), vec_keep(a, vcgeq_f32(x, vdupq_n_f32(low))), x);
}

#endif
