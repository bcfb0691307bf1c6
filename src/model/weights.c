/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tensors a model has, by its configuration.
 */
#include "model/weights.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/weights_latent.h"
#include "model/weights_load.h"

static const octavo_row_map whole = {0};

/* Rows [first, first + n) of a tensor of `all`. */
static octavo_row_map rows_from(int64_t first, int64_t n, int64_t all) {
    return (octavo_row_map){.all = all, .first = first, .group = n};
}

/* Where q, k and v lie in one tensor, or each in its own. */
static void map_qkv(const octavo_model_config *c, octavo_row_map rows[3]) {
    const int64_t h = c->head_dim, nh = c->n_heads * h, kh = c->n_kv_heads * h;
    const int64_t first[] = {0, nh, nh + kh}, extent[] = {nh, kh, kh};
    for (int i = 0; i < 3; i++) {
        switch (c->qkv_fusion) {
        case OCTAVO_FUSION_NONE:
            rows[i] = whole;
            break;
        case OCTAVO_FUSION_ROWS:
            rows[i] = rows_from(first[i], extent[i], nh + 2 * kh);
            break;
        case OCTAVO_FUSION_HEADS:
            rows[i] = (octavo_row_map){.all = 3 * nh, .first = i * h, .group = h, .stride = 3 * h};
            break;
        }
    }
}

/* Layers that attend to another's keys and values have queries only. */
static octavo_status load_qkv(octavo_loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const int64_t nh = c->n_heads * c->head_dim, kh = c->n_kv_heads * c->head_dim;
    const size_t n = c->layers[layer].kv_layer == layer ? 3 : 1;
    const bool is_fused = c->qkv_fusion != OCTAVO_FUSION_NONE;
    const struct {
        octavo_weight_role role, bias_role;
        octavo_weight *weight;
        const float **bias;
        int64_t n;
    } list[] = {
        {OCTAVO_ROLE_ATTN_Q, OCTAVO_ROLE_ATTN_Q_BIAS, &w->attn_q, &w->attn_q_bias, nh},
        {OCTAVO_ROLE_ATTN_K, OCTAVO_ROLE_ATTN_K_BIAS, &w->attn_k, &w->attn_k_bias, kh},
        {OCTAVO_ROLE_ATTN_V, OCTAVO_ROLE_ATTN_V_BIAS, &w->attn_v, &w->attn_v_bias, kh},
    };
    octavo_row_map rows[3];
    octavo_status status;
    map_qkv(c, rows);
    for (size_t i = 0; i < n; i++) {
        if ((status = octavo_load_matrix(load, list[i].weight, list[i].n, c->d, rows[i],
                                         is_fused ? OCTAVO_ROLE_ATTN_QKV : list[i].role, layer)) ||
            (status =
                 octavo_load_bias(load, list[i].bias, list[i].n, c->qkv_bias, rows[i],
                                  is_fused ? OCTAVO_ROLE_ATTN_QKV_BIAS : list[i].bias_role, layer)))
            return status;
    }
    return OCTAVO_OK;
}

static octavo_status load_attention(octavo_loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const bool is_latent = c->latent.kv_rank > 0;
    const int64_t inputs = c->n_heads * (is_latent ? c->latent.value_dim : c->head_dim);
    octavo_status status;
    if ((status = is_latent ? octavo_load_latent(load, layer) : load_qkv(load, layer)) ||
        (status =
             octavo_load_matrix(load, &w->attn_o, c->d, inputs, whole, OCTAVO_ROLE_ATTN_O, layer)))
        return status;
    if ((status = octavo_load_bias(load, &w->sinks, c->n_heads,
                                   c->has_sinks ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE, whole,
                                   OCTAVO_ROLE_SINKS, layer)))
        return status;
    return octavo_load_bias(load, &w->attn_o_bias, c->d, c->attn_o_bias, whole,
                            OCTAVO_ROLE_ATTN_O_BIAS, layer);
}

