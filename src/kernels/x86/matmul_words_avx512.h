/* SPDX-License-Identifier: Apache-2.0
 *
 * The words in which the matmul templates are written, for 512-bit vectors: vf of f32, vi of
 * integers, one lane of 32 bits an output.
 */
#ifndef OCTAVO_KERNELS_X86_MATMUL_WORDS_AVX512_H
#define OCTAVO_KERNELS_X86_MATMUL_WORDS_AVX512_H

#include "base/compiler.h"
#include "kernels/x86/intrinsics.h"

#include <stdint.h>
#include <string.h>

typedef __m512 vf;
typedef __m512i vi;

enum { LANES = 16 };

static inline vf vf_zero(void) {
    return _mm512_setzero_ps();
}

static inline vf vf_set1(float x) {
    return _mm512_set1_ps(x);
}

static inline vf vf_load(const float *p) {
    return _mm512_load_ps(p);
}

static inline void vf_store(float *p, vf x) {
    _mm512_store_ps(p, x);
}

static inline vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b) {
    return _mm512_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}

/* a * b + c, rounded once */
static inline vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_from_s32(vi x) {
    return _mm512_cvtepi32_ps(x);
}

static inline vf vf_from_f16(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

/* F8_E4M3 times 2^-8 and F8_E5M2: as f16, whose subnormal numbers cost nothing. */
static inline vf vf_from_e4m3(const uint8_t *p) {
    const __m256i x =
        _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), 7);
    return _mm512_cvtph_ps(_mm256_and_si256(x, _mm256_set1_epi16((short)0xbfff)));
}

static inline vf vf_from_e5m2(const uint8_t *p) {
    const __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
    return _mm512_cvtph_ps(_mm256_slli_epi16(x, 8));
}

static inline vf vf_from_u8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static inline vf vf_from_s8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static inline vf vf_from_bits(vi x) {
    return _mm512_castsi512_ps(x);
}

static inline vf vf_negate(vf x) {
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

static inline vi vi_zero(void) {
    return _mm512_setzero_si512();
}

static inline vi vi_load(const uint8_t *p) {
    return _mm512_loadu_si512(p);
}

static inline void vi_store(uint8_t *p, vi x) {
    _mm512_storeu_si512(p, x);
}

/* 4 bytes in every lane */
static inline vi vi_set_word(const void *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
}

/* bytes to 32 bits */
static inline vi vi_from_u8(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}

static inline vi vi_set8(int x) {
    return _mm512_set1_epi8((char)x);
}

static inline vi vi_set16(int x) {
    return _mm512_set1_epi16((short)x);
}

static inline vi vi_set32(int x) {
    return _mm512_set1_epi32(x);
}

static inline vi vi_and(vi a, vi b) {
    return _mm512_and_si512(a, b);
}

static inline vi vi_or(vi a, vi b) {
    return _mm512_or_si512(a, b);
}

static inline vi vi_xor(vi a, vi b) {
    return _mm512_xor_si512(a, b);
}

/* macros, since a shift count must be a literal where nothing is inlined */
#define vi_shl16(x, n) _mm512_slli_epi16(x, n)
#define vi_shr16(x, n) _mm512_srli_epi16(x, n)
#define vi_shl32(x, n) _mm512_slli_epi32(x, n)
#define vi_shr32(x, n) _mm512_srli_epi32(x, n)

/* each lane by its own count, below 32 */
static inline vi vi_shlv32(vi x, vi n) {
    return _mm512_sllv_epi32(x, n);
}

static inline vi vi_add16(vi a, vi b) {
    vi sum = _mm512_add_epi16(a, b);
#ifndef OCTAVO_EMULATE_AVX512 /* where it may be no register */
    OCTAVO_PIN_VECTOR(sum);
#endif
    return sum;
}

static inline vi vi_add32(vi a, vi b) {
    vi sum = _mm512_add_epi32(a, b);
#ifndef OCTAVO_EMULATE_AVX512 /* where it may be no register */
    OCTAVO_PIN_VECTOR(sum);
#endif
    return sum;
}

static inline vi vi_sub32(vi a, vi b) {
    return _mm512_sub_epi32(a, b);
}

static inline vi vi_min32(vi a, vi b) {
    return _mm512_min_epi32(a, b);
}

static inline vi vi_max32(vi a, vi b) {
    return _mm512_max_epi32(a, b);
}

/* of every byte, which is below 16, the table's byte */
static inline vi vi_lookup16(const uint8_t table[16], vi index) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), index);
}

/* 32 bits at each lane's entry: the entry and the next one */
static inline vi vi_gather16(const uint16_t *table, vi index) {
    return _mm512_i32gather_epi32(index, table, 2);
}

/* x, but 128 - x in the bytes whose bit is set; a bit for each byte at p */
static inline vi vi_mirror8(vi x, const uint8_t *p) {
    uint64_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm512_mask_sub_epi8(x, bits, _mm512_set1_epi8(-128), x);
}

/* 16-bit sums of two products each: unsigned bytes of a, signed bytes of b */
static inline vi vi_maddubs(vi a, vi b) {
    return _mm512_maddubs_epi16(a, b);
}

/* 32-bit sums of two products each of signed 16-bit halves */
static inline vi vi_madd16(vi a, vi b) {
    return _mm512_madd_epi16(a, b);
}

static inline vi vi_abs8(vi x) {
    return _mm512_abs_epi8(x);
}

/* x with the signs of w; what it gives where w is 0 is of no account */
static inline vi vi_sign8(vi x, vi w) {
    return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
}

#endif
