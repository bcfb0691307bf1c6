/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share: work items, the layout of the workspace and the running
 * softmax of rows.
 */
#ifndef OCTAVO_ATTENTION_INTERNAL_H
#define OCTAVO_ATTENTION_INTERNAL_H

#include "attention/attention.h"

/* Kv heads that have the same of their groups here: query heads [group, group + n_group) of each of
 * [head, head + n_heads). */
typedef struct attention_strip {
    int32_t head;
    int32_t n_heads;
    int32_t group;
    int32_t n_group;
} attention_strip;

/* A group that begins before the rank's query heads, whole ones, one that ends behind them. */
#define ATTENTION_MOST_STRIPS 3

/* Returns how many strips the query heads are; 0 without any. */
int octavo_attention_strips(const octavo_attention_heads *heads,
                            attention_strip strips[ATTENTION_MOST_STRIPS]);

/* The query head that is number `member` of a kv head's group. */
static inline int32_t attention_query_head(const octavo_attention_heads *heads, int32_t kv_head,
                                           int32_t member) {
    return kv_head * octavo_attention_group(heads) + member - heads->first;
}

/* Query tokens [token, token + n_tokens) of sequence `seq`, kv heads [head, head + n_heads), of
 * each of their groups the query heads [group, group + n_group), over kv splits [split, split +
 * n_splits), counted among the part's (attention_split). Its rows are ordered by head, token,
 * group. All are of one strip. */
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

/* Query heads [head, head + n_heads) of a token. Its part (split s, query head a) is record
 * `part + (s - split) * n_heads + a - head`. */
struct octavo_attention_join {
    int32_t seq;
    int32_t token;
    int32_t head;
    int32_t n_heads;
    int32_t split;
    int32_t n_splits;
    int64_t part;
};

/* Positions [begin, end) that a query sees. */
typedef struct attention_range {
    int64_t begin;
    int64_t end;
} attention_range;

static inline attention_range attention_intersect(attention_range a, int64_t begin, int64_t end) {
    if (a.begin < begin) a.begin = begin;
    if (a.end > end) a.end = end;
    if (a.end < a.begin) a.end = a.begin;
    return a;
}

static inline int64_t attention_query_length(const octavo_attention_batch *batch, int64_t seq) {
    return (int64_t)batch->query_start_loc[seq + 1] - batch->query_start_loc[seq];
}

/* The position of a sequence's query token. */
static inline int64_t attention_position(const octavo_attention_batch *batch, int64_t seq,
                                         int64_t token) {
    if (batch->query_positions) return batch->query_positions[seq] + token;
    return batch->kv_lens[seq] - attention_query_length(batch, seq) + token;
}

static inline attention_range attention_visible(const octavo_attention_batch *batch, int64_t seq,
                                                int64_t token, const octavo_attention_mask *mask) {
    const int64_t kv_len = batch->kv_lens[seq];
    if (mask->type == OCTAVO_ATTENTION_ENCODER_DECODER) return (attention_range){0, kv_len};
    const int64_t own = attention_position(batch, seq, token);
    const bool is_causal = mask->type == OCTAVO_ATTENTION_DECODER;
    attention_range seen = {0, is_causal ? own + 1 : kv_len};
    if (mask->window > 0) {
        if (own - mask->window + 1 > seen.begin) seen.begin = own - mask->window + 1;
        if (own + mask->window < seen.end) seen.end = own + mask->window;
    }
    if (mask->chunk > 0) {
        const int64_t first = own / mask->chunk * mask->chunk;
        if (first > seen.begin) seen.begin = first;
        if (first + mask->chunk < seen.end) seen.end = first + mask->chunk;
    }
    return seen;
}

/* Whether phase 2 leaves records to others. */
static inline bool attention_is_dealt(const octavo_attention_limits *limits) {
    return limits->splits.n_parts > 1;
}

/* Split i of those that the part has. */
static inline int64_t attention_split(const octavo_attention_splits *splits, int64_t i) {
    return splits->n_parts > 1 ? i * splits->n_parts + splits->part : i;
}

/* Splits [begin, end) that rows of a sequence see, by the plan's mask; it has rows. None where its
 * context is empty. */
static inline attention_range attention_seen_splits(const octavo_attention_plan *plan,
                                                    int64_t seq) {
    const int64_t last = attention_query_length(&plan->batch, seq) - 1;
    const int64_t begin = attention_visible(&plan->batch, seq, 0, &plan->mask).begin;
    const int64_t end = attention_visible(&plan->batch, seq, last, &plan->mask).end;
    return (attention_range){begin / OCTAVO_KV_SPLIT,
                             (end + OCTAVO_KV_SPLIT - 1) / OCTAVO_KV_SPLIT};
}

