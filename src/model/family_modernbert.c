/* SPDX-License-Identifier: Apache-2.0
 *
 * ModernBERT: an encoder with norms before attention and feed-forward, but none before the first
 * attention, whose input was normed already. Layers but the first of each few see only their
 * neighbourhood, to both sides, and rotate with a base of their own. q, k and v are one tensor,
 * gate and up another.
 */
#include "model/family.h"

const octavo_weight_name octavo_family_modernbert_names[] = {
    {OCTAVO_ROLE_EMBED, "embeddings.tok_embeddings.weight"},
    {OCTAVO_ROLE_EMBED_NORM, "embeddings.norm.weight"},
    {OCTAVO_ROLE_EMBED_NORM_BIAS, "embeddings.norm.bias"},
    {OCTAVO_ROLE_ATTN_NORM, "attn_norm.weight"},
    {OCTAVO_ROLE_ATTN_NORM_BIAS, "attn_norm.bias"},
    {OCTAVO_ROLE_ATTN_QKV, "attn.Wqkv.weight"},
    {OCTAVO_ROLE_ATTN_QKV_BIAS, "attn.Wqkv.bias"},
    {OCTAVO_ROLE_ATTN_O, "attn.Wo.weight"},
    {OCTAVO_ROLE_ATTN_O_BIAS, "attn.Wo.bias"},
    {OCTAVO_ROLE_FFW_NORM, "mlp_norm.weight"},
    {OCTAVO_ROLE_FFW_NORM_BIAS, "mlp_norm.bias"},
    {OCTAVO_ROLE_FFW_GATE_UP, "mlp.Wi.weight"},
    {OCTAVO_ROLE_FFW_DOWN, "mlp.Wo.weight"},
    {OCTAVO_ROLE_OUTPUT_NORM, "final_norm.weight"},
    {OCTAVO_ROLE_OUTPUT_NORM_BIAS, "final_norm.bias"},
    {OCTAVO_ROLE_NONE, NULL},
};

enum { GLOBAL, LOCAL };

static octavo_status read_biases(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key norm = {NULL, "norm_bias"}, ffw = {NULL, "mlp_bias"};
    bool has_norm_bias;
    octavo_status status;
    if ((status = octavo_family_biases(reader, config)) ||
        (status = octavo_config_flag(reader, norm, false, &has_norm_bias)))
        return status;
    if (config->ffw_bias == OCTAVO_BIAS_NEEDED)
        return octavo_config_fail(reader, ffw, OCTAVO_ERROR_UNSUPPORTED,
                                  "true: biases of gate and up in one are not in this version");
    config->norm_bias = has_norm_bias ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE;
    return OCTAVO_OK;
}

static octavo_status read_ropes(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_rope_source global = {.base = {"rope.freq_base", "global_rope_theta"},
                                       .fallback = 1.6e5,
                                       .is_scaled = true,
                                       .layer_type = "full_attention"};
    const octavo_rope_source local = {.base = {"rope.freq_base_swa", "local_rope_theta"},
                                      .fallback = 1e4,
                                      .layer_type = "sliding_attention"};
    octavo_status status = octavo_family_rope(reader, config, GLOBAL, &global);
    return status ? status : octavo_family_rope(reader, config, LOCAL, &local);
}

/* Files give the width of the neighbourhood; half of it lies to either side. */
static octavo_status read_windows(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key width = {"attention.sliding_window", "local_attention"};
    const octavo_key every = {"attention.sliding_window_pattern", "global_attn_every_n_layers"};
    octavo_window_rule rule = {.rope = LOCAL, .is_first_whole = true};
    int64_t positions;
    octavo_gguf_array list;
    octavo_status status = octavo_config_integer(reader, width, 128, 1, 1 << 28, &positions);
    if (status) return status;
    rule.window = positions / 2 + 1;
    if (!octavo_config_array(reader, every, &list) &&
        (status = octavo_config_integer(reader, every, 3, 1, 1 << 20, &rule.period)))
        return status;
    return octavo_family_windows(reader, config, &rule);
}

octavo_status octavo_family_modernbert(const octavo_config_reader *reader,
                                       octavo_model_config *config) {
    octavo_status status;
    config->has_embed_norm = true;
    config->is_first_bare = true;
    config->qkv_fusion = OCTAVO_FUSION_ROWS;
    config->gate_fusion = OCTAVO_FUSION_ROWS;
    if ((status = read_biases(reader, config)) || (status = read_ropes(reader, config)) ||
        (status =
             octavo_family_activation(reader, "hidden_activation", "gelu", &config->activation)))
        return status;
    return read_windows(reader, config);
}
