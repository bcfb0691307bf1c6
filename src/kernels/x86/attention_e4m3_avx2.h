/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of fp8 e4m3 as f32 by way of bf16, exactly: its upper and its lower bytes are made apart,
 * 32 at once, so that tables of 16 bytes do what is irregular. For AVX2 files.
 */
#ifndef OCTAVO_KERNELS_X86_ATTENTION_E4M3_AVX2_H
#define OCTAVO_KERNELS_X86_ATTENTION_E4M3_AVX2_H

#include "kernels/x86/attention_load.h"

#define BOTH_HALVES(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* A number is s eeee mmm, its bf16 s 0111.+eeee mmm0000: the upper byte depends on the upper four
 * bits, the lower one on the lower four. Entries correct both where the number is subnormal. */
static OCTAVO_ALWAYS_INLINE void e4m3_as_bf16(__m256i *high, __m256i *low, __m256i x) {
    const __m256i by_upper =
        BOTH_HALVES(60, 61, 62, 63, 64, 65, 66, 67, -68, -67, -66, -65, -64, -63, -62, -61);
    const __m256i by_lower =
        BOTH_HALVES(0, 16, 32, 48, 64, 80, 96, 112, -128, -112, -96, -80, -64, -48, -32, -16);
    const __m256i add_high = BOTH_HALVES(0, 0, 0, 0, 0, 0, 0, 0, -60, -1, -1, -1, 0, 0, 0, 0);
    const __m256i flip_low = BOTH_HALVES(0, 0, 0, 0, 0, 0, 0, 0, 0, 16, -96, -16, 64, 112, 32, 16);
    const __m256i y = _mm256_and_si256(x, _mm256_set1_epi8(0x7f));
    /* 8 + y of subnormal ones; the others get the bit that stands for no entry */
    const __m256i entry = _mm256_add_epi8(y, _mm256_set1_epi8(0x78));
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(0x0f));
    const __m256i is_nan = _mm256_cmpeq_epi8(y, _mm256_set1_epi8(0x7f));
    *high = _mm256_shuffle_epi8(by_upper, upper);
    *high = _mm256_add_epi8(*high, _mm256_shuffle_epi8(add_high, entry));
    *high = _mm256_or_si256(*high, is_nan);
    *low = _mm256_shuffle_epi8(by_lower, y);
    *low = _mm256_xor_si256(*low, _mm256_shuffle_epi8(flip_low, entry));
}

/* Of 8 words lanes `lane` and lane + 1, lane even, in the lower and the upper halves. */
static OCTAVO_ALWAYS_INLINE __m256i e4m3_word_pairs(__m256i words, const int lane) {
    const __m256i by_pairs = BOTH_HALVES(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    __m256i high, low;
    e4m3_as_bf16(&high, &low, _mm256_shuffle_epi8(words, by_pairs));
    return lane == 0 ? _mm256_unpacklo_epi8(low, high) : _mm256_unpackhi_epi8(low, high);
}

#undef BOTH_HALVES

#endif
