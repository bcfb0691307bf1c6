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
    if (octavo_dtype_size(s->dtype) == 0 || s->dtype == OCTAVO_DTYPE_I32)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "cache (dtype %s): keys and values are no such numbers; use f32, f16, "
                           "bf16, fp8_e4m3, fp8_e5m2 or int8",
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
    octavo_kv_scales_deinit(&cache->scales);
    *cache = (octavo_kv_cache){0};
}

octavo_status octavo_kv_scales_init(octavo_kv_scales *scales, int32_t n_layers, int32_t n_heads,
                                    octavo_error *error) {
    const size_t n = (size_t)n_layers * (size_t)n_heads;
    float *key = octavo_alloc_zero(n, 2 * sizeof *key);
    if (!key) return octavo_fail_memory(error, "scales of the cache", n * 2 * sizeof *key);
    for (size_t i = 0; i < 2 * n; i++)
        key[i] = 1.0f;
    *scales = (octavo_kv_scales){n_layers, n_heads, key, key + n};
    return OCTAVO_OK;
}

void octavo_kv_scales_deinit(octavo_kv_scales *scales) {
    octavo_free(scales->key);
    *scales = (octavo_kv_scales){0};
}
