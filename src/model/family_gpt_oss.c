/* SPDX-License-Identifier: Apache-2.0
 *
 * gpt-oss: attention with sinks and a window on every other layer, biases at its products, experts
 * in every layer with a limited gate and biases, yarn. Folders have the matrices of experts in one
 * tensor in which gate and up take turns, in floats or in MXFP4; GGUF files have them apart.
 */
#include "model/family.h"

const octavo_weight_name octavo_family_gpt_oss_names[] = {
    {OCTAVO_ROLE_ROUTER, "mlp.router.weight"},
    {OCTAVO_ROLE_ROUTER_BIAS, "mlp.router.bias"},
    {OCTAVO_ROLE_EXPERT_DOWN, "mlp.experts.down_proj"},
    {OCTAVO_ROLE_NONE, NULL},
};

const octavo_weight_name octavo_family_gpt_oss_gguf_names[] = {
    {OCTAVO_ROLE_FFW_NORM, "post_attention_norm.weight"},
    {OCTAVO_ROLE_NONE, NULL},
};

octavo_status octavo_family_gpt_oss(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 150000.0, .is_scaled = true};
    const octavo_key width = {"expert_feed_forward_length", NULL};
    octavo_window_rule rule = {.period = 2};
    octavo_status status;
    config->has_sinks = true;
    config->qkv_bias = config->attn_o_bias = config->expert_bias = OCTAVO_BIAS_NEEDED;
    config->has_expert_columns = config->is_interleaved = octavo_config_is_hf(reader);
    config->activation = OCTAVO_ACTIVATION_SWIGLU;
    config->router.is_normalised = true;
    if ((status =
             octavo_config_integer(reader, width, config->ffw, 1, 1 << 22, &config->ffw_expert)) ||
        (status = octavo_family_experts(reader, config, "num_local_experts", 4)) ||
        (status = octavo_config_positive(reader, (octavo_key){NULL, "swiglu_limit"}, 7.0,
                                         &config->swiglu_limit)) ||
        (status = octavo_family_rope(reader, config, 0, &rope)) ||
        (status = octavo_family_window(reader, 128, &rule.window)))
        return status;
    /* Published models say so in config.json; GGUF files have no key for it. */
    if (!octavo_config_is_hf(reader)) config->ropes[0].has_whole_bounds = false;
    return octavo_family_windows(reader, config, &rule);
}
