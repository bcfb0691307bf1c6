/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of attention that several ranks share: random sequences, heads and options, and what one
 * rank makes of its share.
 */
#ifndef OCTAVO_TEST_SHARE_WORLD_H
#define OCTAVO_TEST_SHARE_WORLD_H

#include "attention/attention.h"
#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHARE_MOST_SEQS = 5, SHARE_MOST_HEADS = 16 };

/* A step as one rank alone would run it. */
typedef struct share_world {
    uint32_t random;
    octavo_attention_heads heads;    /* with `group` set */
    octavo_attention_op op;          /* options; pointers and strides are a rank's */
    octavo_attention_mask plan_mask; /* as wide as the op's or wider */
    const char *isa;
    int64_t page_size;
    int64_t pages_per_seq;
    int64_t n_tokens; /* rows; the last may be of no sequence */
    int64_t n_seqs;
    int32_t kv_lens[SHARE_MOST_SEQS], old_lens[SHARE_MOST_SEQS];
    int32_t starts[SHARE_MOST_SEQS + 1];     /* first new row */
    int32_t key_starts[SHARE_MOST_SEQS + 1]; /* of keys; others only for encoder-decoders */
    int32_t old_starts[SHARE_MOST_SEQS + 1]; /* first row of what is in the cache before */
    void *queries;                           /* [n_tokens, q heads, head_dim] */
    float *keys, *values;                    /* [n_tokens, kv heads, lanes] */
    float *old_keys, *old_values;
    float sink[SHARE_MOST_HEADS], slopes[SHARE_MOST_HEADS];
    float k_scales[SHARE_MOST_HEADS], v_scales[SHARE_MOST_HEADS];
} share_world;

/* What a rank has of it. */
typedef struct share_part {
    int32_t q_begin, q_end, kv_begin, kv_end; /* heads */
    int64_t row_begin, row_end;
    octavo_attention_splits splits;
    int threads;
} share_part;

int32_t share_below(share_world *w, int32_t n);

/* Any step. most: of positions in a sequence. */
void share_make(share_world *w, uint32_t seed, int32_t most);
void share_free(share_world *w);

share_part share_whole(const share_world *w, int threads);

/* A rank while it runs. */
typedef struct share_rank {
    octavo_attention_limits limits;
    octavo_attention_batch batch;
    octavo_attention_plan plan;
    octavo_attention_kernels kernels;
    octavo_attention_op op;
    octavo_pool *pool;
    void *memory, *workspace;
    uint8_t *cache;
    int32_t *tables;
    int32_t starts[SHARE_MOST_SEQS + 1], positions[SHARE_MOST_SEQS]; /* of some rows */
} share_rank;

/* With what was in the cache before, and a plan of the step. Output and records are the caller's to
 * set. */
void share_begin(share_world *w, const share_part *part, share_rank *rank);
/* All phases. */
void share_step(share_rank *rank);
void share_end(share_rank *rank);

/* What one rank comes to that has all splits: [its rows, its query heads, value_dim] of out_dtype,
 * the caller's to free by octavo_free_aligned. */
uint8_t *share_run(share_world *w, const share_part *part);

/* Memory that an overrun of ends in an error where addresses are checked. */
void *share_alloc(size_t bytes);

/* Bytes of a head of the output. */
size_t share_head_bytes(const share_world *w);

/* Fails unless rows from `row` on and heads from `head` on of `want`, which are those of the whole,
 * are `got`. */
void share_compare(const share_world *w, const uint8_t *want, const uint8_t *got, int64_t row,
                   int64_t n_rows, int32_t head, int32_t n_heads, const char *what);

/* For messages. */
const char *share_describe(const share_world *w);

#endif
