/* SPDX-License-Identifier: Apache-2.0
 *
 * What the checks of attention share: the pair they look at, rows of a cache and their numbers.
 */
#ifndef OCTAVO_TESTS_KERNELS_CHECK_ATTENTION_H
#define OCTAVO_TESTS_KERNELS_CHECK_ATTENTION_H

#include "kernels/attention.h"
#include "tester.h"

#include <math.h>

typedef struct attention_pair {
    const octavo_attention_kernels *level;
    const octavo_attention_kernels *twin; /* has the same bits: AVX2 for AVX-512, else level */
    int type;                             /* of the entry that is checked */
    bool is_fused;                        /* multiplications with their additions */
} attention_pair;

enum {
    F32,
    F16,
    BF16,
    FP8_E4M3,
    FP8_E5M2,
    INT8,
    BLOCK = OCTAVO_SOFTMAX_BLOCK,
    GROUP = OCTAVO_KEY_GROUP,
    FLOAT = sizeof(float)
};

#define ULP 0x1p-24 /* relative error of one rounding */
#define EXP 0x1p-21 /* of exp */

/* Widths of heads, with every kind of tail. */
static const int widths[] = {1, 2, 7, 8, 16, 33, 64, 80, 120, 202, 512};

static inline int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* sum + x y as the level rounds it: what it adds up has one order only, and so one result. */
static inline float plus_product(const attention_pair *k, float sum, float x, float y) {
    return k->is_fused ? fmaf(x, y, sum) : sum + x * y;
}

/* --- numbers of a type --- */

size_t sample_size(int type);
float sample_value(const void *x, int64_t i, int type);

float *sample_floats(tester *t, const char *name, int64_t n);
float *sample_filled(tester *t, const char *name, int64_t n, tester_fill fill);
float *sample_bf16_filled(tester *t, const char *name, int64_t n, tester_fill fill);
float *sample_copied(tester *t, const char *name, const float *from, int64_t n);

/* --- a block of cache rows --- */

typedef struct sample_rows {
    const uint8_t *slots[BLOCK];
    size_t offset;
    int type, d, begin, end;
} sample_rows;

/* Rows of d lanes for the places [begin, end), up or down; the last ends where a kernel of keys or
 * of values may read to. The rest of their groups repeats a visible one, like the caller's. */
sample_rows sample_rows_make(tester *t, int type, int d, bool is_whole, bool is_key);

static inline float sample_lane(const sample_rows *r, int j, int i) {
    return sample_value(r->slots[j] + r->offset, i, r->type);
}

/* The words of all places of a block, and where the groups of them are. */
typedef struct sample_words {
    const uint32_t *groups[BLOCK / GROUP];
} sample_words;

sample_words sample_words_make(tester *t, const attention_pair *k, const sample_rows *r);

/* --- the checks; arg: an attention_pair --- */

void check_load(tester *t, const void *arg);
void check_store(tester *t, const void *arg);
void check_quantise(tester *t, const void *arg);
void check_gather_keys(tester *t, const void *arg);
void check_widen_keys(tester *t, const void *arg);
void check_widen_all(tester *t, const void *arg);
void check_scores(tester *t, const void *arg);
void check_pair_scores(tester *t, const void *arg);
void check_softmax(tester *t, const void *arg);
void check_merge(tester *t, const void *arg);
void check_sink(tester *t, const void *arg);
void check_values(tester *t, const void *arg);
void check_pair_values(tester *t, const void *arg);

#endif
