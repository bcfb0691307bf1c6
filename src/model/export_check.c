/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the file says what the folder says: all numbers that a step depends on, and that each
 * tensor is found.
 */
#include "base/error.h"
#include "model/export.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static octavo_status fail_other(const octavo_export *model, const char *what, octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                       "model (%s): its %s cannot be said in a GGUF file of %s; it runs from the "
                       "folder",
                       octavo_checkpoint_path(model->checkpoint), what, model->architecture);
}

static bool is_near(float a, float b) {
    return a == b || fabsf(a - b) <= 2e-6f * fabsf(b);
}

static bool are_near(const float *a, const float *b, int64_t n) {
    if (!a || !b) return a == b;
    for (int64_t i = 0; i < n; i++)
        if (!is_near(a[i], b[i])) return false;
    return true;
}

static bool is_same_rope(const octavo_model_config *a, int rope_a, const octavo_model_config *b,
                         int rope_b) {
    if (rope_a == OCTAVO_NO_ROPE || rope_b == OCTAVO_NO_ROPE) return rope_a == rope_b;
    const octavo_rope_config *x = &a->ropes[rope_a], *y = &b->ropes[rope_b];
    const int64_t n = a->rope_dim / 2;
    if (!are_near(x->frequencies, y->frequencies, n) || !is_near(x->scale, y->scale)) return false;
    if (!are_near(x->long_frequencies, y->long_frequencies, n)) return false;
    return !x->long_frequencies || x->original_context == y->original_context;
}

/* A window, or a chunk, of the whole context hides nothing. */
static int64_t effective(int64_t window, const octavo_model_config *config) {
    return window >= config->context ? 0 : window;
}

static const char *layer_difference(const octavo_model_config *a, const octavo_model_config *b) {
    for (int i = 0; i < a->n_layers; i++) {
        const octavo_layer_config *x = &a->layers[i], *y = &b->layers[i];
        if (effective(x->window, a) != effective(y->window, b)) return "sliding window";
        if (effective(x->chunk, a) != effective(y->chunk, b)) return "chunks of attention";
        if (x->kv_layer != y->kv_layer) return "sharing of keys and values";
        if (x->is_sparse != y->is_sparse) return "choice of layers with experts";
        if (!is_same_rope(a, x->rope, b, y->rope)) return "rotation (rope)";
    }
    return NULL;
}

static bool is_bias_lost(octavo_bias from, octavo_bias to) {
    return from == OCTAVO_BIAS_NEEDED && to == OCTAVO_BIAS_NONE;
}

