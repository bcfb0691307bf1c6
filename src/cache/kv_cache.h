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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct octavo_kv_shape {
    int32_t n_layers;
    int64_t n_pages;
    int64_t page_size;     /* positions in a page */
    int64_t page_elements; /* of one page in one layer */
    octavo_kv_layout layout;
    octavo_dtype dtype; /* any but i32 */
} octavo_kv_shape;

/* By what keys and values of an 8-bit cache are divided, where that is known before they come. */
typedef struct octavo_kv_scales {
    int32_t n_layers, n_heads;
    float *key;   /* [n_layers, n_heads]; NULL: each slot keeps its own, or there are none */
    float *value; /* [n_layers, n_heads], of the same allocation */
} octavo_kv_scales;

typedef struct octavo_kv_cache {
    octavo_kv_shape shape;
    size_t layer_bytes;      /* between two layers */
    uint8_t *base;           /* [n_layers][layer_bytes] */
    octavo_kv_scales scales; /* of an 8-bit cache; the cache's own from when they are set */
} octavo_kv_cache;

/* Bytes of a cache. OCTAVO_ERROR_INVALID for extents under 1 and another dtype, OCTAVO_ERROR_LIMIT
 * if it does not fit size_t. */
OCTAVO_MUST_CHECK octavo_status octavo_kv_cache_bytes(const octavo_kv_shape *shape, size_t *bytes,
                                                      octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_kv_cache_init(octavo_kv_cache *cache,
                                                     const octavo_kv_shape *shape,
                                                     octavo_error *error);
void octavo_kv_cache_deinit(octavo_kv_cache *cache); /* takes a zero-initialised cache too */

/* Scales of 1. */
OCTAVO_MUST_CHECK octavo_status octavo_kv_scales_init(octavo_kv_scales *scales, int32_t n_layers,
                                                      int32_t n_heads, octavo_error *error);
void octavo_kv_scales_deinit(octavo_kv_scales *scales); /* takes a zero-initialised one too */

/* Does each slot keep the scales of its keys and values? */
static inline bool octavo_kv_has_slot_scales(const octavo_kv_cache *cache) {
    return octavo_dtype_size(cache->shape.dtype) == 1 && cache->scales.key == NULL;
}

/* A layer's array, layer 0..n_layers-1. */
static inline void *octavo_kv_cache_layer(const octavo_kv_cache *cache, int32_t layer) {
    return cache->base + (size_t)layer * cache->layer_bytes;
}

#endif
