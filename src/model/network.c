/* SPDX-License-Identifier: Apache-2.0
 *
 * From configuration and weights to the step program.
 */
#include "model/network.h"

#include "model/block.h"
#include "model/weights_shape.h"

/* The largest quantisation block among `weights`: what a slice of their input axis may not cut. */
static int64_t block_of(const octavo_weight *weight, int64_t unit) {
    int64_t inputs = octavo_weight_info_of(weight->type)->record_inputs;
    return inputs > unit ? inputs : unit;
}

/* The largest block among weights that meet on one axis. */
static int64_t block_of_all(const octavo_weight *const *weights, size_t n, int64_t unit) {
    for (size_t i = 0; i < n; i++)
        unit = block_of(weights[i], unit);
    return unit;
}

static void cut_slices(octavo_network *network) {
    const octavo_model_config *config = &network->config;
    int64_t d = block_of(&network->weights.output, 1), nh = 1, f = 1, expert = 1, shared = 1;
    int64_t q = 1, kv = 1, key = 1;
    if (config->has_pooler) d = block_of(&network->weights.pooler, d);
    for (int i = 0; i < config->n_layers; i++) {
        const octavo_layer_weights *w = &network->weights.layers[i];
        const octavo_weight *always[] = {&w->attn_q, &w->attn_k, &w->attn_v};
        const octavo_weight *dense[] = {&w->ffw_up, &w->ffw_gate};
        const octavo_weight *sparse[] = {&w->router, &w->expert_gate, &w->expert_up};
        const octavo_weight *beside[] = {&w->shared_gate, &w->shared_up, &w->shared_router};
        nh = block_of(&w->attn_o, nh);
        d = block_of(&w->latent.q_a, block_of(&w->latent.kv_a, d));
        q = block_of(&w->latent.q_b, q);
        kv = block_of(&w->latent.v_b, kv);
        key = block_of(&w->latent.k_b, key);
        d = block_of_all(always, OCTAVO_COUNT(always), d);
        if (!config->layers[i].is_sparse) {
            d = block_of_all(dense, config->has_gate ? 2 : 1, d);
            f = block_of(&w->ffw_down, f);
            continue;
        }
        d = block_of_all(sparse, OCTAVO_COUNT(sparse), d);
        expert = block_of(&w->expert_down, expert);
        if (config->ffw_shared == 0) continue;
        d = block_of_all(beside, config->has_shared_gate ? 3 : 2, d);
        shared = block_of(&w->shared_down, shared);
    }
    network->d_slices = octavo_slices_make(config->d, d);
    const octavo_latent_config *latent = &config->latent;
    const int64_t head = latent->kv_rank > 0 ? latent->value_dim : config->head_dim;
    network->nh_slices = octavo_slices_make(config->n_heads * head, octavo_slices_unit(head, nh));
    network->kh_slices =
        octavo_slices_make(config->n_kv_heads * config->head_dim, config->head_dim);
    if (latent->q_rank > 0) network->q_slices = octavo_slices_make(latent->q_rank, q);
    if (latent->kv_rank > 0) {
        network->kv_slices = octavo_slices_make(latent->kv_rank, kv);
        network->key_slices = octavo_slices_make(latent->key_dim, key);
    }
    network->f_slices = octavo_slices_make(config->ffw, f);
    if (config->ffw_expert > 0)
        network->expert_slices = octavo_slices_make(config->ffw_expert, expert);
    if (config->ffw_shared > 0)
        network->shared_slices = octavo_slices_make(config->ffw_shared, shared);
}

octavo_status octavo_network_load(octavo_network *network, const octavo_checkpoint *checkpoint,
                                  const octavo_weights_options *options, octavo_error *error) {
    *network = (octavo_network){0};
    octavo_status status = octavo_config_load(&network->config, checkpoint, error);
    if (status) return status;
    status = octavo_weights_load(&network->weights, checkpoint, &network->config, options, error);
    if (status) {
        octavo_config_deinit(&network->config);
        return status;
    }
    cut_slices(network);
    return OCTAVO_OK;
}

