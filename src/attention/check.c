/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that can be wrong with the arguments of octavo_ragged_paged_attention. Nothing behind
 * this check looks for errors, so what it lets through must be safe to compute.
 */
#include "attention/check_array.h"
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"

#include "octavo/attention.h"

#include <string.h>

#define CALL OCTAVO_ATTENTION_CALL

/* Keys in columns are words of so many bytes. */
enum { COLUMN_WORD = 4 };

static bool is_query_type(octavo_dtype dtype) {
    return dtype == OCTAVO_DTYPE_F32 || dtype == OCTAVO_DTYPE_F16 || dtype == OCTAVO_DTYPE_BF16;
}

static bool is_narrow_type(octavo_dtype dtype) {
    return dtype == OCTAVO_DTYPE_FP8_E4M3 || dtype == OCTAVO_DTYPE_FP8_E5M2 ||
           dtype == OCTAVO_DTYPE_INT8;
}

static octavo_status check_number_type(const octavo_array *array, const char *name, bool may_narrow,
                                       octavo_error *error) {
    if (is_query_type(array->dtype) || (may_narrow && is_narrow_type(array->dtype)))
        return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       CALL " (%s): dtype %s (%d); it must be f32, f16%s", name,
                       octavo_dtype_name(array->dtype), (int)array->dtype,
                       may_narrow ? ", bf16, fp8_e4m3, fp8_e5m2 or int8" : " or bf16");
}

/* Like the published backend: keys of the queries' type are quantised where their scales are given.
 */
static bool quantises_new(const octavo_attention_args *args) {
    return args->keys.dtype != args->kv_cache.dtype && args->keys.dtype == args->queries.dtype &&
           (args->use_k_scale || args->k_scales.n_axes > 0) &&
           (args->use_v_scale || args->v_scales.n_axes > 0);
}

/* Lanes of a value. */
static int64_t value_dim_of(const octavo_attention_args *args) {
    return args->value_in_key ? args->value_dim : args->values.extents[2];
}

/* --- what is known before the index arrays are read --- */

static octavo_status check_heads(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *q = &args->queries, *k = &args->keys;
    const bool may_be_wide = args->layout == OCTAVO_KV_COLUMNS;
    const int widest = may_be_wide ? OCTAVO_ATTENTION_MAX_KEY_DIM : OCTAVO_ATTENTION_MAX_DIM;
    if (q->extents[0] != k->extents[0] && args->type != OCTAVO_ATTENTION_ENCODER_DECODER)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (keys): %lld rows, but queries have %lld; both must be T",
                           (long long)k->extents[0], (long long)q->extents[0]);
    if (q->extents[2] != k->extents[2])
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (keys): head width %lld, but queries have %lld; both must be D",
                           (long long)k->extents[2], (long long)q->extents[2]);
    if (k->extents[1] < 1 || q->extents[1] < 1 || q->extents[1] % k->extents[1] != 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (queries): %lld query heads for %lld kv heads; the first must be "
                                "a multiple of the second",
                           (long long)q->extents[1], (long long)k->extents[1]);
    if (q->extents[2] < 1 || value_dim_of(args) < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (queries): head width %lld and value width %lld; both must be at "
                                "least 1",
                           (long long)q->extents[2], (long long)value_dim_of(args));
    if (q->extents[2] > widest || value_dim_of(args) > OCTAVO_ATTENTION_MAX_DIM)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           CALL " (queries): head width %lld and value width %lld are not "
                                "supported; the widest here are %d and %d",
                           (long long)q->extents[2], (long long)value_dim_of(args), widest,
                           OCTAVO_ATTENTION_MAX_DIM);
    if (q->extents[0] > INT32_MAX || k->extents[0] > INT32_MAX || q->extents[1] > INT16_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           CALL " (queries): %s; at most %d rows and %d heads are possible",
                           attention_shape_of(q).text, INT32_MAX, INT16_MAX);
    return OCTAVO_OK;
}

