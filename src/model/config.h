/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model is, as numbers: read from a file's metadata by its family (family.h), used to build
 * the step program. Immutable after loading.
 */
#ifndef OCTAVO_MODEL_CONFIG_H
#define OCTAVO_MODEL_CONFIG_H

#include "program/program.h"

enum { OCTAVO_MAX_ROPES = 2 };

/* One table of rotation speeds. */
typedef struct octavo_rope_config {
    float base;
    float linear_factor; /* positions are divided by it; 1 none */
    bool use_factors;    /* divide by the file's rope_freqs.weight where there is one */
    float *frequencies;  /* [rope_dim / 2] radians per position, f32 */
} octavo_rope_config;

typedef struct octavo_layer_config {
    int rope;       /* index into ropes */
    int64_t window; /* of the attention; 0 none */
} octavo_layer_config;

typedef struct octavo_model_config {
    const char *architecture; /* of the family's table; lives forever */
    int n_layers;
    int64_t d, n_heads, n_kv_heads, head_dim, rope_dim, ffw, vocab, context;
    float norm_eps;
    float embed_scale;
    float attention_scale;
    octavo_activation activation;
    octavo_rope_pairing pairing;
    bool needs_qkv_bias; /* else biases are taken where the file has them */
    bool has_qk_norm;
    bool has_post_norms;

    int n_ropes;
    octavo_rope_config ropes[OCTAVO_MAX_ROPES];
    octavo_layer_config *layers; /* [n_layers] */
} octavo_model_config;

#endif
