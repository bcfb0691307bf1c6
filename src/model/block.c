/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer block, step by step as in its header.
 */
#include "model/block.h"

#include "model/block_latent.h"

static int optional_norm(octavo_builder *builder, const octavo_block_desc *desc, const char *name,
                         int x, int scale, int bias) {
    if (scale == OCTAVO_NO_TENSOR) return x;
    return octavo_build_norm(builder, name, x,
                             &(octavo_norm_desc){desc->norm, scale, bias, desc->norm_eps},
                             desc->d_slices);
}

/* Of queries or keys. */
static int optional_qk_norm(octavo_builder *builder, const octavo_block_desc *desc,
                            const char *name, int x, int scale, octavo_slices slices) {
    if (scale == OCTAVO_NO_TENSOR) return x;
    if (desc->qk_norm == OCTAVO_QK_NORM_HEAD)
        return octavo_build_head_norm(builder, x, scale, desc->norm_eps);
    const octavo_norm_desc norm = {OCTAVO_NORM_RMS, scale, OCTAVO_NO_TENSOR, desc->norm_eps};
    return octavo_build_norm(builder, name, x, &norm, slices);
}

static int optional_rope(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    if (desc->rope_table == OCTAVO_NO_TENSOR) return x;
    return octavo_build_rope(builder, x, desc->rope_table, desc->pairing, 0);
}

static int width(octavo_builder *builder, int x) {
    return x == OCTAVO_NO_TENSOR ? 0 : (int)builder->program->tensors[x].extent[1];
}

/* Norm and rope of queries or keys, in the order of the model. */
static int norm_and_rotate(octavo_builder *builder, const octavo_block_desc *desc, const char *name,
                           int x, int scale, octavo_slices slices) {
    x = optional_qk_norm(builder, desc, name, x, scale, slices);
    x = optional_rope(builder, desc, x);
    if (desc->qk_norm == OCTAVO_QK_NORM_ROPED && desc->rope_table != OCTAVO_NO_TENSOR)
        x = octavo_build_head_norm(builder, x, OCTAVO_NO_TENSOR, desc->norm_eps);
    return x;
}

/* The quantised rows of x are shared by q, k and v where their weights all take them. */
static int attend(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    const octavo_slices d = desc->d_slices;
    const bool has_key = desc->attn_k != OCTAVO_NO_TENSOR;
    const int weights[3] = {desc->attn_q, desc->attn_k, desc->attn_v};
    int operands[3], k = OCTAVO_NO_TENSOR, v = OCTAVO_NO_TENSOR;
    octavo_build_operands(builder, "activation_q_td", x, weights, operands, has_key ? 3 : 1);
    int q = octavo_build_matmul(builder, "query_tnh", operands[0], desc->attn_q, desc->attn_q_bias,
                                d, "nh", desc->n_heads, desc->head_dim);
    if (has_key) {
        k = octavo_build_matmul(builder, "keyvalue_skh", operands[1], desc->attn_k,
                                desc->attn_k_bias, d, "kh", desc->n_kv_heads, desc->head_dim);
        v = octavo_build_matmul(builder, "keyvalue_skh", operands[2], desc->attn_v,
                                desc->attn_v_bias, d, "kh", desc->n_kv_heads, desc->head_dim);
        k = norm_and_rotate(builder, desc, "keyvalue_skh", k, desc->k_norm, desc->kh_slices);
    }
    q = norm_and_rotate(builder, desc, "query_tnh", q, desc->q_norm, desc->nh_slices);
    if (desc->temperature.period > 0.0f)
        q = octavo_build_temperature(builder, q, desc->temperature);
    return octavo_build_attention(builder, "attn_o_tnh",
                                  &(octavo_attention_desc){.query = q,
                                                           .key = k,
                                                           .value = v,
                                                           .cache = desc->cache,
                                                           .sink = desc->sinks,
                                                           .scale = desc->attention_scale,
                                                           .window = desc->window,
                                                           .chunk = desc->chunk,
                                                           .soft_cap = desc->soft_cap,
                                                           .is_encoder = desc->is_encoder});
}

static int attention(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    int operand;
    int attended = desc->latent.kv_rank > 0 ? octavo_latent_attention(builder, desc, x)
                                            : attend(builder, desc, x);
    octavo_build_operands(builder, "attn_o_tnh", attended, &desc->attn_o, &operand, 1);
    return octavo_build_matmul(builder, "activation_attention_out_td", operand, desc->attn_o,
                               desc->attn_o_bias, desc->nh_slices, "d", width(builder, x), 1);
}

static int feed_forward(octavo_builder *builder, const octavo_block_desc *desc,
                        const octavo_ffw_desc *ffw, int x) {
    const octavo_slices d = desc->d_slices;
    const bool has_gate = ffw->gate != OCTAVO_NO_TENSOR;
    const int weights[2] = {ffw->up, ffw->gate};
    int operands[2], operand, gate = OCTAVO_NO_TENSOR;
    octavo_build_operands(builder, "activation_ffw_td", x, weights, operands, has_gate ? 2 : 1);
    if (has_gate)
        gate = octavo_build_matmul(builder, "ffw_hidden_tf", operands[1], ffw->gate, ffw->gate_bias,
                                   d, "f", ffw->width, 1);
    int up = octavo_build_matmul(builder, "ffw_hidden_tf", operands[0], ffw->up, ffw->up_bias, d,
                                 "f", ffw->width, 1);
    int hidden =
        octavo_build_gate(builder, "ffw_hidden_tf", has_gate ? gate : up,
                          has_gate ? up : OCTAVO_NO_TENSOR, desc->activation, desc->swiglu_limit);
    octavo_build_operands(builder, "ffw_hidden_tf", hidden, &ffw->down, &operand, 1);
    return octavo_build_matmul(builder, "activation_ffw_out_td", operand, ffw->down, ffw->down_bias,
                               ffw->slices, "d", width(builder, x), 1);
}

