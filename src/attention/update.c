/* SPDX-License-Identifier: Apache-2.0
 *
 * Phase 1: every new token's slot is written before any query reads, whether or not a query will
 * see it. Output rows of no sequence become 0.
 */
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/thread.h"

#include <string.h>

/* What is the same for all slots of a layer. */
typedef struct slot_writer {
    const octavo_attention_op *op;
    const octavo_attention_kernels *kernels;
    const octavo_attention_heads *heads;
    size_t new_size;  /* bytes of an element of keys and values */
    size_t kv_size;   /* of the cache */
    size_t row_bytes; /* of one row of lanes in the cache */
    size_t slot_bytes;
} slot_writer;

static void write_row(const slot_writer *w, uint8_t *to, const void *array, int64_t element) {
    const uint8_t *from = (const uint8_t *)array + element * (int64_t)w->new_size;
    const int64_t d = w->heads->head_dim;
    const size_t bytes = (size_t)d * w->kv_size;
    if (w->op->new_dtype == w->op->kv_dtype)
        memcpy(to, from, bytes);
    else
        w->kernels->store[w->op->kv_dtype](to, (const void *)from, 1.0f, d);
    memset(to + bytes, 0, w->row_bytes - bytes);
}

/* The whole slot: K and V of all heads, zeros in the lanes and rows that pad it. */
static void write_slot(const slot_writer *w, uint8_t *slot, int64_t token) {
    const octavo_attention_op *op = w->op;
    for (int32_t h = 0; h < w->heads->n_kv_heads; h++) {
        uint8_t *row = slot + (size_t)(2 * h) * w->row_bytes;
        write_row(w, row, op->keys, token * op->k_token_stride + h * op->k_head_stride);
        write_row(w, row + w->row_bytes, op->values,
                  token * op->v_token_stride + h * op->v_head_stride);
    }
    size_t written = (size_t)(2 * w->heads->n_kv_heads) * w->row_bytes;
    memset(slot + written, 0, w->slot_bytes - written);
}

/* New tokens of sequence `seq` among the rows [begin, end). */
static void write_tokens(const slot_writer *w, const octavo_attention_batch *batch, int64_t seq,
                         int64_t begin, int64_t end) {
    const int64_t first = batch->query_start_loc[seq], last = batch->query_start_loc[seq + 1];
    const int64_t before = batch->kv_lens[seq] - (last - first);
    const int32_t *pages = batch->block_tables + seq * batch->pages_per_seq;
    if (begin < first) begin = first;
    if (end > last) end = last;
    for (int64_t token = begin; token < end; token++) {
        int64_t position = before + token - first;
        int64_t element = pages[position / batch->page_size] * w->op->page_stride +
                          position % batch->page_size * w->op->slot_stride;
        write_slot(w, (uint8_t *)w->op->kv_cache + element * (int64_t)w->kv_size, token);
    }
}

static void clear_output(const octavo_attention_op *op, const octavo_attention_heads *heads,
                         int64_t token) {
    const int64_t size = (int64_t)octavo_dtype_size(op->q_dtype);
    for (int32_t a = 0; a < heads->n_q_heads; a++) {
        int64_t element = token * op->out_token_stride + a * op->out_head_stride;
        memset((uint8_t *)op->output + element * size, 0, (size_t)(heads->head_dim * size));
    }
}

void octavo_attention_update(octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                             const octavo_attention_op *op, int thread, int n_threads) {
    const octavo_attention_batch *batch = &plan->batch;
    const octavo_attention_heads *heads = &plan->limits.heads;
    if (thread == 0) atomic_store_explicit(&plan->next_item, 0, memory_order_relaxed);

    int64_t begin, end;
    octavo_pool_share(batch->n_tokens, 1, thread, n_threads, &begin, &end);
    const int64_t live = batch->n_seqs > 0 ? batch->query_start_loc[0] : batch->n_tokens;
    const int64_t dead = batch->n_seqs > 0 ? batch->query_start_loc[batch->n_seqs] : 0;
    for (int64_t token = begin; token < end; token++) {
        if (token < live || token >= dead) clear_output(op, heads, token);
    }
    if (!op->update_kv_cache) return;
    const size_t kv_size = octavo_dtype_size(op->kv_dtype);
    const slot_writer writer = {
        .op = op,
        .kernels = kernels,
        .heads = heads,
        .new_size = octavo_dtype_size(op->new_dtype),
        .kv_size = kv_size,
        .row_bytes = (size_t)octavo_attention_lanes(heads->head_dim) * kv_size,
        .slot_bytes = (size_t)octavo_attention_slot_elements(heads, op->kv_dtype) * kv_size,
    };
    for (int64_t seq = 0; seq < batch->n_seqs; seq++)
        write_tokens(&writer, batch, seq, begin, end);
}
