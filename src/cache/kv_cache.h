/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the keys and values of all layers: per layer an array [n_pages, page_elements]. How a
 * page lies inside is the attention layer's (octavo_kv_layout in octavo/attention.h). One
 * allocation, aligned, not touched before it is used. What a page holds before it is written is
 * undefined.
 */
#ifndef OCTAVO_CACHE_KV_CACHE_H
#define OCTAVO_CACHE_KV_CACHE_H

#include "octavo/attention.h"
#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct octavo_kv_shape {
    int32_t n_layers;
    int64_t n_pages;
    int64_t page_size;     /* positions in a page */
    int64_t page_elements; /* of one page in one layer */
    octavo_kv_layout layout;
    octavo_dtype dtype; /* f32, f16 or bf16 */
} octavo_kv_shape;

typedef struct octavo_kv_cache {
    octavo_kv_shape shape;
    size_t layer_bytes; /* between two layers */
    uint8_t *base;      /* [n_layers][layer_bytes] */
} octavo_kv_cache;

/* Bytes of a cache. OCTAVO_ERROR_INVALID for extents under 1, OCTAVO_ERROR_LIMIT if it does not fit
 * size_t, OCTAVO_ERROR_UNSUPPORTED for another dtype. */
OCTAVO_MUST_CHECK octavo_status octavo_kv_cache_bytes(const octavo_kv_shape *shape, size_t *bytes,
                                                      octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_kv_cache_init(octavo_kv_cache *cache,
                                                     const octavo_kv_shape *shape,
                                                     octavo_error *error);
void octavo_kv_cache_deinit(octavo_kv_cache *cache); /* takes a zero-initialised cache too */

/* A layer's array, layer 0..n_layers-1. */
static inline void *octavo_kv_cache_layer(const octavo_kv_cache *cache, int32_t layer) {
    return cache->base + (size_t)layer * cache->layer_bytes;
}

#endif