octavo_status octavo_network_shape(octavo_network *network, const octavo_checkpoint *checkpoint,
                                   octavo_weight_type type, octavo_error *error) {
    *network = (octavo_network){0};
    octavo_status status = octavo_config_load(&network->config, checkpoint, error);
    if (status) return status;
    status = octavo_weights_shape(&network->weights, &network->config, type, error);
    if (status) {
        octavo_config_deinit(&network->config);
        return status;
    }
    cut_slices(network);
    return OCTAVO_OK;
}

void octavo_network_deinit(octavo_network *network) {
    octavo_weights_deinit(&network->weights);
    octavo_config_deinit(&network->config);
    *network = (octavo_network){0};
}

/* ---- the program ---- */

static int vector_or_none(octavo_builder *builder, const char *name, char axis, const float *vector,
                          int64_t extent) {
    const char axes[] = {axis, 0};
    return vector ? octavo_build_vector(builder, name, axes, vector, &extent) : OCTAVO_NO_TENSOR;
}

/* Likewise on two axes. */
static int vectors_or_none(octavo_builder *builder, const char *name, const char *axes,
                           const float *vector, int64_t extent, int64_t width) {
    const int64_t extents[] = {extent, width};
    return vector ? octavo_build_vector(builder, name, axes, vector, extents) : OCTAVO_NO_TENSOR;
}

static octavo_block_desc describe_sizes(const octavo_network *network) {
    const octavo_model_config *c = &network->config;
    return (octavo_block_desc){
        .n_heads = c->n_heads,
        .n_kv_heads = c->n_kv_heads,
        .head_dim = c->head_dim,
        .d_slices = network->d_slices,
        .nh_slices = network->nh_slices,
        .kh_slices = network->kh_slices,
        .norm = c->norm,
        .norm_eps = c->norm_eps,
        .residual_scale = c->residual_scale,
        .is_parallel = c->is_parallel,
        .qk_norm = c->qk_norm,
        .pairing = c->pairing,
        .attention_scale = c->attention_scale,
        .soft_cap = c->attention_soft_cap,
        .is_encoder = c->is_encoder,
        .activation = c->activation,
        .swiglu_limit = c->swiglu_limit,
        .router = c->router,
    };
}

static octavo_latent_desc describe_latent(octavo_builder *builder, const octavo_network *network,
                                          const octavo_layer_weights *w) {
    const octavo_model_config *c = &network->config;
    const octavo_latent_config *l = &c->latent;
    const int64_t head = l->key_dim + c->rope_dim;
    const int64_t dq[] = {c->d, l->q_rank}, qnh[] = {l->q_rank, c->n_heads, head};
    const int64_t dl[] = {c->d, c->head_dim}, nhl[] = {c->n_heads, l->key_dim, l->kv_rank};
    const int64_t nlh[] = {c->n_heads, l->kv_rank, l->value_dim};
    octavo_latent_desc desc = {
        .q_rank = l->q_rank,
        .kv_rank = l->kv_rank,
        .key_dim = l->key_dim,
        .rope_dim = c->rope_dim,
        .q_slices = network->q_slices,
        .kv_slices = network->kv_slices,
        .key_slices = network->key_slices,
        .norm_eps = l->norm_eps,
        .kv_a = octavo_build_weight(builder, "attn_kv_a_weight_dl", &w->latent.kv_a, dl),
        .kv_a_bias =
            vector_or_none(builder, "attn_kv_a_bias_l", 'l', w->latent.kv_a_bias, c->head_dim),
        .kv_norm =
            vector_or_none(builder, "latent_norm_scale_l", 'l', w->latent.kv_norm, l->kv_rank),
        .k_b = octavo_build_weight(builder, "attn_k_b_weight_nhl", &w->latent.k_b, nhl),
        .v_b = octavo_build_weight(builder, "attn_v_b_weight_nlh", &w->latent.v_b, nlh),
    };
    if (l->q_rank == 0) return desc;
    desc.q_a = octavo_build_weight(builder, "attn_q_a_weight_dl", &w->latent.q_a, dq);
    desc.q_a_bias = vector_or_none(builder, "attn_q_a_bias_l", 'l', w->latent.q_a_bias, l->q_rank);
    desc.q_norm = vector_or_none(builder, "latent_norm_scale_l", 'l', w->latent.q_norm, l->q_rank);
    desc.q_b = octavo_build_weight(builder, "attn_q_b_weight_lnh", &w->latent.q_b, qnh);
    return desc;
}

