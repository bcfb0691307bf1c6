/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of fp8 with AVX-512 VBMI. Both kinds are bf16 with a shorter exponent and mantissa, and
 * one instruction looks 64 bytes up in a table of 128: so two tables have the upper and the lower
 * bytes of every number, NaN and subnormal ones included, exactly.
 */
#include "kernels/attention.h"
#include "kernels/x86/attention_tile_avx512.h"
#include "kernels/x86/intrinsics.h"
#include "kernels/x86/vector_ops_avx512.h"

#include <stdint.h>

/* --- tables --- */

/* The bf16 of e4m3 x, 0 <= x < 128: s.eeee.mmm, exponent bias 7, all ones is NaN. Subnormal ones
 * are x * 2^-9: their highest bit makes the exponent. */
#define E4M3(x)                                                                                    \
    ((x) == 127 ? 0x7ff0                                                                           \
     : (x) >= 8 ? ((x) << 4) + (120 << 7)                                                          \
     : (x) >= 4 ? (120 << 7) + (((x)-4) * 32)                                                      \
     : (x) >= 2 ? (119 << 7) + (((x)-2) * 64)                                                      \
     : (x) == 1 ? (118 << 7)                                                                       \
                : 0)

/* Likewise of e5m2: s.eeeee.mm, exponent bias 15, Inf and quiet NaN as in f16, subnormal ones
 * x * 2^-16. */
#define E5M2(x)                                                                                    \
    ((x) > 124    ? 0x7fc0 | ((x) << 5)                                                            \
     : (x) == 124 ? 0x7f80                                                                         \
     : (x) >= 4   ? ((x) << 5) + (112 << 7)                                                        \
     : (x) >= 2   ? (112 << 7) + (((x)-2) * 64)                                                    \
     : (x) == 1   ? (111 << 7)                                                                     \
                  : 0)

#define UPPER(bits) ((uint8_t)((bits) >> 8))
#define LOWER(bits) ((uint8_t)((bits)&0xff))

#define FOUR(half, kind, x)                                                                        \
    half(kind(x)), half(kind((x) + 1)), half(kind((x) + 2)), half(kind((x) + 3))
#define SIXTEEN(half, kind, x)                                                                     \
    FOUR(half, kind, x), FOUR(half, kind, (x) + 4), FOUR(half, kind, (x) + 8),                     \
        FOUR(half, kind, (x) + 12)
#define TABLE(half, kind)                                                                          \
    {                                                                                              \
        SIXTEEN(half, kind, 0), SIXTEEN(half, kind, 16), SIXTEEN(half, kind, 32),                  \
            SIXTEEN(half, kind, 48), SIXTEEN(half, kind, 64), SIXTEEN(half, kind, 80),             \
            SIXTEEN(half, kind, 96), SIXTEEN(half, kind, 112)                                      \
    }

static const _Alignas(64) uint8_t upper_bytes[2][128] = {TABLE(UPPER, E4M3), TABLE(UPPER, E5M2)};
static const _Alignas(64) uint8_t lower_bytes[2][128] = {TABLE(LOWER, E4M3), TABLE(LOWER, E5M2)};

static OCTAVO_ALWAYS_INLINE __m512i look_up(const uint8_t table[128], __m512i x) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), x, _mm512_load_si512(table + 64));
}

/* 64 numbers as f32: those at bytes 2i and 2i + 1 of the first half of each 128 bits become x[0]
 * and x[1], those of the second half x[2] and x[3]. */