static octavo_status check_values(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *k = &args->keys, *v = &args->values;
    if (args->value_in_key) {
        if (args->layout != OCTAVO_KV_COLUMNS)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (value_in_key): needs layout = OCTAVO_KV_COLUMNS");
        if (v->n_axes != 0)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (values): given beside value_in_key; leave them out");
        if (args->value_dim < 1 || args->value_dim > k->extents[2])
            return octavo_fail(
                error, OCTAVO_ERROR_INVALID,
                CALL " (value_dim): %lld of %lld lanes of a key; it must be 1 to %lld",
                (long long)args->value_dim, (long long)k->extents[2], (long long)k->extents[2]);
        return OCTAVO_OK;
    }
    if (args->value_dim != 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (value_dim): %lld without value_in_key; the values' shape tells",
                           (long long)args->value_dim);
    octavo_status status =
        attention_check_array(v, "values", 3, "[T, Hkv, Dv]", args->update_kv_cache, error);
    if (status != OCTAVO_OK) return status;
    const int32_t n_same = args->layout == OCTAVO_KV_COLUMNS ? 2 : 3;
    if (memcmp(k->extents, v->extents, (size_t)n_same * sizeof *k->extents) != 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (values): shape %s, but keys are %s; they must be the same%s",
                           attention_shape_of(v).text, attention_shape_of(k).text,
                           n_same == 2 ? " but for the last axis" : "");
    return OCTAVO_OK;
}

static octavo_status check_new_tokens(const octavo_attention_args *args, octavo_error *error) {
    octavo_status status =
        attention_check_array(&args->keys, "keys", 3, "[T, Hkv, D]", args->update_kv_cache, error);
    if (status == OCTAVO_OK) status = check_values(args, error);
    if (status != OCTAVO_OK) return status;
    if (args->keys.dtype != args->kv_cache.dtype && !quantises_new(args))
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            CALL " (keys): dtype is %s, but the cache's is %s; convert them first, or "
                 "give keys of the queries' dtype with both k_scale and v_scale",
            octavo_dtype_name(args->keys.dtype), octavo_dtype_name(args->kv_cache.dtype));
    if (!args->value_in_key && args->values.dtype != args->keys.dtype)
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID, CALL " (values): dtype is %s, but the keys' is %s",
            octavo_dtype_name(args->values.dtype), octavo_dtype_name(args->keys.dtype));
    return check_heads(args, error);
}

static octavo_status check_columns(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *cache = &args->kv_cache;
    if (args->page_size < 1 || args->page_size > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (page_size): %lld; with OCTAVO_KV_COLUMNS it must be at least 1",
                           (long long)args->page_size);
    const int64_t elements = octavo_attention_page_elements(
        cache->dtype, args->page_size, args->keys.extents[1], args->keys.extents[2],
        value_dim_of(args), args->value_in_key);
    if (elements == 0)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           CALL " (page_size): a page of %lld slots does not fit the address space",
                           (long long)args->page_size);
    if (cache->extents[1] != elements)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_cache): %lld elements a page; it must be [P, %lld] (see "
                                "octavo_attention_page_elements)",
                           (long long)cache->extents[1], (long long)elements);
    const size_t size = octavo_dtype_size(cache->dtype);
    const size_t page_stride = (size_t)attention_stride_of(cache, 0) * size;
    if ((uintptr_t)cache->data % COLUMN_WORD != 0 ||
        (cache->extents[0] > 1 && page_stride % COLUMN_WORD != 0))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_cache): data at %p, pages %zu bytes apart; with "
                                "OCTAVO_KV_COLUMNS both must be multiples of %d",
                           cache->data, page_stride, COLUMN_WORD);
    return attention_check_written(cache, "kv_cache", error);
}

