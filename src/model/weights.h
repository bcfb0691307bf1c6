/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's weights, bound once: names are looked up here, shapes checked here, and nowhere later.
 * Matrices are packed (kernels/weight.h) as they stream through the file, one tensor at a time;
 * vectors become f32. Immutable after loading.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_H
#define OCTAVO_MODEL_WEIGHTS_H

#include "base/thread.h"
#include "model/checkpoint.h"
#include "model/config.h"

#include "octavo/model.h"

/* With a q_rank q_a and q_b are there in place of attn_q. */
typedef struct octavo_latent_weights {
    octavo_weight q_a, q_b; /* [rank, d], [n (key + rope), rank] */
    octavo_weight kv_a;     /* [rank + rope, d] */
    octavo_weight k_b, v_b; /* stacks of n: [rank, key], [value, rank] */
    const float *q_a_bias, *kv_a_bias, *q_norm, *kv_norm;
} octavo_latent_weights;

typedef struct octavo_layer_weights {
    octavo_latent_weights latent; /* with config.latent, in place of attn_k and attn_v */
    octavo_weight attn_q, attn_k, attn_v, attn_o; /* [n h, d], [k h, d], [k h, d], [d, n h] */
    octavo_weight ffw_gate, ffw_up, ffw_down;     /* [f, d] with config.has_gate, [f, d], [d, f] */
    octavo_weight router;                         /* [e, d] of sparse layers, which have the */
    octavo_weight expert_gate, expert_up;         /* stacks of [f, d] and [d, f] in place of */
    octavo_weight expert_down;                    /* the three above */
    octavo_weight shared_gate, shared_up;         /* [f, d], with config.ffw_shared */
    octavo_weight shared_down, shared_router;     /* [d, f]; [1, d] with has_shared_gate */
    const float *attn_q_bias, *attn_k_bias, *attn_v_bias; /* [n h], [k h], [k h], or NULL */
    const float *attn_o_bias, *ffw_down_bias;             /* [d], or NULL */
    const float *ffw_gate_bias, *ffw_up_bias;             /* [f], or NULL */
    const float *attn_norm, *ffw_norm;                    /* [d], or NULL */
    const float *attn_norm_bias, *ffw_norm_bias;          /* [d], or NULL */
    const float *post_attn_norm, *post_ffw_norm;          /* [d], or NULL */
    const float *attn_sum_norm, *attn_sum_norm_bias;      /* [d], or NULL */
    const float *ffw_sum_norm, *ffw_sum_norm_bias;        /* [d], or NULL */
    const float *sinks;                                   /* [n] with config.has_sinks */
    const float *router_bias, *choice_bias;               /* [e], or NULL */
    const float *expert_gate_bias, *expert_up_bias, *expert_down_bias; /* [e f], [e d], or NULL */
    const float *q_norm, *k_norm; /* [h] or [n h] and [k h] by config.qk_norm */
} octavo_layer_weights;

typedef struct octavo_model_weights {
    octavo_weight embed;  /* [v, d] */
    octavo_weight output; /* [v, d]; the same data as embed where is_tied */
    bool is_tied;
    const float *output_norm;                  /* [d], or NULL */
    const float *output_norm_bias;             /* [d], or NULL */
    octavo_weight positions;                   /* [context, d] with config.n_positions */
    octavo_weight types;                       /* [types, d] with config.n_types */
    const float *embed_norm, *embed_norm_bias; /* [d], or NULL */
    octavo_weight pooler;                      /* [d, d] with config.has_pooler */
    const float *pooler_bias;                  /* [d], or NULL */
    octavo_layer_weights *layers;              /* [n_layers] */
    int n_layers;

    octavo_arena arena; /* layers, vectors */
    void **matrices;    /* every packed matrix, to free */
    int n_matrices, capacity_matrices;
    uint64_t source_bytes; /* of what is held: in the file, and packed */
    uint64_t packed_bytes;
} octavo_model_weights;

/* Which matrix or vector of a model's weights: the same wherever the model is bound, with data or
 * without. */
typedef struct octavo_weight_member {
    int layer;     /* or OCTAVO_NO_LAYER */
    size_t offset; /* in octavo_layer_weights, or without a layer in octavo_model_weights */
} octavo_weight_member;

/* Of the address of an octavo_weight, or of a pointer to a vector, in the weights or their layers.
 */
octavo_weight_member octavo_weights_member(const octavo_model_weights *weights,
                                           const void *address);

/* What a rank holds of a matrix: outputs [n0, n1), inputs [k0, k1), of a stack matrices [e0, e1).
 * Any may be empty. What is held is a matrix of its own, whose panels begin at output n0: its
 * extents are those of the part, factors and order its own, and a place of its inputs is that of
 * the whole less k0. An empty one has no data (and a stack of none is 0 high). Vectors have no more
 * than outputs, those of experts matrices too. */
typedef struct octavo_weight_part {
    int64_t n0, n1, k0, k1, e0, e1;
} octavo_weight_part;

struct octavo_bound; /* weights_load.h */

typedef struct octavo_weights_options {
    octavo_pool *pool; /* packs with it; NULL: bind types and shapes only, data stays NULL */
    int team;          /* of the pool, whose memory matrices are to be where it has several */
    octavo_weights weights;
    /* Called after each tensor with bytes done and in all; a value other than 0 stops the load
     * (OCTAVO_ERROR_CANCELLED). May be NULL. */
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *cookie;
    /* Called for each matrix and vector, perhaps more than once and each time with the same answer:
     * narrows *part, which comes as the whole. Inputs are cut at multiples of the record_inputs of
     * the packed type (and at the end). Only the part is read, packed and counted. Tied weights
     * have no output of their own. NULL: all are whole. */
    void (*place)(void *place_cookie, const octavo_weight_member *member, octavo_weight_part *part);
    void *place_cookie;
    /* Called for each matrix, of a stack for each expert's, and for each vector as it is bound. May
     * be NULL. */
    octavo_status (*visit)(void *cookie, const struct octavo_bound *bound);
} octavo_weights_options;

/* On failure *weights is empty. Statuses as octavo_checkpoint_get, and UNSUPPORTED for a tensor
 * type without a packed form, FORMAT for another shape than the configuration's, or values that
 * cannot be quantised, INVALID for a part that is none. */
OCTAVO_MUST_CHECK octavo_status octavo_weights_load(octavo_model_weights *weights,
                                                    const octavo_checkpoint *checkpoint,
                                                    const octavo_model_config *config,
                                                    const octavo_weights_options *options,
                                                    octavo_error *error);
void octavo_weights_deinit(octavo_model_weights *weights);

#endif
