/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attention object keeps, for its two halves: making and binding (backend.c), calling
 * (backend_forward.c).
 */
#ifndef OCTAVO_ATTENTION_BACKEND_INTERNAL_H
#define OCTAVO_ATTENTION_BACKEND_INTERNAL_H

#include "octavo/attention_backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How messages about a layer begin; the name is attention_name_of(name, ATTENTION_NAME_BYTES).text.
 */
#define ATTENTION_LAYER      "attention backend (layer %s): "
#define ATTENTION_NAME_BYTES 120

/* A name as a message shows it. */
typedef struct attention_name {
    char text[ATTENTION_NAME_BYTES + 1];
} attention_name;

/* At most `most` bytes, as the reason needs the room: of a longer name both ends, as those of
 * layers often begin alike. UTF-8 characters stay whole. */
attention_name attention_name_of(const char *name, size_t most);

typedef struct attention_binding {
    char *name;
    octavo_array kv_cache;
    octavo_kv_layout layout;
    int64_t page_size;
} attention_binding;

struct octavo_attention_backend {
    octavo_attention_context *context; /* borrowed */
    octavo_attention_args args;        /* without what bindings and calls give */
    int64_t num_heads, num_kv_heads, head_size;
    bool is_dtype_fixed; /* every cache must be kv_dtype */
    octavo_dtype kv_dtype;
    char *target;       /* whose cache every layer reads, or NULL */
    float *head_arrays; /* [2][num_heads]: what alibi_slopes and attention_sink of args point to */
    attention_binding *bindings; /* [capacity], of which n_bindings are in use, ascending by name */
    size_t n_bindings, capacity;
};

/* [n_rows, n_heads, head_size] without data. */
static inline octavo_array attention_no_rows(octavo_dtype dtype, int64_t n_rows, int64_t n_heads,
                                             int64_t head_size) {
    return (octavo_array){.dtype = dtype, .n_axes = 3, .extents = {n_rows, n_heads, head_size}};
}

/* That there are a backend and a layer's name. */
OCTAVO_MUST_CHECK octavo_status octavo_attention_backend_check_name(
    const octavo_attention_backend *backend, const char *name, octavo_error *error);

/* The cache that is bound as `name`, for `layer`; valid until the next bind or unbind.
 * OCTAVO_ERROR_NOT_FOUND says what is bound. */
OCTAVO_MUST_CHECK octavo_status octavo_attention_backend_find(
    const octavo_attention_backend *backend, const char *layer, const char *name,
    const attention_binding **found, octavo_error *error);

#endif
