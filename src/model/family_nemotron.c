/* SPDX-License-Identifier: Apache-2.0
 *
 * Nemotron: layer norms with biases whose scales are 1 + w (in GGUF files already added), halves
 * rotated in part of each head, and a feed-forward without gate that squares what is above 0.
 */
#include "model/family.h"

octavo_status octavo_family_nemotron(const octavo_config_reader *reader,
                                     octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 1e4, .is_scaled = true};
    octavo_status status;
    config->has_gate = false;
    config->norm_bias = OCTAVO_BIAS_NEEDED;
    config->norm_offset = octavo_config_is_hf(reader) ? 1.0f : 0.0f;
    if ((status = octavo_family_activation(reader, "hidden_act", "relu2", &config->activation)) ||
        (status = octavo_family_biases(reader, config)))
        return status;
    return octavo_family_rope(reader, config, 0, &rope);
}
