/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight f32 at a time: the operations that vector_tmpl.h is written in. For AVX2 files only; each
 * level's header defines the same names, so a file includes one of them.
 */
#ifndef OCTAVO_KERNELS_X86_VECTOR_OPS_AVX2_H
#define OCTAVO_KERNELS_X86_VECTOR_OPS_AVX2_H

#include "kernels/x86/intrinsics.h"

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
/* The larger; b where a is NaN. */
static inline vec vec_max(vec a, vec b) {
    return _mm256_max_ps(a, b);
}
static inline float vec_reduce_max(vec a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
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

#endif
