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

void *share_alloc(size_t bytes) {
    void *memory = octavo_alloc_aligned(bytes > 0 ? bytes : 1);
    assert_non_null(memory);
    return memory;
}

static float *random_rows(share_world *w, int64_t n) {
    float *rows = share_alloc((size_t)n * sizeof *rows);
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

static void make_masks(share_world *w) {
    octavo_attention_mask *mask = &w->op.mask;
    if (share_below(w, 3) == 0) mask->window = 1 + share_below(w, share_below(w, 2) ? 2500 : 90);
    if (share_below(w, 5) == 0) mask->chunk = 1 + share_below(w, 1500);
    if (share_below(w, 4) == 0)
        mask->type =
            share_below(w, 2) ? OCTAVO_ATTENTION_ENCODER : OCTAVO_ATTENTION_ENCODER_DECODER;
    w->plan_mask = *mask;
    if (share_below(w, 3) == 0) w->plan_mask.window = 0;
}

static void make_options(share_world *w) {
    octavo_attention_op *op = &w->op;
    static const octavo_dtype dtypes[] = {OCTAVO_DTYPE_F32, OCTAVO_DTYPE_F32, OCTAVO_DTYPE_BF16,
                                          OCTAVO_DTYPE_F16};
    op->q_dtype = dtypes[share_below(w, 4)];
    op->out_dtype = dtypes[share_below(w, 4)];
    op->scale = 0.3f;
    if (share_below(w, 4) == 0) op->soft_cap = 3.0f;
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
    const bool is_cross = w->op.mask.type == OCTAVO_ATTENTION_ENCODER_DECODER;
    int32_t longest = 1;
    w->n_seqs = share_below(w, 12) == 0 ? 0 : 1 + share_below(w, SHARE_MOST_SEQS);
    w->starts[0] = share_below(w, 3) == 0 ? share_below(w, 4) : 0;
    w->key_starts[0] = w->starts[0];
    for (int i = 0; i < w->n_seqs; i++) {
        int32_t len = 1 + share_below(w, share_below(w, 2) ? most : 150);
        int32_t rows = kind == 0 ? 1 : kind == 1 ? 1 + share_below(w, 120) : 1 + share_below(w, 9);
        if (kind == 3 && share_below(w, 3) == 0) rows = share_below(w, 2) * 60;
        if (rows > len) rows = len;
        w->starts[i + 1] = w->starts[i] + rows;
        if (is_cross && share_below(w, 3) == 0) rows = len = 0; /* rows that see nothing */
        if (is_cross && share_below(w, 2)) rows = 0;
        w->kv_lens[i] = len;
        w->old_lens[i] = len - rows;
        w->key_starts[i + 1] = w->key_starts[i] + rows;
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
    w->queries = share_alloc((size_t)n * sizeof(float));
    kernels.store[w->op.q_dtype](w->queries, wide, 1.0f, n);
    octavo_free_aligned(wide);
}

void share_make(share_world *w, uint32_t seed, int32_t most) {
    *w = (share_world){.random = seed * 2654435761u + 1};
    make_heads(w);
    make_cache(w);
    make_masks(w);
    make_options(w);
    make_sequences(w, most);
    make_queries(w);
    const int64_t keys = (int64_t)w->heads.n_kv_heads * w->heads.head_dim;
    const int64_t values = (int64_t)w->heads.n_kv_heads * w->heads.value_dim;
    w->keys = random_rows(w, w->key_starts[w->n_seqs] * keys);
    w->values = random_rows(w, w->key_starts[w->n_seqs] * values);
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