static octavo_status check_rows(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *cache = &args->kv_cache;
    const octavo_attention_heads heads = {.n_q_heads = (int32_t)args->queries.extents[1],
                                          .n_kv_heads = (int32_t)args->keys.extents[1],
                                          .head_dim = (int32_t)args->queries.extents[2]};
    const int64_t packing = 4 / (int64_t)octavo_dtype_size(cache->dtype);
    const int64_t lanes = octavo_attention_lanes(heads.head_dim);
    const int64_t slot = octavo_attention_slot_elements(&heads, cache->dtype);
    const int64_t words = slot / lanes / packing;
    if (args->page_size != 0 && args->page_size != cache->extents[1])
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (page_size): %lld, but the cache's is %lld; leave it at 0",
                           (long long)args->page_size, (long long)cache->extents[1]);
    if (cache->extents[1] < 1 || cache->extents[2] != words || cache->extents[3] != packing ||
        cache->extents[4] != lanes)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_cache): shape %s; for %d kv heads of width %d and dtype %s "
                                "it must be [P, page_size, %lld, %lld, %lld]",
                           attention_shape_of(cache).text, (int)heads.n_kv_heads,
                           (int)heads.head_dim, octavo_dtype_name(cache->dtype), (long long)words,
                           (long long)packing, (long long)lanes);
    if (cache->extents[1] > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           CALL " (kv_cache): shape %s; the page size is at most %d",
                           attention_shape_of(cache).text, INT32_MAX);
    if ((words > 1 && attention_stride_of(cache, 2) != packing * lanes) ||
        (packing > 1 && attention_stride_of(cache, 3) != lanes))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_cache): strides %lld, %lld of axes 2, 3; a slot must be "
                                "dense: %lld, %lld",
                           (long long)attention_stride_of(cache, 2),
                           (long long)attention_stride_of(cache, 3), (long long)(packing * lanes),
                           (long long)lanes);
    return attention_check_written(cache, "kv_cache", error);
}

static octavo_status check_cache(const octavo_attention_args *args, octavo_error *error) {
    if (args->kv_cache.extents[0] > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           CALL " (kv_cache): shape %s; at most %d pages are possible",
                           attention_shape_of(&args->kv_cache).text, INT32_MAX);
    return args->layout == OCTAVO_KV_COLUMNS ? check_columns(args, error) : check_rows(args, error);
}

static octavo_status check_output(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *output = &args->output, *queries = &args->queries;
    octavo_status status = attention_check_array(output, "output", 3, "[T, Hq, Dv]", true, error);
    if (status != OCTAVO_OK) return status;
    if (output->extents[0] != queries->extents[0] || output->extents[1] != queries->extents[1] ||
        output->extents[2] != value_dim_of(args))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (output): shape %s for queries %s; it must be [T, Hq, %lld]",
                           attention_shape_of(output).text, attention_shape_of(queries).text,
                           (long long)value_dim_of(args));
    if (args->use_output_scale ? !is_narrow_type(output->dtype) : output->dtype != queries->dtype)
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID, CALL " (output): dtype is %s; it must be %s",
            octavo_dtype_name(output->dtype),
            args->use_output_scale ? "fp8_e4m3, fp8_e5m2 or int8 with an output_scale"
                                   : octavo_dtype_name(queries->dtype));
    return attention_check_written(output, "output", error);
}

static octavo_status check_head_arrays(const octavo_attention_args *args, octavo_error *error) {
    const int64_t n_q = args->queries.extents[1], n_kv = args->keys.extents[1];
    octavo_status status =
        attention_check_per_head(&args->attention_sink, "attention_sink", "[Hq]", n_q, error);
    if (status == OCTAVO_OK)
        status = attention_check_per_head(&args->alibi_slopes, "alibi_slopes", "[Hq]", n_q, error);
    if (status == OCTAVO_OK)
        status = attention_check_per_head(&args->k_scales, "k_scales", "[Hkv]", n_kv, error);
    if (status == OCTAVO_OK)
        status = attention_check_per_head(&args->v_scales, "v_scales", "[Hkv]", n_kv, error);
    return status;
}

/* Nor may those for each head be 0 where they divide. Absent: none. */
static octavo_status check_divisors(const octavo_array *scales, const char *name,
                                    octavo_error *error) {
    for (int64_t i = 0; scales->n_axes == 1 && i < scales->extents[0]; i++) {
        if (((const float *)scales->data)[i] == 0.0f)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (%s): that of head %lld is 0, but it divides", name,
                               (long long)i);
    }
    return OCTAVO_OK;
}

