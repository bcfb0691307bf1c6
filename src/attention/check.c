/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that can be wrong with the arguments of octavo_ragged_paged_attention. Nothing behind
 * this check looks for errors, so what it lets through must be safe to compute.
 */
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"

#include "octavo/attention.h"

#include <stdio.h>
#include <string.h>

#define CALL "ragged paged attention"

/* Extents as "[3, 4, 5]" for messages. */
typedef struct shape_text {
    char text[OCTAVO_ARRAY_MAX_AXES * 22 + 4];
} shape_text;

static shape_text shape_of(const octavo_array *array) {
    shape_text shape = {"["};
    size_t at = 1;
    for (int32_t i = 0; i < array->n_axes && i < OCTAVO_ARRAY_MAX_AXES; i++)
        at += (size_t)snprintf(shape.text + at, sizeof shape.text - at, "%s%lld", i > 0 ? ", " : "",
                               (long long)array->extents[i]);
    shape.text[at] = ']';
    return shape;
}

static bool is_dense(const octavo_array *array) {
    for (int32_t i = 0; i < array->n_axes; i++) {
        if (array->strides[i] != 0) return false;
    }
    return true;
}

static int64_t stride_of(const octavo_array *array, int32_t axis) {
    if (!is_dense(array)) return array->strides[axis];
    int64_t stride = 1;
    for (int32_t i = array->n_axes - 1; i > axis; i--)
        stride *= array->extents[i];
    return stride;
}

static bool is_empty(const octavo_array *array) {
    for (int32_t i = 0; i < array->n_axes; i++) {
        if (array->extents[i] == 0) return true;
    }
    return false;
}

/* The number of axes, extents that fit the address space, and data. */
static octavo_status check_array(const octavo_array *array, const char *name, int32_t n_axes,
                                 const char *axes, bool needs_data, octavo_error *error) {
    if (array->n_axes != n_axes)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): has %d axes; it must be %s",
                           name, (int)array->n_axes, axes);
    size_t elements = 1, reach = 0;
    for (int32_t i = 0; i < n_axes; i++) {
        if (array->extents[i] < 0)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (%s): extent %lld of axis %d is negative; it must be %s",
                               name, (long long)array->extents[i], (int)i, axes);
        if (!octavo_size_mul(elements, (size_t)array->extents[i], &elements) ||
            elements > INT64_MAX / 8)
            return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                               CALL " (%s): %s does not fit the address space; are the extents "
                                    "right?",
                               name, shape_of(array).text);
    }
    if (elements == 0) return OCTAVO_OK;
    for (int32_t i = 0; i < n_axes; i++) {
        const int64_t stride = array->strides[i];
        size_t step = stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
        if (!octavo_size_mul(step, (size_t)(array->extents[i] - 1), &step) ||
            !octavo_size_add(reach, step, &reach) || reach > INT64_MAX / 8)
            return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                               CALL " (%s): stride %lld of axis %d does not fit the address "
                                    "space; strides are in elements, not bytes",
                               name, (long long)stride, (int)i);
    }
    if (needs_data && array->data == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): data is NULL; it must be %s",
                           name, axes);
    const int32_t last = n_axes - 1;
    if (!is_dense(array) && array->extents[last] > 1 && array->strides[last] != 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (%s): stride %lld of the last axis; it must be 1 (all strides 0 "
                                "mean a dense array)",
                           name, (long long)array->strides[last]);
    return OCTAVO_OK;
}

/* Elements of what is written must not share memory: each stride spans all that is inside it. */
static octavo_status check_written(const octavo_array *array, const char *name,
                                   octavo_error *error) {
    int64_t inside = 1;
    for (int32_t i = array->n_axes - 1; i >= 0 && !is_empty(array); i--) {
        const int64_t stride = stride_of(array, i);
        if (array->extents[i] > 1 && stride < inside)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (%s): stride %lld of axis %d makes elements overlap; it must "
                                    "be at least %lld",
                               name, (long long)stride, (int)i, (long long)inside);
        inside = array->extents[i] > 1 ? stride * array->extents[i] : inside;
    }
    return OCTAVO_OK;
}

