/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention object of inference engines: what all calls have in common is kept as the arguments
 * of octavo_ragged_paged_attention; a call fills in the rest. Bindings are sorted by name, and each
 * was checked together with those arguments, so that only a call's own arrays can be wrong.
 */
#include "attention/backend.h"

#include "attention/internal.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

void octavo_attention_backend_options_init(octavo_attention_backend_options *options) {
    *options = (octavo_attention_backend_options){.size = sizeof *options};
}

/* --- names in messages --- */

static bool is_inside_character(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

attention_name attention_name_of(const char *name, size_t most) {
    static const char gap[] = "...";
    attention_name shown = {{0}};
    const size_t length = strlen(name);
    if (most >= sizeof shown.text) most = sizeof shown.text - 1;
    if (length <= most) {
        memcpy(shown.text, name, length);
        return shown;
    }
    size_t head = (most - strlen(gap)) / 2, tail = length - head;
    while (head > 0 && is_inside_character(name[head]))
        head--;
    while (tail < length && is_inside_character(name[tail]))
        tail++;
    memcpy(shown.text, name, head);
    memcpy(shown.text + head, gap, strlen(gap));
    memcpy(shown.text + head + strlen(gap), name + tail, length - tail);
    return shown;
}

/* --- arguments that stand for a call of no tokens --- */

static octavo_array vector(void *data, octavo_dtype dtype, int64_t extent) {
    return (octavo_array){.data = data, .dtype = dtype, .n_axes = 1, .extents = {extent}};
}

/* Whether a call with this cache could be right: what is wrong with it is wrong for every call. */
static octavo_status check_cache(const octavo_attention_backend *backend,
                                 const attention_binding *cache, octavo_error *error) {
    int32_t zeros[3] = {0};
    octavo_attention_args args = backend->args;
    args.queries = attention_no_rows(OCTAVO_DTYPE_F32, 0, backend->num_heads, backend->head_size);
    args.keys =
        attention_no_rows(cache->kv_cache.dtype, 0, backend->num_kv_heads, backend->head_size);
    args.values = args.keys;
    args.output = args.queries;
    args.kv_cache = cache->kv_cache;
    args.layout = cache->layout;
    args.page_size = cache->page_size;
    args.kv_lens = vector(zeros, OCTAVO_DTYPE_I32, 1);
    args.block_tables = vector(zeros, OCTAVO_DTYPE_I32, 1);
    args.query_start_loc = vector(zeros, OCTAVO_DTYPE_I32, 2);
    args.distribution = vector(zeros, OCTAVO_DTYPE_I32, 3);
    return octavo_attention_check(&args, error);
}

/* --- making one --- */

/* Names that engines use beside octavo_dtype_name's. */
static const struct {
    const char *name;
    octavo_dtype dtype;
} spellings[] = {
    {"float32", OCTAVO_DTYPE_F32},          {"float", OCTAVO_DTYPE_F32},
    {"float16", OCTAVO_DTYPE_F16},          {"half", OCTAVO_DTYPE_F16},
    {"bfloat16", OCTAVO_DTYPE_BF16},        {"fp8", OCTAVO_DTYPE_FP8_E4M3},
    {"fp8_e4m3fn", OCTAVO_DTYPE_FP8_E4M3},  {"float8_e4m3fn", OCTAVO_DTYPE_FP8_E4M3},
    {"float8_e5m2", OCTAVO_DTYPE_FP8_E5M2},
};

static octavo_status set_dtype(octavo_attention_backend *backend, const char *name,
                               octavo_error *error) {
    if (name == NULL || strcmp(name, "auto") == 0) return OCTAVO_OK;
    backend->is_dtype_fixed = true;
    for (size_t i = 0; i < OCTAVO_COUNT(spellings); i++) {
        if (strcmp(name, spellings[i].name) == 0) {
            backend->kv_dtype = spellings[i].dtype;
            return OCTAVO_OK;
        }
    }
    octavo_status status = octavo_dtype_parse(name, &backend->kv_dtype, NULL);
    if (status == OCTAVO_OK && backend->kv_dtype != OCTAVO_DTYPE_I32) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                       "attention backend (kv_cache_dtype): '%s' is no type of a cache; use "
                       "auto, float32, float16, bfloat16, fp8, fp8_e4m3, fp8_e5m2 or int8",
                       attention_name_of(name, 60).text);
}

