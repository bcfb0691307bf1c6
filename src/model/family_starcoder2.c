/* SPDX-License-Identifier: Apache-2.0
 *
 * StarCoder2: layer norms with biases, biases at every product, and a feed-forward without gate.
 */
#include "model/family.h"

const octavo_weight_name octavo_family_starcoder2_names[] = {
    {OCTAVO_ROLE_FFW_UP, "mlp.c_fc.weight"},
    {OCTAVO_ROLE_FFW_UP_BIAS, "mlp.c_fc.bias"},
    {OCTAVO_ROLE_FFW_DOWN, "mlp.c_proj.weight"},
    {OCTAVO_ROLE_FFW_DOWN_BIAS, "mlp.c_proj.bias"},
    {OCTAVO_ROLE_NONE, NULL},
};

octavo_status octavo_family_starcoder2(const octavo_config_reader *reader,
                                       octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 1e4, .is_scaled = true};
    octavo_window_rule rule = {0};
    bool has_biases;
    octavo_status status;
    config->has_gate = false;
    config->norm_bias = OCTAVO_BIAS_NEEDED;
    if ((status = octavo_config_flag(reader, (octavo_key){NULL, "use_bias"}, true, &has_biases)) ||
        (status = octavo_family_activation(reader, "hidden_act", "gelu_pytorch_tanh",
                                           &config->activation)) ||
        (status = octavo_family_rope(reader, config, 0, &rope)) ||
        (status = octavo_family_window(reader, 0, &rule.window)))
        return status;
    if (octavo_config_is_hf(reader))
        config->qkv_bias = config->attn_o_bias = config->ffw_bias =
            has_biases ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE;
    return octavo_family_windows(reader, config, &rule);
}
