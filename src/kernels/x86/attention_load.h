/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache elements of each number type as f32, exactly. For files built with AVX2 or more.
 *
 * An fp8 number becomes an f16 with the same digits. e5m2 is the upper byte of one; e4m3 has a
 * shorter exponent, so that its f16 is 2^8 times too small, and its NaN (all ones) has to be made
 * one.
 */
#ifndef OCTAVO_KERNELS_X86_ATTENTION_LOAD_H
#define OCTAVO_KERNELS_X86_ATTENTION_LOAD_H

#include "base/compiler.h"
#include "kernels/x86/intrinsics.h"

#include <stdint.h>

/* octavo_dtype's order. */
enum { F32, F16, BF16, FP8_E4M3, FP8_E5M2, INT8 };

#define E4M3_AS_F16 0x1p8f

static OCTAVO_ALWAYS_INLINE __m256i e4m3_as_f16(__m128i bits) {
    __m256i x = _mm256_cvtepi8_epi16(bits);
    __m256i magnitude = _mm256_and_si256(x, _mm256_set1_epi16(0x7f));
    __m256i is_nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
    __m256i half = _mm256_and_si256(_mm256_slli_epi16(x, 7), _mm256_set1_epi16((short)0xbf80));
    return _mm256_or_si256(half, _mm256_and_si256(is_nan, _mm256_set1_epi16(0x7e00)));
}

static OCTAVO_ALWAYS_INLINE __m256i e5m2_as_f16(__m128i bits) {
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(bits), 8);
}

/* Elements i to i + 7. */
static OCTAVO_ALWAYS_INLINE __m256 load8(const void *x, int64_t i, const int type) {
    const uint8_t *bytes = x;
    const __m128i *halves = (const void *)(bytes + 2 * i);
    const __m128i *quarters = (const void *)(bytes + i);
    switch (type) {
    case F32:
        return _mm256_loadu_ps((const float *)x + i);
    case F16:
        return _mm256_cvtph_ps(_mm_loadu_si128(halves));
    case BF16: {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(halves));
        return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
    }
    case FP8_E4M3: {
        __m256i half = e4m3_as_f16(_mm_loadl_epi64(quarters));
        __m256 scaled = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
        return _mm256_mul_ps(scaled, _mm256_set1_ps(E4M3_AS_F16));
    }
    case FP8_E5M2:
        return _mm256_cvtph_ps(_mm256_castsi256_si128(e5m2_as_f16(_mm_loadl_epi64(quarters))));
    default:
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(quarters)));
    }
}

#endif
