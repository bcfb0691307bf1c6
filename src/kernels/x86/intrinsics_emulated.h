/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX-512 intrinsics through SIMDe, and those that its version 0.7.4 lacks. Tests only.
 */
#ifndef OCTAVO_KERNELS_X86_INTRINSICS_EMULATED_H
#define OCTAVO_KERNELS_X86_INTRINSICS_EMULATED_H

#include "base/number.h"

#include <stdint.h>
#include <string.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

#ifndef __AVX512F__

/* its alias has the parameters of another intrinsic */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 simde_mm512_madd_epi16

static inline __m512 octavo_emulated_cvtepi32_ps(__m512i x) {
    int32_t from[16];
    float to[16];
    _mm512_storeu_si512(from, x);
    for (int i = 0; i < 16; i++)
        to[i] = (float)from[i];
    return _mm512_loadu_ps(to);
}
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps octavo_emulated_cvtepi32_ps

static inline __m512 octavo_emulated_cvtph_ps(__m256i x) {
    uint16_t from[16];
    float to[16];
    _mm256_storeu_si256((__m256i *)from, x);
    for (int i = 0; i < 16; i++)
        to[i] = octavo_f16_to_f32(from[i]);
    return _mm512_loadu_ps(to);
}
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps octavo_emulated_cvtph_ps

static inline __m512i octavo_emulated_cvtepu8_epi32(__m128i x) {
    uint8_t from[16];
    int32_t to[16];
    _mm_storeu_si128((__m128i *)from, x);
    for (int i = 0; i < 16; i++)
        to[i] = from[i];
    return _mm512_loadu_si512(to);
}
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32 octavo_emulated_cvtepu8_epi32

static inline __m512i octavo_emulated_cvtepi8_epi32(__m128i x) {
    int8_t from[16];
    int32_t to[16];
    _mm_storeu_si128((__m128i *)from, x);
    for (int i = 0; i < 16; i++)
        to[i] = from[i];
    return _mm512_loadu_si512(to);
}
#undef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32 octavo_emulated_cvtepi8_epi32

static inline __m512i octavo_emulated_i32gather_epi32(__m512i index, const void *base, int scale) {
    int32_t at[16], to[16];
    _mm512_storeu_si512(at, index);
    for (int i = 0; i < 16; i++)
        memcpy(&to[i], (const uint8_t *)base + (size_t)at[i] * (size_t)scale, sizeof to[i]);
    return _mm512_loadu_si512(to);
}
#undef _mm512_i32gather_epi32
#define _mm512_i32gather_epi32 octavo_emulated_i32gather_epi32

static inline __m512 octavo_emulated_mask_loadu_ps(__m512 rest, uint16_t mask, const float *x) {
    float to[16];
    _mm512_storeu_ps(to, rest);
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) to[i] = x[i];
    return _mm512_loadu_ps(to);
}
#undef _mm512_mask_loadu_ps
#define _mm512_mask_loadu_ps octavo_emulated_mask_loadu_ps

static inline void octavo_emulated_mask_storeu_ps(float *x, uint16_t mask, __m512 a) {
    float from[16];
    _mm512_storeu_ps(from, a);
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) x[i] = from[i];
}
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps octavo_emulated_mask_storeu_ps

/* The even (odd = 0) or odd elements, each twice. */
static inline __m512 octavo_emulated_dup_ps(__m512 a, int odd) {
    float from[16], to[16];
    _mm512_storeu_ps(from, a);
    for (int i = 0; i < 16; i++)
        to[i] = from[i / 2 * 2 + odd];
    return _mm512_loadu_ps(to);
}
#undef _mm512_moveldup_ps
#define _mm512_moveldup_ps(a) octavo_emulated_dup_ps(a, 0)
#undef _mm512_movehdup_ps
#define _mm512_movehdup_ps(a) octavo_emulated_dup_ps(a, 1)

