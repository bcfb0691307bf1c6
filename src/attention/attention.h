/* SPDX-License-Identifier: Apache-2.0
 *
 * Ragged paged attention inside a step: a batch becomes work items (plan), and each layer runs
 * three phases over them on all threads of a pool:
 *
 *     octavo_attention_update(...);  barrier;
 *     octavo_attention_attend(...);  barrier;
 *     octavo_attention_merge(...);   barrier;
 *
 * Nothing here allocates or checks: memory is the caller's, sized by the _bytes functions, and a
 * batch must obey the rules that octavo_attention_check (octavo/attention.h) states. The bits of an
 * output row depend on its query, its keys and its values alone: not on the plan, the number of
 * threads, the chunk it came in, the pages or the neighbours (kernels/order.h, rule 3).
 *
 * The cache lies as octavo_kv_layout (octavo/attention.h) says, in either of its two forms. With
 * slot_scales there is more in a page: f32 scales, [page_size] of keys, then [page_size] of values
 * (with value_in_key those of keys serve both); in columns behind the values of each head, in rows
 * at the page's end head after head. A scale is the row's largest magnitude by the type's largest
 * number, FLT_MIN at least; of a row with an infinity or a NaN it is NaN, and so is what comes of
 * it.
 */
#ifndef OCTAVO_ATTENTION_ATTENTION_H
#define OCTAVO_ATTENTION_ATTENTION_H

#include "kernels/attention.h"

#include "octavo/attention.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The heads of one rank. It may hold any run of a model's query heads, [q, q + n_q_heads), with a
 * run of kv heads from k on that has all which these read: `group` is the model's, `first` is
 * q - k * group. Arrays of heads have those of the rank alone. Without query heads nothing is
 * attended, but new keys are written; without kv heads there are no query heads either. */
typedef struct octavo_attention_heads {
    int32_t n_q_heads;  /* query head a reads kv head (a + first) / group */
    int32_t n_kv_heads; /* more than that reach is fine */
    int32_t head_dim;   /* lanes of queries and keys, 1..OCTAVO_ATTENTION_MAX_KEY_DIM */
    int32_t value_dim;  /* of values and output, 1..OCTAVO_ATTENTION_MAX_DIM; 0 = head_dim */
    int32_t group;      /* query heads of a whole kv head; 0 = n_q_heads / n_kv_heads */
    int32_t first;      /* query heads of kv heads 0, 1... that are not here, before the first */
} octavo_attention_heads;

static inline int32_t octavo_attention_value_dim(const octavo_attention_heads *heads) {
    return heads->value_dim > 0 ? heads->value_dim : heads->head_dim;
}

static inline int32_t octavo_attention_group(const octavo_attention_heads *heads) {
    if (heads->group > 0) return heads->group;
    return heads->n_q_heads > 0 ? heads->n_q_heads / heads->n_kv_heads : 1;
}

/* The kv head that a query head reads. */
static inline int32_t octavo_attention_kv_head(const octavo_attention_heads *heads, int32_t head) {
    return (head + heads->first) / octavo_attention_group(heads);
}

/* The sequences of one step. The arrays are borrowed for as long as a plan made from them is used.
 */
typedef struct octavo_attention_batch {
    int64_t n_tokens;               /* rows of queries and output; rows of no sequence become 0 */
    int64_t n_seqs;                 /* live sequences */
    int64_t page_size;              /* slots in a page */
    int64_t pages_per_seq;          /* entries in a row of block_tables */
    const int32_t *kv_lens;         /* [n_seqs] context after this step, its new tokens included */
    const int32_t *query_start_loc; /* [n_seqs + 1] first row of each sequence */
    const int32_t *block_tables;    /* [n_seqs, pages_per_seq] page ids */
    const int32_t *key_start_loc;   /* [n_seqs + 1] first row of keys and values of each sequence;
                                       NULL: query_start_loc */
    const int32_t *query_positions; /* [n_seqs] position of each sequence's first row of queries;
                                       NULL: its rows end where its context does */
    int64_t prefill_begin;          /* sequences [prefill_begin, prefill_end) are cut for */
    int64_t prefill_end;            /* tuning.chunk new tokens */
} octavo_attention_batch;

