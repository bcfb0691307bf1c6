/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention. Scores are formed in the space of the latent in every step, be it of one token
 * or of many: keys and values of the heads are never made, so a chunk does not change bits.
 */
#include "model/block_latent.h"

/* Queries [t, n, key_dim + rope_dim]; operand: x as their first weight takes it. */
static int queries(octavo_builder *builder, const octavo_block_desc *desc, int operand) {
    const octavo_latent_desc *l = &desc->latent;
    const int64_t width = l->key_dim + l->rope_dim;
    const octavo_norm_desc norm = {OCTAVO_NORM_RMS, l->q_norm, OCTAVO_NO_TENSOR, l->norm_eps};
    if (l->q_rank == 0)
        return octavo_build_matmul(builder, "query_tnh", operand, desc->attn_q, OCTAVO_NO_TENSOR,
                                   desc->d_slices, "nh", desc->n_heads, width);
    int q = octavo_build_matmul(builder, "query_latent_tl", operand, l->q_a, l->q_a_bias,
                                desc->d_slices, "l", l->q_rank, 1);
    q = octavo_build_norm(builder, "query_latent_tl", q, &norm, l->q_slices);
    octavo_build_operands(builder, "query_latent_tl", q, &l->q_b, &operand, 1);
    return octavo_build_matmul(builder, "query_tnh", operand, l->q_b, OCTAVO_NO_TENSOR, l->q_slices,
                               "nh", desc->n_heads, width);
}

static int rotate(octavo_builder *builder, const octavo_block_desc *desc, int x,
                  int64_t first_lane) {
    if (desc->rope_table == OCTAVO_NO_TENSOR) return x;
    return octavo_build_rope(builder, x, desc->rope_table, desc->pairing, first_lane);
}

int octavo_latent_attention(octavo_builder *builder, const octavo_block_desc *desc, int x) {
    const octavo_latent_desc *l = &desc->latent;
    const int weights[2] = {l->q_rank > 0 ? l->q_a : desc->attn_q, l->kv_a};
    int operands[2];
    octavo_build_operands(builder, "activation_q_td", x, weights, operands, 2);
    int q = queries(builder, desc, operands[0]);
    q = rotate(builder, desc, q, l->key_dim);
    q = octavo_build_head_matmul(builder, "query_tnh", q, l->k_b, l->key_slices);
    if (desc->temperature.period > 0.0f)
        q = octavo_build_temperature(builder, q, desc->temperature);
    int k = octavo_build_matmul(builder, "keyvalue_skh", operands[1], l->kv_a, l->kv_a_bias,
                                desc->d_slices, "kh", 1, desc->head_dim);
    k = octavo_build_head_norm(builder, k, l->kv_norm, l->norm_eps);
    k = rotate(builder, desc, k, l->kv_rank);
    int latent = octavo_build_attention(builder, "attn_o_tnh",
                                        &(octavo_attention_desc){.query = q,
                                                                 .key = k,
                                                                 .value = OCTAVO_NO_TENSOR,
                                                                 .value_lanes = l->kv_rank,
                                                                 .cache = desc->cache,
                                                                 .sink = desc->sinks,
                                                                 .scale = desc->attention_scale,
                                                                 .window = desc->window,
                                                                 .chunk = desc->chunk,
                                                                 .soft_cap = desc->soft_cap});
    return octavo_build_head_matmul(builder, "attn_o_tnh", latent, l->v_b, l->kv_slices);
}
