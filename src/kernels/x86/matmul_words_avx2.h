/* SPDX-License-Identifier: Apache-2.0
 *
 * The words in which the matmul templates are written, for 256-bit vectors: vf of f32, vi of
 * integers, one lane of 32 bits an output.
 */
#ifndef OCTAVO_KERNELS_X86_MATMUL_WORDS_AVX2_H
#define OCTAVO_KERNELS_X86_MATMUL_WORDS_AVX2_H

#include "base/compiler.h"
#include "kernels/x86/intrinsics.h"

#include <stdint.h>
#include <string.h>

typedef __m256 vf;
typedef __m256i vi;

enum { LANES = 8 };

static inline vf vf_zero(void) {
    return _mm256_setzero_ps();
}

static inline vf vf_set1(float x) {
    return _mm256_set1_ps(x);
}

static inline vf vf_load(const float *p) {
    return _mm256_load_ps(p);
}

static inline void vf_store(float *p, vf x) {
    _mm256_store_ps(p, x);
}

static inline vf vf_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b) {
    return _mm256_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}

/* a * b + c, rounded once */
static inline vf vf_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf vf_from_s32(vi x) {
    return _mm256_cvtepi32_ps(x);
}

static inline vf vf_from_f16(const uint8_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

/* F8_E4M3 times 2^-8 and F8_E5M2: as f16, whose subnormal numbers cost nothing. */
static inline vf vf_from_e4m3(const uint8_t *p) {
    const __m128i x = _mm_slli_epi16(_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p)), 7);
    return _mm256_cvtph_ps(_mm_and_si128(x, _mm_set1_epi16((short)0xbfff)));
}

static inline vf vf_from_e5m2(const uint8_t *p) {
    const __m128i x = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)p));
    return _mm256_cvtph_ps(_mm_slli_epi16(x, 8));
}

static inline vf vf_from_u8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline vf vf_from_s8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline vf vf_from_bits(vi x) {
    return _mm256_castsi256_ps(x);
}

static inline vf vf_negate(vf x) {
    return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

static inline vi vi_zero(void) {
    return _mm256_setzero_si256();
}

static inline vi vi_load(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void vi_store(uint8_t *p, vi x) {
    _mm256_storeu_si256((__m256i *)p, x);
}

/* 4 bytes in every lane */
static inline vi vi_set_word(const void *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
}

/* bytes to 32 bits */
static inline vi vi_from_u8(const uint8_t *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

static inline vi vi_set8(int x) {
    return _mm256_set1_epi8((char)x);
}

static inline vi vi_set16(int x) {
    return _mm256_set1_epi16((short)x);
}

static inline vi vi_set32(int x) {
    return _mm256_set1_epi32(x);
}

static inline vi vi_and(vi a, vi b) {
    return _mm256_and_si256(a, b);
}

static inline vi vi_or(vi a, vi b) {
    return _mm256_or_si256(a, b);
}

static inline vi vi_xor(vi a, vi b) {
    return _mm256_xor_si256(a, b);
}

/* macros, since a shift count must be a literal where nothing is inlined */
#define vi_shl16(x, n) _mm256_slli_epi16(x, n)
#define vi_shr16(x, n) _mm256_srli_epi16(x, n)
#define vi_shl32(x, n) _mm256_slli_epi32(x, n)
#define vi_shr32(x, n) _mm256_srli_epi32(x, n)

/* each lane by its own count, below 32 */
static inline vi vi_shlv32(vi x, vi n) {
    return _mm256_sllv_epi32(x, n);
}

static inline vi vi_add16(vi a, vi b) {
    vi sum = _mm256_add_epi16(a, b);
    OCTAVO_PIN_VECTOR(sum);
    return sum;
}

static inline vi vi_add32(vi a, vi b) {
    vi sum = _mm256_add_epi32(a, b);
    OCTAVO_PIN_VECTOR(sum);
    return sum;
}

static inline vi vi_sub32(vi a, vi b) {
    return _mm256_sub_epi32(a, b);
}

static inline vi vi_min32(vi a, vi b) {
    return _mm256_min_epi32(a, b);
}

static inline vi vi_max32(vi a, vi b) {
    return _mm256_max_epi32(a, b);
}

/* of every byte, which is below 16, the table's byte */
static inline vi vi_lookup16(const uint8_t table[16], vi index) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), index);
}

/* 32 bits at each lane's entry: the entry and the next one */
static inline vi vi_gather16(const uint16_t *table, vi index) {
    return _mm256_i32gather_epi32((const int *)(const void *)table, index, 2);
}

/* x, but 128 - x in the bytes whose bit is set; a bit for each byte at p */
static inline vi vi_mirror8(vi x, const uint8_t *p) {
    const vi byte =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const vi bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    const vi bits = _mm256_and_si256(_mm256_shuffle_epi8(vi_set_word(p), byte), bit);
    return _mm256_blendv_epi8(x, _mm256_sub_epi8(_mm256_set1_epi8(-128), x),
                              _mm256_cmpeq_epi8(bits, bit));
}

/* 16-bit sums of two products each: unsigned bytes of a, signed bytes of b */
static inline vi vi_maddubs(vi a, vi b) {
    return _mm256_maddubs_epi16(a, b);
}

/* 32-bit sums of two products each of signed 16-bit halves */
static inline vi vi_madd16(vi a, vi b) {
    return _mm256_madd_epi16(a, b);
}

static inline vi vi_abs8(vi x) {
    return _mm256_abs_epi8(x);
}

/* x with the signs of w; what it gives where w is 0 is of no account */
static inline vi vi_sign8(vi x, vi w) {
    return _mm256_sign_epi8(x, w);
}

#endif
