/* SPDX-License-Identifier: Apache-2.0 */
#include "share_world.h"

#include "../unit.h"
#include "base/memory.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t share_below(share_world *w, int32_t n) {
    w->random = w->random * 1664525u + 1013904223u;
    return (int32_t)((uint64_t)w->random * (uint32_t)n >> 32);
}

static float random_number(share_world *w) {
    return (float)(share_below(w, 1 << 24) - (1 << 23)) / 8388608.0f;
}

static void *alloc(size_t bytes) {
    void *memory = octavo_alloc_aligned(bytes > 0 ? bytes : 1);
    assert_non_null(memory);
    return memory;
}

static float *random_rows(share_world *w, int64_t n) {
    float *rows = alloc((size_t)n * sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i] = random_number(w);
    return rows;
}

/* --- a random step --- */

static void make_heads(share_world *w) {
    static const int32_t widths[] = {16, 24, 40, 64};
    const int32_t group = 1 + share_below(w, 5), most = SHARE_MOST_HEADS / group;
    w->heads = (octavo_attention_heads){.n_kv_heads = 1 + share_below(w, most < 5 ? most : 5),
                                        .head_dim = widths[share_below(w, 4)],
                                        .group = group};
    w->heads.n_q_heads = group * w->heads.n_kv_heads;
    w->heads.value_dim = w->heads.head_dim;
}

static void make_cache(share_world *w) {
    static const octavo_dtype dtypes[] = {OCTAVO_DTYPE_F32,      OCTAVO_DTYPE_F16,
                                          OCTAVO_DTYPE_BF16,     OCTAVO_DTYPE_FP8_E4M3,
                                          OCTAVO_DTYPE_FP8_E5M2, OCTAVO_DTYPE_INT8};
    static const int32_t pages[] = {1, 5, 16, 16, 64, 48};
    const octavo_dtype dtype = dtypes[share_below(w, 6)];
    const bool is_latent = share_below(w, 5) == 0, is_narrow = dtype >= OCTAVO_DTYPE_FP8_E4M3;
    if (is_latent) w->heads.value_dim -= 8;
    w->page_size = pages[share_below(w, 6)];
    octavo_attention_op_init(&w->op, &w->heads, dtype,
                             is_latent || share_below(w, 2) ? OCTAVO_KV_COLUMNS : OCTAVO_KV_ROWS,
                             w->page_size);
    w->op.value_in_key = is_latent;
    w->op.slot_scales = is_narrow && share_below(w, 2);
    w->op.quantise_new = is_narrow && !w->op.slot_scales;
}

static void make_options(share_world *w) {
    octavo_attention_op *op = &w->op;
    static const octavo_dtype dtypes[] = {OCTAVO_DTYPE_F32, OCTAVO_DTYPE_F32, OCTAVO_DTYPE_BF16,
                                          OCTAVO_DTYPE_F16};
    op->q_dtype = dtypes[share_below(w, 4)];
    op->out_dtype = dtypes[share_below(w, 4)];
    op->scale = 0.3f;
    if (share_below(w, 4) == 0) op->soft_cap = 3.0f;
    if (share_below(w, 3) == 0) op->mask.window = 1 + share_below(w, share_below(w, 2) ? 2500 : 90);
    if (share_below(w, 5) == 0) op->mask.chunk = 1 + share_below(w, 1500);
    if (share_below(w, 5) == 0) op->mask.type = OCTAVO_ATTENTION_ENCODER;
    if (share_below(w, 3) == 0) op->sink = w->sink;
    if (share_below(w, 4) == 0) op->alibi_slopes = w->slopes;
    if (op->quantise_new || share_below(w, 4) == 0) op->k_scales = w->k_scales;
    if (op->quantise_new || share_below(w, 4) == 0)
        op->v_scales = op->value_in_key ? w->k_scales : w->v_scales;
    if (share_below(w, 4) == 0) op->precision = OCTAVO_ATTENTION_BF16;
    w->isa = share_below(w, 5) == 0 ? "scalar" : NULL;
    for (int i = 0; i < SHARE_MOST_HEADS; i++) {
        w->sink[i] = random_number(w);
        w->slopes[i] = 0.01f * (float)(i + 1);
        w->k_scales[i] = 0.01f * (float)(i + 3);
        w->v_scales[i] = 0.013f * (float)(i + 2);
    }
}

/* Decode rows, chunks, mixed ones and sequences without new tokens, with rows of no sequence round
 * them. */