/* Rows [row_begin, row_end) of a batch, for a rank that has the queries and the output of these
 * alone (row 0 there is row_begin here) and keys and values of all rows. One plan of `part` then
 * serves all phases: phase 1 writes the keys and values of all rows that the rank is given, phases
 * 2 and 3 attend with its own. query_start_loc [n_seqs + 1] and query_positions [n_seqs] are
 * written, and borrowed like the arrays of `whole`. Rows of other ranks are not looked at, so row
 * ranges may be empty and cut sequences anywhere, of every mask. */
void octavo_attention_batch_rows(const octavo_attention_batch *whole, int64_t row_begin,
                                 int64_t row_end, int32_t *query_start_loc,
                                 int32_t *query_positions, octavo_attention_batch *part);

/* Which positions a query at position p sees: see octavo_attention_type. */
typedef struct octavo_attention_mask {
    octavo_attention_type type;
    int64_t window; /* 0 = none; counts the query's own position; at most INT32_MAX */
    int64_t chunk;  /* only keys of its own chunk of so many positions; 0 = none; <= INT32_MAX */
} octavo_attention_mask;

/* How work is cut. Speed only; 0 = chosen here. */
typedef struct octavo_attention_tuning {
    int64_t scratch_bytes; /* of one thread; at least octavo_attention_least_scratch */
    int64_t l2_bytes;      /* of a core, for what scratch_bytes should be */
    int64_t chunk;         /* new tokens of a sequence in the batch's prefill range */
    int64_t query_tokens;  /* most query tokens of an item */
    int64_t kv_positions;  /* that a head visits before the next head does */
} octavo_attention_tuning;

/* Kv splits, OCTAVO_KV_SPLIT absolute positions each, dealt to ranks: this one attends splits s
 * with s % n_parts == part. Phase 2 then leaves records (below) of what its rows see there. */
typedef struct octavo_attention_splits {
    int32_t n_parts; /* 0 or 1: all splits are here, and there are no records */
    int32_t part;
    bool is_cache_dealt; /* the cache has the part's positions alone, and block_tables go by local
                            ones (octavo_attention_local_position); page_size divides
                            OCTAVO_KV_SPLIT. Phase 1 is given all new keys and writes its own. */
} octavo_attention_splits;

/* How many positions before this one are the part's: the local position of one that is, and what of
 * a context of so many positions is here. */
static inline int64_t octavo_attention_local_position(const octavo_attention_splits *splits,
                                                      int64_t position) {
    if (splits->n_parts <= 1) return position;
    const int64_t split = position / OCTAVO_KV_SPLIT, turn = split % splits->n_parts;
    const int64_t before = split / splits->n_parts * OCTAVO_KV_SPLIT;
    if (turn == splits->part) return before + position % OCTAVO_KV_SPLIT;
    return turn < splits->part ? before : before + OCTAVO_KV_SPLIT;
}

/* Sizes a plan and its workspace once, for every step to come. */
typedef struct octavo_attention_limits {
    octavo_attention_heads heads;
    octavo_attention_splits splits;
    int64_t max_tokens; /* largest n_tokens */
    int64_t max_seqs;   /* largest n_seqs */
    int32_t n_threads;
    octavo_attention_tuning tuning;
} octavo_attention_limits;

/* A piece of work: some query tokens and heads of a sequence over some of its kv splits. */
typedef struct octavo_attention_item octavo_attention_item;
/* A query token whose splits went to several items. */
typedef struct octavo_attention_join octavo_attention_join;
/* What of a sequence a part has. */
typedef struct octavo_attention_deal octavo_attention_deal;

/* How one step is cut into work. It serves layers of the mask it was made for, and of narrower
 * windows (0 = none is the widest) with less balance; the bits are the same. Written by
 * octavo_attention_plan_make; `next_item` is the only field that changes afterwards: phase 1 resets
 * it, threads take from it in phase 2. */
typedef struct octavo_attention_plan {
    octavo_attention_limits limits;
    octavo_attention_batch batch;
    octavo_attention_mask mask;
    octavo_attention_item *items; /* [n_items], largest first */
    int64_t n_items;
    octavo_attention_join *joins; /* [n_joins] */
    int64_t n_joins;
    octavo_attention_deal *deals; /* [n_parts][max_seqs + 1] */
    atomic_int_fast64_t next_item;
} octavo_attention_plan;

