/* SPDX-License-Identifier: Apache-2.0
 *
 * Sixteen f32 at a time: see vector_ops_avx2.h. For AVX-512 files only.
 */
#ifndef OCTAVO_KERNELS_X86_VECTOR_OPS_AVX512_H
#define OCTAVO_KERNELS_X86_VECTOR_OPS_AVX512_H

#include "kernels/x86/intrinsics.h"
#include "kernels/x86/vector_reduce.h"

#include <math.h>
#include <stdint.h>

typedef __m512 vec;
enum { VEC_WIDTH = 16 };

/* Lanes [0, n); n 0..16. */
static inline __mmask16 vec_mask(int n) {
    return (__mmask16)((1u << n) - 1u);
}

static inline vec vec_set(float x) {
    return _mm512_set1_ps(x);
}
static inline vec vec_load(const float *x) {
    return _mm512_loadu_ps(x);
}
static inline void vec_store(float *x, vec a) {
    _mm512_storeu_ps(x, a);
}
static inline vec vec_load_aligned(const float *x) {
    return _mm512_load_ps(x);
}
static inline vec vec_load_held(const float *x) {
    return _mm512_loadu_ps(x); /* there are registers enough */
}
static inline void vec_store_aligned(float *x, vec a) {
    _mm512_store_ps(x, a);
}
static inline void vec_load_pairs(const float *x, vec *even, vec *odd) {
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
    *even = _mm512_permutex2var_ps(low, at, high);
    *odd = _mm512_permutex2var_ps(low, _mm512_add_epi32(at, _mm512_set1_epi32(1)), high);
}
static inline vec vec_load_part(const float *x, int n, vec rest) {
    return _mm512_mask_loadu_ps(rest, vec_mask(n), x);
}
static inline void vec_store_part(float *x, vec a, int n) {
    _mm512_mask_storeu_ps(x, vec_mask(n), a);
}
static inline vec vec_keep_part(vec a, int n) {
    return _mm512_maskz_mov_ps(vec_mask(n), a);
}

static inline vec vec_add(vec a, vec b) {
    return _mm512_add_ps(a, b);
}
static inline vec vec_sub(vec a, vec b) {
    return _mm512_sub_ps(a, b);
}
static inline vec vec_mul(vec a, vec b) {
    return _mm512_mul_ps(a, b);
}
static inline vec vec_div(vec a, vec b) {
    return _mm512_div_ps(a, b);
}
static inline vec vec_fma(vec a, vec b, vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
static inline vec vec_fnma(vec a, vec b, vec c) {
    return _mm512_fnmadd_ps(a, b, c);
}
static inline vec vec_abs(vec a) {
    return _mm512_abs_ps(a);
}
static inline vec vec_with_sign_of(vec a, vec sign) {
    return _mm512_or_ps(a, _mm512_and_ps(_mm512_set1_ps(-0.0f), sign));
}
static inline vec vec_rotate_pairs(vec ab, vec cs) {
    __m512 by_c = _mm512_mul_ps(ab, _mm512_moveldup_ps(cs));
    __m512 ba = _mm512_shuffle_ps(ab, ab, _MM_SHUFFLE(2, 3, 0, 1));
    __m512 by_s = _mm512_mul_ps(ba, _mm512_movehdup_ps(cs));
    return _mm512_mask_sub_ps(_mm512_add_ps(by_c, by_s), 0x5555, by_c, by_s);
}
static inline vec vec_min(vec a, vec b) {
    return _mm512_min_ps(a, b);
}
static inline vec vec_max(vec a, vec b) {
    return _mm512_max_ps(a, b);
}
static inline float vec_first(vec a) {
    return _mm512_cvtss_f32(a);
}
static inline float vec_reduce_max(vec a) {
    return reduce_max8(_mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)));
}
static inline float vec_reduce_add(vec a) {
    return reduce_add8(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)));
}

static inline vec vec_add_exponent(vec a, vec n) {
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(_mm512_castps_si512(n), 23)));
}
static inline vec vec_limit(vec a, vec x, float low, float high) {
    __mmask16 is_in = _mm512_cmp_ps_mask(x, _mm512_set1_ps(low), _CMP_NLT_UQ);
    __mmask16 is_out = _mm512_cmp_ps_mask(x, _mm512_set1_ps(high), _CMP_NLE_UQ);
    a = _mm512_maskz_mov_ps(is_in, a);
    return _mm512_mask_mul_ps(a, is_out, x, _mm512_set1_ps(INFINITY));
}
static inline vec vec_limit_low(vec a, vec x, float low) {
    a = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(low), _CMP_GE_OQ), a);
    return _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

#endif
