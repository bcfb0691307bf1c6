/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight f32 at a time: the operations that vector_tmpl.h is written in. For AVX2 files only; each
 * level's header defines the same names, so a file includes one of them.
 */
#ifndef OCTAVO_KERNELS_X86_VECTOR_OPS_AVX2_H
#define OCTAVO_KERNELS_X86_VECTOR_OPS_AVX2_H

#include "base/compiler.h"
#include "kernels/x86/intrinsics.h"
#include "kernels/x86/vector_reduce.h"

#include <math.h>
#include <stdint.h>

typedef __m256 vec;
enum { VEC_WIDTH = 8 };

/* Lanes [0, n) all ones, the others zero; n 0..8. */
static inline __m256i vec_mask(int n) {
    static const int32_t ones_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones_zeros + 8 - n));
}

static inline vec vec_set(float x) {
    return _mm256_set1_ps(x);
}
static inline vec vec_load(const float *x) {
    return _mm256_loadu_ps(x);
}
static inline void vec_store(float *x, vec a) {
    _mm256_storeu_ps(x, a);
}
/* Aligned to the vector. */
static inline vec vec_load_aligned(const float *x) {
    return _mm256_load_ps(x);
}
/* From anywhere, once and into a register: GCC may otherwise read memory again at every use. */
static inline vec vec_load_held(const float *x) {
    vec a = _mm256_loadu_ps(x);
    OCTAVO_PIN_VECTOR(a);
    return a;
}
static inline void vec_store_aligned(float *x, vec a) {
    _mm256_store_ps(x, a);
}
/* The even and the odd ones of 2 * VEC_WIDTH elements. */
static inline void vec_load_pairs(const float *x, vec *even, vec *odd) {
    __m256 low = _mm256_loadu_ps(x), high = _mm256_loadu_ps(x + 8);
    __m256d a = _mm256_castps_pd(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
    __m256d b = _mm256_castps_pd(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
    *even = _mm256_castpd_ps(_mm256_permute4x64_pd(a, _MM_SHUFFLE(3, 1, 2, 0)));
    *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(b, _MM_SHUFFLE(3, 1, 2, 0)));
}
/* The first n lanes; the others are `rest`, and memory behind the first n is not touched. */
static inline vec vec_load_part(const float *x, int n, vec rest) {
    __m256i mask = vec_mask(n);
    return _mm256_blendv_ps(rest, _mm256_maskload_ps(x, mask), _mm256_castsi256_ps(mask));
}
static inline void vec_store_part(float *x, vec a, int n) {
    _mm256_maskstore_ps(x, vec_mask(n), a);
}
/* Lanes from n on become zero. */
static inline vec vec_keep_part(vec a, int n) {
    return _mm256_and_ps(a, _mm256_castsi256_ps(vec_mask(n)));
}

static inline vec vec_add(vec a, vec b) {
    return _mm256_add_ps(a, b);
}
static inline vec vec_sub(vec a, vec b) {
    return _mm256_sub_ps(a, b);
}
static inline vec vec_mul(vec a, vec b) {
    return _mm256_mul_ps(a, b);
}
static inline vec vec_div(vec a, vec b) {
    return _mm256_div_ps(a, b);
}
/* a b + c and c - a b, rounded once. */
static inline vec vec_fma(vec a, vec b, vec c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline vec vec_fnma(vec a, vec b, vec c) {
    return _mm256_fnmadd_ps(a, b, c);
}
static inline vec vec_abs(vec a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
/* |a| must be a: it has no sign yet. */
static inline vec vec_with_sign_of(vec a, vec sign) {
    return _mm256_or_ps(a, _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
/* Pairs (a, b) times (c, s) as complex numbers: (a c - b s, b c + a s), not fused. */
static inline vec vec_rotate_pairs(vec ab, vec cs) {
    __m256 ba = _mm256_permute_ps(ab, _MM_SHUFFLE(2, 3, 0, 1));
    return _mm256_addsub_ps(_mm256_mul_ps(ab, _mm256_moveldup_ps(cs)),
                            _mm256_mul_ps(ba, _mm256_movehdup_ps(cs)));
}
/* The smaller and the larger; b where a is NaN. */
static inline vec vec_min(vec a, vec b) {
    return _mm256_min_ps(a, b);
}
static inline vec vec_max(vec a, vec b) {
    return _mm256_max_ps(a, b);
}
static inline float vec_first(vec a) {
    return _mm256_cvtss_f32(a);
}
static inline float vec_reduce_max(vec a) {
    return reduce_max8(a);
}
/* By the tree. */
static inline float vec_reduce_add(vec a) {
    return reduce_add8(a);
}

/* a times 2 to the integer that the low bits of `n` hold; no lane may leave the normal range. */
static inline vec vec_add_exponent(vec a, vec n) {
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_castps_si256(n), 23)));
}
/* a, but 0 where x < low, infinity where x > high, NaN where x is NaN. */
static inline vec vec_limit(vec a, vec x, float low, float high) {
    __m256 is_in = _mm256_cmp_ps(x, _mm256_set1_ps(low), _CMP_NLT_UQ);
    __m256 is_out = _mm256_cmp_ps(x, _mm256_set1_ps(high), _CMP_NLE_UQ);
    a = _mm256_and_ps(a, is_in);
    return _mm256_blendv_ps(a, _mm256_mul_ps(x, _mm256_set1_ps(INFINITY)), is_out);
}
/* The same where no x is too high. */
static inline vec vec_limit_low(vec a, vec x, float low) {
    a = _mm256_and_ps(a, _mm256_cmp_ps(x, _mm256_set1_ps(low), _CMP_GE_OQ));
    return _mm256_or_ps(a, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

#endif