static OCTAVO_ALWAYS_INLINE void widen_fp8(vec x[4], __m512i bytes, const int type) {
    enum { THIRD_OR_FIRST_AND_SECOND = 0xea };
    const int kind = type == FP8_E5M2;
    const __m512i odd = _mm512_set1_epi32((int)0xffff0000u);
    const __m512i lower = look_up(lower_bytes[kind], bytes);
    __m512i upper = look_up(upper_bytes[kind], bytes); /* the sign is no part of an index */
    upper =
        _mm512_ternarylogic_epi32(bytes, _mm512_set1_epi8(-128), upper, THIRD_OR_FIRST_AND_SECOND);
    const __m512i first = _mm512_unpacklo_epi8(lower, upper);
    const __m512i second = _mm512_unpackhi_epi8(lower, upper);
    x[0] = _mm512_castsi512_ps(_mm512_slli_epi32(first, 16));
    x[1] = _mm512_castsi512_ps(_mm512_and_si512(first, odd));
    x[2] = _mm512_castsi512_ps(_mm512_slli_epi32(second, 16));
    x[3] = _mm512_castsi512_ps(_mm512_and_si512(second, odd));
}

/* From which byte each of the 64 comes, so that x[g] of the above is lanes 16 g + i of a row, or
 * lane g of word i. */
#define ROW_LANES(a)                                                                               \
    (a), (a) + 16, (a) + 1, (a) + 17, (a) + 2, (a) + 18, (a) + 3, (a) + 19, (a) + 32, (a) + 48,    \
        (a) + 33, (a) + 49, (a) + 34, (a) + 50, (a) + 35, (a) + 51
#define WORD_LANES(a)                                                                              \
    (a), (a) + 1, (a) + 4, (a) + 5, (a) + 8, (a) + 9, (a) + 12, (a) + 13, (a) + 2, (a) + 3,        \
        (a) + 6, (a) + 7, (a) + 10, (a) + 11, (a) + 14, (a) + 15
static const _Alignas(64) uint8_t by_row[64] = {ROW_LANES(0), ROW_LANES(4), ROW_LANES(8),
                                                ROW_LANES(12)};
static const _Alignas(64) uint8_t by_word[64] = {WORD_LANES(0), WORD_LANES(16), WORD_LANES(32),
                                                 WORD_LANES(48)};

/* --- the words of attention_entries_tmpl.h --- */

static OCTAVO_ALWAYS_INLINE vec vec_load_type(const void *x, int64_t i, const int type) {
    const __m512i bytes =
        _mm512_castsi128_si512(_mm_loadu_si128((const void *)((const uint8_t *)x + i)));
    vec lanes[4]; /* of which the first are there */
    widen_fp8(lanes, _mm512_permutexvar_epi8(_mm512_load_si512(by_row), bytes), type);
    return lanes[0];
}

static OCTAVO_ALWAYS_INLINE void vec_load_group(vec x[1], const void *row, int64_t i,
                                                const int type) {
    x[0] = vec_load_type(row, i, type);
}

#define E4M3_IS_EXACT                true
#define LOADS_TOGETHER(groups, type) ((groups) == 4 && ((type) == FP8_E4M3 || (type) == FP8_E5M2))

/* 64 lanes. */
static OCTAVO_ALWAYS_INLINE void vec_load_groups(vec x[4], const uint8_t *row, const int type) {
    const __m512i bytes = _mm512_loadu_si512(row);
    widen_fp8(x, _mm512_permutexvar_epi8(_mm512_load_si512(by_row), bytes), type);
}

static OCTAVO_ALWAYS_INLINE vec vec_word_lane(const uint32_t *words, const int lane,
                                              const int type) {
    const __m512i bytes = _mm512_loadu_si512(words);
    vec lanes[4];
    widen_fp8(lanes, _mm512_permutexvar_epi8(_mm512_load_si512(by_word), bytes), type);
    return lanes[lane];
}

#include "kernels/attention_entries_tmpl.h"

ENTRIES(fp8_e4m3, FP8_E4M3)
ENTRIES(fp8_e5m2, FP8_E5M2)

void octavo_attention_kernels_avx512_vbmi(octavo_attention_kernels *kernels) {
    set_fp8_e4m3(kernels);
    set_fp8_e5m2(kernels);
}
