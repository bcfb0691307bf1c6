/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model is, as numbers: read from a checkpoint's description, what all families share here
 * (config.c) and the rest by its family (family.h), used to build the step program. Immutable after
 * loading.
 */
#ifndef OCTAVO_MODEL_CONFIG_H
#define OCTAVO_MODEL_CONFIG_H

#include "model/checkpoint.h"
#include "model/config_note.h"
#include "model/config_quant.h"
#include "model/weight_name.h"
#include "program/program.h"

#include "octavo/model.h"

enum { OCTAVO_MAX_ROPES = 2, OCTAVO_NO_ROPE = -1 };

typedef enum octavo_rope_scaling {
    OCTAVO_ROPE_SCALING_NONE,
    OCTAVO_ROPE_SCALING_LINEAR, /* positions are divided by factor */
    OCTAVO_ROPE_SCALING_LLAMA3, /* by factor where waves are long, not at all where they are short
                                 */
    OCTAVO_ROPE_SCALING_YARN,   /* likewise, by the number of turns within the original context */
} octavo_rope_scaling;

/* One table of rotation speeds. */
typedef struct octavo_rope_config {
    float base;
    octavo_rope_scaling scaling;
    float factor;
    float low_factor, high_factor; /* LLAMA3, YARN: turns within the original context */
    float original_context;
    bool has_whole_bounds; /* YARN: the bounds between which it mixes are whole pairs */
    float scale;           /* of cos and sin */
    /* [rope_dim / 2] by which frequencies are divided, in sequences of up to original_context
     * positions and in longer ones; NULL: 1, and the same in both. */
    float *divisors, *long_divisors;
    float *frequencies, *long_frequencies; /* [rope_dim / 2] radians per position, f32; the latter
                                              NULL without long_divisors */
} octavo_rope_config;

/* Latent attention: one narrow row for all heads, the latent and behind it the rotated part of
 * their keys, is what the cache keeps. Queries are taken into its space, and what they attend out
 * of it. */
typedef struct octavo_latent_config {
    int64_t kv_rank;   /* width of the latent; 0: no latent attention */
    int64_t q_rank;    /* queries are made of a latent too; 0: of x */
    int64_t key_dim;   /* of a head, without the rotated part */
    int64_t value_dim; /* of a head */
    float norm_eps;    /* of latents */
} octavo_latent_config;

typedef struct octavo_layer_config {
    int rope;       /* index into ropes, or OCTAVO_NO_ROPE */
    int kv_layer;   /* whose keys and values it attends to: its own, or an earlier one's */
    int64_t window; /* of the attention; 0 none */
    int64_t chunk;  /* only keys of a position's own chunk; 0 none */
    bool is_sparse; /* feed-forward of experts */
} octavo_layer_config;

typedef enum octavo_bias {
    OCTAVO_BIAS_NONE,     /* not used, even where a tensor of the name is there */
    OCTAVO_BIAS_OPTIONAL, /* used where it is there */
    OCTAVO_BIAS_NEEDED,
} octavo_bias;

/* How the products of one kind lie in the checkpoint; they are taken apart when they are loaded. */
typedef enum octavo_fusion {
    OCTAVO_FUSION_NONE,  /* a tensor each */
    OCTAVO_FUSION_ROWS,  /* in one tensor: all rows of the first, then of the next */
    OCTAVO_FUSION_HEADS, /* in one tensor: q, k and v of the first head, then of the next */
} octavo_fusion;

typedef enum octavo_qk_norm {
    OCTAVO_QK_NORM_NONE,
    OCTAVO_QK_NORM_HEAD,  /* each head by itself, by the same scales */
    OCTAVO_QK_NORM_WHOLE, /* all heads together */
    OCTAVO_QK_NORM_ROPED, /* each head by itself without scales, behind the rope if there is one */
} octavo_qk_norm;

