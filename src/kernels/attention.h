/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of attention over one block of OCTAVO_SOFTMAX_BLOCK absolute positions, for any
 * number of query rows. Query rows are f32; a cache row is of any type below and is named by its
 * slot: the address of place j's row is slots[j] + offset.
 *
 * The order of additions, the same at every call however many rows or keys it covers:
 *   score      q . k: lane 0 upwards into one accumulator that starts at 0
 *   sum        of a block's 64 weights: one fixed tree
 *   values     acc[i] += p[j] * v[j][i]: j ascending
 * AVX2, AVX-512 and NEON fuse each multiplication with its addition and agree bit for bit; scalar
 * rounds twice.
 */
#ifndef OCTAVO_KERNELS_ATTENTION_H
#define OCTAVO_KERNELS_ATTENTION_H

#include "base/cpu.h"
#include "kernels/order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Widest head, and widest key where a layout lets keys be wider than values. */
#define OCTAVO_ATTENTION_MAX_DIM     512
#define OCTAVO_ATTENTION_MAX_KEY_DIM 576

/* Keys are read as words: of OCTAVO_KEY_GROUP positions in a row, [ceil(d / pk)][16] words of 32
 * bits, pk = 4 / bytes of an element. Word w of a position holds its lanes pk w .. pk w + pk - 1,
 * the first in the lowest bits. So one load has a vector of positions, and words of f32 are
 * columns. */
#define OCTAVO_KEY_GROUP 16

/* Number types of caches, in the order of octavo_dtype: f32, f16, bf16, fp8 e4m3, fp8 e5m2, int8.
 * The first so many are those of queries. */
#define OCTAVO_ATTENTION_TYPES       6
#define OCTAVO_ATTENTION_QUERY_TYPES 3

/* What turns the dot product of place j into a logit and a weight, in this order. */
typedef struct octavo_logit {
    float scale;
    float soft_cap; /* 0 = none; else s = cap * tanh(s / cap), absolute error under |cap| * 2^-21 */
    float slope;    /* ALiBi: s += slope * -|first + j|; 0 = none */
    float first;    /* position of place 0 minus the query's own */
    bool round_weights; /* weights are rounded to bf16 (nearest even) before anything uses them */
    /* A quantised cache's factors of each place, [64], 64-aligned; NULL: none. One of a key comes
     * before all of the above; that of a value multiplies the weight when it has been summed. */
    const float *key_scales;
    const float *value_scales;
} octavo_logit;

/* Memory that will be read soon. A kernel that takes one (NULL: none) asks for about as much of it
 * as it reads itself, evenly, so that memory works while it computes. Runs of bytes, in equal
 * strides within a slot, slots in equal strides. */
typedef struct octavo_ahead {
    const uint8_t *at;   /* the next byte */
    int64_t left;        /* bytes of the run from there on */
    const uint8_t *run;  /* its beginning */
    const uint8_t *slot; /* the beginning of its slot's first run */
    int64_t run_bytes;
    int64_t run_stride;
    int64_t slot_stride;
    int32_t runs;       /* of a slot */
    int32_t runs_left;  /* with the current one */
    int32_t slots_left; /* with the current one; 0: nothing is left */
    int32_t steps;      /* a kernel asks so many times at most, OCTAVO_AHEAD_STEP bytes each time */
} octavo_ahead;

#define OCTAVO_AHEAD_STEP 256

/* Moves to the next run. */
static inline void octavo_ahead_next(octavo_ahead *ahead) {
    ahead->run += ahead->run_stride;
    if (--ahead->runs_left == 0) {
        ahead->slots_left--;
        ahead->slot += ahead->slot_stride;
        ahead->run = ahead->slot;
        ahead->runs_left = ahead->runs;
    }
    ahead->at = ahead->run;
    ahead->left = ahead->run_bytes;
}

