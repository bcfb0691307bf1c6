/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of an item against one block of keys: what phase 2 does over and over.
 *
 * A row visits exactly the positions it sees: scores of others are computed along in a tile, but
 * their weights are 0 and their values are never touched, so what they hold cannot matter.
 */
#ifndef OCTAVO_ATTENTION_BLOCK_H
#define OCTAVO_ATTENTION_BLOCK_H

#include "attention/reader.h"

/* An item while it runs. */
typedef struct attention_job {
    octavo_attention_plan *plan;
    const octavo_attention_kernels *kernels;
    const octavo_attention_op *op;
    void *workspace;
    const octavo_attention_item *item;
    attention_scratch scratch;
    attention_pages pages;
    int32_t n_rows;       /* of one kv head: tokens x group */
    int64_t q_width;      /* floats between query rows */
    int64_t width;        /* floats between accumulator rows */
    attention_range seen; /* by any of its rows */
    attention_range full; /* by all of them */
    attention_reader reader;
    int64_t position_bytes; /* that it asks for of a position of this item */
    int64_t taken;          /* the item after this one, where the reader is ahead in it; or -1 */
    bool pairs_keys;        /* dot products by pair_scores: query rows are bf16 */
    bool pairs_values;      /* and values by pair_values */
} attention_job;

static inline int32_t attention_query_token(const attention_job *j, int32_t row) {
    return j->item->token + row % j->n_rows / j->item->n_group;
}

/* Where rows add up: a row's lanes with the maximum and the sum of its weights. */
typedef struct attention_sums {
    float *acc; /* [rows][width] */
    float *max; /* [rows] */
    float *sum; /* [rows] */
} attention_sums;

/* The rows of the item's heads [head, head + n_heads) against what of `range` is in block `index`
 * (OCTAVO_SOFTMAX_BLOCK positions). False: nothing is. */
bool attention_attend_block(attention_job *j, attention_range range, int64_t index, int32_t head,
                            int32_t n_heads, const attention_sums *to);

#endif
