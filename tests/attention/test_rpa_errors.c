/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of octavo_attention_check, one broken at a time, from arguments that are right. Each
 * must be refused with its status and a message that names the culprit, and neither cache nor
 * output may have been touched.
 */
#include "../unit.h"
#include "rpa_context.h"

#include <stdio.h>
#include <string.h>

enum { T = 6, HQ = 4, HKV = 2, D = 8, P = 5, PAGE = 3, S = 3, ROW = 2, LANES = 128 };

typedef struct world {
    octavo_attention_args args;
    float queries[T * HQ * D], output[T * HQ * D], keys[T * HKV * D], values[T * HKV * D];
    float cache[P * PAGE * 2 * HKV * LANES], sink[HQ];
    int32_t kv_lens[S], tables[S * ROW], starts[S + 1], key_starts[S + 1], kinds[3];
} world;

#define ARRAY(data, dtype, ...)                                                                    \
    octavo_array_dense(data, dtype, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                       (const int64_t[]){__VA_ARGS__})

static void make(world *w) {
    memset(w, 0, sizeof *w);
    memset(w->output, 0x7b, sizeof w->output);
    memset(w->cache, 0x7b, sizeof w->cache);
    memcpy(w->kv_lens, (int32_t[]){5, 2, -7}, sizeof w->kv_lens);
    memcpy(w->tables, (int32_t[]){0, 1, 3, -9, -9, -9}, sizeof w->tables);
    memcpy(w->starts, (int32_t[]){0, 3, 5, -7}, sizeof w->starts);
    memcpy(w->kinds, (int32_t[]){0, 0, 2}, sizeof w->kinds);
    octavo_attention_args *a = &w->args;
    octavo_attention_args_init(a);
    a->queries = ARRAY(w->queries, OCTAVO_DTYPE_F32, T, HQ, D);
    a->output = ARRAY(w->output, OCTAVO_DTYPE_F32, T, HQ, D);
    a->keys = ARRAY(w->keys, OCTAVO_DTYPE_F32, T, HKV, D);
    a->values = ARRAY(w->values, OCTAVO_DTYPE_F32, T, HKV, D);
    a->kv_cache = ARRAY(w->cache, OCTAVO_DTYPE_F32, P, PAGE, 2 * HKV, 1, LANES);
    a->attention_sink = ARRAY(w->sink, OCTAVO_DTYPE_F32, HQ);
    a->kv_lens = ARRAY(w->kv_lens, OCTAVO_DTYPE_I32, S);
    a->block_tables = ARRAY(w->tables, OCTAVO_DTYPE_I32, S * ROW);
    a->query_start_loc = ARRAY(w->starts, OCTAVO_DTYPE_I32, S + 1);
    a->distribution = ARRAY(w->kinds, OCTAVO_DTYPE_I32, 3);
}

static void narrow_cache(world *w) {
    w->args.kv_cache = ARRAY(w->cache, OCTAVO_DTYPE_INT8, P, PAGE, HKV / 2, 4, LANES);
}

static void cross(world *w) {
    w->args.type = OCTAVO_ATTENTION_ENCODER_DECODER;
    memcpy(w->key_starts, (int32_t[]){0, 3, 5, -7}, sizeof w->key_starts);
    w->args.key_start_loc = ARRAY(w->key_starts, OCTAVO_DTYPE_I32, S + 1);
}

static void columns(world *w) {
    int64_t page = octavo_attention_page_elements(OCTAVO_DTYPE_F32, PAGE, HKV, D, D, false);
    w->args.layout = OCTAVO_KV_COLUMNS;
    w->args.page_size = PAGE;
    w->args.kv_cache = ARRAY(w->cache, OCTAVO_DTYPE_F32, P, page);
}

typedef struct broken {
    const char *culprit; /* as the message names it */
    octavo_status status;
    void (*breaks)(world *w);
} broken;

