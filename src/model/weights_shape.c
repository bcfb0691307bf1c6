/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights that a configuration asks for, without a checkpoint: shapes alone, for plans.
 */
#include "model/weights_shape.h"

#include "base/error.h"
#include "base/memory.h"

/* Vectors have to be there; nobody reads what is in them. */
static const float unread[1];

static const float *vector_if(bool is_there) {
    return is_there ? unread : NULL;
}

typedef struct shaper {
    octavo_model_weights *weights;
    const octavo_model_config *config;
    octavo_weight_type type;
} shaper;

/* The type, or F32 where its blocks do not fill a row. */
static octavo_weight matrix(const shaper *s, int64_t n, int64_t k, int64_t stack) {
    const octavo_weight_info *info = octavo_weight_info_of(s->type);
    const bool fits = k % info->record_inputs == 0 && k % info->source_inputs == 0;
    const octavo_weight weight = {
        .type = fits ? s->type : OCTAVO_WEIGHT_F32, .n = n, .k = k, .stack = stack};
    const uint64_t matrices = (uint64_t)(stack > 0 ? stack : 1);
    s->weights->packed_bytes += octavo_weight_bytes(weight.type, n, k) * matrices;
    return weight;
}

static void shape_latent(const shaper *s, octavo_layer_weights *w) {
    const octavo_model_config *c = s->config;
    const octavo_latent_config *l = &c->latent;
    const int64_t head = l->key_dim + c->rope_dim;
    if (l->q_rank > 0) {
        w->latent.q_a = matrix(s, l->q_rank, c->d, 0);
        w->latent.q_b = matrix(s, c->n_heads * head, l->q_rank, 0);
        w->latent.q_norm = unread;
    } else {
        w->attn_q = matrix(s, c->n_heads * head, c->d, 0);
    }
    w->latent.kv_a = matrix(s, c->head_dim, c->d, 0);
    w->latent.kv_norm = unread;
    w->latent.k_b = matrix(s, l->kv_rank, l->key_dim, c->n_heads);
    w->latent.v_b = matrix(s, l->value_dim, l->kv_rank, c->n_heads);
}

static void shape_qkv(const shaper *s, octavo_layer_weights *w, bool has_key) {
    const octavo_model_config *c = s->config;
    const bool has_bias = c->qkv_bias == OCTAVO_BIAS_NEEDED;
    w->attn_q = matrix(s, c->n_heads * c->head_dim, c->d, 0);
    w->attn_q_bias = vector_if(has_bias);
    if (!has_key) return;
    w->attn_k = matrix(s, c->n_kv_heads * c->head_dim, c->d, 0);
    w->attn_v = matrix(s, c->n_kv_heads * c->head_dim, c->d, 0);
    w->attn_k_bias = w->attn_v_bias = vector_if(has_bias);
}

static void shape_attention(const shaper *s, octavo_layer_weights *w, int layer) {
    const octavo_model_config *c = s->config;
    const bool is_latent = c->latent.kv_rank > 0;
    if (is_latent)
        shape_latent(s, w);
    else
        shape_qkv(s, w, c->layers[layer].kv_layer == layer);
    w->attn_o = matrix(s, c->d, c->n_heads * (is_latent ? c->latent.value_dim : c->head_dim), 0);
    w->attn_o_bias = vector_if(c->attn_o_bias == OCTAVO_BIAS_NEEDED);
    w->sinks = vector_if(c->has_sinks);
}

static void shape_dense(const shaper *s, octavo_layer_weights *w) {
    const octavo_model_config *c = s->config;
    const bool has_bias = c->ffw_bias == OCTAVO_BIAS_NEEDED;
    if (c->has_gate) w->ffw_gate = matrix(s, c->ffw, c->d, 0);
    w->ffw_up = matrix(s, c->ffw, c->d, 0);
    w->ffw_down = matrix(s, c->d, c->ffw, 0);
    w->ffw_gate_bias = vector_if(has_bias && c->has_gate);
    w->ffw_up_bias = w->ffw_down_bias = vector_if(has_bias);
}

