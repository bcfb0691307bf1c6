/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma text models: embeddings scaled by sqrt(d), norms that scale by 1 + w (GGUF files store the
 * sum, checkpoints w), GELU gate. Gemma 2 adds norms behind attention and feed-forward, soft caps
 * and a window on every other layer. Gemma 3 has norms of q and k heads, five layers with a window
 * to one without, and rotates the windowed ones with a base of their own that is never scaled.
 */
#include "model/family.h"

#include <math.h>

enum { GLOBAL, LOCAL };

/* Of Gemma 2 and 3. */
const octavo_weight_name octavo_family_gemma3_names[] = {
    {OCTAVO_ROLE_FFW_NORM, "pre_feedforward_layernorm.weight"},
    {OCTAVO_ROLE_NONE, NULL},
};

/* What all have. */
static octavo_status read_common(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_status status = octavo_family_biases(reader, config);
    if (status) return status;
    if (octavo_config_is_hf(reader)) config->norm_offset = 1.0f;
    config->embed_scale = sqrtf((float)config->d);
    return octavo_family_activation(reader, "hidden_activation", "gelu_pytorch_tanh",
                                    &config->activation);
}

/* What queries are scaled by. GGUF files rarely say: all models take the width of a head but the
 * largest, which is known by its layers. */
static octavo_status read_scale(const octavo_config_reader *reader, octavo_model_config *config,
                                int layers_of_largest) {
    const octavo_key scale = {"attention.scale", NULL};
    float scalar = (float)config->head_dim;
    if (octavo_config_is_hf(reader)) {
        octavo_status status = octavo_config_positive(
            reader, (octavo_key){NULL, "query_pre_attn_scalar"}, 256.0, &scalar);
        if (status) return status;
    } else if (config->n_layers == layers_of_largest) {
        scalar = (float)config->d / (float)config->n_heads;
    }
    return octavo_config_positive(reader, scale, (double)(1.0f / sqrtf(scalar)),
                                  &config->attention_scale);
}

static octavo_status read_cap(const octavo_config_reader *reader, octavo_key key, double fallback,
                              float *cap) {
    *cap = 0.0f;
    if (octavo_config_is_null(reader, key) || (fallback == 0.0 && !octavo_config_has(reader, key)))
        return OCTAVO_OK;
    return octavo_config_positive(reader, key, fallback, cap);
}

/* Of attention and of the logits. */
static octavo_status read_caps(const octavo_config_reader *reader, octavo_model_config *config,
                               double attention, double logits) {
    octavo_status status =
        read_cap(reader, (octavo_key){"attn_logit_softcapping", "attn_logit_softcapping"},
                 attention, &config->attention_soft_cap);
    if (status) return status;
    return read_cap(reader, (octavo_key){"final_logit_softcapping", "final_logit_softcapping"},
                    logits, &config->logit_soft_cap);
}

static octavo_status read_windows(const octavo_config_reader *reader, octavo_model_config *config,
                                  int rope, int64_t period) {
    octavo_window_rule rule = {.rope = rope, .period = period};
    octavo_status status;
    if ((status = octavo_family_window(reader, octavo_config_is_hf(reader) ? 4096 : OCTAVO_REQUIRED,
                                       &rule.window)) ||
        (status = octavo_family_window_period(reader, period, 0, &rule.period)))
        return status;
    if (rule.period == 0) rule.window = 0;
    /* of an encoder it is that to both sides together */
    if (config->is_encoder && rule.window > 0) rule.window = rule.window / 2 + 1;
    return octavo_family_windows(reader, config, &rule);
}

static octavo_status read_ropes(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_rope_source global = {.base = {"rope.freq_base", "rope_theta"},
                                       .fallback = 1e6,
                                       .is_scaled = true,
                                       .layer_type = "full_attention"};
    const octavo_rope_source local = {.base = {"rope.freq_base_swa", "rope_local_base_freq"},
                                      .fallback = 1e4,
                                      .layer_type = "sliding_attention"};
    octavo_status status = octavo_family_rope(reader, config, GLOBAL, &global);
    return status ? status : octavo_family_rope(reader, config, LOCAL, &local);
}

static octavo_status read_rope(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 1e4, .is_scaled = true};
    return octavo_family_rope(reader, config, GLOBAL, &rope);
}

/* Files of the first models name another activation than the one they were trained with, in a key
 * of its own. */
octavo_status octavo_family_gemma(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key key = {NULL, "hidden_activation"}, old_key = {NULL, "hidden_act"};
    octavo_gguf_string old;
    octavo_status status;
    if ((status = read_common(reader, config)) || (status = read_rope(reader, config)) ||
        (status = octavo_config_text(reader, old_key, "gelu", &old)))
        return status;
    if (octavo_config_has(reader, key) || octavo_text_is(old, "gelu")) return OCTAVO_OK;
    return octavo_family_activation(reader, old_key.hf, "gelu_pytorch_tanh", &config->activation);
}

octavo_status octavo_family_gemma2(const octavo_config_reader *reader,
                                   octavo_model_config *config) {
    octavo_status status;
    config->has_post_norms = true;
    if ((status = read_common(reader, config)) ||
        (status = read_windows(reader, config, GLOBAL, 2)) ||
        (status = read_rope(reader, config)) || (status = read_scale(reader, config, 46)))
        return status;
    return read_caps(reader, config, 50.0, 30.0);
}

octavo_status octavo_family_gemma3(const octavo_config_reader *reader,
                                   octavo_model_config *config) {
    octavo_status status;
    config->qk_norm = OCTAVO_QK_NORM_HEAD;
    config->has_post_norms = true;
    if ((status = read_common(reader, config)) ||
        (status = read_windows(reader, config, LOCAL, 6)) ||
        (status = read_ropes(reader, config)) || (status = read_scale(reader, config, 62)))
        return status;
    return read_caps(reader, config, 0.0, 0.0);
}