#define BREAK(name, statement)                                                                     \
    static void name(world *w) {                                                                   \
        statement;                                                                                 \
    }

BREAK(not_initialised, w->args.size = 0)
BREAK(queries_2d, w->args.queries.n_axes = 2)
BREAK(queries_null, w->args.queries.data = NULL)
BREAK(queries_negative, w->args.queries.extents[1] = -4)
BREAK(queries_huge, w->args.queries.extents[0] = INT64_MAX / 2)
BREAK(queries_type, w->args.queries.dtype = OCTAVO_DTYPE_FP8_E4M3)
BREAK(queries_no_type, w->args.queries.dtype = (octavo_dtype)99)
BREAK(queries_stride, w->args.queries.strides[2] = 2; w->args.queries.strides[0] = 64)
BREAK(queries_far, w->args.queries.strides[0] = INT64_MIN; w->args.queries.strides[2] = 1)
BREAK(heads_odd, w->args.queries.extents[1] = 3; w->args.output.extents[1] = 3)
BREAK(heads_none, w->args.queries.extents[1] = 0; w->args.output.extents[1] = 0)
BREAK(keys_4d, w->args.keys.n_axes = 4)
BREAK(keys_null, w->args.keys.data = NULL)
BREAK(keys_rows, w->args.keys.extents[0] = w->args.values.extents[0] = T - 1)
BREAK(keys_width, w->args.keys.extents[2] = w->args.values.extents[2] = D - 1)
BREAK(keys_type, w->args.keys.dtype = OCTAVO_DTYPE_F16)
BREAK(keys_heads, w->args.keys.extents[1] = w->args.values.extents[1] = 0)
BREAK(values_shape, w->args.values.extents[1] = 1)
BREAK(values_type, w->args.values.dtype = OCTAVO_DTYPE_BF16)
BREAK(width_zero, w->args.queries.extents[2] = w->args.keys.extents[2] = w->args.values.extents[2] =
                      w->args.output.extents[2] = 0)
BREAK(width_large, w->args.queries.extents[2] = w->args.keys.extents[2] =
                       w->args.values.extents[2] = w->args.output.extents[2] = 513)
BREAK(cache_4d, w->args.kv_cache.n_axes = 4)
BREAK(cache_null, w->args.kv_cache.data = NULL)
BREAK(cache_words, w->args.kv_cache.extents[2] = HKV)
BREAK(cache_packing, w->args.kv_cache.extents[3] = 2)
BREAK(cache_lanes, w->args.kv_cache.extents[4] = D)
BREAK(cache_no_page, w->args.kv_cache.extents[1] = 0)
BREAK(cache_type, w->args.kv_cache.dtype = OCTAVO_DTYPE_FP8_E5M2)
BREAK(cache_int8, w->args.kv_cache.dtype = OCTAVO_DTYPE_INT8)
BREAK(cache_i32, w->args.kv_cache.dtype = OCTAVO_DTYPE_I32)
BREAK(cache_stride, memcpy(w->args.kv_cache.strides, (int64_t[]){4096, 1024, 256, 128, 1}, 40))
BREAK(cache_overlap, memcpy(w->args.kv_cache.strides, (int64_t[]){512, 512, 128, 128, 1}, 40))
BREAK(output_2d, w->args.output.n_axes = 2)
BREAK(output_null, w->args.output.data = NULL)
BREAK(output_shape, w->args.output.extents[0] = T - 1)
BREAK(output_type, w->args.output.dtype = OCTAVO_DTYPE_F16)
BREAK(output_overlap, memcpy(w->args.output.strides, (int64_t[]){16, 8, 1}, 24))
BREAK(window_zero, w->args.use_sliding_window = true; w->args.sliding_window = 0)
BREAK(window_negative, w->args.use_sliding_window = true; w->args.sliding_window = -1)
BREAK(cap_zero, w->args.use_logits_soft_cap = true; w->args.logits_soft_cap = 0.0)
BREAK(sink_length, w->args.attention_sink.extents[0] = HKV)
BREAK(sink_type, w->args.attention_sink.dtype = OCTAVO_DTYPE_F16)
BREAK(sink_2d, w->args.attention_sink.n_axes = 2)
BREAK(lens_2d, w->args.kv_lens.n_axes = 2)
BREAK(lens_type, w->args.kv_lens.dtype = OCTAVO_DTYPE_F32)
BREAK(lens_none, w->args.kv_lens.extents[0] = 0)
BREAK(lens_short, w->kv_lens[1] = 1)
BREAK(tables_type, w->args.block_tables.dtype = OCTAVO_DTYPE_F32)
BREAK(tables_odd, w->args.block_tables.extents[0] = S * ROW - 1)
BREAK(tables_null, w->args.block_tables.data = NULL)
BREAK(tables_stride, w->args.block_tables.strides[0] = 2)
BREAK(tables_short, w->kv_lens[0] = ROW * PAGE + 1)
BREAK(page_negative, w->tables[1] = -1)
BREAK(page_large, w->tables[2] = P)
BREAK(starts_length, w->args.query_start_loc.extents[0] = S)
BREAK(starts_negative, w->starts[0] = -1)
BREAK(starts_descend, w->starts[2] = 2)
BREAK(starts_far, w->starts[2] = T + 1)
BREAK(kinds_length, w->args.distribution.extents[0] = 2)
BREAK(kinds_negative, w->kinds[0] = -1)
BREAK(kinds_first, w->kinds[0] = 1)
BREAK(kinds_second, w->kinds[1] = 3)
BREAK(kinds_many, w->kinds[2] = S + 1)

