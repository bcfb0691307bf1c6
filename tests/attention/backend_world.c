/* SPDX-License-Identifier: Apache-2.0 */
#include "backend_world.h"

#include "../unit.h"
#include "rpa_context.h"

#include <string.h>

octavo_attention_context *backend_context;
uint32_t backend_random_state = 1;

uint32_t backend_random(void) {
    backend_random_state = backend_random_state * 1664525u + 1013904223u;
    return backend_random_state >> 8;
}

/* A number between about 2^-4 and 2 of either sign. */
static void put_number(uint8_t *at, octavo_dtype dtype) {
    const uint32_t r = backend_random(), sign = r & 1, exponent = r % 5;
    const uint32_t fraction = backend_random();
    const uint32_t word = dtype == F32 ? sign << 31 | (123 + exponent) << 23 | (fraction & 0x7fffff)
                          : dtype == F16  ? sign << 15 | (11 + exponent) << 10 | (fraction & 0x3ff)
                          : dtype == BF16 ? sign << 15 | (123 + exponent) << 7 | (fraction & 0x7f)
                          : dtype == E4M3 ? sign << 7 | (3 + exponent) << 3 | (fraction & 7)
                          : dtype == E5M2 ? sign << 7 | (11 + exponent) << 2 | (fraction & 3)
                                          : fraction & 0xff;
    memcpy(at, &word, octavo_dtype_size(dtype));
}

static void put_numbers(uint8_t *at, octavo_dtype dtype, size_t n) {
    for (size_t i = 0; i < n; i++)
        put_number(at + i * octavo_dtype_size(dtype), dtype);
}

/* Columns [begin, begin + n_heads * D) of the fused rows. */
static octavo_array rows_of(backend_world *w, octavo_dtype dtype, int64_t begin, int64_t n_heads) {
    octavo_array array =
        ARRAY(w->rows + (size_t)begin * octavo_dtype_size(dtype), dtype, T, n_heads * D);
    array.strides[0] = ROW;
    array.strides[1] = 1;
    return array;
}

void backend_set_cache(backend_world *w, octavo_dtype dtype, octavo_kv_layout layout) {
    w->layout = layout;
    put_numbers(w->cache, dtype, CACHE_BYTES / octavo_dtype_size(dtype));
    const int64_t packing = 4 / (int64_t)octavo_dtype_size(dtype);
    if (layout == OCTAVO_KV_ROWS)
        w->kv_cache =
            ARRAY(w->cache, dtype, P, PAGE, (2 * HKV + packing - 1) / packing, packing, 128);
    else
        w->kv_cache = ARRAY(w->cache, dtype, P,
                            octavo_attention_page_elements(dtype, PAGE, HKV, D, D, false));
    memcpy(w->same, w->cache, sizeof w->same);
}

/* A decode row, a prompt, a continued prompt; garbage where nothing may be read. */
static void set_batch(backend_world *w) {
    memcpy(w->kv_lens, (int32_t[]){20, 3, 11, -7}, sizeof w->kv_lens);
    memcpy(w->starts, (int32_t[]){0, 1, 4, 7, 99}, sizeof w->starts);
    memcpy(w->tables, (int32_t[]){7, 2, 9, 0, -1, -1, 5, 3, 999, -9, -9, -9}, sizeof w->tables);
    memcpy(w->kinds, (int32_t[]){1, 1, 3}, sizeof w->kinds);
    octavo_attention_metadata_init(&w->metadata);
    w->metadata.kv_lens = ARRAY(w->kv_lens, I32, S);
    w->metadata.block_tables = ARRAY(w->tables, I32, S, PER_SEQ);
    w->metadata.query_start_loc = ARRAY(w->starts, I32, S + 1);
    w->metadata.distribution = ARRAY(w->kinds, I32, 3);
}

/* f32, decoder, causal, rows that view a fused projection. */
void backend_make(backend_world *w) {
    memset(w, 0, sizeof *w);
    octavo_attention_backend_options_init(&w->options);
    w->options.num_heads = HQ;
    w->options.num_kv_heads = HKV;
    w->options.head_size = D;
    w->options.scale = 0.2;
    octavo_attention_layer_init(&w->layer, "model.layers.3.attn");
    set_batch(w);
    put_numbers(w->rows, F32, T * ROW);
    put_numbers((uint8_t *)w->slopes, F32, HQ);
    put_numbers((uint8_t *)w->sinks, F32, HQ);
    for (int i = 0; i < HKV; i++) {
        w->k_scales[i] = 0.5f + (float)i / 4;
        w->v_scales[i] = 1.5f - (float)i / 4;
    }
    octavo_attention_rows_init(&w->given);
    w->given.query = rows_of(w, F32, 0, HQ);
    w->given.key = rows_of(w, F32, (int64_t)HQ * D, HKV);
    w->given.value = rows_of(w, F32, (int64_t)(HQ + HKV) * D, HKV);
    w->given.output = ARRAY(w->output, F32, T, HQ * D);
    backend_set_cache(w, F32, OCTAVO_KV_ROWS);
}

/* Query and output in one dtype, keys and values in another, the cache in a third. */
void backend_set_types(backend_world *w, octavo_dtype q, octavo_dtype new, octavo_dtype cache,
                       octavo_kv_layout layout) {
    static uint8_t keys[2][T * HKV * D * 4];
    put_numbers(w->rows, q, T * ROW);
    w->given.query = rows_of(w, q, 0, HQ);
    w->given.output.dtype = q;
    w->given.key = rows_of(w, q, (int64_t)HQ * D, HKV);
    w->given.value = rows_of(w, q, (int64_t)(HQ + HKV) * D, HKV);
    if (new != q) {
        for (int i = 0; i < 2; i++)
            put_numbers(keys[i], new, T * HKV * D);
        w->given.key = ARRAY(keys[0], new, T, HKV * D);
        w->given.value = ARRAY(keys[1], new, T, HKV, D);
    }
    backend_set_cache(w, cache, layout);
}

