/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of keys into columns, within registers. For files built with AVX2 or more.
 */
#ifndef OCTAVO_KERNELS_X86_ATTENTION_TRANSPOSE_H
#define OCTAVO_KERNELS_X86_ATTENTION_TRANSPOSE_H

#include "base/compiler.h"
#include "kernels/x86/intrinsics.h"

/* 8 x 8 f32. */
static OCTAVO_ALWAYS_INLINE void transpose8(__m256 m[8]) {
    __m256 a0 = _mm256_unpacklo_ps(m[0], m[1]), a1 = _mm256_unpackhi_ps(m[0], m[1]);
    __m256 a2 = _mm256_unpacklo_ps(m[2], m[3]), a3 = _mm256_unpackhi_ps(m[2], m[3]);
    __m256 a4 = _mm256_unpacklo_ps(m[4], m[5]), a5 = _mm256_unpackhi_ps(m[4], m[5]);
    __m256 a6 = _mm256_unpacklo_ps(m[6], m[7]), a7 = _mm256_unpackhi_ps(m[6], m[7]);
    __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
    __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
    __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
    __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
    m[0] = _mm256_permute2f128_ps(b0, b4, 0x20);
    m[1] = _mm256_permute2f128_ps(b1, b5, 0x20);
    m[2] = _mm256_permute2f128_ps(b2, b6, 0x20);
    m[3] = _mm256_permute2f128_ps(b3, b7, 0x20);
    m[4] = _mm256_permute2f128_ps(b0, b4, 0x31);
    m[5] = _mm256_permute2f128_ps(b1, b5, 0x31);
    m[6] = _mm256_permute2f128_ps(b2, b6, 0x31);
    m[7] = _mm256_permute2f128_ps(b3, b7, 0x31);
}

#endif