/* What differs between two configurations, or NULL. */
static const char *difference(const octavo_model_config *a, const octavo_model_config *b) {
    const octavo_router *x = &a->router, *y = &b->router;
    const struct {
        bool is_other;
        const char *what;
    } list[] = {
        {a->n_layers != b->n_layers || a->d != b->d || a->vocab != b->vocab ||
             a->context != b->context,
         "size"},
        {a->n_heads != b->n_heads || a->n_kv_heads != b->n_kv_heads || a->head_dim != b->head_dim ||
             a->rope_dim != b->rope_dim,
         "heads"},
        {a->ffw != b->ffw, "width of the feed-forward"},
        {a->norm != b->norm || a->norm_eps != b->norm_eps || a->has_attn_norm != b->has_attn_norm ||
             a->has_ffw_norm != b->has_ffw_norm || a->has_post_norms != b->has_post_norms ||
             a->qk_norm != b->qk_norm || a->has_sum_norms != b->has_sum_norms ||
             a->has_output_norm != b->has_output_norm || a->has_embed_norm != b->has_embed_norm ||
             b->norm_offset != 0.0f,
         "norms"},
        {a->embed_scale != b->embed_scale || a->residual_scale != b->residual_scale ||
             a->logit_scale != b->logit_scale || !is_near(a->attention_scale, b->attention_scale),
         "multipliers"},
        {a->logit_soft_cap != b->logit_soft_cap || a->attention_soft_cap != b->attention_soft_cap,
         "soft caps"},
        {a->temperature.scale != b->temperature.scale ||
             a->temperature.period != b->temperature.period ||
             a->temperature.first != b->temperature.first ||
             a->has_temperature_everywhere != b->has_temperature_everywhere,
         "temperature of attention"},
        {a->activation != b->activation || a->swiglu_limit != b->swiglu_limit ||
             a->has_gate != b->has_gate,
         "activation"},
        {is_bias_lost(a->qkv_bias, b->qkv_bias) || is_bias_lost(a->attn_o_bias, b->attn_o_bias) ||
             is_bias_lost(a->ffw_bias, b->ffw_bias) || is_bias_lost(a->norm_bias, b->norm_bias) ||
             is_bias_lost(a->expert_bias, b->expert_bias) ||
             is_bias_lost(a->choice_bias, b->choice_bias),
         "biases"},
        {a->is_encoder != b->is_encoder || a->n_positions != b->n_positions ||
             a->first_position != b->first_position || a->n_types != b->n_types ||
             a->has_pooler != b->has_pooler || a->pooling != b->pooling ||
             a->is_first_bare != b->is_first_bare,
         "embeddings"},
        {a->latent.kv_rank != b->latent.kv_rank || a->latent.q_rank != b->latent.q_rank ||
             a->latent.key_dim != b->latent.key_dim || a->latent.value_dim != b->latent.value_dim ||
             (a->latent.kv_rank > 0 && a->latent.norm_eps != b->latent.norm_eps),
         "latent attention"},
        {a->n_kv_layers != b->n_kv_layers, "sharing of keys and values"},
        {a->is_parallel != b->is_parallel, "order of attention and feed-forward"},
        {a->has_sinks != b->has_sinks, "sinks"},
        {a->is_tied != b->is_tied && !a->is_encoder, "output"},
        {a->n_experts != b->n_experts || a->ffw_expert != b->ffw_expert ||
             a->ffw_shared != b->ffw_shared || a->has_shared_gate != b->has_shared_gate,
         "experts"},
        {x->n_chosen != y->n_chosen || x->is_sigmoid != y->is_sigmoid ||
             x->is_normalised != y->is_normalised || x->is_for_input != y->is_for_input ||
             x->scale != y->scale || x->n_groups != y->n_groups ||
             x->n_chosen_groups != y->n_chosen_groups,
         "router"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++)
        if (list[i].is_other) return list[i].what;
    return layer_difference(a, b);
}

/* Each tensor that was exported must be one of those that a reader binds. */
static octavo_status check_bound(octavo_export *model, const octavo_checkpoint *written,
                                 const octavo_model_config *config, octavo_error *error) {
    octavo_model_weights weights;
    octavo_status status =
        octavo_weights_load(&weights, written, config, &(octavo_weights_options){0}, error);
    if (status) return status;
    octavo_weights_deinit(&weights);
    /* neighbours are rotated: rows of q and k are written in their order */
    model->is_turned = config->pairing != model->config.pairing;
    if (!model->is_turned) return OCTAVO_OK;
    if (config->pairing == OCTAVO_ROPE_HALF || config->qkv_fusion != OCTAVO_FUSION_NONE ||
        config->rope_dim != config->head_dim || config->qk_norm != OCTAVO_QK_NORM_NONE)
        return fail_other(model, "rotation (rope)", error);
    return OCTAVO_OK;
}

static octavo_status check(octavo_export *model, const octavo_checkpoint *written,
                           octavo_error *error) {
    octavo_model_config config;
    octavo_error why;
    octavo_status status = octavo_config_load(&config, written, &why);
    if (status == OCTAVO_ERROR_MEMORY) return octavo_fail_memory(error, "configuration", 0);
    if (status)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "model (%s): cannot be said in a GGUF file of %s: %.250s",
                           octavo_checkpoint_path(model->checkpoint), model->architecture,
                           why.message);
    const char *what = difference(&model->config, &config);
    status = what ? fail_other(model, what, error) : check_bound(model, written, &config, error);
    octavo_config_deinit(&config);
    return status;
}

octavo_status octavo_export_check(octavo_export *model, const char *path, octavo_error *error) {
    octavo_checkpoint written;
    octavo_status status = octavo_checkpoint_open_gguf(path, &written, error);
    if (status) return status;
    status = check(model, &written, error);
    octavo_checkpoint_close(&written);
    return status;
}