/* Bytes of a plan's memory and of the workspace (scratch of all threads and partial results). One
 * workspace serves every plan and layer of the same limits, one at a time. 0 if the size does not
 * fit size_t. */
size_t octavo_attention_plan_bytes(const octavo_attention_limits *limits);
size_t octavo_attention_workspace_bytes(const octavo_attention_limits *limits);

/* The least tuning.scratch_bytes: what one query head of one token needs. */
size_t octavo_attention_least_scratch(const octavo_attention_heads *heads);

/* Cuts a batch into work. memory: plan_bytes(limits), aligned to OCTAVO_ALIGN, used as long as the
 * plan. mask: that of the layers it is for. */
void octavo_attention_plan_make(octavo_attention_plan *plan, const octavo_attention_limits *limits,
                                const octavo_attention_batch *batch, octavo_attention_mask mask,
                                void *memory);

/* One layer's attention. Strides are in elements; the last axis is contiguous. */
typedef struct octavo_attention_op {
    octavo_dtype q_dtype;   /* of queries: f32, f16 or bf16 */
    octavo_dtype out_dtype; /* of the output: f32, f16, bf16, or with quantise_output any */
    octavo_dtype kv_dtype;  /* of the cache: any but i32 */
    octavo_dtype new_dtype; /* of keys and values: kv_dtype (bits are copied; not with slot_scales),
                               or f32, f16 or bf16: rounded to nearest even on the way into the
                               cache */
    octavo_kv_layout layout; /* of the cache */
    bool value_in_key;       /* OCTAVO_KV_COLUMNS: values are the keys' first lanes */
    bool slot_scales;        /* 8-bit caches: each slot keeps a scale of each head's key and value,
                                which new ones are quantised by: see the file's head */
    const void *queries;     /* [n_tokens, n_q_heads, head_dim] */
    int64_t q_token_stride;
    int64_t q_head_stride;
    const void *keys;   /* [key tokens, n_kv_heads, head_dim]; unused without update_kv_cache */
    const void *values; /* [key tokens, n_kv_heads, value_dim]; unused with value_in_key */
    int64_t k_token_stride;
    int64_t k_head_stride;
    int64_t v_token_stride;
    int64_t v_head_stride;
    void *kv_cache;
    int64_t page_stride;
    int64_t slot_stride; /* OCTAVO_KV_ROWS */
    void *output;        /* [n_tokens, n_q_heads, value_dim], may not overlap the inputs */
    int64_t out_token_stride;
    int64_t out_head_stride;
    const float *sink;         /* [n_q_heads] or NULL */
    const float *alibi_slopes; /* [n_q_heads] or NULL */
    const float *k_scales;     /* [n_kv_heads] or NULL: further factors of q . k */
    const float *v_scales;     /* [n_kv_heads] or NULL: further factors of the result */
    float scale;               /* of q . k: softmax scale x q scale x k_scale */
    float k_scale;             /* k_scale and k_scales divide new keys with quantise_new; */
    float v_scale;             /* likewise new values; v_scale also multiplies the result */
    float soft_cap;            /* 0 = none */
    octavo_attention_mask mask;
    octavo_attention_precision precision;
    bool has_q_scale; /* queries are quantised to kv_dtype first (rule R9) by q_scale */
    float q_scale;
    bool
        quantise_new; /* new keys and values are divided by their scale and clipped on the way in */
    bool quantise_output; /* the output is divided by output_scale and clipped */
    float output_scale;
    bool update_kv_cache; /* write keys and values into the cache first */
    void *records;        /* with n_parts > 1: where phase 2 leaves the part's, aligned to
                             OCTAVO_ALIGN; output is unused until they are merged */
} octavo_attention_op;

/* Fills in strides of dense arrays, neutral scales (all 1; no mask but the causal one, no cap,
 * slopes or sink) and update_kv_cache = true for f32 queries, keys, values and output and a cache
 * of kv_dtype in this layout. Pointers are the caller's to set; so is value_in_key, with the page
 * stride that goes with it, and slot_scales, likewise. */
void octavo_attention_op_init(octavo_attention_op *op, const octavo_attention_heads *heads,
                              octavo_dtype kv_dtype, octavo_kv_layout layout, int64_t page_size);

/* The page stride that goes with an op's layout, value_in_key and slot_scales, its pages one behind
 * the other. 0 if it does not fit, or there are no kv heads. */