static bool has_orders(const octavo_builder *builder, const int *weights) {
    for (int i = 0; i < 2; i++)
        if (weights[i] != OCTAVO_NO_TENSOR && builder->program->tensors[weights[i]].weight->order)
            return true;
    return false;
}

/* Rows are gathered once for all weights that take them in the same form. Rows that are weighted
 * first, or put in an order by each expert, are quantised afterwards. */
static void gather(octavo_builder *builder, const octavo_router *router, int x, int route,
                   const int *weights, int *gathered) {
    int operands[2];
    if (router->is_for_input || has_orders(builder, weights)) {
        x = octavo_build_gather(builder, "activation_ffw_ted", x, route, router);
        octavo_build_operands(builder, "activation_ffw_ted", x, weights, gathered, 2);
        return;
    }
    octavo_build_operands(builder, "activation_ffw_td", x, weights, operands, 2);
    gathered[0] = octavo_build_gather(builder, "activation_ffw_ted", operands[0], route, router);
    gathered[1] = operands[1] == operands[0] ? gathered[0]
                                             : octavo_build_gather(builder, "activation_ffw_ted",
                                                                   operands[1], route, router);
}

static int experts(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    const octavo_ffw_desc *ffw = &desc->ffw;
    const int weights[2] = {ffw->gate, ffw->up};
    int operand, gathered[2];
    octavo_build_operands(builder, "activation_ffw_td", x, &desc->router_weight, &operand, 1);
    const int64_t n = desc->router_weight == OCTAVO_NO_TENSOR
                          ? 0
                          : builder->program->tensors[desc->router_weight].extent[1];
    int logits = octavo_build_matmul(builder, "router_logits_te", operand, desc->router_weight,
                                     desc->router_bias, desc->d_slices, "e", n, 1);
    int route =
        octavo_build_route(builder, "router_choice_tc", logits, desc->choice_bias, &desc->router);
    gather(builder, &desc->router, x, route, weights, gathered);
    int gate = octavo_build_expert_matmul(builder, "moe_hidden_tef", gathered[0], ffw->gate,
                                          ffw->gate_bias, route, desc->d_slices, 'f');
    int up = octavo_build_expert_matmul(builder, "moe_hidden_tef", gathered[1], ffw->up,
                                        ffw->up_bias, route, desc->d_slices, 'f');
    int hidden = octavo_build_gate(builder, "moe_hidden_tef", gate, up, desc->activation,
                                   desc->swiglu_limit);
    octavo_build_operands(builder, "moe_hidden_tef", hidden, &ffw->down, &operand, 1);
    int out = octavo_build_expert_matmul(builder, "moe_out_ted", operand, ffw->down, ffw->down_bias,
                                         route, ffw->slices, 'd');
    return octavo_build_combine(builder, "activation_ffw_out_td", out, route, &desc->router);
}

static int shared_experts(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    int out = feed_forward(builder, desc, &desc->shared, x), operand;
    if (desc->shared_router == OCTAVO_NO_TENSOR) return out;
    octavo_build_operands(builder, "activation_ffw_td", x, &desc->shared_router, &operand, 1);
    int gate = octavo_build_matmul(builder, "shared_gate_te", operand, desc->shared_router,
                                   OCTAVO_NO_TENSOR, desc->d_slices, "e", 1, 1);
    return octavo_build_row_gate(builder, out, gate);
}

static int any_feed_forward(octavo_builder *builder, const octavo_block_desc *desc, int x,
                            bool has_shared) {
    switch (desc->ffw_kind) {
    case OCTAVO_FFW_DENSE:
        return feed_forward(builder, desc, &desc->ffw, x);
    case OCTAVO_FFW_EXPERTS:
        break;
    default:
        return octavo_build_reject(builder, "activation_ffw_out_td",
                                   "a feed-forward that is neither dense nor of experts");
    }
    int out = experts(builder, desc, x);
    if (!has_shared) return out;
    return octavo_build_add(builder, "activation_ffw_out_td", out, shared_experts(builder, desc, x),
                            1.0f);
}

static int block(octavo_builder *builder, const octavo_block_desc *desc, int x, bool has_shared) {
    const float scale = desc->residual_scale;
    int normed = optional_norm(builder, desc, "activation_attention_td", x, desc->attn_norm,
                               desc->attn_norm_bias);
    int a = attention(builder, desc, normed);
    a = optional_norm(builder, desc, "activation_attention_out_td", a, desc->post_attn_norm,
                      OCTAVO_NO_TENSOR);
    int sum = octavo_build_add(builder, "activation_td", x, a, scale);
    sum = optional_norm(builder, desc, "activation_td", sum, desc->attn_sum_norm,
                        desc->attn_sum_norm_bias);
    int from = sum;
    if (desc->is_parallel) from = desc->ffw_norm == OCTAVO_NO_TENSOR ? normed : x;
    int f = optional_norm(builder, desc, "activation_ffw_td", from, desc->ffw_norm,
                          desc->ffw_norm_bias);
    f = any_feed_forward(builder, desc, f, has_shared);
    f = optional_norm(builder, desc, "activation_ffw_out_td", f, desc->post_ffw_norm,
                      OCTAVO_NO_TENSOR);
    sum = octavo_build_add(builder, "activation_td", sum, f, scale);
    return optional_norm(builder, desc, "activation_td", sum, desc->ffw_sum_norm,
                         desc->ffw_sum_norm_bias);
}

int octavo_transformer_block(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    return block(builder, desc, x, false);
}

int octavo_shared_experts_block(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    return block(builder, desc, x, true);
}
