/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and memory of the keys and values.
 */
#include "cache/kv_cache.h"

#include "base/error.h"
#include "base/memory.h"

enum { LANE_MULTIPLE = 128 };

typedef struct sizes {
    size_t slot_elements;
    size_t layer_bytes;
    size_t bytes;
} sizes;

static octavo_status check_shape(const octavo_kv_shape *s, octavo_error *error) {
    if (s->n_layers < 1 || s->n_pages < 1 || s->page_size < 1 || s->n_kv_heads < 1 ||
        s->head_dim < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "cache (%d layers, %lld pages of %lld slots, %d heads of width %d): "
                           "every number must be at least 1",
                           (int)s->n_layers, (long long)s->n_pages, (long long)s->page_size,
                           (int)s->n_kv_heads, (int)s->head_dim);
    if (s->dtype != OCTAVO_DTYPE_F32 && s->dtype != OCTAVO_DTYPE_F16 &&
        s->dtype != OCTAVO_DTYPE_BF16)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "cache (dtype %s): not supported yet; use f32, f16 or bf16",
                           octavo_dtype_name(s->dtype));
    return OCTAVO_OK;
}

static octavo_status measure(const octavo_kv_shape *s, sizes *out, octavo_error *error) {
    octavo_status status = check_shape(s, error);
    if (status != OCTAVO_OK) return status;
    const size_t element = octavo_dtype_size(s->dtype), packing = 4 / element;
    const size_t lanes = octavo_align_up((size_t)s->head_dim, LANE_MULTIPLE);
    const size_t rows = octavo_align_up(2 * (size_t)s->n_kv_heads, packing);
    sizes made;
    size_t layer;
    if (!octavo_size_mul(rows, lanes, &made.slot_elements) ||
        !octavo_size_mul(made.slot_elements, element, &layer) ||
        !octavo_size_mul(layer, (size_t)s->page_size, &layer) ||
        !octavo_size_mul(layer, (size_t)s->n_pages, &made.layer_bytes) ||
        !octavo_size_mul(made.layer_bytes, (size_t)s->n_layers, &made.bytes) ||
        made.bytes > PTRDIFF_MAX)
        return octavo_fail(
            error, OCTAVO_ERROR_LIMIT,
            "cache (%d layers, %lld pages of %lld slots, %d heads of width %d): does "
            "not fit the address space; use fewer pages",
            (int)s->n_layers, (long long)s->n_pages, (long long)s->page_size, (int)s->n_kv_heads,
            (int)s->head_dim);
    *out = made;
    return OCTAVO_OK;
}

octavo_status octavo_kv_cache_bytes(const octavo_kv_shape *shape, size_t *bytes,
                                    octavo_error *error) {
    sizes s;
    octavo_status status = measure(shape, &s, error);
    if (status == OCTAVO_OK) *bytes = s.bytes;
    return status;
}

octavo_status octavo_kv_cache_init(octavo_kv_cache *cache, const octavo_kv_shape *shape,
                                   octavo_error *error) {
    sizes s;
    octavo_status status = measure(shape, &s, error);
    if (status != OCTAVO_OK) return status;
    uint8_t *base = octavo_alloc_sparse(s.bytes);
    if (base == NULL) return octavo_fail_memory(error, "cache", s.bytes);
    *cache = (octavo_kv_cache){.shape = *shape,
                               .slot_elements = (int64_t)s.slot_elements,
                               .layer_bytes = s.layer_bytes,
                               .base = base};
    return OCTAVO_OK;
}

void octavo_kv_cache_deinit(octavo_kv_cache *cache) {
    octavo_free_aligned(cache->base);
    *cache = (octavo_kv_cache){0};
}