static void describe_qkv(octavo_builder *builder, const octavo_model_config *c,
                         const octavo_layer_weights *w, bool has_key, octavo_block_desc *desc) {
    const int64_t dnh[] = {c->d, c->n_heads, c->head_dim},
                  dkh[] = {c->d, c->n_kv_heads, c->head_dim};
    const int64_t h = c->head_dim;
    const bool is_whole = c->qk_norm == OCTAVO_QK_NORM_WHOLE;
    desc->attn_q = octavo_build_weight(builder, "attn_q_weight_dnh", &w->attn_q, dnh);
    desc->attn_k = desc->attn_v = OCTAVO_NO_TENSOR;
    if (has_key) {
        desc->attn_k = octavo_build_weight(builder, "attn_k_weight_dkh", &w->attn_k, dkh);
        desc->attn_v = octavo_build_weight(builder, "attn_v_weight_dkh", &w->attn_v, dkh);
    }
    desc->attn_q_bias =
        vectors_or_none(builder, "attn_q_bias_nh", "nh", w->attn_q_bias, c->n_heads, h);
    desc->attn_k_bias =
        vectors_or_none(builder, "attn_k_bias_kh", "kh", w->attn_k_bias, c->n_kv_heads, h);
    desc->attn_v_bias =
        vectors_or_none(builder, "attn_v_bias_kh", "kh", w->attn_v_bias, c->n_kv_heads, h);
    desc->q_norm =
        is_whole ? vectors_or_none(builder, "query_norm_scale_nh", "nh", w->q_norm, c->n_heads, h)
                 : vector_or_none(builder, "head_norm_scale_h", 'h', w->q_norm, c->head_dim);
    desc->k_norm =
        is_whole ? vectors_or_none(builder, "key_norm_scale_kh", "kh", w->k_norm, c->n_kv_heads, h)
                 : vector_or_none(builder, "head_norm_scale_h", 'h', w->k_norm, c->head_dim);
}

/* The cache that a layer, the one at hand or an earlier one, has. */
static int cache_of(octavo_builder *builder, const octavo_model_config *c, int layer) {
    if (layer == builder->layer)
        return octavo_build_cache(builder, "keyvalue_skh", c->n_kv_heads, c->head_dim);
    for (int i = 0; i < builder->program->n_tensors; i++) {
        const octavo_tensor *tensor = &builder->program->tensors[i];
        if (tensor->kind == OCTAVO_TENSOR_CACHE && tensor->layer == layer) return i;
    }
    return OCTAVO_NO_TENSOR;
}

static void describe_attention(octavo_builder *builder, const octavo_network *network, int layer,
                               octavo_block_desc *desc) {
    const octavo_model_config *c = &network->config;
    const octavo_layer_weights *w = &network->weights.layers[layer];
    const int source = c->layers[layer].kv_layer;
    const bool is_latent = c->latent.kv_rank > 0;
    const int64_t nhd[] = {c->n_heads, is_latent ? c->latent.value_dim : c->head_dim, c->d};
    const int64_t lnh[] = {c->d, c->n_heads, c->latent.key_dim + c->rope_dim};
    desc->attn_norm = vector_or_none(builder, "norm_scale", 'd', w->attn_norm, c->d);
    desc->attn_norm_bias = vector_or_none(builder, "norm_bias", 'd', w->attn_norm_bias, c->d);
    desc->post_attn_norm = vector_or_none(builder, "norm_scale", 'd', w->post_attn_norm, c->d);
    if (is_latent)
        desc->latent = describe_latent(builder, network, w);
    else
        describe_qkv(builder, c, w, source == layer, desc);
    if (is_latent && c->latent.q_rank == 0)
        desc->attn_q = octavo_build_weight(builder, "attn_q_weight_dnh", &w->attn_q, lnh);
    desc->attn_o = octavo_build_weight(builder, "attn_o_weight_nhd", &w->attn_o, nhd);
    desc->attn_o_bias = vector_or_none(builder, "attn_o_bias_d", 'd', w->attn_o_bias, c->d);
    desc->sinks = vector_or_none(builder, "attn_sinks_n", 'n', w->sinks, c->n_heads);
    desc->cache = cache_of(builder, c, source);
}