int64_t octavo_attention_page_stride(const octavo_attention_op *op,
                                     const octavo_attention_heads *heads, int64_t page_size);

/* The largest finite number of a cache's type; of int8 127. */
float octavo_attention_largest(octavo_dtype dtype);

/* Lanes of a row of OCTAVO_KV_ROWS: head_dim rounded up to a multiple of 128. */
int64_t octavo_attention_lanes(int64_t head_dim);
/* Elements of one slot of OCTAVO_KV_ROWS: ceil(2 * n_kv_heads / packing) * packing rows of lanes.
 */
int64_t octavo_attention_slot_elements(const octavo_attention_heads *heads, octavo_dtype kv_dtype);

/* Phase 1, on every thread: writes the new tokens' slots and clears the output rows of no sequence
 * (with n_parts > 1 their merging does).
 * Always called, also without update_kv_cache: it makes the plan ready for phase 2. */
void octavo_attention_update(octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                             const octavo_attention_op *op, int thread, int n_threads);

/* Phase 2, on every thread, after a barrier: takes items until none is left. n_threads is at most
 * the limits'. workspace: workspace_bytes(limits), aligned to OCTAVO_ALIGN. */
void octavo_attention_attend(octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                             const octavo_attention_op *op, void *workspace, int thread);

/* Phase 3, on every thread, after a barrier: joins the splits of long sequences. The output is
 * whole after one more barrier. */
void octavo_attention_merge(octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                            const octavo_attention_op *op, void *workspace, int thread,
                            int n_threads);

/* --- with n_parts > 1, instead of phase 3 ---
 *
 * Ranks that share the splits of a batch make plans of the same batch, mask, heads and n_parts
 * (block_tables and part may differ), run phases 1 and 2, and have a barrier between them. Then any
 * of them merges any piece of the output from the records of all parts. A record is of one row,
 * head and split: f32 max and sum of the softmax, 14 f32 that mean nothing, and the accumulator's
 * lanes, value_dim up to a multiple of 16. Those of a part lie row by row, head by head, splits
 * ascending; a row has them for what of the plan's mask its sequence sees, so short sequences have
 * few and some parts none. Rows of no sequence have none. A rank may leave the next layer's where
 * these are when all have merged. */

/* Rows and query heads of a plan's batch; of all: {0, n_tokens, 0, n_q_heads}. */
typedef struct octavo_attention_piece {
    int64_t row_begin;
    int64_t row_end;
    int32_t head_begin;
    int32_t head_end;
} octavo_attention_piece;

size_t octavo_attention_record_bytes(const octavo_attention_heads *heads);

/* Most bytes that the records of one part take. most_seen: positions that the rows of a sequence
 * see together; with a window, no more than it, the rows and OCTAVO_KV_SPLIT. 0 if it does not fit
 * size_t. */
size_t octavo_attention_records_bytes(const octavo_attention_limits *limits, int64_t most_seen);

/* Records that a part has of a piece: what goes from rank to rank. */
int64_t octavo_attention_piece_records(const octavo_attention_plan *plan, int32_t part,
                                       const octavo_attention_piece *piece);

/* Which record of a buffer that holds those of `held` is that of a row, head and split of it. The
 * row's sequence sees the split, and it is the part's. */
int64_t octavo_attention_record(const octavo_attention_plan *plan, int32_t part,
                                const octavo_attention_piece *held, int64_t row, int32_t head,
                                int64_t split);

/* Takes the records of a piece out of a buffer with those of all, as op->records: to has
 * piece_records of them then. */
void octavo_attention_copy_records(const octavo_attention_plan *plan, int32_t part, const void *all,
                                   const octavo_attention_piece *piece, void *to);

/* On every thread: the output of a piece from parts [n_parts], which hold the records of held
 * [n_parts] (NULL where there are none) and are only read. Row row_begin and head head_begin of the
 * piece go to op->output, the others by its strides; rows of no sequence become 0. op->sink and
 * op->v_scales are those of all heads of the plan. */
void octavo_attention_merge_records(const octavo_attention_plan *plan,
                                    const octavo_attention_kernels *kernels,
                                    const octavo_attention_op *op, const void *const *parts,
                                    const octavo_attention_piece *held,
                                    const octavo_attention_piece *piece, int thread, int n_threads);

#endif