typedef struct octavo_attention_kernels {
    /* Most rows that read a cache in place: more first have it widened to f32. */
    int tile_rows;
    /* Groups of keys that so few rows take at once, and many rows. */
    int tile_groups;
    int many_groups;

    /* out[i] = x[i], n elements of the type; exact. */
    void (*load[OCTAVO_ATTENTION_TYPES])(float *out, const void *x, int64_t n);
    /* out[i] = x[i] * scale, rounded to the type (nearest even). scale 1 keeps all bits but a
     * signalling NaN's. */
    void (*store[OCTAVO_ATTENTION_QUERY_TYPES])(void *out, const float *x, float scale, int64_t n);
    /* out[i] = x[i] / divisor, clipped to the finite range of the type and rounded to it (nearest
     * even). A NaN stays one; as int8 it becomes 0. */
    void (*quantise[OCTAVO_ATTENTION_TYPES])(void *out, const float *x, float divisor, int64_t n);

    /* Turns 16 rows of keys, slots[j] + offset, into words of any type: [n_words][16]. Rows may be
     * read up to a multiple of 32 bytes; the last word has what is there. */
    void (*gather_keys)(uint32_t *words, const uint8_t *const *slots, size_t offset, int n_words,
                        octavo_ahead *ahead);
    /* One group's words into those of f32: [d][16]. f32: a copy. */
    void (*widen_keys[OCTAVO_ATTENTION_TYPES])(float *columns, const uint32_t *words, int d);

    /* s[r][16 g + j] = q[r] . key j of groups[g], first <= g < last. q: [n_rows][q_stride]; s:
     * [n_rows][64], 64-aligned. */
    void (*scores[OCTAVO_ATTENTION_TYPES])(float *s, const float *q, int64_t q_stride, int n_rows,
                                           const uint32_t *const *groups, int first, int last,
                                           int d, octavo_ahead *ahead);

    /* A step of each row's running softmax: s[r][j], a dot product for j in [begin, end), becomes
     * the weight exp(logit - max) there and 0 elsewhere; max[r] and sum[r] (-inf and 0 at first)
     * take the block in, rescale[r] is what the accumulator has to be multiplied by. exp has a
     * relative error under 2^-21 and is exactly 1 at 0. s: [n_rows][64], 64-aligned; begin < end.
     * Scales of other places are finite, or what becomes of their weights means nothing. */
    void (*softmax)(float *s, int n_rows, int begin, int end, const octavo_logit *logit, float *max,
                    float *sum, float *rescale);

    /* acc[r][i] = acc[r][i] * rescale[r] (rescale NULL: unchanged), then += p[r][j] * v[j][i] for j
     * in [begin, end). acc: [n_rows][acc_stride], lanes up to a multiple of 16 are written (what
     * those past d hold means nothing), and as many are read of a row; p: [n_rows][64]. */
    void (*values[OCTAVO_ATTENTION_TYPES])(float *acc, int64_t acc_stride, const float *rescale,
                                           const float *p, int n_rows, const uint8_t *const *slots,
                                           size_t offset, int begin, int end, int d,
                                           octavo_ahead *ahead);

    /* For many rows: the values of places [begin, end) into panels of 16 lanes, [ceil(d / 16)][64]
     * [16] f32, 64-aligned, and `values` from those. */
    void (*widen_values[OCTAVO_ATTENTION_TYPES])(float *panels, const uint8_t *const *slots,
                                                 size_t offset, int begin, int end, int d);
    void (*panel_values)(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                         int n_rows, const float *panels, int begin, int end, int d);

    /* Where queries and cache are bf16 and the level has instructions for it (else NULL), for any
     * number of rows: the products of lanes 2w and 2w + 1 enter a sum together. Instead of
     * `scores`; q: [n_rows][q_stride] words of two lanes, the half past d is 0. */
    void (*pair_scores)(float *s, const uint32_t *q, int64_t q_stride, int n_rows,
                        const uint32_t *const *groups, int first, int last, int d,
                        octavo_ahead *ahead);
    /* Likewise with weights that are bf16 those of places 2m and 2m + 1, so that a row's places go
     * into one call pair by pair. panels: [ceil(d / 16)][32][16] words of two places, those outside
     * [begin, end) are 0; `pair_values` does not touch what is outside its own. */
    void (*pair_up)(uint32_t *panels, const uint8_t *const *slots, size_t offset, int begin,
                    int end, int d);
    void (*pair_values)(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                        int n_rows, const uint32_t *panels, int begin, int end, int d);

    /* Joins a later split (m, l, acc) to (*max, *sum, out): both are brought to the larger max.
     * n lanes, a multiple of 16. */
    void (*merge)(float *out, float *max, float *sum, const float *acc, float m, float l,
                  int64_t n);
    /* The sink as one more logit: *max and *sum take it in. Returns what the accumulator has to be
     * multiplied by. */
    float (*sink)(float logit, float *max, float *sum);
} octavo_attention_kernels;

void octavo_attention_kernels_init(octavo_attention_kernels *kernels, octavo_cpu_flags flags);
void octavo_attention_kernels_avx2(octavo_attention_kernels *kernels);
void octavo_attention_kernels_avx512(octavo_attention_kernels *kernels);
void octavo_attention_kernels_avx512_vbmi(octavo_attention_kernels *kernels);
void octavo_attention_kernels_avx512_bf16(octavo_attention_kernels *kernels);
void octavo_attention_kernels_neon(octavo_attention_kernels *kernels);

#endif
