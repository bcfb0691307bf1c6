/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of bf16 with AVX-512 BF16: a dot product instruction takes two lanes of a key, or the
 * values of two positions, at a time. A pair is two lanes (2w, 2w + 1), or two places (2m, 2m + 1),
 * whoever computes along; half a pair is a pair with zeros.
 */
#include "base/compiler.h"
#include "kernels/attention.h"
#include "kernels/x86/attention_load.h"
#include "kernels/x86/vector_ops_avx512.h"

enum {
    BLOCK = OCTAVO_SOFTMAX_BLOCK,
    GROUP = OCTAVO_KEY_GROUP,
    PAIRS = BLOCK / 2,
    ROWS = 6,   /* of a tile */
    GROUPS = 4, /* of 16 keys or lanes: 24 accumulators */
};

static OCTAVO_ALWAYS_INLINE __m512 add_pairs(__m512 acc, __m512i a, __m512i b) {
    const union {
        __m512i words;
        __m512bh pairs;
    } x = {.words = a}, y = {.words = b};
    return _mm512_dpbf16_ps(acc, x.pairs, y.pairs);
}

/* Calls TILE(rows) for all rows, a constant number at a time. */
#define FOR_ROWS(n_rows, TILE)                                                                     \
    switch (n_rows) {                                                                              \
    case 1:                                                                                        \
        TILE(1);                                                                                   \
        break;                                                                                     \
    case 2:                                                                                        \
        TILE(2);                                                                                   \
        break;                                                                                     \
    case 3:                                                                                        \
        TILE(3);                                                                                   \
        break;                                                                                     \
    case 4:                                                                                        \
        TILE(4);                                                                                   \
        break;                                                                                     \
    case 5:                                                                                        \
        TILE(5);                                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        TILE(6);                                                                                   \
        break;                                                                                     \
    }

/* --- scores --- */

static OCTAVO_ALWAYS_INLINE void score_tile(float *s, const uint32_t *q, int64_t q_stride,
                                            const uint32_t *const *groups, int d,
                                            octavo_ahead *ahead, const int rows,
                                            const int n_groups) {
    enum { STEP = 8 };
    __m512 acc[ROWS][GROUPS];
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < n_groups; g++)
            acc[r][g] = _mm512_setzero_ps();
    }
    for (int w = 0; w < (d + 1) / 2; w++) {
        /* the last word of an odd key has anything in its upper half */
        const __m512i kept = _mm512_set1_epi32(2 * w + 1 < d ? -1 : 0xffff);
        for (int g = 0; w % STEP == 0 && g < n_groups; g++)
            ahead_step(ahead);
        __m512i x[ROWS];
        for (int r = 0; r < rows; r++)
            x[r] = _mm512_set1_epi32((int)q[r * q_stride + w]);
        for (int g = 0; g < n_groups; g++) {
            const __m512i k = _mm512_and_si512(_mm512_loadu_si512(groups[g] + w * GROUP), kept);
            for (int r = 0; r < rows; r++)
                acc[r][g] = add_pairs(acc[r][g], k, x[r]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < n_groups; g++)
            _mm512_storeu_ps(s + r * BLOCK + g * GROUP, acc[r][g]);
    }
}

static void pair_scores(float *s, const uint32_t *q, int64_t q_stride, int n_rows,
                        const uint32_t *const *groups, int first, int last, int d,
                        octavo_ahead *ahead) {
#define TILE(rows)                                                                                 \
    for (int g = first; g < last;) {                                                               \
        if (g + GROUPS <= last) {                                                                  \
            score_tile(s + g * GROUP, q, q_stride, groups + g, d, ahead, rows, GROUPS);            \
            g += GROUPS;                                                                           \
        } else if (g + 2 <= last) {                                                                \
            score_tile(s + g * GROUP, q, q_stride, groups + g, d, ahead, rows, 2);                 \
            g += 2;                                                                                \
        } else {                                                                                   \
            score_tile(s + g * GROUP, q, q_stride, groups + g, d, ahead, rows, 1);                 \
            g += 1;                                                                                \
        }                                                                                          \
    }
    for (; n_rows > 0; n_rows -= ROWS, s += ROWS * BLOCK, q += ROWS * q_stride)
        FOR_ROWS(n_rows, TILE)
#undef TILE
}

/* --- values --- */

static __m512i load_lanes(const uint8_t *const *slots, size_t offset, int j, int begin, int end) {
    if (j < begin || j >= end) return _mm512_setzero_si512();
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(slots[j] + offset)));
}