static void describe_ffw_norms(octavo_builder *builder, const octavo_model_config *c,
                               const octavo_layer_weights *w, octavo_block_desc *desc) {
    desc->ffw_norm = vector_or_none(builder, "norm_scale", 'd', w->ffw_norm, c->d);
    desc->ffw_norm_bias = vector_or_none(builder, "norm_bias", 'd', w->ffw_norm_bias, c->d);
    desc->post_ffw_norm = vector_or_none(builder, "norm_scale", 'd', w->post_ffw_norm, c->d);
    desc->attn_sum_norm = vector_or_none(builder, "norm_scale", 'd', w->attn_sum_norm, c->d);
    desc->attn_sum_norm_bias =
        vector_or_none(builder, "norm_bias", 'd', w->attn_sum_norm_bias, c->d);
    desc->ffw_sum_norm = vector_or_none(builder, "norm_scale", 'd', w->ffw_sum_norm, c->d);
    desc->ffw_sum_norm_bias = vector_or_none(builder, "norm_bias", 'd', w->ffw_sum_norm_bias, c->d);
}

static octavo_ffw_desc describe_ffw(octavo_builder *builder, const octavo_network *network,
                                    const octavo_layer_weights *w) {
    const octavo_model_config *c = &network->config;
    const int64_t df[] = {c->d, c->ffw}, fd[] = {c->ffw, c->d};
    return (octavo_ffw_desc){
        .width = c->ffw,
        .slices = network->f_slices,
        .gate = c->has_gate ? octavo_build_weight(builder, "ffw_weight_df", &w->ffw_gate, df)
                            : OCTAVO_NO_TENSOR,
        .up = octavo_build_weight(builder, "ffw_weight_df", &w->ffw_up, df),
        .down = octavo_build_weight(builder, "ffw_weight_fd", &w->ffw_down, fd),
        .gate_bias = vector_or_none(builder, "ffw_bias_f", 'f', w->ffw_gate_bias, c->ffw),
        .up_bias = vector_or_none(builder, "ffw_bias_f", 'f', w->ffw_up_bias, c->ffw),
        .down_bias = vector_or_none(builder, "ffw_bias_d", 'd', w->ffw_down_bias, c->d),
    };
}

static octavo_ffw_desc describe_experts(octavo_builder *builder, const octavo_network *network,
                                        const octavo_layer_weights *w) {
    const octavo_model_config *c = &network->config;
    const int64_t e = c->n_experts, f = c->ffw_expert;
    const int64_t edf[] = {e, c->d, f}, efd[] = {e, f, c->d};
    return (octavo_ffw_desc){
        .width = f,
        .slices = network->expert_slices,
        .gate = octavo_build_weight(builder, "moe_weights_edf", &w->expert_gate, edf),
        .up = octavo_build_weight(builder, "moe_weights_edf", &w->expert_up, edf),
        .down = octavo_build_weight(builder, "moe_weights_efd", &w->expert_down, efd),
        .gate_bias = vectors_or_none(builder, "moe_bias_ef", "ef", w->expert_gate_bias, e, f),
        .up_bias = vectors_or_none(builder, "moe_bias_ef", "ef", w->expert_up_bias, e, f),
        .down_bias = vectors_or_none(builder, "moe_bias_ed", "ed", w->expert_down_bias, e, c->d),
    };
}