/* A scale that something is divided by. */
static octavo_status check_scale(double scale, bool is_used, const char *name,
                                 octavo_error *error) {
    if (!is_used || (float)scale != 0.0f) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       CALL " (%s): %g; it must not be 0, as it divides", name, scale);
}

static octavo_status check_mask(const octavo_attention_args *args, octavo_error *error) {
    if (args->use_sliding_window && args->sliding_window < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (sliding_window): %lld; it must be positive (1 sees only itself)",
                           (long long)args->sliding_window);
    if (args->chunk_size < 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (chunk_size): %lld; it must be positive, or 0 for none",
                           (long long)args->chunk_size);
    if (args->type != OCTAVO_ATTENTION_DECODER && args->type != OCTAVO_ATTENTION_ENCODER &&
        args->type != OCTAVO_ATTENTION_ENCODER_DECODER)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (type): %d; it must be one of octavo_attention_type",
                           (int)args->type);
    if (args->type != OCTAVO_ATTENTION_ENCODER_DECODER) {
        if (args->key_start_loc.n_axes == 0 && args->key_start_loc.data == NULL) return OCTAVO_OK;
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (key_start_loc): only encoder-decoder attention has keys of "
                                "another sequence; leave it out");
    }
    if (args->use_sliding_window || args->chunk_size > 0 || args->alibi_slopes.n_axes > 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (type): encoder-decoder attention has no distances between "
                                "queries and keys; leave sliding_window, chunk_size and "
                                "alibi_slopes out");
    return OCTAVO_OK;
}

static octavo_status check_tuning(const octavo_attention_args *args, octavo_error *error) {
    const int64_t values[] = {args->chunk_prefill_size, args->num_kv_pages_per_block,
                              args->num_queries_per_block, args->vmem_limit_bytes};
    static const char *const names[] = {"chunk_prefill_size", "num_kv_pages_per_block",
                                        "num_queries_per_block", "vmem_limit_bytes"};
    for (size_t i = 0; i < OCTAVO_COUNT(values); i++) {
        if (values[i] < 0)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (%s): %lld; it must be positive, or 0 to leave it to octavo",
                               names[i], (long long)values[i]);
    }
    const octavo_attention_heads heads = {.n_q_heads = (int32_t)args->queries.extents[1],
                                          .n_kv_heads = (int32_t)args->keys.extents[1],
                                          .head_dim = (int32_t)args->queries.extents[2],
                                          .value_dim = (int32_t)value_dim_of(args)};
    const size_t least = octavo_attention_least_scratch(&heads);
    if (args->vmem_limit_bytes > 0 && (uint64_t)args->vmem_limit_bytes < least)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (vmem_limit_bytes): %lld; heads of %d need at least %zu",
                           (long long)args->vmem_limit_bytes, (int)heads.head_dim, least);
    return OCTAVO_OK;
}

static octavo_status check_options(const octavo_attention_args *args, octavo_error *error) {
    /* a cap of either sign is one; it is used as f32 */
    if (args->use_logits_soft_cap && (float)args->logits_soft_cap == 0.0f)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (logits_soft_cap): 0; it must not be 0 (set "
                                "use_logits_soft_cap = false for none)");
    if (args->precision != OCTAVO_ATTENTION_STRICT && args->precision != OCTAVO_ATTENTION_BF16)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (precision): %d; it must be one of octavo_attention_precision",
                           (int)args->precision);
    octavo_status status = check_mask(args, error);
    if (status == OCTAVO_OK) status = check_head_arrays(args, error);
    if (status == OCTAVO_OK)
        status = check_scale(args->output_scale, args->use_output_scale, "output_scale", error);
    if (status == OCTAVO_OK)
        status =
            check_scale(args->k_scale, args->use_k_scale && quantises_new(args), "k_scale", error);
    if (status == OCTAVO_OK)
        status =
            check_scale(args->v_scale, args->use_v_scale && quantises_new(args), "v_scale", error);
    if (status == OCTAVO_OK)
        status = check_scale(args->q_scale, args->use_q_scale, "q_scale", error);
    if (status == OCTAVO_OK && quantises_new(args))
        status = check_divisors(&args->k_scales, "k_scales", error);
    if (status == OCTAVO_OK && quantises_new(args))
        status = check_divisors(&args->v_scales, "v_scales", error);
    if (status == OCTAVO_OK) status = check_tuning(args, error);
    return status;
}