static void pair_up(uint32_t *panels, const uint8_t *const *slots, size_t offset, int begin,
                    int end, int d) {
    for (int m = begin / 2; m < (end + 1) / 2; m++) {
        for (int i = 0; i < d; i += GROUP) {
            const size_t at = offset + 2 * (size_t)i;
            __m512i even = load_lanes(slots, at, 2 * m, begin, end);
            __m512i odd = load_lanes(slots, at, 2 * m + 1, begin, end);
            _mm512_storeu_si512(panels + (size_t)i * PAIRS + m * GROUP,
                                _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
        }
    }
}

/* What a tile is about: a group of lanes' panel and the following ones, places [begin, end). */
typedef struct pair_block {
    const uint32_t *panels;
    int begin;
    int end;
} pair_block;

/* The values of pair m, zeros for a place that is not in the block. */
static OCTAVO_ALWAYS_INLINE __m512i load_pair(const pair_block *b, int g, int m) {
    const __m512i both = _mm512_loadu_si512(b->panels + (g * PAIRS + m) * GROUP);
    if (2 * m < b->begin) return _mm512_and_si512(both, _mm512_set1_epi32((int)0xffff0000u));
    if (2 * m + 1 >= b->end) return _mm512_and_si512(both, _mm512_set1_epi32(0xffff));
    return both;
}

static OCTAVO_ALWAYS_INLINE void value_tile(float *acc, int64_t stride, const float *rescale,
                                            const uint32_t *weights, const pair_block *b,
                                            const int rows, const int n_groups) {
    __m512 a[ROWS][GROUPS];
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < n_groups; g++) {
            a[r][g] = _mm512_loadu_ps(acc + r * stride + g * GROUP);
            if (rescale) a[r][g] = _mm512_mul_ps(a[r][g], _mm512_set1_ps(rescale[r]));
        }
    }
    for (int m = b->begin / 2; m < (b->end + 1) / 2; m++) {
        __m512i weight[ROWS];
        for (int r = 0; r < rows; r++)
            weight[r] = _mm512_set1_epi32((int)weights[r * PAIRS + m]);
        for (int g = 0; g < n_groups; g++) {
            const __m512i v = load_pair(b, g, m);
            for (int r = 0; r < rows; r++)
                a[r][g] = add_pairs(a[r][g], v, weight[r]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < n_groups; g++)
            _mm512_storeu_ps(acc + r * stride + g * GROUP, a[r][g]);
    }
}

/* Weights that are bf16 already, in pairs; those of places outside [begin, end) become 0. */
static void pair_weights(uint32_t *pairs, const float *p, int begin, int end) {
    float kept[BLOCK] = {0};
    for (int j = begin; j < end; j++)
        kept[j] = p[j];
    for (int j = 0; j < BLOCK; j += 2 * GROUP) {
        vec even, odd;
        vec_load_pairs(kept + j, &even, &odd);
        __m512i low = _mm512_srli_epi32(_mm512_castps_si512(even), 16);
        _mm512_storeu_si512(pairs + j / 2, _mm512_or_si512(low, _mm512_castps_si512(odd)));
    }
}

static void pair_values(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                        int n_rows, const uint32_t *panels, int begin, int end, int d) {
    if (begin >= end) end = begin; /* to rescale is all */
#define TILE(rows)                                                                                 \
    for (int i = 0; i < d;) {                                                                      \
        const pair_block block = {panels + (size_t)i * PAIRS, begin, end};                         \
        if (i + GROUPS * GROUP <= d) {                                                             \
            value_tile(acc + i, acc_stride, rescale, weights, &block, rows, GROUPS);               \
            i += GROUPS * GROUP;                                                                   \
        } else {                                                                                   \
            value_tile(acc + i, acc_stride, rescale, weights, &block, rows, 1);                    \
            i += GROUP;                                                                            \
        }                                                                                          \
    }
    for (; n_rows > 0; n_rows -= ROWS, acc += ROWS * acc_stride, p += ROWS * BLOCK) {
        uint32_t weights[ROWS * PAIRS];
        for (int r = 0; r < ROWS && r < n_rows; r++)
            pair_weights(weights + r * PAIRS, p + r * BLOCK, begin, end);
        FOR_ROWS(n_rows, TILE)
        if (rescale) rescale += ROWS;
    }
#undef TILE
}

void octavo_attention_kernels_avx512_bf16(octavo_attention_kernels *kernels) {
    kernels->pair_scores = pair_scores;
    kernels->pair_up = pair_up;
    kernels->pair_values = pair_values;
}
