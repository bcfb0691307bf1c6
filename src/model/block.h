/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer block: a description becomes ops of the step program.
 *
 *   attention = Wo attend(rope(qnorm(Wq a)), rope(knorm(Wk a)), Wv a),   a = norm(x)
 *   x = sumnorm(x + postnorm(attention))
 *   x = sumnorm(x + postnorm(Wdown (act(Wgate f) * Wup f))),              f = norm(x)
 *
 * with biases at the products, and everything optional left out where its tensor is
 * OCTAVO_NO_TENSOR: norms, rope, the gate (then act(Wup f)). In a parallel block f is norm of the
 * block's own x, or a, where it has no norm for it. What is added to x may be scaled.
 *
 * A feed-forward of experts is the weighted sum of those that each token chooses; with a shared one
 * it is added to, by sigmoid(g f) where there is a g.
 */
#ifndef OCTAVO_MODEL_BLOCK_H
#define OCTAVO_MODEL_BLOCK_H

#include "model/config.h"
#include "program/build.h"

typedef enum octavo_ffw_kind {
    OCTAVO_FFW_DENSE,
    OCTAVO_FFW_EXPERTS,
} octavo_ffw_kind;

/* Weights of a feed-forward, and its width. */
typedef struct octavo_ffw_desc {
    int64_t width;
    octavo_slices slices; /* of it */
    int gate, up, down;   /* gate may be OCTAVO_NO_TENSOR; of experts they are stacks */
    int gate_bias, up_bias, down_bias;
} octavo_ffw_desc;

/* Latent attention, in place of keys and values (and with a q_rank of attn_q):
 *
 *   l = norm(kv_a a)                  the latent, behind it the rotated part of keys, r = rope(...)
 *   q = attn_q a, or q_b norm(q_a a)  of each head: key_dim lanes, and those that rotate
 *   attend(k_b q | rope(q), l | r, l) of each head in the space of the latent, then v_b times it
 */
typedef struct octavo_latent_desc {
    int64_t q_rank, kv_rank, key_dim, rope_dim; /* kv_rank 0: none */
    octavo_slices q_slices, kv_slices, key_slices;
    float norm_eps;
    int q_a, q_a_bias, q_norm, q_b;
    int kv_a, kv_a_bias, kv_norm, k_b, v_b;
} octavo_latent_desc;

typedef struct octavo_block_desc {
    int64_t n_heads, n_kv_heads, head_dim;
    octavo_latent_desc latent;
    octavo_slices d_slices, nh_slices, kh_slices; /* of the axes summed over */
    octavo_norm norm;                             /* of norms over d */
    float norm_eps;
    float residual_scale;
    bool is_parallel;

    /* Tensors made with octavo_build_weight and octavo_build_vector. */
    int attn_norm, attn_norm_bias, post_attn_norm;
    int ffw_norm, ffw_norm_bias, post_ffw_norm;
    int attn_sum_norm, attn_sum_norm_bias; /* of the sums */
    int ffw_sum_norm, ffw_sum_norm_bias;
    int attn_q, attn_k, attn_v, attn_o; /* k and v OCTAVO_NO_TENSOR: cache is an earlier layer's */
    int attn_q_bias, attn_k_bias, attn_v_bias, attn_o_bias;
    octavo_qk_norm qk_norm;
    int q_norm, k_norm;
    octavo_ffw_kind ffw_kind;
    octavo_ffw_desc ffw;
    octavo_router router; /* of experts */
    int router_weight, router_bias, choice_bias;
    octavo_ffw_desc shared; /* of octavo_shared_experts_block */
    int shared_router;      /* or OCTAVO_NO_TENSOR */

    int rope_table; /* or OCTAVO_NO_TENSOR: no rope */
    octavo_rope_pairing pairing;
    int cache;
    float attention_scale;
    int64_t window, chunk; /* 0 none */
    bool is_encoder;       /* a position sees later ones too */
    octavo_temperature temperature;
    float soft_cap; /* of the attention logits; 0 none */
    int sinks;      /* or OCTAVO_NO_TENSOR */
    octavo_activation activation;
    float swiglu_limit;
} octavo_block_desc;

/* Appends one block to x [t, d]; gives the block's result [t, d]. An unknown kind of feed-forward
 * is a mistake that octavo_build_finish reports. */
int octavo_transformer_block(octavo_builder *builder, const octavo_block_desc *desc, int x);
/* The same with shared experts beside the others. With a dense feed-forward it is the plain block.
 */
int octavo_shared_experts_block(octavo_builder *builder, const octavo_block_desc *desc, int x);

#endif