static octavo_status check_index_shapes(const octavo_attention_args *args, octavo_error *error) {
    const int64_t n_seqs = args->kv_lens.extents[0];
    octavo_status status = attention_check_index_array(&args->kv_lens, "kv_lens", "[S]", error);
    if (status == OCTAVO_OK)
        status = attention_check_index_array(&args->block_tables, "block_tables",
                                             "[S * pages_per_seq]", error);
    if (status == OCTAVO_OK)
        status = attention_check_index_array(&args->query_start_loc, "query_start_loc", "[S + 1]",
                                             error);
    if (status == OCTAVO_OK)
        status = attention_check_index_array(&args->distribution, "distribution", "[3]", error);
    if (status != OCTAVO_OK) return status;
    if (n_seqs < 1 || n_seqs >= INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_lens): %lld entries; it must have one for each of at least 1 "
                                "sequence",
                           (long long)n_seqs);
    if (args->block_tables.extents[0] % n_seqs != 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (block_tables): %lld entries for %lld sequences; there must be "
                                "as many for each",
                           (long long)args->block_tables.extents[0], (long long)n_seqs);
    if (args->key_start_loc.n_axes != 0) {
        status =
            attention_check_index_array(&args->key_start_loc, "key_start_loc", "[S + 1]", error);
        if (status != OCTAVO_OK) return status;
        if (args->key_start_loc.extents[0] != n_seqs + 1)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (key_start_loc): %lld entries for %lld sequences; it must "
                                    "have one more",
                               (long long)args->key_start_loc.extents[0], (long long)n_seqs);
    }
    if (args->query_start_loc.extents[0] != n_seqs + 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (query_start_loc): %lld entries for %lld sequences; it must have "
                                "one more",
                           (long long)args->query_start_loc.extents[0], (long long)n_seqs);
    if (args->distribution.extents[0] != 3)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (distribution): %lld entries; it must have 3 (end of decode, end "
                                "of prefill, all)",
                           (long long)args->distribution.extents[0]);
    return OCTAVO_OK;
}

static octavo_status check_static(const octavo_attention_args *args, octavo_error *error) {
    if (args->layout != OCTAVO_KV_ROWS && args->layout != OCTAVO_KV_COLUMNS)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (layout): %d; it must be one of octavo_kv_layout",
                           (int)args->layout);
    octavo_status status =
        attention_check_array(&args->queries, "queries", 3, "[T, Hq, D]", true, error);
    if (status == OCTAVO_OK && args->layout == OCTAVO_KV_ROWS)
        status = attention_check_array(&args->kv_cache, "kv_cache", 5,
                                       "[P, page_size, ceil(2 Hkv / pk), pk, Dp]", true, error);
    else if (status == OCTAVO_OK)
        status = attention_check_array(&args->kv_cache, "kv_cache", 2, "[P, elements of a page]",
                                       true, error);
    if (status == OCTAVO_OK) status = check_number_type(&args->queries, "queries", false, error);
    if (status == OCTAVO_OK) status = check_number_type(&args->kv_cache, "kv_cache", true, error);
    if (status == OCTAVO_OK) status = check_new_tokens(args, error);
    if (status == OCTAVO_OK) status = check_cache(args, error);
    if (status == OCTAVO_OK) status = check_output(args, error);
    if (status == OCTAVO_OK) status = check_options(args, error);
    if (status == OCTAVO_OK) status = check_index_shapes(args, error);
    return status;
}

/* --- what the index arrays say --- */

/* Rows that sequence `seq` has in an array of starts. */
static octavo_status check_starts(const int32_t *starts, const char *name, int64_t seq,
                                  int64_t *count, octavo_error *error) {
    *count = (int64_t)starts[seq + 1] - starts[seq];
    if (*count >= 0) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       CALL " (%s): sequence %lld begins at %d and ends at %d; the entries must "
                            "not descend",
                       name, (long long)seq, (int)starts[seq], (int)starts[seq + 1]);
}