/* What octavo_attention_check would not name as the options do. */
static octavo_status check_options(const octavo_attention_backend_options *options,
                                   octavo_error *error) {
    if (options->num_heads < 1 || options->num_heads > INT16_MAX)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (num_heads): %d; it must be 1 to %d",
                           (int)options->num_heads, INT16_MAX);
    if (options->num_kv_heads < 0 ||
        (options->num_kv_heads > 0 && options->num_heads % options->num_kv_heads != 0))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (num_kv_heads): %d for %d query heads; it must "
                           "divide them, or be 0 for as many",
                           (int)options->num_kv_heads, (int)options->num_heads);
    if (options->head_size < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (head_size): %d; it must be at least 1",
                           (int)options->head_size);
    if (!isfinite(options->scale) || options->scale == 0.0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (scale): %g; it has no default, give 1 / "
                           "sqrt(head_size) as a rule",
                           options->scale);
    if (options->use_irope && options->irope_chunk_size < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (irope_chunk_size): %lld; use_irope needs the "
                           "positions of a chunk, at least 1",
                           (long long)options->irope_chunk_size);
    if (options->kv_sharing_target_layer_name != NULL &&
        options->kv_sharing_target_layer_name[0] == '\0')
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (kv_sharing_target_layer_name): is empty; give a "
                           "layer's name, or NULL for none");
    return OCTAVO_OK;
}

static octavo_array head_array(octavo_attention_backend *backend, int which, const float *values) {
    if (values == NULL) return (octavo_array){.n_axes = 0};
    const size_t n_heads = (size_t)backend->num_heads;
    float *copy = backend->head_arrays + (size_t)which * n_heads;
    memcpy(copy, values, n_heads * sizeof *copy);
    return vector(copy, OCTAVO_DTYPE_F32, backend->num_heads);
}

static void set_args(octavo_attention_backend *backend,
                     const octavo_attention_backend_options *options) {
    octavo_attention_args *args = &backend->args;
    octavo_attention_args_init(args);
    args->softmax_scale = options->scale;
    args->use_sliding_window = options->sliding_window != 0;
    args->sliding_window = options->sliding_window;
    args->use_logits_soft_cap = options->logits_soft_cap != 0.0;
    args->logits_soft_cap = options->logits_soft_cap;
    args->type = options->attn_type;
    args->precision = options->precision;
    args->chunk_size = options->use_irope ? options->irope_chunk_size : 0;
    args->update_kv_cache = options->kv_sharing_target_layer_name == NULL;
    args->alibi_slopes = head_array(backend, 0, options->alibi_slopes);
    args->attention_sink = head_array(backend, 1, options->sinks);
    args->chunk_prefill_size = options->chunk_prefill_size;
    args->num_kv_pages_per_block = options->num_kv_pages_per_block;
    args->num_queries_per_block = options->num_queries_per_block;
    args->vmem_limit_bytes = options->vmem_limit_bytes;
}

/* Copies the options; checks them by a call with a cache of no pages. */
static octavo_status fill(octavo_attention_backend *backend,
                          const octavo_attention_backend_options *options, octavo_error *error) {
    const char *target = options->kv_sharing_target_layer_name;
    const size_t n_heads = (size_t)options->num_heads;
    backend->num_heads = options->num_heads;
    backend->num_kv_heads = options->num_kv_heads > 0 ? options->num_kv_heads : options->num_heads;
    backend->head_size = options->head_size;
    backend->head_arrays = octavo_alloc_zero(2 * n_heads, sizeof *backend->head_arrays);
    backend->target = target ? octavo_strdup(target) : NULL;
    if (backend->head_arrays == NULL || (target != NULL && backend->target == NULL))
        return octavo_fail_memory(error, "attention backend", 2 * n_heads * sizeof(float));
    octavo_status status = set_dtype(backend, options->kv_cache_dtype, error);
    if (status != OCTAVO_OK) return status;
    set_args(backend, options);
    const attention_binding empty = {
        .kv_cache = {.dtype = OCTAVO_DTYPE_F32,
                     .n_axes = 5,
                     .extents = {0, 1, 2 * backend->num_kv_heads, 1,
                                 octavo_attention_lanes(backend->head_size)}}};
    status = check_cache(backend, &empty, error);
    if (status != OCTAVO_OK)
        return octavo_fail(error, status, "attention backend (options): %s",
                           error ? error->message : "");
    return OCTAVO_OK;
}