static octavo_status load_ffw(octavo_loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const bool is_fused = c->gate_fusion != OCTAVO_FUSION_NONE;
    const int64_t f = c->ffw;
    const octavo_row_map gate = is_fused ? rows_from(0, f, 2 * f) : whole;
    const octavo_row_map up = is_fused ? rows_from(f, f, 2 * f) : whole;
    const struct {
        octavo_weight_role role, bias_role;
        octavo_weight *weight;
        const float **bias;
        int64_t n, k;
        octavo_row_map rows;
        bool is_wanted;
    } list[] = {
        {is_fused ? OCTAVO_ROLE_FFW_GATE_UP : OCTAVO_ROLE_FFW_GATE, OCTAVO_ROLE_FFW_GATE_BIAS,
         &w->ffw_gate, &w->ffw_gate_bias, f, c->d, gate, c->has_gate},
        {is_fused ? OCTAVO_ROLE_FFW_GATE_UP : OCTAVO_ROLE_FFW_UP, OCTAVO_ROLE_FFW_UP_BIAS,
         &w->ffw_up, &w->ffw_up_bias, f, c->d, up, true},
        {OCTAVO_ROLE_FFW_DOWN, OCTAVO_ROLE_FFW_DOWN_BIAS, &w->ffw_down, &w->ffw_down_bias, c->d, f,
         whole, true},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        octavo_status status;
        *list[i].bias = NULL;
        if (!list[i].is_wanted) continue;
        if ((status = octavo_load_matrix(load, list[i].weight, list[i].n, list[i].k, list[i].rows,
                                         list[i].role, layer)) ||
            (status = octavo_load_bias(load, list[i].bias, list[i].n,
                                       is_fused ? OCTAVO_BIAS_NONE : c->ffw_bias, whole,
                                       list[i].bias_role, layer)))
            return status;
    }
    return OCTAVO_OK;
}

static octavo_status load_expert_biases(octavo_loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const int64_t e = c->n_experts, ef = e * c->ffw_expert, ed = e * c->d;
    const bool is_one = c->has_expert_columns;
    const octavo_row_map rows = {.all = ef, .lines = e, .group = ef};
    const octavo_row_map down = {.all = ed, .lines = e, .group = ed};
    octavo_row_map gate = rows, up = rows;
    octavo_status status;
    if (is_one && c->is_interleaved) {
        gate = (octavo_row_map){.all = 2 * ef, .lines = e, .group = 1, .stride = 2};
        up = gate;
        up.first = 1;
    } else if (is_one) {
        gate = (octavo_row_map){
            .all = 2 * ef, .lines = e, .group = c->ffw_expert, .stride = 2 * c->ffw_expert};
        up = gate;
        up.first = c->ffw_expert;
    }
    if ((status = octavo_load_bias(load, &w->router_bias, e, c->expert_bias, whole,
                                   OCTAVO_ROLE_ROUTER_BIAS, layer)) ||
        (status = octavo_load_bias(
             load, &w->expert_gate_bias, ef, c->expert_bias, gate,
             is_one ? OCTAVO_ROLE_EXPERT_GATE_UP_BIAS : OCTAVO_ROLE_EXPERT_GATE_BIAS, layer)) ||
        (status = octavo_load_bias(
             load, &w->expert_up_bias, ef, c->expert_bias, up,
             is_one ? OCTAVO_ROLE_EXPERT_GATE_UP_BIAS : OCTAVO_ROLE_EXPERT_UP_BIAS, layer)))
        return status;
    return octavo_load_bias(load, &w->expert_down_bias, ed, c->expert_bias, down,
                            OCTAVO_ROLE_EXPERT_DOWN_BIAS, layer);
}

static octavo_status load_sparse(octavo_loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const int64_t d = c->d, f = c->ffw_expert, shared = c->ffw_shared;
    const bool is_columns = c->has_expert_columns;
    const int64_t step = c->is_interleaved ? 2 : 1;
    const octavo_column_map gate = {is_columns ? 2 * f : 0, 0, step};
    const octavo_column_map up = {gate.columns, c->is_interleaved ? 1 : f, step};
    const octavo_column_map down = {is_columns ? d : 0, 0, 1};
    octavo_status status;
    if ((status = octavo_load_matrix(load, &w->router, c->n_experts, d, whole, OCTAVO_ROLE_ROUTER,
                                     layer)) ||
        (status = octavo_load_bias(load, &w->choice_bias, c->n_experts, c->choice_bias, whole,
                                   OCTAVO_ROLE_CHOICE_BIAS, layer)) ||
        (status = octavo_load_experts(
             load, &w->expert_gate, f, d, gate,
             is_columns ? OCTAVO_ROLE_EXPERT_GATE_UP : OCTAVO_ROLE_EXPERT_GATE, layer)) ||
        (status = octavo_load_experts(
             load, &w->expert_up, f, d, up,
             is_columns ? OCTAVO_ROLE_EXPERT_GATE_UP : OCTAVO_ROLE_EXPERT_UP, layer)) ||
        (status = octavo_load_experts(load, &w->expert_down, d, f, down, OCTAVO_ROLE_EXPERT_DOWN,
                                      layer)))
        return status;
    if ((status = load_expert_biases(load, layer)) || shared == 0) return status;
    if ((status = octavo_load_matrix(load, &w->shared_gate, shared, d, whole,
                                     OCTAVO_ROLE_SHARED_GATE, layer)) ||
        (status = octavo_load_matrix(load, &w->shared_up, shared, d, whole, OCTAVO_ROLE_SHARED_UP,
                                     layer)) ||
        (status = octavo_load_matrix(load, &w->shared_down, d, shared, whole,
                                     OCTAVO_ROLE_SHARED_DOWN, layer)))
        return status;
    if (!c->has_shared_gate) return OCTAVO_OK;
    return octavo_load_matrix(load, &w->shared_router, 1, d, whole, OCTAVO_ROLE_SHARED_ROUTER,
                              layer);
}

