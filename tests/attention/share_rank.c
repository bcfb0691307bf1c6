/* SPDX-License-Identifier: Apache-2.0
 *
 * What one rank has of a world, and its step.
 */
#include "../unit.h"
#include "base/memory.h"
#include "share_world.h"

#include <string.h>

typedef share_rank rank;

share_part share_whole(const share_world *w, int threads) {
    return (share_part){.q_end = w->heads.n_q_heads,
                        .kv_end = w->heads.n_kv_heads,
                        .row_end = w->n_tokens,
                        .threads = threads};
}

static void update(void *arg, int thread, int n_threads) {
    rank *r = arg;
    octavo_attention_update(&r->plan, &r->kernels, &r->op, thread, n_threads);
}

static void step(void *arg, int thread, int n_threads) {
    rank *r = arg;
    octavo_attention_update(&r->plan, &r->kernels, &r->op, thread, n_threads);
    octavo_pool_barrier(r->pool, thread);
    octavo_attention_attend(&r->plan, &r->kernels, &r->op, r->workspace, thread);
    octavo_pool_barrier(r->pool, thread);
    octavo_attention_merge(&r->plan, &r->kernels, &r->op, r->workspace, thread, n_threads);
}

/* The world's options with the rank's own heads. */
static void make_op(const share_world *w, const share_part *part, rank *r) {
    const octavo_attention_heads *heads = &r->limits.heads;
    octavo_attention_op own;
    octavo_attention_op_init(&own, heads, w->op.kv_dtype, w->op.layout, w->page_size);
    r->op = w->op;
    r->op.slot_stride = own.slot_stride;
    r->op.page_stride = own.page_stride;
    r->op.page_stride = octavo_attention_page_stride(&r->op, heads, w->page_size);
    r->op.out_token_stride = own.out_token_stride;
    r->op.k_token_stride = w->heads.n_kv_heads * (int64_t)heads->head_dim;
    r->op.v_token_stride = w->heads.n_kv_heads * (int64_t)heads->value_dim;
    r->op.q_token_stride = w->heads.n_q_heads * (int64_t)heads->head_dim;
    if (r->op.sink) r->op.sink += part->q_begin;
    if (r->op.alibi_slopes) r->op.alibi_slopes += part->q_begin;
    if (r->op.k_scales) r->op.k_scales += part->kv_begin;
    if (r->op.v_scales) r->op.v_scales += part->kv_begin;
    const int64_t element =
        part->row_begin * r->op.q_token_stride + part->q_begin * (int64_t)w->heads.head_dim;
    r->op.queries = (uint8_t *)w->queries + element * (int64_t)octavo_dtype_size(w->op.q_dtype);
}

/* Pages in random order, no more than what is here needs, NaN in all. */
static void make_cache(share_world *w, const share_part *part, rank *r) {
    int64_t longest = w->pages_per_seq * w->page_size;
    if (part->splits.is_cache_dealt)
        longest = octavo_attention_local_position(&part->splits, longest);
    r->batch.pages_per_seq = (longest + w->page_size - 1) / w->page_size;
    const int64_t n_pages = w->n_seqs * r->batch.pages_per_seq;
    const size_t bytes = (size_t)(n_pages * r->op.page_stride) * octavo_dtype_size(w->op.kv_dtype);
    r->op.kv_cache = r->cache = share_alloc(bytes);
    memset(r->cache, 0xff, bytes);
    r->tables = share_alloc((size_t)n_pages * sizeof *r->tables);
    for (int32_t i = 0; i < n_pages; i++) {
        const int32_t j = share_below(w, i + 1);
        r->tables[i] = r->tables[j];
        r->tables[j] = i;
    }
    r->batch.block_tables = r->tables;
}

static void use_keys(const share_world *w, const share_part *part, rank *r, const float *keys,
                     const float *values) {
    r->op.keys = keys + part->kv_begin * (int64_t)w->heads.head_dim;
    r->op.values = values + part->kv_begin * (int64_t)w->heads.value_dim;
}