static octavo_ffw_desc describe_shared(octavo_builder *builder, const octavo_network *network,
                                       const octavo_layer_weights *w) {
    const octavo_model_config *c = &network->config;
    const int64_t df[] = {c->d, c->ffw_shared}, fd[] = {c->ffw_shared, c->d};
    return (octavo_ffw_desc){
        .width = c->ffw_shared,
        .slices = network->shared_slices,
        .gate = octavo_build_weight(builder, "ffw_weight_df", &w->shared_gate, df),
        .up = octavo_build_weight(builder, "ffw_weight_df", &w->shared_up, df),
        .down = octavo_build_weight(builder, "ffw_weight_fd", &w->shared_down, fd),
        .gate_bias = OCTAVO_NO_TENSOR,
        .up_bias = OCTAVO_NO_TENSOR,
        .down_bias = OCTAVO_NO_TENSOR,
    };
}

static void describe_sparse(octavo_builder *builder, const octavo_network *network,
                            const octavo_layer_weights *w, octavo_block_desc *desc) {
    const octavo_model_config *c = &network->config;
    const int64_t de[] = {c->d, c->n_experts}, d1[] = {c->d, 1};
    desc->ffw_kind = OCTAVO_FFW_EXPERTS;
    desc->router_weight = octavo_build_weight(builder, "moe_router_de", &w->router, de);
    desc->router_bias =
        vector_or_none(builder, "moe_router_bias_e", 'e', w->router_bias, c->n_experts);
    desc->choice_bias =
        vector_or_none(builder, "router_choice_bias_e", 'e', w->choice_bias, c->n_experts);
    desc->ffw = describe_experts(builder, network, w);
    desc->shared_router = OCTAVO_NO_TENSOR;
    if (c->ffw_shared == 0) return;
    desc->shared = describe_shared(builder, network, w);
    if (c->has_shared_gate)
        desc->shared_router =
            octavo_build_weight(builder, "shared_gate_weight_de", &w->shared_router, d1);
}

static octavo_block_desc describe_layer(octavo_builder *builder, const octavo_network *network,
                                        const int *rope_tables, int layer) {
    const octavo_model_config *c = &network->config;
    const octavo_layer_weights *w = &network->weights.layers[layer];
    const octavo_layer_config *l = &c->layers[layer];
    octavo_block_desc desc = describe_sizes(network);
    describe_attention(builder, network, layer, &desc);
    describe_ffw_norms(builder, c, w, &desc);
    if (l->is_sparse)
        describe_sparse(builder, network, w, &desc);
    else
        desc.ffw = describe_ffw(builder, network, w);
    desc.rope_table = l->rope == OCTAVO_NO_ROPE ? OCTAVO_NO_TENSOR : rope_tables[l->rope];
    desc.window = l->window;
    desc.chunk = l->chunk;
    if (l->rope == OCTAVO_NO_ROPE || c->has_temperature_everywhere)
        desc.temperature = c->temperature;
    return desc;
}

/* A norm of x by vectors that may be none; without a scale x itself. */
static int build_norm(octavo_builder *builder, const octavo_network *network, const char *name,
                      int x, const float *scale, const float *bias) {
    const octavo_model_config *c = &network->config;
    if (!scale) return x;
    const octavo_norm_desc norm = {
        .kind = c->norm,
        .scale = vector_or_none(builder, "norm_scale", 'd', scale, c->d),
        .bias = vector_or_none(builder, "norm_bias", 'd', bias, c->d),
        .eps = c->norm_eps,
    };
    return octavo_build_norm(builder, name, x, &norm, network->d_slices);
}

/* The sum of what the table says of the ids, their positions and their types. */
static int build_embedding(octavo_builder *builder, const octavo_network *network, int embed) {
    const octavo_model_config *c = &network->config;
    const octavo_model_weights *w = &network->weights;
    const octavo_program *program = builder->program;
    const struct {
        const char *name;
        const octavo_weight *weight;
        int64_t rows;
        int by;
    } added[] = {
        {"type_weight_vd", &w->types, c->n_types, program->types},
        {"position_weight_vd", &w->positions, c->n_positions > 0 ? c->context : 0,
         program->positions},
    };
    int x = octavo_build_embed(builder, "activation_td", program->ids, embed, c->embed_scale);
    for (size_t i = 0; i < OCTAVO_COUNT(added); i++) {
        if (added[i].rows == 0) continue;
        const int64_t vd[] = {added[i].rows, c->d};
        int table = octavo_build_weight(builder, added[i].name, added[i].weight, vd);
        int row = octavo_build_embed(builder, "activation_td", added[i].by, table, 1.0f);
        x = octavo_build_add(builder, "activation_td", x, row, 1.0f);
    }
    return build_norm(builder, network, "activation_td", x, w->embed_norm, w->embed_norm_bias);
}