/* --- beyond the published contract --- */

BREAK(alibi_length, w->args.alibi_slopes = ARRAY(w->sink, OCTAVO_DTYPE_F32, HKV))
BREAK(alibi_type, w->args.alibi_slopes = ARRAY(w->sink, OCTAVO_DTYPE_I32, HQ))
BREAK(alibi_flat, w->args.alibi_slopes.data = w->sink)
BREAK(k_scales_length, w->args.k_scales = ARRAY(w->sink, OCTAVO_DTYPE_F32, HQ))
BREAK(v_scales_null, w->args.v_scales = ARRAY(NULL, OCTAVO_DTYPE_F32, HKV))
BREAK(type_none, w->args.type = (octavo_attention_type)3)
BREAK(precision_none, w->args.precision = (octavo_attention_precision)2)
BREAK(layout_none, w->args.layout = (octavo_kv_layout)2)
BREAK(chunk_negative, w->args.chunk_size = -1)
BREAK(output_scale_type, w->args.use_output_scale = true)
BREAK(output_scale_zero, w->args.use_output_scale = true; w->args.output_scale = 0.0;
      w->args.output.dtype = OCTAVO_DTYPE_INT8)
BREAK(output_narrow, w->args.output.dtype = OCTAVO_DTYPE_FP8_E4M3)
BREAK(k_scale_zero, w->args.use_k_scale = w->args.use_v_scale = true; w->args.k_scale = 0.0;
      narrow_cache(w))
BREAK(k_scales_zero, w->args.use_v_scale = true; narrow_cache(w);
      w->args.k_scales = ARRAY(w->sink, OCTAVO_DTYPE_F32, HKV))
BREAK(q_scale_zero, w->args.use_q_scale = true; w->args.q_scale = 1e-60)
BREAK(queries_unaligned, w->args.queries.data = (char *)w->queries + 2)
BREAK(tables_unaligned, w->args.block_tables.data = (char *)w->tables + 1)
BREAK(columns_unaligned, columns(w); w->args.kv_cache.dtype = OCTAVO_DTYPE_BF16;
      w->args.keys.dtype = w->args.values.dtype = OCTAVO_DTYPE_BF16;
      w->args.kv_cache.extents[1] = octavo_attention_page_elements(OCTAVO_DTYPE_BF16, PAGE, HKV, D,
                                                                   D, false);
      w->args.kv_cache.data = (char *)w->cache + 2)