octavo_status octavo_attention_backend_create(octavo_attention_backend **backend,
                                              octavo_attention_context *context,
                                              const octavo_attention_backend_options *options,
                                              octavo_error *error) {
    if (backend == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (backend): NULL; give the address of a pointer");
    if (options == NULL || options->size != sizeof *options)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (options): not initialised; call "
                           "octavo_attention_backend_options_init first");
    if (context == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (context): NULL; make one with "
                           "octavo_attention_context_create");
    octavo_status status = check_options(options, error);
    if (status != OCTAVO_OK) return status;
    octavo_attention_backend *made = octavo_alloc_zero(1, sizeof *made);
    if (made == NULL) return octavo_fail_memory(error, "attention backend", sizeof *made);
    made->context = context;
    status = fill(made, options, error);
    if (status != OCTAVO_OK)
        octavo_attention_backend_destroy(&made);
    else
        *backend = made;
    return status;
}

void octavo_attention_backend_destroy(octavo_attention_backend **backend) {
    if (backend == NULL || *backend == NULL) return;
    for (size_t i = 0; i < (*backend)->n_bindings; i++)
        octavo_free((*backend)->bindings[i].name);
    octavo_free((*backend)->bindings);
    octavo_free((*backend)->head_arrays);
    octavo_free((*backend)->target);
    octavo_free(*backend);
    *backend = NULL;
}

/* --- bindings --- */

/* The first binding whose name is not below `name`. */
static size_t place_of(const octavo_attention_backend *backend, const char *name) {
    size_t begin = 0, end = backend->n_bindings;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (strcmp(backend->bindings[middle].name, name) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static bool is_bound(const octavo_attention_backend *backend, size_t place, const char *name) {
    return place < backend->n_bindings && strcmp(backend->bindings[place].name, name) == 0;
}

/* `layer` looked for the cache of `name`, which has none; the names beside its place are
 * likely what was meant. */
static octavo_status fail_unbound(const octavo_attention_backend *backend, const char *layer,
                                  const char *name, size_t place, octavo_error *error) {
    const size_t n = backend->n_bindings;
    if (n == 0)
        return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                           ATTENTION_LAYER "no cache is bound as '%s', nor any other; call "
                                           "octavo_attention_backend_bind",
                           attention_name_of(layer, ATTENTION_NAME_BYTES).text,
                           attention_name_of(name, ATTENTION_NAME_BYTES).text);
    const size_t before = place > 0 ? place - 1 : 0, after = place < n ? place : n - 1;
    const bool is_pair = before != after;
    return octavo_fail(
        error, OCTAVO_ERROR_NOT_FOUND,
        ATTENTION_LAYER "no cache is bound as '%s'; of the %zu that are bound, the nearest is "
                        "'%s'%s%s%s",
        attention_name_of(layer, ATTENTION_NAME_BYTES).text,
        attention_name_of(name, ATTENTION_NAME_BYTES).text, n,
        attention_name_of(backend->bindings[before].name, 60).text, is_pair ? " or '" : "",
        attention_name_of(is_pair ? backend->bindings[after].name : "", 60).text,
        is_pair ? "'" : "");
}

octavo_status octavo_attention_backend_check_name(const octavo_attention_backend *backend,
                                                  const char *name, octavo_error *error) {
    if (backend == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend: NULL; make one with "
                           "octavo_attention_backend_create");
    if (name == NULL || name[0] == '\0')
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "attention backend (layer): has no name; caches are bound by name");
    return OCTAVO_OK;
}

