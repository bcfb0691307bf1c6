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
 * The cache is laid out [pages, page_size, ceil(2 * kv_heads / packing), packing,
 * octavo_attention_lanes(head_dim)]: within a slot row 2h is K and row 2h + 1 is V of kv head h.
 */
#ifndef OCTAVO_ATTENTION_ATTENTION_H
#define OCTAVO_ATTENTION_ATTENTION_H

#include "kernels/attention.h"

#include "octavo/dtype.h"
#include "octavo/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The heads of one rank. */
typedef struct octavo_attention_heads {
    int32_t n_q_heads;  /* a multiple of n_kv_heads; query head a reads kv head a / (n_q / n_kv) */
    int32_t n_kv_heads; /* at least 1 */
    int32_t head_dim;   /* 1..OCTAVO_ATTENTION_MAX_DIM */
} octavo_attention_heads;

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
} octavo_attention_batch;

/* Sizes a plan and its workspace once, for every step to come. */
typedef struct octavo_attention_limits {
    octavo_attention_heads heads;
    int64_t max_tokens; /* largest n_tokens */
    int64_t max_seqs;   /* largest n_seqs */
    int32_t n_threads;
} octavo_attention_limits;

/* A piece of work: some query tokens and heads of a sequence over some of its kv splits. */
typedef struct octavo_attention_item octavo_attention_item;
/* A query token whose splits went to several items. */
typedef struct octavo_attention_join octavo_attention_join;

/* How one step is cut into work. It serves layers of the window it was made for, and of narrower
 * ones (0 = none is the widest) with less balance; the bits are the same. Written by
 * octavo_attention_plan_make; `next_item` is the only field that changes afterwards: phase 1 resets
 * it, threads take from it in phase 2. */
typedef struct octavo_attention_plan {
    octavo_attention_limits limits;
    octavo_attention_batch batch;
    int64_t window;
    octavo_attention_item *items; /* [n_items], largest first */
    int64_t n_items;
    octavo_attention_join *joins; /* [n_joins] */
    int64_t n_joins;
    atomic_int_fast64_t next_item;
} octavo_attention_plan;

/* Bytes of a plan's memory and of the workspace (scratch of all threads and partial results). One
 * workspace serves every plan and layer of the same limits, one at a time. 0 if the size does not
 * fit size_t. */
size_t octavo_attention_plan_bytes(const octavo_attention_limits *limits);
size_t octavo_attention_workspace_bytes(const octavo_attention_limits *limits);

/* Cuts a batch into work. memory: plan_bytes(limits), aligned to OCTAVO_ALIGN, used as long as the
 * plan. window: the sliding window of the layers it is for, 0 = none. */
void octavo_attention_plan_make(octavo_attention_plan *plan, const octavo_attention_limits *limits,
                                const octavo_attention_batch *batch, int64_t window, void *memory);

/* One layer's attention. Strides are in elements; the last axis is contiguous. */
typedef struct octavo_attention_op {
    octavo_dtype q_dtype;   /* of queries and output: f32, f16 or bf16 */
    octavo_dtype kv_dtype;  /* of the cache: f32, f16 or bf16 */
    octavo_dtype new_dtype; /* of keys and values: kv_dtype (bits are copied), or f32 (rounded to
                               nearest even on the way into the cache) */
    const void *queries;    /* [n_tokens, n_q_heads, head_dim] */
    int64_t q_token_stride;
    int64_t q_head_stride;
    const void *keys;   /* [n_tokens, n_kv_heads, head_dim]; unused without update_kv_cache */
    const void *values; /* the same shape */
    int64_t k_token_stride;
    int64_t k_head_stride;
    int64_t v_token_stride;
    int64_t v_head_stride;
    void *kv_cache; /* [pages, page_size, slot]: see the head of this file */
    int64_t page_stride;
    int64_t slot_stride;
    void *output; /* [n_tokens, n_q_heads, head_dim], may not overlap the inputs */
    int64_t out_token_stride;
    int64_t out_head_stride;
    const float *sink; /* [n_q_heads] or NULL */
    float scale;       /* of q . k: softmax scale x k scale x q scale */
    float v_scale;     /* of the result, 1 = none */
    float soft_cap;    /* 0 = none */
    int64_t window;    /* 0 = none; counts the query's own position */
    bool has_q_scale;  /* queries are quantised to kv_dtype first (rule R9) by q_scale */
    float q_scale;
    bool update_kv_cache; /* write keys and values into the cache first */
} octavo_attention_op;

/* Fills in strides of dense arrays, neutral scales (scale 1, v_scale 1, no window, cap or sink) and
 * update_kv_cache = true for f32 queries, keys, values and output and a cache of kv_dtype. Pointers
 * are the caller's to set. */
void octavo_attention_op_init(octavo_attention_op *op, const octavo_attention_heads *heads,
                              octavo_dtype kv_dtype, int64_t page_size);

/* Lanes of a cache row: head_dim rounded up to a multiple of 128. */
int64_t octavo_attention_lanes(int64_t head_dim);
/* Elements of one slot: ceil(2 * n_kv_heads / packing) * packing rows of lanes. */
int64_t octavo_attention_slot_elements(const octavo_attention_heads *heads, octavo_dtype kv_dtype);

/* Phase 1, on every thread: writes the new tokens' slots and clears the output rows of no sequence.
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

#endif