BREAK(scale_missing, w->args.use_k_scale = true; narrow_cache(w))
BREAK(other_type, w->args.use_k_scale = w->args.use_v_scale = true; narrow_cache(w);
      w->args.keys.dtype = w->args.values.dtype = OCTAVO_DTYPE_BF16)
BREAK(cross_window, cross(w); w->args.use_sliding_window = true; w->args.sliding_window = 5)
BREAK(cross_alibi, cross(w); w->args.alibi_slopes = ARRAY(w->sink, OCTAVO_DTYPE_F32, HQ))
BREAK(cross_chunk, cross(w); w->args.chunk_size = 4)
BREAK(cross_descend, cross(w); w->starts[S] = 4; w->key_starts[2] = 0)
BREAK(cross_far, cross(w); w->key_starts[2] = T + 1; w->kv_lens[1] = 6; w->tables[3] = 0)
BREAK(cross_negative, cross(w); w->key_starts[0] = -1)
BREAK(cross_short, cross(w); w->kv_lens[0] = 1)
BREAK(cross_length, cross(w); w->args.key_start_loc.extents[0] = S)
BREAK(cross_axes, cross(w); w->args.key_start_loc = (octavo_array){.n_axes = -1})
BREAK(cross_type, cross(w); w->args.key_start_loc.dtype = OCTAVO_DTYPE_F32)
BREAK(keys_of_another, cross(w); w->args.type = OCTAVO_ATTENTION_DECODER)
BREAK(tuning_chunk, w->args.chunk_prefill_size = -1)
BREAK(tuning_pages, w->args.num_kv_pages_per_block = -2)
BREAK(tuning_queries, w->args.num_queries_per_block = INT64_MIN)
BREAK(tuning_scratch, w->args.vmem_limit_bytes = 100)
BREAK(rows_page_size, w->args.page_size = PAGE + 1)
BREAK(rows_shared, w->args.value_in_key = true)
BREAK(rows_value_dim, w->args.value_dim = 4)
BREAK(columns_5d, w->args.layout = OCTAVO_KV_COLUMNS)
BREAK(columns_page_size, columns(w); w->args.page_size = 0)
BREAK(columns_page_huge, columns(w); w->args.page_size = INT64_MAX)
BREAK(columns_elements, columns(w); w->args.kv_cache.extents[1]--)
BREAK(columns_overlap, columns(w); w->args.kv_cache.strides[0] = 5; w->args.kv_cache.strides[1] = 1)
BREAK(columns_values, columns(w); w->args.value_in_key = true)
BREAK(columns_value_dim, columns(w); w->args.value_in_key = true;
      w->args.values = (octavo_array){0}; w->args.value_dim = D + 1)
BREAK(columns_heads, columns(w); w->args.values.extents[1] = 1)
BREAK(columns_output, columns(w); w->args.values.extents[2] = D - 1;
      w->args.kv_cache.extents[1] = octavo_attention_page_elements(OCTAVO_DTYPE_F32, PAGE, HKV, D,
                                                                   D - 1, false))

