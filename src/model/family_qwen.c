/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen2, Qwen2.5 and Qwen3: as Llama with halves rotated; Qwen2 with biases at q, k and v, Qwen3
 * with norms of q and k heads in their place. config.json may switch on a window for the upper
 * layers; published models do not. Some have experts in all or some layers, Qwen2 with a shared one
 * beside them of which each token takes a part.
 */
#include "model/family.h"

static octavo_status read_windows(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_window_rule rule = {0};
    bool is_on;
    octavo_status status;
    if (!octavo_config_is_hf(reader)) return OCTAVO_OK;
    if ((status =
             octavo_config_flag(reader, (octavo_key){NULL, "use_sliding_window"}, false, &is_on)) ||
        (status = octavo_config_integer(reader, (octavo_key){NULL, "max_window_layers"}, 28, 0,
                                        1 << 20, &rule.first)))
        return status;
    if (is_on && (status = octavo_family_window(reader, 4096, &rule.window))) return status;
    return octavo_family_windows(reader, config, &rule);
}

static octavo_status configure(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_rope_source rope = {.base = {"rope.freq_base", "rope_theta"},
                                     .fallback = octavo_config_is_hf(reader) ? 1e4 : 1e6,
                                     .is_scaled = true};
    octavo_status status;
    if ((status = octavo_family_activation(reader, "hidden_act", "silu", &config->activation)) ||
        (status = read_windows(reader, config)))
        return status;
    return octavo_family_rope(reader, config, 0, &rope);
}

octavo_status octavo_family_qwen2(const octavo_config_reader *reader, octavo_model_config *config) {
    config->qkv_bias = OCTAVO_BIAS_NEEDED;
    return configure(reader, config);
}

octavo_status octavo_family_qwen3(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_status status = octavo_family_biases(reader, config);
    config->qk_norm = OCTAVO_QK_NORM_HEAD;
    return status ? status : configure(reader, config);
}

static octavo_status read_experts(const octavo_config_reader *reader, octavo_model_config *config,
                                  int64_t usual_chosen) {
    const octavo_key width = {"expert_feed_forward_length", "moe_intermediate_size"};
    octavo_status status = octavo_family_experts(reader, config, "num_experts", usual_chosen);
    if (status) return status;
    return octavo_config_integer(reader, width, OCTAVO_REQUIRED, 1, 1 << 22, &config->ffw_expert);
}

/* Whether weights of the chosen are normalised config.json says; GGUF files do not. */
static octavo_status read_normalised(const octavo_config_reader *reader, bool in_gguf,
                                     octavo_model_config *config) {
    const octavo_key key = {NULL, "norm_topk_prob"};
    return octavo_config_flag(reader, key, octavo_config_is_hf(reader) ? false : in_gguf,
                              &config->router.is_normalised);
}

octavo_status octavo_family_qwen2_moe(const octavo_config_reader *reader,
                                      octavo_model_config *config) {
    const octavo_key shared = {"expert_shared_feed_forward_length",
                               "shared_expert_intermediate_size"};
    octavo_status status;
    config->has_shared_gate = true;
    if ((status = octavo_family_qwen2(reader, config)) ||
        (status = read_experts(reader, config, 4)) ||
        (status = read_normalised(reader, false, config)))
        return status;
    return octavo_config_integer(reader, shared, OCTAVO_REQUIRED, 1, 1 << 22, &config->ffw_shared);
}

octavo_status octavo_family_qwen3_moe(const octavo_config_reader *reader,
                                      octavo_model_config *config) {
    octavo_status status;
    if ((status = octavo_family_qwen3(reader, config)) ||
        (status = read_experts(reader, config, 8)))
        return status;
    return read_normalised(reader, true, config);
}
