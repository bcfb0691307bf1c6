/* SPDX-License-Identifier: Apache-2.0
 *
 * Ragged paged attention as an inference engine holds it: an object made once from a layer's
 * attributes, KV caches bound to it by layer name, and one call per layer and step. It reshapes
 * rows [T, heads * head_size], quantises new keys and values where the cache's dtype is not theirs,
 * attends and updates the layer's cache in place. What is computed is octavo_ragged_paged_attention
 * (octavo/attention.h), with the same bits.
 *
 * Layers that are alike share one backend; layers that differ (a window in every other layer) have
 * one each. Every error of a call names the layer.
 *
 * Thread rule, unless a function says otherwise: one call at a time for a backend, and for all
 * backends that share a context.
 */
#ifndef OCTAVO_ATTENTION_BACKEND_H
#define OCTAVO_ATTENTION_BACKEND_H

#include "octavo/attention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fill in by octavo_attention_backend_options_init first. Texts and arrays are copied. */
typedef struct octavo_attention_backend_options {
    size_t size;                /* sizeof(octavo_attention_backend_options), set by init */
    int32_t num_heads;          /* query heads, at least 1; required */
    int32_t head_size;          /* lanes of a head, 1..512; required */
    double scale;               /* of the logits, as a rule 1 / sqrt(head_size); required */
    int32_t num_kv_heads;       /* divides num_heads; default 0: num_heads */
    const float *alibi_slopes;  /* [num_heads]; default NULL: none */
    int64_t sliding_window;     /* positions that a query sees, its own included; default 0: all */
    const char *kv_cache_dtype; /* what every bound cache must be. "auto": as it is bound. Else
                                   "float32", "float", "float16", "half", "bfloat16", "fp8",
                                   "fp8_e4m3" (both e4m3fn), "fp8_e5m2", "int8", or a name of
                                   octavo_dtype_name. Default NULL: "auto" */
    double logits_soft_cap;     /* default 0: none */
    octavo_attention_type attn_type; /* default OCTAVO_ATTENTION_DECODER. Encoders too keep keys and
                                        values in a bound cache */
    const char *kv_sharing_target_layer_name; /* every layer of this backend reads the cache that
                                                 is bound under this name and writes none; default
                                                 NULL: each layer has its own */
    bool use_irope; /* chunked local attention (Llama 4): a query sees keys of its own chunk of
                       irope_chunk_size absolute positions; default false */
    int64_t irope_chunk_size; /* required with use_irope, not looked at without; default 0 */

    const float *sinks; /* [num_heads], a further logit per head; default NULL: none */
    octavo_attention_precision precision; /* default OCTAVO_ATTENTION_STRICT */
    int64_t chunk_prefill_size;           /* tuning, see octavo_attention_args; default 0 */
    int64_t num_kv_pages_per_block;
    int64_t num_queries_per_block;
    int64_t vmem_limit_bytes;
} octavo_attention_backend_options;

/* Defaults. Any thread. */
OCTAVO_API void octavo_attention_backend_options_init(octavo_attention_backend_options *options);

typedef struct octavo_attention_backend octavo_attention_backend;

/* The context is borrowed and must outlive the backend; several backends may share one. On success
 * the caller owns *backend and destroys it; on failure it is untouched: OCTAVO_ERROR_INVALID,
 * OCTAVO_ERROR_UNSUPPORTED (a head too wide), OCTAVO_ERROR_LIMIT, OCTAVO_ERROR_NOT_FOUND (no such
 * dtype), OCTAVO_ERROR_MEMORY. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_attention_backend_create(
    octavo_attention_backend **backend, octavo_attention_context *context,
    const octavo_attention_backend_options *options, octavo_error *error);
/* Frees the backend, not the caches, and sets *backend to NULL. Takes NULL handles. */
OCTAVO_API void octavo_attention_backend_destroy(octavo_attention_backend **backend);