static const broken cases[] = {
    {"alibi_slopes", OCTAVO_ERROR_INVALID, alibi_length},
    {"alibi_slopes", OCTAVO_ERROR_INVALID, alibi_type},
    {"alibi_slopes", OCTAVO_ERROR_INVALID, alibi_flat},
    {"k_scales", OCTAVO_ERROR_INVALID, k_scales_length},
    {"v_scales", OCTAVO_ERROR_INVALID, v_scales_null},
    {"type", OCTAVO_ERROR_INVALID, type_none},
    {"precision", OCTAVO_ERROR_INVALID, precision_none},
    {"layout", OCTAVO_ERROR_INVALID, layout_none},
    {"chunk_size", OCTAVO_ERROR_INVALID, chunk_negative},
    {"output", OCTAVO_ERROR_INVALID, output_scale_type},
    {"output_scale", OCTAVO_ERROR_INVALID, output_scale_zero},
    {"output", OCTAVO_ERROR_INVALID, output_narrow},
    {"k_scale", OCTAVO_ERROR_INVALID, k_scale_zero},
    {"k_scales", OCTAVO_ERROR_INVALID, k_scales_zero},
    {"q_scale", OCTAVO_ERROR_INVALID, q_scale_zero},
    {"queries", OCTAVO_ERROR_INVALID, queries_unaligned},
    {"block_tables", OCTAVO_ERROR_INVALID, tables_unaligned},
    {"kv_cache", OCTAVO_ERROR_INVALID, columns_unaligned},
    {"keys", OCTAVO_ERROR_INVALID, scale_missing},
    {"keys", OCTAVO_ERROR_INVALID, other_type},
    {"type", OCTAVO_ERROR_INVALID, cross_window},
    {"type", OCTAVO_ERROR_INVALID, cross_alibi},
    {"type", OCTAVO_ERROR_INVALID, cross_chunk},
    {"key_start_loc): sequence 1", OCTAVO_ERROR_INVALID, cross_descend},
    {"key_start_loc", OCTAVO_ERROR_INVALID, cross_far},
    {"key_start_loc", OCTAVO_ERROR_INVALID, cross_negative},
    {"kv_lens): sequence 0", OCTAVO_ERROR_INVALID, cross_short},
    {"key_start_loc", OCTAVO_ERROR_INVALID, cross_length},
    {"key_start_loc", OCTAVO_ERROR_INVALID, cross_axes},
    {"key_start_loc", OCTAVO_ERROR_INVALID, cross_type},
    {"key_start_loc", OCTAVO_ERROR_INVALID, keys_of_another},
    {"chunk_prefill_size", OCTAVO_ERROR_INVALID, tuning_chunk},
    {"num_kv_pages_per_block", OCTAVO_ERROR_INVALID, tuning_pages},
    {"num_queries_per_block", OCTAVO_ERROR_INVALID, tuning_queries},
    {"vmem_limit_bytes", OCTAVO_ERROR_INVALID, tuning_scratch},
    {"page_size", OCTAVO_ERROR_INVALID, rows_page_size},
    {"value_in_key", OCTAVO_ERROR_INVALID, rows_shared},
    {"value_dim", OCTAVO_ERROR_INVALID, rows_value_dim},
    {"kv_cache", OCTAVO_ERROR_INVALID, columns_5d},
    {"page_size", OCTAVO_ERROR_INVALID, columns_page_size},
    {"page_size", OCTAVO_ERROR_INVALID, columns_page_huge},
    {"kv_cache", OCTAVO_ERROR_INVALID, columns_elements},
    {"kv_cache", OCTAVO_ERROR_INVALID, columns_overlap},
    {"values", OCTAVO_ERROR_INVALID, columns_values},
    {"value_dim", OCTAVO_ERROR_INVALID, columns_value_dim},
    {"values", OCTAVO_ERROR_INVALID, columns_heads},
    {"output", OCTAVO_ERROR_INVALID, columns_output},
    {"args", OCTAVO_ERROR_INVALID, not_initialised},
    {"queries", OCTAVO_ERROR_INVALID, queries_2d},
    {"queries", OCTAVO_ERROR_INVALID, queries_null},
    {"queries", OCTAVO_ERROR_INVALID, queries_negative},
    {"queries", OCTAVO_ERROR_LIMIT, queries_huge},
    {"queries): dtype fp8_e4m3", OCTAVO_ERROR_INVALID, queries_type},
    {"queries", OCTAVO_ERROR_INVALID, queries_no_type},
    {"queries", OCTAVO_ERROR_INVALID, queries_stride},
    {"queries", OCTAVO_ERROR_LIMIT, queries_far},
    {"queries", OCTAVO_ERROR_INVALID, heads_odd},
    {"queries", OCTAVO_ERROR_INVALID, heads_none},
    {"keys", OCTAVO_ERROR_INVALID, keys_4d},
    {"keys", OCTAVO_ERROR_INVALID, keys_null},
    {"keys", OCTAVO_ERROR_INVALID, keys_rows},
    {"keys", OCTAVO_ERROR_INVALID, keys_width},
    {"keys", OCTAVO_ERROR_INVALID, keys_type},
    {"queries", OCTAVO_ERROR_INVALID, keys_heads},
    {"values", OCTAVO_ERROR_INVALID, values_shape},
    {"values", OCTAVO_ERROR_INVALID, values_type},
    {"queries", OCTAVO_ERROR_INVALID, width_zero},
    {"queries", OCTAVO_ERROR_UNSUPPORTED, width_large},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_4d},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_null},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_words},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_packing},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_lanes},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_no_page},
    {"keys): dtype is f32, but the cache's is fp8_e5m2", OCTAVO_ERROR_INVALID, cache_type},
    {"keys): dtype is f32, but the cache's is int8", OCTAVO_ERROR_INVALID, cache_int8},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_i32},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_stride},
    {"kv_cache", OCTAVO_ERROR_INVALID, cache_overlap},
    {"output", OCTAVO_ERROR_INVALID, output_2d},
    {"output", OCTAVO_ERROR_INVALID, output_null},
    {"output", OCTAVO_ERROR_INVALID, output_shape},
    {"output", OCTAVO_ERROR_INVALID, output_type},
    {"output", OCTAVO_ERROR_INVALID, output_overlap},
    {"sliding_window", OCTAVO_ERROR_INVALID, window_zero},
    {"sliding_window", OCTAVO_ERROR_INVALID, window_negative},
    {"logits_soft_cap", OCTAVO_ERROR_INVALID, cap_zero},
    {"attention_sink", OCTAVO_ERROR_INVALID, sink_length},
    {"attention_sink", OCTAVO_ERROR_INVALID, sink_type},
    {"attention_sink", OCTAVO_ERROR_INVALID, sink_2d},
    {"kv_lens", OCTAVO_ERROR_INVALID, lens_2d},
    {"kv_lens", OCTAVO_ERROR_INVALID, lens_type},
    {"kv_lens", OCTAVO_ERROR_INVALID, lens_none},
    {"kv_lens): sequence 1", OCTAVO_ERROR_INVALID, lens_short},
    {"block_tables", OCTAVO_ERROR_INVALID, tables_type},
    {"block_tables", OCTAVO_ERROR_INVALID, tables_odd},
    {"block_tables", OCTAVO_ERROR_INVALID, tables_null},
    {"block_tables", OCTAVO_ERROR_INVALID, tables_stride},
    {"block_tables): sequence 0", OCTAVO_ERROR_INVALID, tables_short},
    {"block_tables): entry 1 of sequence 0", OCTAVO_ERROR_INVALID, page_negative},
    {"block_tables): entry 0 of sequence 1", OCTAVO_ERROR_INVALID, page_large},
    {"query_start_loc", OCTAVO_ERROR_INVALID, starts_length},
    {"query_start_loc", OCTAVO_ERROR_INVALID, starts_negative},
    {"query_start_loc): sequence 1", OCTAVO_ERROR_INVALID, starts_descend},
    {"query_start_loc", OCTAVO_ERROR_INVALID, starts_far},
    {"distribution", OCTAVO_ERROR_INVALID, kinds_length},
    {"distribution", OCTAVO_ERROR_INVALID, kinds_negative},
    {"distribution", OCTAVO_ERROR_INVALID, kinds_first},
    {"distribution", OCTAVO_ERROR_INVALID, kinds_second},
    {"distribution", OCTAVO_ERROR_INVALID, kinds_many},
};

