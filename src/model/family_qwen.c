/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen2, Qwen2.5 and Qwen3: as Llama with halves rotated; Qwen2 with biases at q, k and v, Qwen3
 * with norms of q and k heads in their place. config.json may switch on a window for the upper
 * layers; published models do not.
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
