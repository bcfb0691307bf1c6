/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and memory of the keys and values.
 */
#include "cache/kv_cache.h"

#include "base/error.h"
#include "base/memory.h"

typedef struct sizes {
    size_t layer_bytes;
    size_t bytes;
} sizes;

static octavo_status check_shape(const octavo_kv_shape *s, octavo_error *error) {
    if (s->n_layers < 1 || s->n_pages < 1 || s->page_size < 1 || s->page_elements < 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "cache (%d layers, %lld pages of %lld slots and %lld elements): every "
                           "number must be at least 1",
                           (int)s->n_layers, (long long)s->n_pages, (long long)s->page_size,
                           (long long)s->page_elements);
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
    sizes made;
    size_t page;
    if (!octavo_size_mul((size_t)s->page_elements, octavo_dtype_size(s->dtype), &page) ||
        !octavo_size_mul(page, (size_t)s->n_pages, &made.layer_bytes) ||
        !octavo_size_mul(made.layer_bytes, (size_t)s->n_layers, &made.bytes) ||
        made.bytes > PTRDIFF_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "cache (%d layers, %lld pages of %lld elements): does not fit the "
                           "address space; use fewer pages",
                           (int)s->n_layers, (long long)s->n_pages, (long long)s->page_elements);
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
    *cache = (octavo_kv_cache){.shape = *shape, .layer_bytes = s.layer_bytes, .base = base};
    return OCTAVO_OK;
}

void octavo_kv_cache_deinit(octavo_kv_cache *cache) {
    octavo_free_aligned(cache->base);
    *cache = (octavo_kv_cache){0};
}