static octavo_status check_sequence(const octavo_attention_args *args, int64_t seq,
                                    octavo_error *error) {
    const bool is_cross = args->type == OCTAVO_ATTENTION_ENCODER_DECODER;
    const int64_t kv_len = ((const int32_t *)args->kv_lens.data)[seq];
    const int64_t page_size =
        args->layout == OCTAVO_KV_COLUMNS ? args->page_size : args->kv_cache.extents[1];
    const int64_t per_seq = args->block_tables.extents[0] / args->kv_lens.extents[0];
    int64_t q_len, new_len = 0;
    octavo_status status =
        check_starts(args->query_start_loc.data, "query_start_loc", seq, &q_len, error);
    if (status == OCTAVO_OK && is_cross && args->key_start_loc.n_axes > 0)
        status = check_starts(args->key_start_loc.data, "key_start_loc", seq, &new_len, error);
    if (status != OCTAVO_OK) return status;
    if (!is_cross) new_len = q_len;
    if (kv_len < 0 || new_len > kv_len)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_lens): sequence %lld has %lld new tokens but a length of "
                                "%lld; the length counts them",
                           (long long)seq, (long long)new_len, (long long)kv_len);
    const int64_t used = (kv_len + page_size - 1) / page_size;
    if (used > per_seq)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (block_tables): sequence %lld of length %lld needs %lld pages of "
                                "%lld, its row has %lld; make the rows longer",
                           (long long)seq, (long long)kv_len, (long long)used, (long long)page_size,
                           (long long)per_seq);
    const int32_t *pages = (const int32_t *)args->block_tables.data + seq * per_seq;
    for (int64_t i = 0; i < used; i++) {
        if (pages[i] < 0 || pages[i] >= args->kv_cache.extents[0])
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (block_tables): entry %lld of sequence %lld is page %d; the "
                                    "cache has pages 0 to %lld",
                               (long long)i, (long long)seq, (int)pages[i],
                               (long long)args->kv_cache.extents[0] - 1);
    }
    return OCTAVO_OK;
}

static octavo_status check_dynamic(const octavo_attention_args *args, octavo_error *error) {
    const int32_t *kinds = args->distribution.data;
    const int32_t *starts = args->query_start_loc.data;
    const int64_t max_seqs = args->kv_lens.extents[0], n_tokens = args->queries.extents[0];
    if (kinds[0] < 0 || kinds[0] > kinds[1] || kinds[1] > kinds[2])
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (distribution): %d, %d, %d; it must ascend from 0", (int)kinds[0],
                           (int)kinds[1], (int)kinds[2]);
    if (kinds[2] > max_seqs)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (distribution): %d sequences, but kv_lens has %lld entries",
                           (int)kinds[2], (long long)max_seqs);
    if (kinds[2] > 0 && starts[0] < 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (query_start_loc): begins at %d; it must be at least 0",
                           (int)starts[0]);
    if (kinds[2] > 0 && starts[kinds[2]] > n_tokens)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (query_start_loc): sequence %d ends at row %d, but queries have "
                                "%lld rows",
                           (int)kinds[2] - 1, (int)starts[kinds[2]], (long long)n_tokens);
    for (int64_t seq = 0; seq < kinds[2]; seq++) {
        octavo_status status = check_sequence(args, seq, error);
        if (status != OCTAVO_OK) return status;
    }
    if (args->key_start_loc.n_axes == 0 || kinds[2] == 0) return OCTAVO_OK;
    const int32_t *keys = args->key_start_loc.data;
    if (keys[0] < 0 || keys[kinds[2]] > args->keys.extents[0])
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (key_start_loc): rows %d to %d; keys have %lld rows",
                           (int)keys[0], (int)keys[kinds[2]], (long long)args->keys.extents[0]);
    return OCTAVO_OK;
}

octavo_status octavo_attention_check(const octavo_attention_args *args, octavo_error *error) {
    if (args == NULL || args->size != sizeof *args)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (args): not initialised; call octavo_attention_args_init first");
    octavo_status status = check_static(args, error);
    if (status == OCTAVO_OK) status = check_dynamic(args, error);
    return status;
}
