/* SPDX-License-Identifier: Apache-2.0
 *
 * Phase 1: every new token's slot is written before any query reads, whether or not a query will
 * see it. Output rows of no sequence become 0.
 */
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/number.h"
#include "base/thread.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* What is the same for all slots of a layer. */
typedef struct slot_writer {
    const octavo_attention_op *op;
    const octavo_attention_kernels *kernels;
    const octavo_attention_heads *heads;
    const octavo_attention_splits *splits;
    attention_pages pages;
    size_t new_size; /* bytes of an element of keys and values */
    size_t kv_size;  /* of the cache */
} slot_writer;

/* What brings a row into the range of the cache's type. By its own numbers alone, so that it does
 * not matter who came before. */
static float scale_of(const float *row, int64_t n, octavo_dtype dtype) {
    uint32_t top = 0; /* magnitudes compare like their bits, and a NaN is above all */
    for (int64_t i = 0; i < n; i++) {
        const uint32_t magnitude = octavo_f32_bits(row[i]) & 0x7fffffffu;
        if (magnitude > top) top = magnitude;
    }
    const float largest = octavo_f32_from_bits(top);
    if (!isfinite(largest)) return NAN;
    return fmaxf(largest / octavo_attention_largest(dtype), FLT_MIN);
}

/* n elements as the cache has them. Returns what they were divided by. */
static float convert(const slot_writer *w, void *to, const uint8_t *from, float divisor,
                     int64_t n) {
    const octavo_attention_op *op = w->op;
    float row[OCTAVO_ATTENTION_MAX_KEY_DIM];
    if (op->new_dtype == op->kv_dtype) {
        memcpy(to, from, (size_t)n * w->kv_size);
        return divisor;
    }
    w->kernels->load[op->new_dtype](row, from, n);
    if (op->slot_scales) divisor = scale_of(row, n, op->kv_dtype);
    if (op->quantise_new || op->kv_dtype >= OCTAVO_DTYPE_FP8_E4M3)
        w->kernels->quantise[op->kv_dtype](to, row, divisor, n);
    else
        w->kernels->store[op->kv_dtype](to, row, 1.0f, n);
    return divisor;
}

/* A row of n elements, zero behind them. */
static float write_row(const slot_writer *w, uint8_t *to, const uint8_t *from, float divisor,
                       int64_t n) {
    const size_t bytes = (size_t)n * w->kv_size;
    divisor = convert(w, to, from, divisor, n);
    memset(to + bytes, 0, w->pages.row_bytes - bytes);
    return divisor;
}

/* A key into its lane of the columns: words OCTAVO_KEY_GROUP apart. */
static float write_column(const slot_writer *w, uint8_t *group, int64_t lane, const uint8_t *from,
                          float divisor) {
    uint32_t words[OCTAVO_ATTENTION_MAX_KEY_DIM];
    words[w->pages.key_words - 1] = 0; /* lanes that pad it */
    divisor = convert(w, words, from, divisor, w->heads->head_dim);
    uint32_t *to = (uint32_t *)(void *)group + lane;
    for (size_t i = 0; i < w->pages.key_words; i++)
        to[i * OCTAVO_KEY_GROUP] = words[i];
    return divisor;
}

static float divisor_of(const slot_writer *w, float scale, const float *scales, int32_t head) {
    if (!w->op->quantise_new) return 1.0f;
    return scales ? scale * scales[head] : scale;
}

/* Keeps the scale of a head's key, `offset` 0, or value in the page. */
static void write_scale(const slot_writer *w, uint8_t *page, int64_t slot, int32_t head,
                        size_t offset, float scale) {
    const attention_pages *pages = &w->pages;
    if (!w->op->slot_scales) return;
    uint8_t *first = page + pages->scale_offset + (size_t)head * pages->scale_head_bytes + offset;
    memcpy(first + (size_t)slot * sizeof scale, &scale, sizeof scale);
}

