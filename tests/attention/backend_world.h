/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the attention object: the arrays of a small ragged call, and the same call without
 * the object. A check that fails ends the test.
 */
#ifndef OCTAVO_TESTS_BACKEND_WORLD_H
#define OCTAVO_TESTS_BACKEND_WORLD_H

#include "octavo/attention_backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define F32  OCTAVO_DTYPE_F32
#define F16  OCTAVO_DTYPE_F16
#define BF16 OCTAVO_DTYPE_BF16
#define E4M3 OCTAVO_DTYPE_FP8_E4M3
#define E5M2 OCTAVO_DTYPE_FP8_E5M2
#define I8   OCTAVO_DTYPE_INT8
#define I32  OCTAVO_DTYPE_I32

/* Rows of tokens (two of them padding), heads, sequences (one of them dead), pages. */
enum { T = 9, HQ = 6, HKV = 2, D = 24, S = 4, PER_SEQ = 3, P = 11, PAGE = 8, GAP = 5 };
enum { ROW = (HQ + 2 * HKV) * D + GAP }; /* of a fused projection */
enum { SLOT = 2 * HKV * 128 };
enum { CACHE_BYTES = P * PAGE * SLOT * 4, NAME = 40 };

/* All memory that a call needs. Rows hold query, key and value of a token one after the other. */
typedef struct backend_world {
    _Alignas(64) uint8_t cache[CACHE_BYTES];
    _Alignas(64) uint8_t same[CACHE_BYTES];
    _Alignas(64) uint8_t rows[T * ROW * 4];
    _Alignas(64) uint8_t output[T * HQ * D * 4];
    _Alignas(64) uint8_t want[T * HQ * D * 4];
    int32_t kv_lens[S], tables[S * PER_SEQ], starts[S + 1], kinds[3], key_starts[S + 1];
    float k_scales[HKV], v_scales[HKV], slopes[HQ], sinks[HQ];
    octavo_attention_backend_options options;
    octavo_attention_layer layer;
    octavo_attention_rows given;
    octavo_attention_metadata metadata;
    octavo_array kv_cache;
    octavo_kv_layout layout;
} backend_world;

#define ARRAY(data, dtype, ...)                                                                    \
    octavo_array_dense(data, dtype, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                       (const int64_t[]){__VA_ARGS__})

/* What all tests of a program call with: two threads. Made and freed by the group's fixtures. */
extern octavo_attention_context *backend_context;
int backend_context_make(void **state);
int backend_context_free(void **state);

extern uint32_t backend_random_state;
uint32_t backend_random(void); /* 24 bits */

octavo_array backend_vector(void *data, octavo_dtype dtype, int64_t extent);

/* All f32: a decode row, a prompt and a continued prompt, in rows that view a fused projection;
 * garbage where nothing may be read. */
void backend_make(backend_world *w);
/* Query and output in one dtype, keys and values in another, the cache in a third. */
void backend_set_types(backend_world *w, octavo_dtype q, octavo_dtype new, octavo_dtype cache,
                       octavo_kv_layout layout);
/* Random numbers in `cache`, the same in `same`. */
void backend_set_cache(backend_world *w, octavo_dtype dtype, octavo_kv_layout layout);

octavo_attention_backend *backend_create(const backend_world *w);
void backend_bind(octavo_attention_backend *backend, const char *name, const octavo_array *cache,
                  octavo_kv_layout layout);
void backend_forward(octavo_attention_backend *backend, backend_world *w);

/* The same call without a backend, into `same` and `want`. */
octavo_attention_args backend_direct_args(backend_world *w);
void backend_run_directly(const octavo_attention_args *args);
/* Output and cache are those of the direct call. */
void backend_check_equal(const backend_world *w, const char *what);
/* One call with a backend, one without: equal. */
void backend_compare(backend_world *w, const char *what);

bool backend_is_constant(const uint8_t *data, size_t bytes);

#endif
