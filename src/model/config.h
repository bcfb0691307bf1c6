/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model is, as numbers: read from a checkpoint's description, what all families share here
 * (config.c) and the rest by its family (family.h), used to build the step program. Immutable after
 * loading.
 */
#ifndef OCTAVO_MODEL_CONFIG_H
#define OCTAVO_MODEL_CONFIG_H

#include "model/checkpoint.h"
#include "model/weight_name.h"
#include "program/program.h"

enum { OCTAVO_MAX_ROPES = 2 };

typedef enum octavo_rope_scaling {
    OCTAVO_ROPE_SCALING_NONE,
    OCTAVO_ROPE_SCALING_LINEAR, /* positions are divided by factor */
    OCTAVO_ROPE_SCALING_LLAMA3, /* by factor where waves are long, not at all where they are short
                                 */
} octavo_rope_scaling;

/* One table of rotation speeds. */
typedef struct octavo_rope_config {
    float base;
    octavo_rope_scaling scaling;
    float factor;
    float low_factor, high_factor, original_context; /* of LLAMA3: waves in the original context */
    bool use_factors;   /* divide by the GGUF file's rope_freqs.weight where there is one */
    float *frequencies; /* [rope_dim / 2] radians per position, f32 */
} octavo_rope_config;

typedef struct octavo_layer_config {
    int rope;       /* index into ropes */
    int64_t window; /* of the attention; 0 none */
} octavo_layer_config;

typedef enum octavo_bias {
    OCTAVO_BIAS_NONE,     /* not used, even where a tensor of the name is there */
    OCTAVO_BIAS_OPTIONAL, /* used where it is there */
    OCTAVO_BIAS_NEEDED,
} octavo_bias;

typedef struct octavo_model_config {
    const char *architecture;        /* of the family's table; lives forever */
    const octavo_weight_name *names; /* the family's own; lives forever, may be NULL */
    int n_layers;
    int64_t d, n_heads, n_kv_heads, head_dim, rope_dim, ffw, vocab, context;
    float norm_eps;
    float norm_offset; /* added to the scales of norms as they are in the file */
    float embed_scale;
    float attention_scale;
    octavo_activation activation;
    octavo_rope_pairing pairing;
    octavo_bias qkv_bias, attn_o_bias, ffw_bias;
    bool has_qk_norm;
    bool has_post_norms;
    bool is_tied; /* the embedding is the output too */

    int n_ropes;
    octavo_rope_config ropes[OCTAVO_MAX_ROPES];
    octavo_layer_config *layers; /* [n_layers] */
} octavo_model_config;

/* The whole configuration: common numbers, then the family's. On failure *config is empty. Statuses
 * as config_read.h, and UNSUPPORTED for what this version cannot run. */
OCTAVO_MUST_CHECK octavo_status octavo_config_load(octavo_model_config *config,
                                                   const octavo_checkpoint *checkpoint,
                                                   octavo_error *error);
void octavo_config_deinit(octavo_model_config *config);

#endif
