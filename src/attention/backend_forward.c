/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of the attention object: an engine's arrays become the arguments of
 * octavo_ragged_paged_attention. Only what that call cannot see is checked here.
 */
#include "attention/backend.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>

void octavo_attention_layer_init(octavo_attention_layer *layer, const char *name) {
    *layer = (octavo_attention_layer){
        .size = sizeof *layer, .name = name, .q_scale = 1.0, .k_scale = 1.0, .v_scale = 1.0};
}

void octavo_attention_metadata_init(octavo_attention_metadata *metadata) {
    *metadata = (octavo_attention_metadata){.size = sizeof *metadata};
}

void octavo_attention_rows_init(octavo_attention_rows *rows) {
    *rows = (octavo_attention_rows){.size = sizeof *rows, .output_scale = 1.0};
}

/* What a call's arrays must be as heads. */
typedef struct row_shape {
    const char *layer, *name;
    int64_t n_heads, head_size;
} row_shape;

/* What an array is instead, for a message. */
typedef struct shape_text {
    char text[80];
} shape_text;

static shape_text shape_of(const octavo_array *array) {
    shape_text shape;
    const long long a = array->extents[0], b = array->extents[1], c = array->extents[2];
    if (array->n_axes == 2)
        snprintf(shape.text, sizeof shape.text, "is [%lld, %lld]", a, b);
    else if (array->n_axes == 3)
        snprintf(shape.text, sizeof shape.text, "is [%lld, %lld, %lld]", a, b, c);
    else
        snprintf(shape.text, sizeof shape.text, "has %d axes", (int)array->n_axes);
    return shape;
}

static octavo_status fail_shape(const row_shape *want, const char *what, octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       ATTENTION_LAYER "%s %s; it must be [T, %lld * %lld] or [T, %lld, %lld]",
                       attention_name_of(want->layer, ATTENTION_NAME_BYTES).text, want->name, what,
                       (long long)want->n_heads, (long long)want->head_size,
                       (long long)want->n_heads, (long long)want->head_size);
}

/* [T, heads * head_size] as [T, heads, head_size]. What else can be wrong, the call itself finds.
 */
static octavo_status split_heads(const octavo_array *rows, const row_shape *want,
                                 octavo_array *heads, octavo_error *error) {
    const int64_t *extents = rows->extents, *strides = rows->strides;
    if (rows->n_axes == 0) return fail_shape(want, "is absent", error);
    if (rows->n_axes == 3 && extents[1] == want->n_heads && extents[2] == want->head_size) {
        *heads = *rows;
        return OCTAVO_OK;
    }
    if (rows->n_axes != 2 || extents[1] != want->n_heads * want->head_size)
        return fail_shape(want, shape_of(rows).text, error);
    const bool is_dense = strides[0] == 0 && strides[1] == 0;
    if (!is_dense && extents[1] > 1 && strides[1] != 1)
        return fail_shape(want, "has a stride other than 1 within a row", error);
    *heads = (octavo_array){.data = rows->data,
                            .dtype = rows->dtype,
                            .n_axes = 3,
                            .extents = {extents[0], want->n_heads, want->head_size}};
    if (is_dense) return OCTAVO_OK;
    heads->strides[0] = strides[0];
    heads->strides[1] = want->head_size;
    heads->strides[2] = 1;
    return OCTAVO_OK;
}

/* New keys and values, or what stands for them where none are written. */
static octavo_status set_new_rows(const octavo_attention_backend *backend, const char *layer,
                                  const octavo_attention_rows *rows, octavo_attention_args *args,
                                  octavo_error *error) {
    const int64_t n_heads = backend->num_kv_heads, head_size = backend->head_size;
    if (!args->update_kv_cache ||
        (args->type == OCTAVO_ATTENTION_ENCODER_DECODER && args->key_start_loc.n_axes == 0)) {
        args->update_kv_cache = false;
        args->keys =
            attention_no_rows(args->kv_cache.dtype, args->queries.extents[0], n_heads, head_size);
        args->values = args->keys;
        return OCTAVO_OK;
    }
    octavo_status status =
        split_heads(&rows->key, &(row_shape){layer, "key", n_heads, head_size}, &args->keys, error);
    if (status != OCTAVO_OK) return status;
    return split_heads(&rows->value, &(row_shape){layer, "value", n_heads, head_size},
                       &args->values, error);
}

static octavo_status set_rows(const octavo_attention_backend *backend, const char *layer,
                              const octavo_attention_rows *rows, octavo_attention_args *args,
                              octavo_error *error) {
    const int64_t n_heads = backend->num_heads, head_size = backend->head_size;
    octavo_status status = split_heads(
        &rows->query, &(row_shape){layer, "query", n_heads, head_size}, &args->queries, error);
    if (status == OCTAVO_OK) status = set_new_rows(backend, layer, rows, args, error);
    if (status == OCTAVO_OK)
        status = split_heads(&rows->output, &(row_shape){layer, "output", n_heads, head_size},
                             &args->output, error);
    args->use_output_scale = rows->use_output_scale;
    args->output_scale = rows->output_scale;
    return status;
}