static inline __m512i octavo_emulated_cvtps_epi32(__m512 a) {
    float from[16];
    __m256i to[2];
    _mm512_storeu_ps(from, a);
    to[0] = _mm256_cvtps_epi32(_mm256_loadu_ps(from));
    to[1] = _mm256_cvtps_epi32(_mm256_loadu_ps(from + 8));
    return _mm512_loadu_si512(to);
}
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32 octavo_emulated_cvtps_epi32

static inline __m128i octavo_emulated_cvtepi32_epi8(__m512i a) {
    uint32_t from[16];
    uint8_t to[16];
    _mm512_storeu_si512(from, a);
    for (int i = 0; i < 16; i++)
        to[i] = (uint8_t)from[i];
    return _mm_loadu_si128((const __m128i *)to);
}
#undef _mm512_cvtepi32_epi8
#define _mm512_cvtepi32_epi8 octavo_emulated_cvtepi32_epi8

/* The second argument fills the lower half. */
static inline __m512bh octavo_emulated_cvtne2ps_pbh(__m512 high, __m512 low) {
    float from[32];
    union {
        uint16_t bits[32];
        __m512bh v;
    } to;
    _mm512_storeu_ps(from, low);
    _mm512_storeu_ps(from + 16, high);
    for (int i = 0; i < 32; i++)
        to.bits[i] = octavo_f32_to_bf16(from[i]);
    return to.v;
}
#undef _mm512_cvtne2ps_pbh
#define _mm512_cvtne2ps_pbh octavo_emulated_cvtne2ps_pbh

/* The upper product of each pair first; each is added with one rounding, and what is denormal is 0.
 */
static inline float octavo_emulated_flush(float x) {
    const uint32_t bits = octavo_f32_bits(x);
    return bits & 0x7f800000u ? x : octavo_f32_from_bits(bits & 0x80000000u);
}

static inline __m512 octavo_emulated_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b) {
    union {
        __m512bh v;
        uint16_t bits[32];
    } x = {.v = a}, y = {.v = b};
    float to[16];
    _mm512_storeu_ps(to, sum);
    for (int i = 0; i < 16; i++) {
        for (int half = 1; half >= 0; half--) {
            const float p = octavo_emulated_flush(octavo_bf16_to_f32(x.bits[2 * i + half])) *
                            octavo_emulated_flush(octavo_bf16_to_f32(y.bits[2 * i + half]));
            to[i] = octavo_emulated_flush(octavo_emulated_flush(to[i]) + p);
        }
    }
    return _mm512_loadu_ps(to);
}
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps octavo_emulated_dpbf16_ps

static inline __m512i octavo_emulated_cvtepu16_epi32(__m256i x) {
    uint16_t from[16];
    int32_t to[16];
    _mm256_storeu_si256((__m256i *)from, x);
    for (int i = 0; i < 16; i++)
        to[i] = from[i];
    return _mm512_loadu_si512(to);
}
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 octavo_emulated_cvtepu16_epi32

static inline __m512i octavo_emulated_srai_epi32(__m512i a, unsigned count) {
    int32_t x[16];
    _mm512_storeu_si512(x, a);
    for (int i = 0; i < 16; i++)
        x[i] >>= count;
    return _mm512_loadu_si512(x);
}
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 octavo_emulated_srai_epi32

static inline __m256i octavo_emulated_cvtepi32_epi16(__m512i a) {
    uint32_t from[16];
    uint16_t to[16];
    _mm512_storeu_si512(from, a);
    for (int i = 0; i < 16; i++)
        to[i] = (uint16_t)from[i];
    return _mm256_loadu_si256((const __m256i *)to);
}
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 octavo_emulated_cvtepi32_epi16

static inline __m256 octavo_emulated_extractf32x8_ps(__m512 a, int half) {
    float from[16];
    _mm512_storeu_ps(from, a);
    return _mm256_loadu_ps(from + 8 * half);
}
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps octavo_emulated_extractf32x8_ps

#undef _mm512_cvtss_f32
#define _mm512_cvtss_f32(a) _mm_cvtss_f32(_mm512_castps512_ps128(a))

#endif
#endif
