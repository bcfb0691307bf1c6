/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache elements of 8 bits as f16, exactly. For files built with AVX2 or more.
 *
 * An fp8 number becomes an f16 with the same digits. e5m2 is the upper byte of one. e4m3 has a
 * shorter exponent, so that its f16 is 2^8 times too small, and its NaN (all ones) has to be made
 * one. (As an f32 with shifted digits it would be denormal at times, which costs far more.)
 */
#ifndef OCTAVO_KERNELS_X86_ATTENTION_LOAD_H
#define OCTAVO_KERNELS_X86_ATTENTION_LOAD_H

#include "base/compiler.h"
#include "kernels/attention_types.h"
#include "kernels/x86/intrinsics.h"

#include <stdint.h>

/* From the bits in the upper byte of each 16-bit lane, below which is zero. */
static OCTAVO_ALWAYS_INLINE __m256i e4m3_as_f16(__m256i upper) {
    __m256i half = _mm256_srai_epi16(upper, 1); /* the sign twice, so one place is free to clear */
    half = _mm256_and_si256(half, _mm256_set1_epi16((short)0xbf80));
    /* of all ones only, one more carries into that place; an exponent of all ones with it */
    __m256i is_nan = _mm256_add_epi16(half, _mm256_set1_epi16(0x80));
    return _mm256_or_si256(half, _mm256_and_si256(is_nan, _mm256_set1_epi16(0x4000)));
}

/* 16 elements as f16; from e4m3 2^8 times too small. */
static OCTAVO_ALWAYS_INLINE __m256i load_fp8_as_f16(const uint8_t *x, const int type) {
    __m256i upper = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)x));
    upper = _mm256_slli_epi16(upper, 8);
    return type == FP8_E4M3 ? e4m3_as_f16(upper) : upper;
}

#endif
