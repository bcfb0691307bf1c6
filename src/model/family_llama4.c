/* SPDX-License-Identifier: Apache-2.0
 *
 * Llama 4 text models: neighbours rotated, norms of q and k heads behind the rope, attention within
 * chunks; every fourth layer does not rotate, sees all and scales its queries by their position.
 * Experts in all or some layers: a token's weight is of what they take, and one is shared by all.
 */
#include "model/family.h"

const octavo_weight_name octavo_family_llama4_names[] = {
    {OCTAVO_ROLE_FFW_GATE, "feed_forward.gate_proj.weight"},
    {OCTAVO_ROLE_FFW_UP, "feed_forward.up_proj.weight"},
    {OCTAVO_ROLE_FFW_DOWN, "feed_forward.down_proj.weight"},
    {OCTAVO_ROLE_ROUTER, "feed_forward.router.weight"},
    {OCTAVO_ROLE_EXPERT_GATE_UP, "feed_forward.experts.gate_up_proj"},
    {OCTAVO_ROLE_EXPERT_DOWN, "feed_forward.experts.down_proj"},
    {OCTAVO_ROLE_SHARED_GATE, "feed_forward.shared_expert.gate_proj.weight"},
    {OCTAVO_ROLE_SHARED_UP, "feed_forward.shared_expert.up_proj.weight"},
    {OCTAVO_ROLE_SHARED_DOWN, "feed_forward.shared_expert.down_proj.weight"},
    {OCTAVO_ROLE_NONE, NULL},
};

/* Most GGUF files leave out what all published models have in common. */
static octavo_status read_attention(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    const octavo_key chunk_key = {"attention.chunk_size", "attention_chunk_size"};
    const octavo_key tuned = {"attention.temperature_tuning", "attn_temperature_tuning"};
    const octavo_key norm = {"use_qk_norm", "use_qk_norm"};
    int64_t chunk = 0;
    bool is_tuned, has_norm;
    octavo_status status;
    if (!octavo_config_is_null(reader, chunk_key) &&
        (status = octavo_config_integer(reader, chunk_key, 8192, 1, 1 << 28, &chunk)))
        return status;
    if ((status = octavo_config_flag(reader, tuned, true, &is_tuned)) ||
        (status = octavo_config_flag(reader, norm, config->n_experts != 128, &has_norm)) ||
        (status = octavo_config_positive(
             reader, (octavo_key){"attention.temperature_length", "floor_scale"}, 8192.0,
             &config->temperature.period)) ||
        (status = octavo_config_positive(reader,
                                         (octavo_key){"attention.temperature_scale", "attn_scale"},
                                         0.1, &config->temperature.scale)) ||
        (status = octavo_family_no_rope(reader, config)))
        return status;
    config->temperature.first = 1;
    if (!is_tuned) config->temperature.period = 0.0f;
    if (has_norm) config->qk_norm = OCTAVO_QK_NORM_ROPED;
    for (int i = 0; i < config->n_layers; i++)
        if (config->layers[i].rope != OCTAVO_NO_ROPE) config->layers[i].chunk = chunk;
    return OCTAVO_OK;
}

/* "intermediate_size" is an expert's; GGUF files give the dense layers' and the experts'. */
static octavo_status read_experts(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key step = {"interleave_moe_layer_step", "interleave_moe_layer_step"};
    const octavo_key width = {"expert_feed_forward_length", "intermediate_size"};
    int64_t period;
    octavo_status status;
    if ((status = octavo_family_experts(reader, config, "num_local_experts", 1)) ||
        (status = octavo_config_integer(reader, step, 1, 1, 1 << 20, &period)) ||
        (status = octavo_config_integer(reader, width, OCTAVO_REQUIRED, 1, 1 << 22,
                                        &config->ffw_expert)) ||
        (status = octavo_config_integer(reader, (octavo_key){NULL, "intermediate_size_mlp"},
                                        config->ffw, 1, 1 << 22, &config->ffw)))
        return status;
    for (int i = 0; i < config->n_layers; i++)
        config->layers[i].is_sparse = (i + 1) % period == 0;
    config->ffw_shared = config->ffw_expert;
    config->router.is_sigmoid = config->router.is_for_input = true;
    config->has_expert_columns = octavo_config_is_hf(reader);
    return OCTAVO_OK;
}

octavo_status octavo_family_llama4(const octavo_config_reader *reader,
                                   octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 5e5, .is_scaled = true};
    octavo_status status;
    config->pairing = OCTAVO_ROPE_PAIRWISE;
    if ((status = octavo_family_activation(reader, "hidden_act", "silu", &config->activation)) ||
        (status = octavo_family_biases(reader, config)) ||
        (status = octavo_family_rope(reader, config, 0, &rope)) ||
        (status = read_attention(reader, config)))
        return status;
    return read_experts(reader, config);
}
