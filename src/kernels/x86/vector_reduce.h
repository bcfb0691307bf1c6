/* SPDX-License-Identifier: Apache-2.0
 *
 * One number from the lanes of a vector, upper half onto lower half each time. For files built with
 * AVX2 or more; wider vectors are halved first.
 */
#ifndef OCTAVO_KERNELS_X86_VECTOR_REDUCE_H
#define OCTAVO_KERNELS_X86_VECTOR_REDUCE_H

#include "kernels/x86/intrinsics.h"

#include <stdint.h>

static inline float reduce_max8(__m256 a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

static inline float reduce_add8(__m256 a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* Of signed lanes. */
static inline int32_t reduce_max8_s32(__m256i a) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(1, 0, 3, 2)));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(2, 3, 0, 1)));
    return _mm_cvtsi128_si32(m);
}

#endif