static octavo_status load_norms(octavo_loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const bool is_whole = c->qk_norm == OCTAVO_QK_NORM_WHOLE;
    const bool has_attn_norm = c->has_attn_norm && (layer > 0 || !c->is_first_bare);
    const bool has_q_norm = is_whole || c->qk_norm == OCTAVO_QK_NORM_HEAD;
    const bool has_k_norm = has_q_norm && c->layers[layer].kv_layer == layer;
    const struct {
        octavo_weight_role role;
        const float **vector;
        int64_t extent;
        bool is_wanted;
    } list[] = {
        {OCTAVO_ROLE_ATTN_NORM, &w->attn_norm, c->d, has_attn_norm},
        {OCTAVO_ROLE_FFW_NORM, &w->ffw_norm, c->d, c->has_ffw_norm},
        {OCTAVO_ROLE_Q_NORM, &w->q_norm, (is_whole ? c->n_heads : 1) * c->head_dim, has_q_norm},
        {OCTAVO_ROLE_K_NORM, &w->k_norm, (is_whole ? c->n_kv_heads : 1) * c->head_dim, has_k_norm},
        {OCTAVO_ROLE_POST_ATTN_NORM, &w->post_attn_norm, c->d, c->has_post_norms},
        {OCTAVO_ROLE_POST_FFW_NORM, &w->post_ffw_norm, c->d, c->has_post_norms},
        {OCTAVO_ROLE_ATTN_SUM_NORM, &w->attn_sum_norm, c->d, c->has_sum_norms},
        {OCTAVO_ROLE_FFW_SUM_NORM, &w->ffw_sum_norm, c->d, c->has_sum_norms},
    };
    octavo_status status;
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        *list[i].vector = NULL;
        if (list[i].is_wanted &&
            (status = octavo_load_vector(load, list[i].vector, list[i].extent, c->norm_offset,
                                         whole, list[i].role, layer)))
            return status;
    }
    const struct {
        octavo_weight_role role;
        const float **vector;
        bool is_wanted;
    } biases[] = {
        {OCTAVO_ROLE_ATTN_NORM_BIAS, &w->attn_norm_bias, has_attn_norm},
        {OCTAVO_ROLE_FFW_NORM_BIAS, &w->ffw_norm_bias, c->has_ffw_norm},
        {OCTAVO_ROLE_ATTN_SUM_NORM_BIAS, &w->attn_sum_norm_bias, c->has_sum_norms},
        {OCTAVO_ROLE_FFW_SUM_NORM_BIAS, &w->ffw_sum_norm_bias, c->has_sum_norms},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(biases); i++)
        if ((status = octavo_load_bias(load, biases[i].vector, c->d,
                                       biases[i].is_wanted ? c->norm_bias : OCTAVO_BIAS_NONE, whole,
                                       biases[i].role, layer)))
            return status;
    return OCTAVO_OK;
}

/* What stands beside the embedding: positions, types and a norm of their sum; and the pooler. */
static octavo_status load_encoder(octavo_loader *load) {
    octavo_model_weights *w = load->weights;
    const octavo_model_config *c = load->config;
    const octavo_row_map positions = {
        .all = c->n_positions, .first = c->first_position, .group = c->context};
    octavo_status status = OCTAVO_OK;
    if (c->n_positions > 0)
        status = octavo_load_matrix(load, &w->positions, c->context, c->d, positions,
                                    OCTAVO_ROLE_POSITIONS, 0);
    if (!status && c->n_types > 0)
        status = octavo_load_matrix(load, &w->types, c->n_types, c->d, whole, OCTAVO_ROLE_TYPES, 0);
    if (!status && c->has_embed_norm)
        status = octavo_load_vector(load, &w->embed_norm, c->d, c->norm_offset, whole,
                                    OCTAVO_ROLE_EMBED_NORM, 0);
    if (!status && c->has_embed_norm)
        status = octavo_load_bias(load, &w->embed_norm_bias, c->d, c->norm_bias, whole,
                                  OCTAVO_ROLE_EMBED_NORM_BIAS, 0);
    if (status || !c->has_pooler) return status;
    status = octavo_load_matrix(load, &w->pooler, c->d, c->d, whole, OCTAVO_ROLE_POOLER, 0);
    if (status) return status;
    return octavo_load_bias(load, &w->pooler_bias, c->d, OCTAVO_BIAS_NEEDED, whole,
                            OCTAVO_ROLE_POOLER_BIAS, 0);
}