/* Binds a cache to a layer; a layer that has one changes it. The array and its layout are as
 * octavo_attention_args has them; its memory stays the caller's and must live until it is unbound
 * or the backend is destroyed. The name is copied. page_size is 0 with OCTAVO_KV_ROWS, whose shape
 * tells. On failure the layer keeps what it had: OCTAVO_ERROR_INVALID (shape, strides, a dtype that
 * is not kv_cache_dtype), OCTAVO_ERROR_LIMIT, OCTAVO_ERROR_MEMORY. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_attention_backend_bind(
    octavo_attention_backend *backend, const char *layer_name, const octavo_array *kv_cache,
    octavo_kv_layout layout, int64_t page_size, octavo_error *error);
/* OCTAVO_ERROR_NOT_FOUND if the layer has no cache. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_attention_backend_unbind(
    octavo_attention_backend *backend, const char *layer_name, octavo_error *error);

/* A layer: its name and how its cache was quantised. Scales mean what they mean in
 * octavo_attention_args, whatever the cache's dtype; one that is not used is 1. Where the keys'
 * dtype is not the cache's, a scale of keys and one of values must be used. Fill in by
 * octavo_attention_layer_init. */
typedef struct octavo_attention_layer {
    size_t size;      /* sizeof(octavo_attention_layer), set by init */
    const char *name; /* as in bind */
    double q_scale;   /* default 1 */
    double k_scale;
    double v_scale;
    bool use_q_scale; /* queries are quantised too; default false */
    bool use_k_scale;
    bool use_v_scale;
    octavo_array k_scales; /* [num_kv_heads], f32, on top of k_scale; absent by default */
    octavo_array v_scales;
} octavo_attention_layer;

/* Neither the text of `name` nor anything else is copied. Any thread. */
OCTAVO_API void octavo_attention_layer_init(octavo_attention_layer *layer, const char *name);

/* The batch of a step, the same for all layers: i32 arrays as in octavo_attention_args. Fill in by
 * octavo_attention_metadata_init. */
typedef struct octavo_attention_metadata {
    size_t size;                  /* sizeof(octavo_attention_metadata), set by init */
    octavo_array kv_lens;         /* [S], engines' seq_lens: new tokens included */
    octavo_array block_tables;    /* [S * pages_per_seq], or dense [S, pages_per_seq] */
    octavo_array query_start_loc; /* [S + 1] */
    octavo_array distribution;    /* [3], engines' request_distribution */
    octavo_array key_start_loc;   /* [S + 1], OCTAVO_ATTENTION_ENCODER_DECODER only; absent: no new
                                     keys and values */
} octavo_attention_metadata;

/* No arrays. Any thread. */
OCTAVO_API void octavo_attention_metadata_init(octavo_attention_metadata *metadata);

/* Rows of one call. Each array is [T, heads * head_size] or [T, heads, head_size], f32, f16 or bf16
 * (keys and values also of the cache's type); rows may be strided. Fill in by
 * octavo_attention_rows_init. */
typedef struct octavo_attention_rows {
    size_t size;        /* sizeof(octavo_attention_rows), set by init */
    octavo_array query; /* num_heads */
    octavo_array key;   /* num_kv_heads; the cache's dtype or the query's. Not looked at, and may be
                           absent, where nothing is written: with kv_sharing_target_layer_name, and
                           in cross-attention without key_start_loc */
    octavo_array value; /* num_kv_heads, the key's dtype */
    octavo_array output;   /* num_heads; the query's dtype, or fp8 or int8 with use_output_scale */
    bool use_output_scale; /* the output is divided by output_scale, clipped and rounded */
    double output_scale;   /* default 1 */
} octavo_attention_rows;

/* No arrays. Any thread. */
OCTAVO_API void octavo_attention_rows_init(octavo_attention_rows *rows);

/* Writes the new keys and values into the layer's cache and the attention of every row into the
 * output. Allocates nothing of its own; the context may grow (octavo_ragged_paged_attention). On
 * failure neither cache nor output was touched: OCTAVO_ERROR_NOT_FOUND (the layer has no cache),
 * and the statuses of octavo_ragged_paged_attention. The message begins "attention backend (layer
 * NAME): ". Nothing that is passed is kept. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_attention_backend_forward(
    octavo_attention_backend *backend, const octavo_attention_layer *layer,
    const octavo_attention_rows *rows, const octavo_attention_metadata *metadata,
    octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