/* Those of them that a part has, counted among its own. */
static inline attention_range attention_own_splits(const octavo_attention_splits *splits,
                                                   attention_range seen) {
    return (attention_range){
        octavo_attention_local_position(splits, seen.begin * OCTAVO_KV_SPLIT) / OCTAVO_KV_SPLIT,
        octavo_attention_local_position(splits, seen.end * OCTAVO_KV_SPLIT) / OCTAVO_KV_SPLIT};
}

/* Where a context's position lies among those that the cache has. */
static inline int64_t attention_cache_position(const octavo_attention_splits *splits,
                                               int64_t position) {
    return splits->is_cache_dealt ? octavo_attention_local_position(splits, position) : position;
}

/* Splits [first, first + n) of those that a part has, for each row of a sequence. With each there
 * is one record of every head; `before` (row, split) pairs are of sequences before this one. */
struct octavo_attention_deal {
    int64_t before;
    int64_t first;
    int64_t n;
};

/* Fills in plan->deals. */
void octavo_attention_deal_splits(octavo_attention_plan *plan);
/* The record of a sequence's token, head and split in op->records. */
float *octavo_attention_own_record(const octavo_attention_plan *plan, void *records, int64_t seq,
                                   int64_t token, int32_t head, int64_t split);

/* The record of one row and one split: max, sum, then width lanes from float
 * OCTAVO_ATTENTION_PART_HEAD on. */
#define OCTAVO_ATTENTION_PART_HEAD 16

/* Lanes of a query row and of an accumulator row: up to a multiple of 16. */
static inline int64_t octavo_attention_query_width(const octavo_attention_heads *heads) {
    return (heads->head_dim + 15) / 16 * 16;
}

static inline int64_t octavo_attention_width(const octavo_attention_heads *heads) {
    return (octavo_attention_value_dim(heads) + 15) / 16 * 16;
}

/* Most rows of an item: few enough that they stay near the core, enough that staging a block of
 * keys costs little beside using it. */
int32_t octavo_attention_max_rows(const octavo_attention_limits *limits);
/* Most records of all joins together. */
int64_t octavo_attention_max_parts(const octavo_attention_limits *limits);

/* Scratch of one thread. */
typedef struct attention_scratch {
    float *queries;               /* [rows][query width] */
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
/* A join's part. */
float *octavo_attention_part(const octavo_attention_limits *limits, void *workspace,
                             const octavo_attention_join *join, int64_t split, int32_t head);

/* Where things lie in a cache, in bytes. */
typedef struct attention_pages {
    octavo_kv_layout layout;
    int64_t page_size;
    int64_t page_bytes;
    int64_t slot_bytes;  /* between the rows of two positions: a slot, or a value's row */
    size_t row_bytes;    /* ROWS: of a padded row; COLUMNS: of a value's row */
    size_t head_bytes;   /* between two heads: two rows, or keys and values of a page */
    size_t key_offset;   /* of a head's first key row (ROWS, and COLUMNS with value_in_key) */
    size_t value_offset; /* of a head's first value row */
    size_t group_bytes;  /* COLUMNS: of the keys of OCTAVO_KEY_GROUP positions; 0: keys are rows */
    size_t key_words;    /* 32-bit words of a key */
    size_t scale_offset; /* of a page's first key scale, 0: slots have none */
    size_t scale_head_bytes;        /* between two heads */
    size_t value_scale_offset;      /* from a key's scale to the value's */
    octavo_attention_splits splits; /* of its positions only these are read; those that are not in
                                       the cache do not count */
} attention_pages;

attention_pages octavo_attention_pages(const octavo_attention_heads *heads,
                                       const octavo_attention_op *op, int64_t page_size);

/* A query row as f32 [head_dim], quantised by q_scale where there is one (rule R9). */
void octavo_attention_load_query(float *out, const octavo_attention_kernels *kernels,
                                 const octavo_attention_op *op, int64_t row, int32_t head,
                                 int32_t head_dim);
/* Where the output of a row and head goes. */
static inline uint8_t *attention_output(const octavo_attention_op *op, int64_t row, int32_t head) {
    const int64_t element = row * op->out_token_stride + head * op->out_head_stride;
    return (uint8_t *)op->output + element * (int64_t)octavo_dtype_size(op->out_dtype);
}
/* The output of an accumulator with its max and sum: sink, division, scale, rounding. */
void octavo_attention_store_output(const octavo_attention_kernels *kernels,
                                   const octavo_attention_op *op,
                                   const octavo_attention_heads *heads, int32_t head, uint8_t *to,
                                   const float *acc, float max, float sum);

#endif
