/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share: work items, the layout of the workspace and the running
 * softmax of rows.
 */
#ifndef OCTAVO_ATTENTION_INTERNAL_H
#define OCTAVO_ATTENTION_INTERNAL_H

#include "attention/attention.h"

/* Query tokens [token, token + n_tokens) of sequence `seq`, kv heads [head, head + n_heads), of
 * each of their groups the query heads [group, group + n_group), over kv splits [split, split +
 * n_splits). Its rows are ordered by head, token, group. */
struct octavo_attention_item {
    int32_t seq;
    int32_t token;
    int32_t n_tokens;
    int32_t head;
    int32_t n_heads;
    int32_t group;
    int32_t n_group;
    int32_t split;
    int32_t n_splits;
    int32_t join; /* of the sequence's first query token, or -1: the item has all splits */
    int64_t cost; /* rows x keys */
};

/* Its part (split s, query head a) is record `part + (s - split) * n_q_heads + a`. */
struct octavo_attention_join {
    int32_t seq;
    int32_t token;
    int32_t split;
    int32_t n_splits;
    int64_t part;
};

/* Positions [begin, end) that a query sees. */
typedef struct attention_range {
    int64_t begin;
    int64_t end;
} attention_range;

static inline int64_t attention_query_length(const octavo_attention_batch *batch, int64_t seq) {
    return (int64_t)batch->query_start_loc[seq + 1] - batch->query_start_loc[seq];
}

static inline attention_range attention_visible(const octavo_attention_batch *batch, int64_t seq,
                                                int64_t token, int64_t window) {
    int64_t end = batch->kv_lens[seq] - attention_query_length(batch, seq) + token + 1;
    return (attention_range){window > 0 && end > window ? end - window : 0, end};
}

/* The record of one row and one split in the workspace: max, sum, then width lanes from float
 * OCTAVO_ATTENTION_PART_HEAD on. */
#define OCTAVO_ATTENTION_PART_HEAD 16

/* Lanes of an accumulator row: head_dim up to a multiple of 16. */
static inline int64_t octavo_attention_width(const octavo_attention_heads *heads) {
    return (heads->head_dim + 15) / 16 * 16;
}

/* Most rows of an item: few enough that their accumulators stay near the core, enough that staging
 * a block of keys costs little beside using it. */
int32_t octavo_attention_max_rows(const octavo_attention_heads *heads);
/* Most records of all joins together. */
int64_t octavo_attention_max_parts(const octavo_attention_limits *limits);

/* Scratch of one thread. */
typedef struct attention_scratch {
    float *queries;               /* [rows][width] */
    float *acc;                   /* [rows][width] of the running split */
    float *total;                 /* [rows][width] of the splits before it */
    float *weights;               /* [rows][OCTAVO_SOFTMAX_BLOCK] dot products, then weights */
    float *keys;                  /* [groups][head_dim][OCTAVO_KEY_GROUP] */
    float *values;                /* [OCTAVO_SOFTMAX_BLOCK][width] */
    float *max, *sum, *rescale;   /* [rows] of the running split */
    float *total_max, *total_sum; /* [rows] of the splits before it */
    int32_t *begin, *end;         /* [rows of one head] positions that a row sees */
} attention_scratch;

attention_scratch octavo_attention_scratch(const octavo_attention_limits *limits, void *workspace,
                                           int thread);
/* Record i of the joins' parts. */
float *octavo_attention_part(const octavo_attention_limits *limits, void *workspace, int64_t i);

/* A query row as f32 [head_dim], quantised by q_scale where there is one (rule R9). */
void octavo_attention_load_query(float *out, const octavo_attention_kernels *kernels,
                                 const octavo_attention_op *op, int64_t row, int32_t head,
                                 int32_t head_dim);
/* The output row of an accumulator with its max and sum: sink, division, scale, rounding. */
void octavo_attention_store_output(const octavo_attention_kernels *kernels,
                                   const octavo_attention_op *op, int64_t row, int32_t head,
                                   int32_t head_dim, const float *acc, float max, float sum);

#endif
