/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX-512 intrinsics through SIMDe, and those that its version 0.7.4 lacks. Tests only.
 */
#ifndef OCTAVO_KERNELS_X86_INTRINSICS_EMULATED_H
#define OCTAVO_KERNELS_X86_INTRINSICS_EMULATED_H

#include "base/number.h"

#include <stdint.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

#ifndef __AVX512F__

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

#endif
#endif
