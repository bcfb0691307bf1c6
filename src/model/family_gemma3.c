/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 3 text models: embeddings scaled by sqrt(d), norms before and after attention and
 * feed-forward, q/k norm per head, GELU gate, and five layers with a sliding window to one without.
 * Windowed layers rotate with a base of their own and are never scaled. Norms scale by 1 + w; GGUF
 * files store the sum, checkpoints w.
 */
#include "model/family.h"

#include <math.h>

enum { GLOBAL, LOCAL };

const octavo_weight_name octavo_family_gemma3_names[] = {
    {OCTAVO_ROLE_FFW_NORM, "pre_feedforward_layernorm.weight"},
    {OCTAVO_ROLE_NONE, NULL},
};

static octavo_status read_layers(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key pattern = {"attention.sliding_window_pattern", "sliding_window_pattern"};
    octavo_window_rule rule = {.rope = LOCAL};
    octavo_status status;
    if ((status = octavo_family_window(reader, octavo_config_is_hf(reader) ? 4096 : OCTAVO_REQUIRED,
                                       &rule.window)) ||
        (status = octavo_config_integer(reader, pattern, 6, 0, 1 << 20, &rule.period)))
        return status;
    if (rule.period == 0) rule.window = 0;
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

/* Later models of the architecture may say so; these do not. */
static octavo_status refuse_others(const octavo_config_reader *reader) {
    static const octavo_key caps[] = {{NULL, "attn_logit_softcapping"},
                                      {NULL, "final_logit_softcapping"}};
    const octavo_key both_ways = {NULL, "use_bidirectional_attention"};
    bool is_encoder;
    for (size_t i = 0; i < OCTAVO_COUNT(caps); i++)
        if (octavo_config_has(reader, caps[i]))
            return octavo_config_fail(reader, caps[i], OCTAVO_ERROR_UNSUPPORTED,
                                      "soft caps are not in this version");
    octavo_status status = octavo_config_flag(reader, both_ways, false, &is_encoder);
    if (status || !is_encoder) return status;
    return octavo_config_fail(reader, both_ways, OCTAVO_ERROR_UNSUPPORTED,
                              "encoders are not in this version");
}

/* GGUF files do not say what queries are scaled by: all models take the width of a head but the
 * 27B one, which has 62 layers. */
static octavo_status read_scale(const octavo_config_reader *reader, octavo_model_config *config) {
    float scalar = (float)config->head_dim;
    if (octavo_config_is_hf(reader)) {
        octavo_status status = octavo_config_positive(
            reader, (octavo_key){NULL, "query_pre_attn_scalar"}, 256.0, &scalar);
        if (status) return status;
    } else if (config->n_layers == 62) {
        scalar = (float)config->d / (float)config->n_heads;
    }
    config->attention_scale = 1.0f / sqrtf(scalar);
    return OCTAVO_OK;
}

octavo_status octavo_family_gemma3(const octavo_config_reader *reader,
                                   octavo_model_config *config) {
    octavo_status status;
    if ((status = read_layers(reader, config)) || (status = read_ropes(reader, config)) ||
        (status = refuse_others(reader)) || (status = read_scale(reader, config)) ||
        (status = octavo_family_activation(reader, "hidden_activation", "gelu_pytorch_tanh",
                                           &config->activation)))
        return status;
    if (octavo_config_is_hf(reader)) {
        bool has_bias;
        status = octavo_config_flag(reader, (octavo_key){NULL, "attention_bias"}, false, &has_bias);
        if (status) return status;
        config->qkv_bias = config->attn_o_bias = has_bias ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE;
        config->norm_offset = 1.0f;
    }
    config->embed_scale = sqrtf((float)config->d);
    config->has_qk_norm = true;
    config->has_post_norms = true;
    return OCTAVO_OK;
}