static void make_sequences(share_world *w, int32_t most) {
    const int kind = share_below(w, 4);
    int32_t longest = 1;
    w->n_seqs = share_below(w, 12) == 0 ? 0 : 1 + share_below(w, SHARE_MOST_SEQS);
    w->starts[0] = share_below(w, 3) == 0 ? share_below(w, 4) : 0;
    for (int i = 0; i < w->n_seqs; i++) {
        const int32_t len = 1 + share_below(w, share_below(w, 2) ? most : 150);
        int32_t rows = kind == 0 ? 1 : kind == 1 ? 1 + share_below(w, 120) : 1 + share_below(w, 9);
        if (kind == 3 && share_below(w, 3) == 0) rows = share_below(w, 2) * 60;
        if (rows > len) rows = len;
        w->kv_lens[i] = len;
        w->old_lens[i] = len - rows;
        w->starts[i + 1] = w->starts[i] + rows;
        w->old_starts[i + 1] = w->old_starts[i] + len - rows;
        if (len > longest) longest = len;
    }
    w->n_tokens = w->starts[w->n_seqs] + (share_below(w, 3) == 0 ? share_below(w, 4) : 0);
    w->pages_per_seq = (longest + w->page_size - 1) / w->page_size;
}

static void make_queries(share_world *w) {
    const int64_t n = w->n_tokens * w->heads.n_q_heads * w->heads.head_dim;
    float *wide = random_rows(w, n);
    octavo_attention_kernels kernels;
    octavo_attention_kernels_init(&kernels, (octavo_cpu_flags){0});
    w->queries = alloc((size_t)n * sizeof(float));
    kernels.store[w->op.q_dtype](w->queries, wide, 1.0f, n);
    octavo_free_aligned(wide);
}

void share_make(share_world *w, uint32_t seed, int32_t most) {
    *w = (share_world){.random = seed * 2654435761u + 1};
    make_heads(w);
    make_cache(w);
    make_options(w);
    make_sequences(w, most);
    make_queries(w);
    const int64_t keys = (int64_t)w->heads.n_kv_heads * w->heads.head_dim;
    const int64_t values = (int64_t)w->heads.n_kv_heads * w->heads.value_dim;
    w->keys = random_rows(w, w->starts[w->n_seqs] * keys);
    w->values = random_rows(w, w->starts[w->n_seqs] * values);
    w->old_keys = random_rows(w, w->old_starts[w->n_seqs] * keys);
    w->old_values = random_rows(w, w->old_starts[w->n_seqs] * values);
}

void share_free(share_world *w) {
    void *memory[] = {w->queries, w->keys, w->values, w->old_keys, w->old_values};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        octavo_free_aligned(memory[i]);
}

const char *share_describe(const share_world *w) {
    static char text[400];
    snprintf(text, sizeof text,
             "%d/%d heads of %d/%d, %s in %s cache, layout %d, pages of %d, %d sequences, %d rows, "
             "type %d, window %d, chunk %d%s%s%s%s%s",
             (int)w->heads.n_q_heads, (int)w->heads.n_kv_heads, (int)w->heads.head_dim,
             (int)w->heads.value_dim, octavo_dtype_name(w->op.q_dtype),
             octavo_dtype_name(w->op.kv_dtype), (int)w->op.layout, (int)w->page_size,
             (int)w->n_seqs, (int)w->n_tokens, (int)w->op.mask.type, (int)w->op.mask.window,
             (int)w->op.mask.chunk, w->op.value_in_key ? ", latent" : "",
             w->op.slot_scales ? ", slot scales" : "", w->op.sink ? ", sinks" : "",
             w->op.alibi_slopes ? ", ALiBi" : "", w->isa ? ", scalar" : "");
    return text;
}

/* --- a rank --- */

share_part share_whole(const share_world *w, int threads) {
    return (share_part){.q_end = w->heads.n_q_heads,
                        .kv_end = w->heads.n_kv_heads,
                        .row_end = w->n_tokens,
                        .threads = threads};
}

typedef struct rank {
    octavo_attention_limits limits;
    octavo_attention_plan plan;
    octavo_attention_kernels kernels;
    octavo_attention_op op;
    octavo_pool *pool;
    void *memory, *workspace;
    uint8_t *cache, *out;
    int32_t *tables;
} rank;

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

/* Pages in random order. */
static void make_tables(share_world *w, rank *r, int64_t n_pages) {
    r->tables = alloc((size_t)n_pages * sizeof *r->tables);
    for (int32_t i = 0; i < n_pages; i++) {
        const int32_t j = share_below(w, i + 1);
        r->tables[i] = r->tables[j];
        r->tables[j] = i;
    }
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
}