/* Dense [S, pages_per_seq] as [S * pages_per_seq]; false: rows with gaps between them, or other
 * than S of them. */
static bool flatten_tables(octavo_array *tables, const octavo_array *kv_lens) {
    if (tables->n_axes != 2 || kv_lens->n_axes != 1) return true;
    const int64_t n_seqs = kv_lens->extents[0];
    const int64_t n_pages = tables->extents[1];
    const bool is_dense = tables->strides[0] == 0 && tables->strides[1] == 0;
    size_t entries;
    if (tables->extents[0] != n_seqs || n_seqs < 0 || n_pages < 0 ||
        !octavo_size_mul((size_t)n_seqs, (size_t)n_pages, &entries) || entries > INT64_MAX ||
        (!is_dense && ((n_seqs > 1 && tables->strides[0] != n_pages) ||
                       (n_pages > 1 && tables->strides[1] != 1))))
        return false;
    *tables = (octavo_array){
        .data = tables->data, .dtype = tables->dtype, .n_axes = 1, .extents = {(int64_t)entries}};
    return true;
}

static octavo_status set_metadata(const char *layer, const octavo_attention_metadata *metadata,
                                  octavo_attention_args *args, octavo_error *error) {
    args->kv_lens = metadata->kv_lens;
    args->block_tables = metadata->block_tables;
    args->query_start_loc = metadata->query_start_loc;
    args->distribution = metadata->distribution;
    args->key_start_loc = metadata->key_start_loc;
    if (flatten_tables(&args->block_tables, &args->kv_lens)) return OCTAVO_OK;
    return octavo_fail(
        error, OCTAVO_ERROR_INVALID,
        ATTENTION_LAYER "block_tables are [%lld, %lld] with strides %lld, %lld for %lld "
                        "sequences; they must be dense, a row for each",
        attention_name_of(layer, ATTENTION_NAME_BYTES).text,
        (long long)metadata->block_tables.extents[0], (long long)metadata->block_tables.extents[1],
        (long long)metadata->block_tables.strides[0], (long long)metadata->block_tables.strides[1],
        (long long)args->kv_lens.extents[0]);
}

static octavo_status check_call(const octavo_attention_backend *backend,
                                const octavo_attention_layer *layer,
                                const octavo_attention_rows *rows,
                                const octavo_attention_metadata *metadata, octavo_error *error) {
    if (layer == NULL || layer->size != sizeof *layer)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (layer): not initialised; call "
                           "octavo_attention_layer_init first");
    octavo_status status = octavo_attention_backend_check_name(backend, layer->name, error);
    if (status != OCTAVO_OK) return status;
    if (rows == NULL || rows->size != sizeof *rows)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           ATTENTION_LAYER
                           "rows are not initialised; call octavo_attention_rows_init first",
                           attention_name_of(layer->name, ATTENTION_NAME_BYTES).text);
    if (metadata == NULL || metadata->size != sizeof *metadata)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           ATTENTION_LAYER "metadata are not initialised; call "
                                           "octavo_attention_metadata_init first",
                           attention_name_of(layer->name, ATTENTION_NAME_BYTES).text);
    return OCTAVO_OK;
}

static void set_layer(const octavo_attention_layer *layer, const attention_binding *cache,
                      octavo_attention_args *args) {
    args->kv_cache = cache->kv_cache;
    args->layout = cache->layout;
    args->page_size = cache->page_size;
    args->q_scale = layer->q_scale;
    args->k_scale = layer->k_scale;
    args->v_scale = layer->v_scale;
    args->use_q_scale = layer->use_q_scale;
    args->use_k_scale = layer->use_k_scale;
    args->use_v_scale = layer->use_v_scale;
    args->k_scales = layer->k_scales;
    args->v_scales = layer->v_scales;
}

octavo_status octavo_attention_backend_forward(octavo_attention_backend *backend,
                                               const octavo_attention_layer *layer,
                                               const octavo_attention_rows *rows,
                                               const octavo_attention_metadata *metadata,
                                               octavo_error *error) {
    octavo_status status = check_call(backend, layer, rows, metadata, error);
    if (status != OCTAVO_OK) return status;
    const char *owner = backend->target ? backend->target : layer->name;
    const attention_binding *cache = NULL;
    status = octavo_attention_backend_find(backend, layer->name, owner, &cache, error);
    if (status != OCTAVO_OK) return status;
    octavo_attention_args args = backend->args;
    set_layer(layer, cache, &args);
    status = set_metadata(layer->name, metadata, &args, error);
    if (status == OCTAVO_OK) status = set_rows(backend, layer->name, rows, &args, error);
    if (status != OCTAVO_OK) return status;
    status = octavo_ragged_paged_attention(backend->context, &args, error);
    if (status != OCTAVO_OK)
        return octavo_fail(error, status, ATTENTION_LAYER "%s",
                           attention_name_of(layer->name, ATTENTION_NAME_BYTES).text,
                           error ? error->message : "");
    return OCTAVO_OK;
}