static bool is_filled(const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (((const uint8_t *)data)[i] != 0x7b) return false;
    }
    return true;
}

static void what_is_right_is_accepted(void **state) {
    (void)state;
    static world w;
    make(&w);
    w.kinds[0] = 0;
    octavo_error error;
    octavo_attention_context *context = rpa_context(NULL, 2);
    if (octavo_ragged_paged_attention(context, &w.args, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    octavo_attention_context_destroy(&context);
}

static void what_is_wrong_is_refused(void **state) {
    (void)state;
    static world w;
    octavo_attention_context *context = rpa_context(NULL, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make(&w);
        cases[i].breaks(&w);
        octavo_error error = {.message = ""};
        octavo_status status = octavo_ragged_paged_attention(context, &w.args, &error);
        char start[120];
        snprintf(start, sizeof start, "ragged paged attention (%s", cases[i].culprit);
        if (status != cases[i].status || strncmp(error.message, start, strlen(start)) != 0)
            fail_msg("case %d (%s): %s, %s", (int)i, cases[i].culprit, octavo_status_name(status),
                     error.message);
        size_t bytes = 123;
        octavo_status same = octavo_attention_scratch_bytes(&w.args, 1, &bytes, NULL);
        assert_int_equal(same, status);
        assert_int_equal(bytes, 123);
        assert_true(is_filled(w.output, sizeof w.output) && is_filled(w.cache, sizeof w.cache));
    }
    octavo_attention_context_destroy(&context);
}

static void contexts_refuse_nonsense(void **state) {
    (void)state;
    octavo_attention_context *context = NULL;
    octavo_attention_options options;
    octavo_error error;
    octavo_attention_options_init(&options);
    options.isa = "sse9";
    assert_int_equal(octavo_attention_context_create(&context, &options, &error),
                     OCTAVO_ERROR_INVALID);
    octavo_attention_options_init(&options);
    options.n_threads = -1;
    assert_int_equal(octavo_attention_context_create(&context, &options, &error),
                     OCTAVO_ERROR_INVALID);
    options.size = 0;
    assert_int_equal(octavo_attention_context_create(&context, &options, &error),
                     OCTAVO_ERROR_INVALID);
    assert_null(context);
    assert_int_equal(octavo_attention_context_create(NULL, NULL, &error), OCTAVO_ERROR_INVALID);
    octavo_attention_context_destroy(&context);
    static world w;
    make(&w);
    assert_int_equal(octavo_ragged_paged_attention(NULL, &w.args, &error), OCTAVO_ERROR_INVALID);
}

static void contexts_say_what_they_are(void **state) {
    (void)state;
    for (int i = 0; rpa_level(i) != NULL; i++) {
        octavo_attention_context *context = rpa_context(rpa_level(i), 1 + i);
        assert_string_equal(octavo_attention_context_isa(context), rpa_level(i));
        assert_int_equal(octavo_attention_context_threads(context), 1 + i);
        octavo_attention_context_destroy(&context);
    }
    octavo_attention_context *context = rpa_context(NULL, 0);
    const int32_t all = octavo_attention_context_threads(context);
    octavo_attention_context_destroy(&context);
    static world w;
    make(&w);
    size_t with_all = 0, by_default = 1;
    assert_int_equal(octavo_attention_scratch_bytes(&w.args, all, &with_all, NULL), OCTAVO_OK);
    assert_int_equal(octavo_attention_scratch_bytes(&w.args, 0, &by_default, NULL), OCTAVO_OK);
    assert_int_equal(by_default, with_all);
    assert_int_equal(octavo_attention_scratch_bytes(&w.args, -1, &by_default, NULL),
                     OCTAVO_ERROR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_is_accepted),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(contexts_refuse_nonsense),
        cmocka_unit_test(contexts_say_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