static void shape_sparse(const shaper *s, octavo_layer_weights *w) {
    const octavo_model_config *c = s->config;
    const bool has_bias = c->expert_bias == OCTAVO_BIAS_NEEDED;
    w->router = matrix(s, c->n_experts, c->d, 0);
    w->router_bias = vector_if(has_bias);
    w->choice_bias = vector_if(c->choice_bias == OCTAVO_BIAS_NEEDED);
    w->expert_gate = matrix(s, c->ffw_expert, c->d, c->n_experts);
    w->expert_up = matrix(s, c->ffw_expert, c->d, c->n_experts);
    w->expert_down = matrix(s, c->d, c->ffw_expert, c->n_experts);
    w->expert_gate_bias = w->expert_up_bias = w->expert_down_bias = vector_if(has_bias);
    if (c->ffw_shared == 0) return;
    w->shared_gate = matrix(s, c->ffw_shared, c->d, 0);
    w->shared_up = matrix(s, c->ffw_shared, c->d, 0);
    w->shared_down = matrix(s, c->d, c->ffw_shared, 0);
    if (c->has_shared_gate) w->shared_router = matrix(s, 1, c->d, 0);
}

static void shape_norms(const shaper *s, octavo_layer_weights *w, int layer) {
    const octavo_model_config *c = s->config;
    const bool has_bias = c->norm_bias == OCTAVO_BIAS_NEEDED;
    const bool has_attn = c->has_attn_norm && (layer > 0 || !c->is_first_bare);
    const bool has_qk = c->qk_norm == OCTAVO_QK_NORM_WHOLE || c->qk_norm == OCTAVO_QK_NORM_HEAD;
    w->attn_norm = vector_if(has_attn);
    w->attn_norm_bias = vector_if(has_attn && has_bias);
    w->ffw_norm = vector_if(c->has_ffw_norm);
    w->ffw_norm_bias = vector_if(c->has_ffw_norm && has_bias);
    w->q_norm = vector_if(has_qk);
    w->k_norm = vector_if(has_qk && c->layers[layer].kv_layer == layer);
    w->post_attn_norm = w->post_ffw_norm = vector_if(c->has_post_norms);
    w->attn_sum_norm = w->ffw_sum_norm = vector_if(c->has_sum_norms);
    w->attn_sum_norm_bias = w->ffw_sum_norm_bias = vector_if(c->has_sum_norms && has_bias);
}

static void shape_ends(const shaper *s) {
    octavo_model_weights *w = s->weights;
    const octavo_model_config *c = s->config;
    const bool has_norm_bias = c->norm_bias == OCTAVO_BIAS_NEEDED;
    w->embed = matrix(s, c->vocab, c->d, 0);
    w->output_norm = vector_if(c->has_output_norm);
    w->output_norm_bias = vector_if(c->has_output_norm && has_norm_bias);
    if (c->n_positions > 0) w->positions = matrix(s, c->context, c->d, 0);
    if (c->n_types > 0) w->types = matrix(s, c->n_types, c->d, 0);
    w->embed_norm = vector_if(c->has_embed_norm);
    w->embed_norm_bias = vector_if(c->has_embed_norm && has_norm_bias);
    if (c->has_pooler) w->pooler = matrix(s, c->d, c->d, 0);
    w->pooler_bias = vector_if(c->has_pooler);
    w->is_tied = c->is_tied || c->is_encoder;
    w->output = w->is_tied ? w->embed : matrix(s, c->vocab, c->d, 0);
}

octavo_status octavo_weights_shape(octavo_model_weights *weights, const octavo_model_config *config,
                                   octavo_weight_type type, octavo_error *error) {
    const size_t bytes = (size_t)config->n_layers * sizeof *weights->layers;
    const shaper s = {weights, config, type};
    *weights = (octavo_model_weights){0};
    weights->layers = octavo_arena_alloc(&weights->arena, bytes);
    if (!weights->layers) return octavo_fail_memory(error, "layers", bytes);
    for (int i = 0; i < config->n_layers; i++) {
        octavo_layer_weights *w = &weights->layers[i];
        *w = (octavo_layer_weights){0};
        shape_attention(&s, w, i);
        if (config->layers[i].is_sparse)
            shape_sparse(&s, w);
        else
            shape_dense(&s, w);
        shape_norms(&s, w, i);
    }
    shape_ends(&s);
    return OCTAVO_OK;
}