static octavo_status load_output_norm(octavo_loader *load) {
    octavo_model_weights *weights = load->weights;
    const octavo_model_config *config = load->config;
    if (!config->has_output_norm) return OCTAVO_OK;
    octavo_status status =
        octavo_load_vector(load, &weights->output_norm, config->d, config->norm_offset, whole,
                           OCTAVO_ROLE_OUTPUT_NORM, 0);
    if (status) return status;
    return octavo_load_bias(load, &weights->output_norm_bias, config->d, config->norm_bias, whole,
                            OCTAVO_ROLE_OUTPUT_NORM_BIAS, 0);
}

static octavo_status load_all(octavo_loader *load) {
    octavo_model_weights *weights = load->weights;
    const octavo_model_config *config = load->config;
    octavo_status status;
    weights->layers =
        octavo_arena_alloc(&weights->arena, (size_t)config->n_layers * sizeof *weights->layers);
    if (!weights->layers)
        return octavo_fail_memory(load->error, "layers",
                                  (uint64_t)config->n_layers * sizeof *weights->layers);
    weights->n_layers = config->n_layers;
    status = octavo_load_matrix(load, &weights->embed, config->vocab, config->d, whole,
                                OCTAVO_ROLE_EMBED, 0);
    if (status) return status;
    for (int i = 0; i < config->n_layers; i++) {
        if ((status = load_attention(load, i)) ||
            (status = config->layers[i].is_sparse ? load_sparse(load, i) : load_ffw(load, i)) ||
            (status = load_norms(load, i)))
            return status;
    }
    if ((status = load_output_norm(load)) || (status = load_encoder(load))) return status;
    weights->is_tied = config->is_tied || config->is_encoder; /* which has no output */
    if (weights->is_tied) {
        weights->output = weights->embed;
        return OCTAVO_OK;
    }
    return octavo_load_matrix(load, &weights->output, config->vocab, config->d, whole,
                              OCTAVO_ROLE_OUTPUT, 0);
}

/* What will be read: the files' tensors, or of parts what these are made of, for which they are
 * bound without data. */
static octavo_status count_bytes(octavo_loader *load) {
    if (!load->options->place) {
        for (size_t i = 0; i < octavo_checkpoint_n_tensors(load->checkpoint); i++)
            load->total += octavo_checkpoint_tensor_at(load->checkpoint, i).bytes;
        return OCTAVO_OK;
    }
    if (!load->options->progress) return OCTAVO_OK;
    octavo_model_weights bound = {0};
    const octavo_weights_options options = {.weights = load->options->weights,
                                            .place = load->options->place,
                                            .place_cookie = load->options->place_cookie};
    octavo_loader counter = *load;
    counter.weights = &bound;
    counter.options = &options;
    octavo_status status = load_all(&counter);
    load->total = counter.done;
    octavo_weights_deinit(&bound);
    return status;
}

octavo_status octavo_weights_load(octavo_model_weights *weights,
                                  const octavo_checkpoint *checkpoint,
                                  const octavo_model_config *config,
                                  const octavo_weights_options *options, octavo_error *error) {
    *weights = (octavo_model_weights){0};
    octavo_loader load = {.weights = weights,
                          .checkpoint = checkpoint,
                          .config = config,
                          .options = options,
                          .error = error};
    octavo_status status;
    if ((status = count_bytes(&load)) || (status = load_all(&load))) octavo_weights_deinit(weights);
    return status;
}

void octavo_weights_deinit(octavo_model_weights *weights) {
    for (int i = 0; i < weights->n_matrices; i++)
        octavo_free_aligned(weights->matrices[i]);
    octavo_free(weights->matrices);
    octavo_arena_deinit(&weights->arena);
    *weights = (octavo_model_weights){0};
}