static void make_rank(share_world *w, const share_part *part, rank *r) {
    octavo_cpu_flags flags;
    octavo_error error;
    *r = (rank){.limits = {.heads = w->heads,
                           .max_tokens = part->row_end - part->row_begin,
                           .max_seqs = w->n_seqs,
                           .n_threads = part->threads}};
    r->limits.heads.n_q_heads = part->q_end - part->q_begin;
    r->limits.heads.n_kv_heads = part->kv_end - part->kv_begin;
    r->limits.heads.first = part->q_begin - part->kv_begin * w->heads.group;
    assert_int_equal(octavo_cpu_select(w->isa, &flags, &error), OCTAVO_OK);
    octavo_attention_kernels_init(&r->kernels, flags);
    assert_int_equal(octavo_pool_create(&r->pool, part->threads, false, &error), OCTAVO_OK);
    make_op(w, part, r);
    const int64_t n_pages = w->n_seqs * w->pages_per_seq;
    const size_t bytes = (size_t)(n_pages * r->op.page_stride) * octavo_dtype_size(w->op.kv_dtype);
    r->memory = alloc(octavo_attention_plan_bytes(&r->limits));
    r->workspace = alloc(octavo_attention_workspace_bytes(&r->limits));
    r->op.kv_cache = r->cache = alloc(bytes);
    memset(r->cache, 0xff, bytes); /* NaN wherever nobody writes */
    make_tables(w, r, n_pages);
}

static void use_keys(const share_world *w, const share_part *part, rank *r, const float *keys,
                     const float *values) {
    r->op.keys = keys + part->kv_begin * (int64_t)w->heads.head_dim;
    r->op.values = values + part->kv_begin * (int64_t)w->heads.value_dim;
}

/* What was in the cache before the step. */
static void fill_cache(const share_world *w, const share_part *part, rank *r) {
    static const int32_t no_rows[SHARE_MOST_SEQS + 1];
    const octavo_attention_batch before = {.n_seqs = w->n_seqs,
                                           .page_size = w->page_size,
                                           .pages_per_seq = w->pages_per_seq,
                                           .kv_lens = w->old_lens,
                                           .query_start_loc = no_rows,
                                           .block_tables = r->tables,
                                           .key_start_loc = w->old_starts};
    octavo_attention_plan_make(&r->plan, &r->limits, &before, w->op.mask, r->memory);
    use_keys(w, part, r, w->old_keys, w->old_values);
    octavo_pool_run(r->pool, update, r);
}

static void run_step(const share_world *w, const share_part *part, rank *r) {
    octavo_attention_batch batch = {.n_tokens = w->n_tokens,
                                    .n_seqs = w->n_seqs,
                                    .page_size = w->page_size,
                                    .pages_per_seq = w->pages_per_seq,
                                    .kv_lens = w->kv_lens,
                                    .query_start_loc = w->starts,
                                    .block_tables = r->tables};
    const int64_t element =
        part->row_begin * r->op.q_token_stride + part->q_begin * (int64_t)w->heads.head_dim;
    int32_t starts[SHARE_MOST_SEQS + 1], positions[SHARE_MOST_SEQS];
    if (part->row_begin > 0 || part->row_end < w->n_tokens) {
        const octavo_attention_batch whole = batch;
        octavo_attention_batch_rows(&whole, part->row_begin, part->row_end, starts, positions,
                                    &batch);
    }
    octavo_attention_plan_make(&r->plan, &r->limits, &batch, w->op.mask, r->memory);
    use_keys(w, part, r, w->keys, w->values);
    r->op.queries = (uint8_t *)w->queries + element * (int64_t)octavo_dtype_size(w->op.q_dtype);
    octavo_pool_run(r->pool, step, r);
}

size_t share_head_bytes(const share_world *w) {
    return (size_t)w->heads.value_dim * octavo_dtype_size(w->op.out_dtype);
}

uint8_t *share_run(share_world *w, const share_part *part) {
    rank r;
    make_rank(w, part, &r);
    const size_t bytes = (size_t)(part->row_end - part->row_begin) *
                         (size_t)r.limits.heads.n_q_heads * share_head_bytes(w);
    r.op.output = r.out = alloc(bytes);
    memset(r.out, 0xa5, bytes);
    fill_cache(w, part, &r);
    run_step(w, part, &r);
    octavo_pool_destroy(&r.pool);
    octavo_free_aligned(r.memory);
    octavo_free_aligned(r.workspace);
    octavo_free_aligned(r.cache);
    octavo_free_aligned(r.tables);
    return r.out;
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