octavo_status octavo_attention_backend_find(const octavo_attention_backend *backend,
                                            const char *layer, const char *name,
                                            const attention_binding **found, octavo_error *error) {
    const size_t place = place_of(backend, name);
    if (!is_bound(backend, place, name)) return fail_unbound(backend, layer, name, place, error);
    *found = backend->bindings + place;
    return OCTAVO_OK;
}

/* Opens a gap at `place`. */
static octavo_status insert(octavo_attention_backend *backend, size_t place, const char *name,
                            octavo_error *error) {
    if (backend->n_bindings == backend->capacity) {
        size_t capacity = backend->capacity > 0 ? 2 * backend->capacity : 16, bytes = 0;
        attention_binding *grown = octavo_size_mul(capacity, sizeof *grown, &bytes)
                                       ? octavo_realloc(backend->bindings, bytes)
                                       : NULL;
        if (grown == NULL) return octavo_fail_memory(error, "attention backend", bytes);
        backend->bindings = grown;
        backend->capacity = capacity;
    }
    char *copy = octavo_strdup(name);
    if (copy == NULL) return octavo_fail_memory(error, "attention backend", strlen(name) + 1);
    attention_binding *at = backend->bindings + place;
    memmove(at + 1, at, (backend->n_bindings - place) * sizeof *at);
    at->name = copy;
    backend->n_bindings++;
    return OCTAVO_OK;
}

octavo_status octavo_attention_backend_bind(octavo_attention_backend *backend,
                                            const char *layer_name, const octavo_array *kv_cache,
                                            octavo_kv_layout layout, int64_t page_size,
                                            octavo_error *error) {
    octavo_status status = octavo_attention_backend_check_name(backend, layer_name, error);
    if (status != OCTAVO_OK) return status;
    if (kv_cache == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           ATTENTION_LAYER "the cache is NULL; to take one away call "
                                           "octavo_attention_backend_unbind",
                           attention_name_of(layer_name, ATTENTION_NAME_BYTES).text);
    if (backend->is_dtype_fixed && kv_cache->dtype != backend->kv_dtype)
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            ATTENTION_LAYER "the cache is %s, but kv_cache_dtype says %s; bind one of that "
                            "type, or use auto",
            attention_name_of(layer_name, ATTENTION_NAME_BYTES).text,
            octavo_dtype_name(kv_cache->dtype), octavo_dtype_name(backend->kv_dtype));
    attention_binding made = {.kv_cache = *kv_cache, .layout = layout, .page_size = page_size};
    status = check_cache(backend, &made, error);
    if (status != OCTAVO_OK)
        return octavo_fail(error, status, ATTENTION_LAYER "%s",
                           attention_name_of(layer_name, ATTENTION_NAME_BYTES).text,
                           error ? error->message : "");
    const size_t place = place_of(backend, layer_name);
    if (!is_bound(backend, place, layer_name)) {
        status = insert(backend, place, layer_name, error);
        if (status != OCTAVO_OK) return status;
    }
    made.name = backend->bindings[place].name;
    backend->bindings[place] = made;
    return OCTAVO_OK;
}

octavo_status octavo_attention_backend_unbind(octavo_attention_backend *backend,
                                              const char *layer_name, octavo_error *error) {
    octavo_status status = octavo_attention_backend_check_name(backend, layer_name, error);
    if (status != OCTAVO_OK) return status;
    const attention_binding *found = NULL;
    status = octavo_attention_backend_find(backend, layer_name, layer_name, &found, error);
    if (status != OCTAVO_OK) return status;
    const size_t place = (size_t)(found - backend->bindings);
    attention_binding *at = backend->bindings + place;
    octavo_free(at->name);
    backend->n_bindings--;
    memmove(at, at + 1, (backend->n_bindings - place) * sizeof *at);
    return OCTAVO_OK;
}