/* The whole slot: K and V of all heads, zeros in the lanes and rows that pad it. */
static void write_slot(const slot_writer *w, uint8_t *page, int64_t slot, int64_t token) {
    const octavo_attention_op *op = w->op;
    const attention_pages *pages = &w->pages;
    const int32_t d = w->heads->head_dim, dv = octavo_attention_value_dim(w->heads);
    uint8_t *row = page + slot * pages->slot_bytes;
    for (int32_t h = 0; h < w->heads->n_kv_heads; h++) {
        const size_t head = (size_t)h * pages->head_bytes;
        const int64_t key = token * op->k_token_stride + h * op->k_head_stride;
        const uint8_t *key_row = (const uint8_t *)op->keys + key * (int64_t)w->new_size;
        float divisor = divisor_of(w, op->k_scale, op->k_scales, h);
        if (pages->group_bytes > 0) {
            const size_t group = (size_t)(slot / OCTAVO_KEY_GROUP) * pages->group_bytes;
            divisor =
                write_column(w, page + head + group, slot % OCTAVO_KEY_GROUP, key_row, divisor);
        } else {
            divisor = write_row(w, row + head + pages->key_offset, key_row, divisor, d);
        }
        write_scale(w, page, slot, h, 0, divisor);
        if (op->value_in_key) continue;
        const int64_t value = token * op->v_token_stride + h * op->v_head_stride;
        divisor = write_row(w, row + head + pages->value_offset,
                            (const uint8_t *)op->values + value * (int64_t)w->new_size,
                            divisor_of(w, op->v_scale, op->v_scales, h), dv);
        write_scale(w, page, slot, h, pages->value_scale_offset, divisor);
    }
    if (op->layout == OCTAVO_KV_ROWS) {
        const size_t written = (size_t)w->heads->n_kv_heads * pages->head_bytes;
        const size_t all =
            (size_t)octavo_attention_slot_elements(w->heads, op->kv_dtype) * w->kv_size;
        memset(row + written, 0, all - written);
    }
}

static const int32_t *key_starts(const octavo_attention_batch *batch) {
    return batch->key_start_loc ? batch->key_start_loc : batch->query_start_loc;
}

/* New tokens of sequence `seq` among the rows [begin, end) of keys and values. */
static void write_tokens(const slot_writer *w, const octavo_attention_batch *batch, int64_t seq,
                         int64_t begin, int64_t end) {
    const int64_t first = key_starts(batch)[seq], last = key_starts(batch)[seq + 1];
    const int64_t before = batch->kv_lens[seq] - (last - first);
    const int32_t *pages = batch->block_tables + seq * batch->pages_per_seq;
    if (begin < first) begin = first;
    if (end > last) end = last;
    for (int64_t token = begin; token < end; token++) {
        const int64_t absolute = before + token - first;
        const int64_t position = attention_cache_position(w->splits, absolute);
        /* another part's are before those that follow */
        if (attention_cache_position(w->splits, absolute + 1) == position) continue;
        uint8_t *page =
            (uint8_t *)w->op->kv_cache + pages[position / batch->page_size] * w->pages.page_bytes;
        write_slot(w, page, position % batch->page_size, token);
    }
}

static void clear_output(const octavo_attention_op *op, const octavo_attention_heads *heads,
                         int64_t token) {
    const int64_t size = (int64_t)octavo_dtype_size(op->out_dtype);
    for (int32_t a = 0; a < heads->n_q_heads; a++)
        memset(attention_output(op, token, a), 0,
               (size_t)(octavo_attention_value_dim(heads) * size));
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
    for (int64_t token = begin; token < end && !attention_is_dealt(&plan->limits); token++) {
        if (token < live || token >= dead) clear_output(op, heads, token);
    }
    if (!op->update_kv_cache || batch->n_seqs == 0) return;
    const slot_writer writer = {
        .op = op,
        .kernels = kernels,
        .heads = heads,
        .splits = &plan->limits.splits,
        .pages = octavo_attention_pages(heads, op, batch->page_size),
        .new_size = octavo_dtype_size(op->new_dtype),
        .kv_size = octavo_dtype_size(op->kv_dtype),
    };
    octavo_pool_share(key_starts(batch)[batch->n_seqs], 1, thread, n_threads, &begin, &end);
    for (int64_t seq = 0; seq < batch->n_seqs; seq++)
        write_tokens(&writer, batch, seq, begin, end);
}