static octavo_status check_number_type(const octavo_array *array, const char *name,
                                       octavo_error *error) {
    switch (array->dtype) {
    case OCTAVO_DTYPE_F32:
    case OCTAVO_DTYPE_F16:
    case OCTAVO_DTYPE_BF16:
        return OCTAVO_OK;
    case OCTAVO_DTYPE_FP8_E4M3:
    case OCTAVO_DTYPE_FP8_E5M2:
    case OCTAVO_DTYPE_INT8:
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           CALL " (%s): dtype %s is not supported yet; use f32, f16 or bf16", name,
                           octavo_dtype_name(array->dtype));
    default:
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (%s): dtype %s (%d); it must be f32, f16 or bf16", name,
                           octavo_dtype_name(array->dtype), (int)array->dtype);
    }
}

static octavo_status check_index_array(const octavo_array *array, const char *name,
                                       const char *axes, octavo_error *error) {
    octavo_status status = check_array(array, name, 1, axes, true, error);
    if (status != OCTAVO_OK) return status;
    if (array->dtype != OCTAVO_DTYPE_I32)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): dtype is %s; it must be i32",
                           name, octavo_dtype_name(array->dtype));
    return OCTAVO_OK;
}

static bool same_shape(const octavo_array *a, const octavo_array *b) {
    return memcmp(a->extents, b->extents, (size_t)a->n_axes * sizeof *a->extents) == 0;
}

/* --- what is known before the index arrays are read --- */

static octavo_status check_heads(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *q = &args->queries, *k = &args->keys;
    if (q->extents[0] != k->extents[0])
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
    if (q->extents[2] < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (queries): head width 0; it must be at least 1");
    if (q->extents[2] > OCTAVO_ATTENTION_MAX_DIM)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           CALL " (queries): head width %lld is not supported; the widest is %d",
                           (long long)q->extents[2], OCTAVO_ATTENTION_MAX_DIM);
    if (q->extents[0] > INT32_MAX || q->extents[1] > INT16_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           CALL " (queries): %s; at most %d rows and %d heads are possible",
                           shape_of(q).text, INT32_MAX, INT16_MAX);
    return OCTAVO_OK;
}

static octavo_status check_new_tokens(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *arrays[] = {&args->keys, &args->values};
    static const char *const names[] = {"keys", "values"};
    octavo_status status = OCTAVO_OK;
    for (size_t i = 0; i < OCTAVO_COUNT(arrays); i++) {
        status = check_array(arrays[i], names[i], 3, "[T, Hkv, D]", args->update_kv_cache, error);
        if (status != OCTAVO_OK) return status;
    }
    if (!same_shape(&args->keys, &args->values))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (values): shape %s, but keys are %s; they must be the same",
                           shape_of(&args->values).text, shape_of(&args->keys).text);
    for (size_t i = 0; i < OCTAVO_COUNT(arrays); i++) {
        if (arrays[i]->dtype != args->kv_cache.dtype)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (%s): dtype is %s, but the cache's is %s; convert them first",
                               names[i], octavo_dtype_name(arrays[i]->dtype),
                               octavo_dtype_name(args->kv_cache.dtype));
    }
    return check_heads(args, error);
}

static octavo_status check_cache(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *cache = &args->kv_cache;
    const octavo_attention_heads heads = {.n_q_heads = (int32_t)args->queries.extents[1],
                                          .n_kv_heads = (int32_t)args->keys.extents[1],
                                          .head_dim = (int32_t)args->queries.extents[2]};
    const int64_t packing = 4 / (int64_t)octavo_dtype_size(cache->dtype);
    const int64_t lanes = octavo_attention_lanes(heads.head_dim);
    const int64_t slot = octavo_attention_slot_elements(&heads, cache->dtype);
    const int64_t words = slot / lanes / packing;
    if (cache->extents[1] < 1 || cache->extents[2] != words || cache->extents[3] != packing ||
        cache->extents[4] != lanes)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_cache): shape %s; for %d kv heads of width %d and dtype %s "
                                "it must be [P, page_size, %lld, %lld, %lld]",
                           shape_of(cache).text, (int)heads.n_kv_heads, (int)heads.head_dim,
                           octavo_dtype_name(cache->dtype), (long long)words, (long long)packing,
                           (long long)lanes);
    if (cache->extents[0] > INT32_MAX || cache->extents[1] > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           CALL " (kv_cache): shape %s; pages and page size are at most %d",
                           shape_of(cache).text, INT32_MAX);
    if ((words > 1 && stride_of(cache, 2) != packing * lanes) ||
        (packing > 1 && stride_of(cache, 3) != lanes))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_cache): strides %lld, %lld of axes 2, 3; a slot must be "
                                "dense: %lld, %lld",
                           (long long)stride_of(cache, 2), (long long)stride_of(cache, 3),
                           (long long)(packing * lanes), (long long)lanes);
    return check_written(cache, "kv_cache", error);
}