/* tanh of a product with the rows of an encoder, where it has such a pooler. */
static int build_pooler(octavo_builder *builder, const octavo_network *network, int x) {
    const octavo_model_config *c = &network->config;
    const int64_t dd[] = {c->d, c->d};
    int operand;
    if (!c->has_pooler) return OCTAVO_NO_TENSOR;
    int weight = octavo_build_weight(builder, "pooler_weight_dd", &network->weights.pooler, dd);
    int bias = vector_or_none(builder, "pooler_bias_d", 'd', network->weights.pooler_bias, c->d);
    octavo_build_operands(builder, "activation_rd", x, &weight, &operand, 1);
    int pooled = octavo_build_matmul(builder, "pooled_td", operand, weight, bias, network->d_slices,
                                     "d", c->d, 1);
    return octavo_build_scale(builder, pooled, 1.0f, 1.0f);
}

/* Rows that need a result -> final norm -> logits [r, v]. */
static int build_head(octavo_builder *builder, const octavo_network *network, int embed, int x) {
    const octavo_model_config *c = &network->config;
    const octavo_model_weights *w = &network->weights;
    const int64_t dv[] = {c->d, c->vocab};
    int operand, output = embed;
    x = octavo_build_select(builder, "activation_rd", x);
    x = build_norm(builder, network, "prelogit_td", x, w->output_norm, w->output_norm_bias);
    octavo_build_hidden(builder, x);
    if (c->is_encoder) return build_pooler(builder, network, x);
    if (!w->is_tied) output = octavo_build_weight(builder, "vocab_dv", &w->output, dv);
    octavo_build_operands(builder, "prelogit_td", x, &output, &operand, 1);
    int logits = octavo_build_matmul(builder, "logits_tv", operand, output, OCTAVO_NO_TENSOR,
                                     network->d_slices, "v", c->vocab, 1);
    if (c->logit_scale == 1.0f && c->logit_soft_cap == 0.0f) return logits;
    return octavo_build_scale(builder, logits, c->logit_scale, c->logit_soft_cap);
}

octavo_status octavo_network_build(const octavo_network *network, octavo_program *program,
                                   int max_tokens, int max_rows, bool is_exact,
                                   octavo_error *error) {
    const octavo_model_config *c = &network->config;
    const int64_t vd[] = {c->vocab, c->d};
    octavo_builder builder;
    int rope_tables[OCTAVO_MAX_ROPES];
    octavo_build_start(&builder, program, max_tokens, max_rows, is_exact);
    int embed =
        octavo_build_weight(&builder, network->weights.is_tied ? "vocab_vd" : "emb_weight_vd",
                            &network->weights.embed, vd);
    for (int i = 0; i < c->n_ropes; i++) {
        const octavo_rope_config *rope = &c->ropes[i];
        const octavo_rope_speeds speeds = {.frequencies = rope->frequencies,
                                           .long_frequencies = rope->long_frequencies,
                                           .short_length = (int64_t)rope->original_context,
                                           .scale = rope->scale};
        rope_tables[i] =
            octavo_build_rope_table(&builder, "rope_table_th", &speeds, c->rope_dim / 2);
    }
    int x = build_embedding(&builder, network, embed);
    for (int i = 0; i < c->n_layers; i++) {
        builder.layer = i;
        octavo_block_desc desc = describe_layer(&builder, network, rope_tables, i);
        octavo_build_trace(&builder, x);
        x = c->ffw_shared > 0 ? octavo_shared_experts_block(&builder, &desc, x)
                              : octavo_transformer_block(&builder, &desc, x);
    }
    builder.layer = OCTAVO_NO_LAYER;
    return octavo_build_finish(&builder, build_head(&builder, network, embed, x), error);
}