/* What a step depends on is compared in export_check.c. */
typedef struct octavo_model_config {
    const char *architecture;        /* of the family's table; lives forever */
    const octavo_weight_name *names; /* the family's own for the checkpoint's kind; lives forever,
                                        may be NULL */
    int n_layers;
    int64_t d, n_heads, n_kv_heads, head_dim, rope_dim, ffw, vocab, context;
    octavo_latent_config latent; /* with it n_kv_heads is 1 and head_dim that of the cached row */
    octavo_norm norm;
    float norm_eps;
    float norm_offset; /* added to the scales of norms as they are in the file */
    float embed_scale;
    float residual_scale; /* of what attention and feed-forward add */
    float logit_scale;
    float logit_soft_cap; /* 0 none */
    float attention_scale;
    float attention_soft_cap;       /* 0 none */
    octavo_temperature temperature; /* of layers without rope, or of all */
    bool has_temperature_everywhere;
    octavo_activation activation;
    float swiglu_limit; /* of its SWIGLU */
    octavo_rope_pairing pairing;
    octavo_bias qkv_bias, attn_o_bias, ffw_bias, norm_bias;
    octavo_bias expert_bias; /* of experts and their router */
    octavo_bias choice_bias; /* of the router's scores, for the choice only */
    octavo_qk_norm qk_norm;
    octavo_fusion qkv_fusion, gate_fusion;
    bool has_attn_norm, has_ffw_norm; /* before them */
    bool is_first_bare;               /* the first layer has no attention norm */
    bool has_post_norms;              /* behind them */
    bool has_sum_norms;               /* of their sums with what they were added to */
    bool has_output_norm;             /* behind the last layer */
    bool is_parallel;                 /* attention and feed-forward read the same x; without a norm
                                         of its own the latter takes the former's */
    bool has_gate;                    /* of the feed-forward; else act(up) */
    bool has_sinks;                   /* of attention */
    bool is_tied;                     /* the embedding is the output too */

    /* Encoders: a position sees the whole text, which is fed at once; there are no logits. */
    bool is_encoder;
    bool has_embed_norm;
    int64_t n_positions;    /* rows of the table of positions, 0: there is none; those from */
    int64_t first_position; /* this one on are used */
    int64_t n_types;        /* of tokens; 0: tokens have none */
    bool has_pooler;
    octavo_pooling pooling; /* what the model was trained for, else the usual one */

    /* Of sparse layers. A family that knows experts sets router.n_chosen. */
    int64_t n_experts;  /* 0 none */
    int64_t ffw_expert; /* feed-forward width of one */
    int64_t ffw_shared; /* of those that every token takes, together; 0 none */
    bool has_shared_gate;
    bool is_interleaved;     /* with those: gate and up take turns */
    bool has_expert_columns; /* in folders one tensor [experts, inputs, outputs] of gate and then
                                up, and one of down */
    octavo_router router;

    octavo_quant quant; /* of the folder */

    int n_ropes;
    octavo_rope_config ropes[OCTAVO_MAX_ROPES];
    octavo_layer_config *layers; /* [n_layers] */
    int n_kv_layers;             /* the first so many have keys and values of their own */
} octavo_model_config;

/* The whole configuration: common numbers, then the family's. On failure *config is empty. Statuses
 * as config_read.h, and UNSUPPORTED for what this version cannot run. */
OCTAVO_MUST_CHECK octavo_status octavo_config_load(octavo_model_config *config,
                                                   const octavo_checkpoint *checkpoint,
                                                   octavo_error *error);
/* Lanes of a cached key that are its value; 0: values lie apart. */
static inline int64_t octavo_config_value_lanes(const octavo_model_config *config) {
    return config->latent.kv_rank;
}

/* The same of a folder, noting what its config.json says under GGUF's keys. */
OCTAVO_MUST_CHECK octavo_status octavo_config_load_noted(octavo_model_config *config,
                                                         const octavo_checkpoint *checkpoint,
                                                         octavo_config_notes *notes,
                                                         octavo_error *error);
/* The longest sequence in which ropes turn by their short divisors, where they have others for
 * longer ones; else 0. */
int64_t octavo_config_short_length(const octavo_model_config *config);
void octavo_config_deinit(octavo_model_config *config);

#endif