/* What was in the cache before the step. */
static void fill_cache(const share_world *w, const share_part *part, rank *r) {
    static const int32_t no_rows[SHARE_MOST_SEQS + 1];
    octavo_attention_batch before = r->batch;
    before.n_tokens = 0;
    before.kv_lens = w->old_lens;
    before.query_start_loc = no_rows;
    before.key_start_loc = w->old_starts;
    octavo_attention_plan_make(&r->plan, &r->limits, &before, w->plan_mask, r->memory);
    use_keys(w, part, r, w->old_keys, w->old_values);
    octavo_pool_run(r->pool, update, r);
}

static void make_batch(const share_world *w, const share_part *part, rank *r) {
    r->batch.n_tokens = w->n_tokens;
    r->batch.n_seqs = w->n_seqs;
    r->batch.page_size = w->page_size;
    r->batch.kv_lens = w->kv_lens;
    r->batch.query_start_loc = w->starts;
    if (w->op.mask.type == OCTAVO_ATTENTION_ENCODER_DECODER) r->batch.key_start_loc = w->key_starts;
    if (part->row_begin == 0 && part->row_end == w->n_tokens) return;
    const octavo_attention_batch whole = r->batch;
    octavo_attention_batch_rows(&whole, part->row_begin, part->row_end, r->starts, r->positions,
                                &r->batch);
}

void share_begin(share_world *w, const share_part *part, rank *r) {
    octavo_cpu_flags flags;
    octavo_error error;
    *r = (rank){.limits = {.heads = w->heads,
                           .splits = part->splits,
                           .max_tokens = part->row_end - part->row_begin,
                           .max_seqs = w->n_seqs,
                           .n_threads = part->threads}};
    r->limits.heads.n_q_heads = part->q_end - part->q_begin;
    r->limits.heads.n_kv_heads = part->kv_end - part->kv_begin;
    r->limits.heads.first = part->q_begin - part->kv_begin * w->heads.group;
    assert_int_equal(octavo_cpu_select(w->isa, &flags, &error), OCTAVO_OK);
    octavo_attention_kernels_init(&r->kernels, flags);
    assert_int_equal(octavo_pool_create(&r->pool, part->threads, false, &error), OCTAVO_OK);
    r->memory = share_alloc(octavo_attention_plan_bytes(&r->limits));
    r->workspace = share_alloc(octavo_attention_workspace_bytes(&r->limits));
    make_op(w, part, r);
    make_batch(w, part, r);
    make_cache(w, part, r);
    fill_cache(w, part, r);
    octavo_attention_plan_make(&r->plan, &r->limits, &r->batch, w->plan_mask, r->memory);
    use_keys(w, part, r, w->keys, w->values);
}

void share_step(rank *r) {
    octavo_pool_run(r->pool, step, r);
}

void share_end(rank *r) {
    octavo_pool_destroy(&r->pool);
    octavo_free_aligned(r->memory);
    octavo_free_aligned(r->workspace);
    octavo_free_aligned(r->cache);
    octavo_free_aligned(r->tables);
}

uint8_t *share_run(share_world *w, const share_part *part) {
    rank r;
    share_begin(w, part, &r);
    const size_t heads = (size_t)(r.batch.n_tokens * r.limits.heads.n_q_heads);
    uint8_t *out = share_alloc(heads * share_head_bytes(w));
    memset(out, 0xa5, heads * share_head_bytes(w));
    r.op.output = out;
    share_step(&r);
    share_end(&r);
    return out;
}

size_t share_head_bytes(const share_world *w) {
    return (size_t)w->heads.value_dim * octavo_dtype_size(w->op.out_dtype);
}

void share_compare(const share_world *w, const uint8_t *want, const uint8_t *got, int64_t row,
                   int64_t n_rows, int32_t head, int32_t n_heads, const char *what) {
    const size_t bytes = share_head_bytes(w);
    for (int64_t t = 0; t < n_rows; t++) {
        for (int32_t h = 0; h < n_heads; h++) {
            const size_t from = (size_t)((row + t) * w->heads.n_q_heads + head + h) * bytes;
            const size_t at = (size_t)(t * n_heads + h) * bytes;
            if (memcmp(want + from, got + at, bytes) == 0) continue;
            fail_msg("%s: row %d, head %d differs: %s", what, (int)(row + t), (int)(head + h),
                     share_describe(w));
        }
    }
}
