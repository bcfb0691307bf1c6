/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of keys into words of 16 positions, whatever a word holds. For AArch64 files.
 */
#ifndef OCTAVO_KERNELS_ARM_ATTENTION_TRANSPOSE_H
#define OCTAVO_KERNELS_ARM_ATTENTION_TRANSPOSE_H

#include "kernels/attention_types.h"

#include <arm_neon.h>

/* 16 bytes of 4 rows into words: out[w] holds word w of each. */
static OCTAVO_ALWAYS_INLINE void transpose_words(uint32x4_t out[4], const uint8_t *const rows[4],
                                                 size_t offset) {
    uint32x4_t m[4];
    for (int k = 0; k < 4; k++)
        m[k] = vreinterpretq_u32_u8(vld1q_u8(rows[k] + offset));
    uint64x2_t a = vreinterpretq_u64_u32(vtrn1q_u32(m[0], m[1]));
    uint64x2_t b = vreinterpretq_u64_u32(vtrn2q_u32(m[0], m[1]));
    uint64x2_t c = vreinterpretq_u64_u32(vtrn1q_u32(m[2], m[3]));
    uint64x2_t d = vreinterpretq_u64_u32(vtrn2q_u32(m[2], m[3]));
    out[0] = vreinterpretq_u32_u64(vtrn1q_u64(a, c));
    out[1] = vreinterpretq_u32_u64(vtrn1q_u64(b, d));
    out[2] = vreinterpretq_u32_u64(vtrn2q_u64(a, c));
    out[3] = vreinterpretq_u32_u64(vtrn2q_u64(b, d));
}

/* Words [0, n), n up to 16, of 4 rows: a cache line of each. */
static OCTAVO_ALWAYS_INLINE void gather_line(uint32_t *to, const uint8_t *const rows[4],
                                             size_t offset, int n) {
    for (int w = 0; w < n; w += 4, offset += 16) {
        uint32x4_t out[4];
        transpose_words(out, rows, offset);
        const int stored = n - w < 4 ? n - w : 4;
        for (int k = 0; k < stored; k++)
            vst1q_u32(to + (w + k) * OCTAVO_KEY_GROUP, out[k]);
    }
}

/* A line of each row is used up before the next one, which may fall into the same set of the level
 * 1 cache. */
static void gather_keys(uint32_t *words, const uint8_t *const *slots, size_t offset, int n_words,
                        octavo_ahead *ahead) {
    enum { ROWS = 4, LINE_WORDS = 16 };
    for (int first = 0; first < OCTAVO_KEY_GROUP; first += ROWS) {
        uint32_t *to = words + first;
        const uint8_t *rows[ROWS]; /* in registers, which stores to `words` could not promise */
        for (int k = 0; k < ROWS; k++)
            rows[k] = slots[first + k];
        int w = 0;
        for (; w + LINE_WORDS <= n_words; w += LINE_WORDS, to += LINE_WORDS * OCTAVO_KEY_GROUP) {
            if (first % (2 * ROWS) == 0) ahead_step(ahead); /* the scores ask for the rest */
            gather_line(to, rows, offset + 4 * (size_t)w, LINE_WORDS);
        }
        if (w < n_words) gather_line(to, rows, offset + 4 * (size_t)w, n_words - w);
    }
}

#endif
