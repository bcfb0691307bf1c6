/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of keys into words of 16 positions, whatever a word holds. For files built with AVX2 or
 * more.
 */
#ifndef OCTAVO_KERNELS_X86_ATTENTION_TRANSPOSE_H
#define OCTAVO_KERNELS_X86_ATTENTION_TRANSPOSE_H

#include "kernels/x86/attention_load.h"

/* 16 bytes of rows k and k + 4, k = 0..3, into words: out[w] holds word w of rows 0 to 7. */
static OCTAVO_ALWAYS_INLINE void transpose_words(__m256 out[4], const uint8_t *const rows[8],
                                                 size_t offset) {
    __m256 m[4];
    for (int k = 0; k < 4; k++) {
        __m128 low = _mm_loadu_ps((const void *)(rows[k] + offset));
        __m128 high = _mm_loadu_ps((const void *)(rows[k + 4] + offset));
        m[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
    }
    __m256 a = _mm256_unpacklo_ps(m[0], m[1]), b = _mm256_unpackhi_ps(m[0], m[1]);
    __m256 c = _mm256_unpacklo_ps(m[2], m[3]), d = _mm256_unpackhi_ps(m[2], m[3]);
    out[0] = _mm256_shuffle_ps(a, c, 0x44);
    out[1] = _mm256_shuffle_ps(a, c, 0xee);
    out[2] = _mm256_shuffle_ps(b, d, 0x44);
    out[3] = _mm256_shuffle_ps(b, d, 0xee);
}

/* Words [0, n), n up to 16, of 8 rows: a cache line of each. */
static OCTAVO_ALWAYS_INLINE void gather_line(float *to, const uint8_t *const rows[8], size_t offset,
                                             int n) {
    for (int w = 0; w < n; w += 4, offset += 16) {
        __m256 out[4];
        transpose_words(out, rows, offset);
        const int stored = n - w < 4 ? n - w : 4;
        for (int k = 0; k < stored; k++)
            _mm256_storeu_ps(to + (w + k) * OCTAVO_KEY_GROUP, out[k]);
    }
}

/* Rows lie a slot apart, so that the same line of each may fall into one set of the level 1 cache:
 * a line is used up before the next one of its set is touched. */
static void gather_keys(uint32_t *words, const uint8_t *const *slots, size_t offset, int n_words,
                        octavo_ahead *ahead) {
    enum { ROWS = 8, LINE_WORDS = 16 };
    for (int first = 0; first < OCTAVO_KEY_GROUP; first += ROWS) {
        float *to = (float *)(void *)words + first;
        const uint8_t *rows[ROWS]; /* in registers, which stores to `words` could not promise */
        for (int k = 0; k < ROWS; k++)
            rows[k] = slots[first + k];
        int w = 0;
        for (; w + LINE_WORDS <= n_words; w += LINE_WORDS, to += LINE_WORDS * OCTAVO_KEY_GROUP) {
            ahead_step(ahead);
            gather_line(to, rows, offset + 4 * (size_t)w, LINE_WORDS);
        }
        if (w < n_words) gather_line(to, rows, offset + 4 * (size_t)w, n_words - w);
    }
}

#endif