/* A 2-D array as the direct call wants it. */
static octavo_array heads_of(const octavo_array *rows, int64_t n_heads) {
    if (rows->n_axes == 3) return *rows;
    octavo_array heads = *rows;
    heads.n_axes = 3;
    heads.extents[1] = n_heads;
    heads.extents[2] = D;
    heads.strides[0] = rows->strides[0] ? rows->strides[0] : n_heads * D;
    heads.strides[1] = D;
    heads.strides[2] = 1;
    return heads;
}

octavo_array backend_vector(void *data, octavo_dtype dtype, int64_t extent) {
    return ARRAY(data, dtype, extent);
}

/* The same call without a backend, into `same` and `want`. */
octavo_attention_args backend_direct_args(backend_world *w) {
    const octavo_attention_backend_options *o = &w->options;
    octavo_attention_args a;
    octavo_attention_args_init(&a);
    a.queries = heads_of(&w->given.query, HQ);
    a.keys = heads_of(&w->given.key, HKV);
    a.values = heads_of(&w->given.value, HKV);
    a.output = ARRAY(w->want, w->given.output.dtype, T, HQ, D);
    a.kv_cache = w->kv_cache;
    a.kv_cache.data = w->same;
    a.layout = w->layout;
    a.page_size = w->layout == OCTAVO_KV_COLUMNS ? PAGE : 0;
    a.kv_lens = w->metadata.kv_lens;
    a.block_tables = ARRAY(w->tables, I32, (int64_t)S * PER_SEQ);
    a.query_start_loc = w->metadata.query_start_loc;
    a.distribution = w->metadata.distribution;
    a.key_start_loc = w->metadata.key_start_loc;
    a.softmax_scale = o->scale;
    a.use_sliding_window = o->sliding_window > 0;
    a.sliding_window = o->sliding_window;
    a.use_logits_soft_cap = o->logits_soft_cap > 0.0;
    a.logits_soft_cap = o->logits_soft_cap;
    a.type = o->attn_type;
    a.precision = o->precision;
    a.chunk_size = o->use_irope ? o->irope_chunk_size : 0;
    if (o->alibi_slopes) a.alibi_slopes = backend_vector(w->slopes, F32, HQ);
    if (o->sinks) a.attention_sink = backend_vector(w->sinks, F32, HQ);
    a.use_q_scale = w->layer.use_q_scale;
    a.use_k_scale = w->layer.use_k_scale;
    a.use_v_scale = w->layer.use_v_scale;
    a.q_scale = w->layer.q_scale;
    a.k_scale = w->layer.k_scale;
    a.v_scale = w->layer.v_scale;
    a.k_scales = w->layer.k_scales;
    a.v_scales = w->layer.v_scales;
    a.use_output_scale = w->given.use_output_scale;
    a.output_scale = w->given.output_scale;
    return a;
}

octavo_attention_backend *backend_create(const backend_world *w) {
    octavo_attention_backend *backend = NULL;
    octavo_error error;
    if (octavo_attention_backend_create(&backend, backend_context, &w->options, &error) !=
        OCTAVO_OK)
        fail_msg("%s", error.message);
    return backend;
}

void backend_bind(octavo_attention_backend *backend, const char *name, const octavo_array *cache,
                  octavo_kv_layout layout) {
    octavo_error error;
    const int64_t page_size = layout == OCTAVO_KV_COLUMNS ? PAGE : 0;
    if (octavo_attention_backend_bind(backend, name, cache, layout, page_size, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
}

void backend_forward(octavo_attention_backend *backend, backend_world *w) {
    octavo_error error;
    if (octavo_attention_backend_forward(backend, &w->layer, &w->given, &w->metadata, &error) !=
        OCTAVO_OK)
        fail_msg("%s", error.message);
}

void backend_run_directly(const octavo_attention_args *args) {
    octavo_error error;
    if (octavo_ragged_paged_attention(backend_context, args, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
}

bool backend_is_constant(const uint8_t *data, size_t bytes) {
    for (size_t i = 1; i < bytes; i++) {
        if (data[i] != data[0]) return false;
    }
    return true;
}

void backend_check_equal(const backend_world *w, const char *what) {
    const size_t bytes = (size_t)(T * HQ * D) * octavo_dtype_size(w->given.output.dtype);
    if (memcmp(w->output, w->want, bytes) != 0) fail_msg("%s: output", what);
    if (memcmp(w->cache, w->same, sizeof w->cache) != 0) fail_msg("%s: cache", what);
    assert_false(backend_is_constant(w->output, bytes));
}

/* One call with the backend, one without. */
void backend_compare(backend_world *w, const char *what) {
    octavo_attention_backend *backend = backend_create(w);
    backend_bind(backend, w->layer.name, &w->kv_cache, w->layout);
    memset(w->output, 0x5a, sizeof w->output);
    memset(w->want, 0xa5, sizeof w->want);
    backend_forward(backend, w);
    const octavo_attention_args args = backend_direct_args(w);
    backend_run_directly(&args);
    backend_check_equal(w, what);
    octavo_attention_backend_destroy(&backend);
    assert_null(backend);
}

int backend_context_make(void **state) {
    (void)state;
    backend_context = rpa_context(NULL, 2);
    return 0;
}

int backend_context_free(void **state) {
    (void)state;
    octavo_attention_context_destroy(&backend_context);
    return 0;
}