static octavo_status check_output(const octavo_attention_args *args, octavo_error *error) {
    const octavo_array *output = &args->output, *queries = &args->queries;
    octavo_status status = check_array(output, "output", 3, "[T, Hq, D]", true, error);
    if (status != OCTAVO_OK) return status;
    if (!same_shape(output, queries) || output->dtype != queries->dtype)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (output): %s %s, but queries are %s %s; they must be the same",
                           octavo_dtype_name(output->dtype), shape_of(output).text,
                           octavo_dtype_name(queries->dtype), shape_of(queries).text);
    return check_written(output, "output", error);
}

static octavo_status check_options(const octavo_attention_args *args, octavo_error *error) {
    if (args->use_sliding_window && args->sliding_window < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (sliding_window): %lld; it must be positive (1 sees only itself)",
                           (long long)args->sliding_window);
    /* a cap of either sign is one; it is used as f32 */
    if (args->use_logits_soft_cap && (float)args->logits_soft_cap == 0.0f)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (logits_soft_cap): 0; it must not be 0 (set "
                                "use_logits_soft_cap = false for none)");
    const octavo_array *sink = &args->attention_sink;
    if (sink->data == NULL && sink->n_axes == 0) return OCTAVO_OK;
    octavo_status status = check_array(sink, "attention_sink", 1, "[Hq]", true, error);
    if (status != OCTAVO_OK) return status;
    if (sink->dtype != OCTAVO_DTYPE_F32)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (attention_sink): dtype is %s; it must be f32",
                           octavo_dtype_name(sink->dtype));
    if (sink->extents[0] != args->queries.extents[1])
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (attention_sink): %lld values; it must have one for each of the "
                                "%lld query heads",
                           (long long)sink->extents[0], (long long)args->queries.extents[1]);
    return OCTAVO_OK;
}

static octavo_status check_index_shapes(const octavo_attention_args *args, octavo_error *error) {
    const int64_t n_seqs = args->kv_lens.extents[0];
    octavo_status status = check_index_array(&args->kv_lens, "kv_lens", "[S]", error);
    if (status == OCTAVO_OK)
        status =
            check_index_array(&args->block_tables, "block_tables", "[S * pages_per_seq]", error);
    if (status == OCTAVO_OK)
        status = check_index_array(&args->query_start_loc, "query_start_loc", "[S + 1]", error);
    if (status == OCTAVO_OK)
        status = check_index_array(&args->distribution, "distribution", "[3]", error);
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
    octavo_status status = check_array(&args->queries, "queries", 3, "[T, Hq, D]", true, error);
    if (status == OCTAVO_OK)
        status = check_array(&args->kv_cache, "kv_cache", 5,
                             "[P, page_size, ceil(2 Hkv / pk), pk, Dp]", true, error);
    if (status == OCTAVO_OK) status = check_number_type(&args->queries, "queries", error);
    if (status == OCTAVO_OK) status = check_number_type(&args->kv_cache, "kv_cache", error);
    if (status == OCTAVO_OK) status = check_new_tokens(args, error);
    if (status == OCTAVO_OK) status = check_cache(args, error);
    if (status == OCTAVO_OK) status = check_output(args, error);
    if (status == OCTAVO_OK) status = check_options(args, error);
    if (status == OCTAVO_OK) status = check_index_shapes(args, error);
    return status;
}

/* --- what the index arrays say --- */

static octavo_status check_sequence(const octavo_attention_args *args, int64_t seq,
                                    octavo_error *error) {
    const int32_t *starts = args->query_start_loc.data;
    const int64_t kv_len = ((const int32_t *)args->kv_lens.data)[seq];
    const int64_t q_len = (int64_t)starts[seq + 1] - starts[seq];
    const int64_t page_size = args->kv_cache.extents[1];
    const int64_t per_seq = args->block_tables.extents[0] / args->kv_lens.extents[0];
    if (q_len < 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (query_start_loc): sequence %lld begins at %d and ends at %d; "
                                "the entries must not descend",
                           (long long)seq, (int)starts[seq], (int)starts[seq + 1]);
    if (q_len > kv_len)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (kv_lens): sequence %lld has %lld new tokens but a length of "
                                "%lld; the length counts them",
                           (long long)seq, (long long)q_len, (long long)kv_len);
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
