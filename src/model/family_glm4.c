/* SPDX-License-Identifier: Apache-2.0
 *
 * GLM-4 (0414): norms before and behind attention and feed-forward, neighbours rotated in half of
 * each head, biases at q, k and v, gate and up in one tensor.
 */
#include "model/family.h"

const octavo_weight_name octavo_family_glm4_names[] = {
    {OCTAVO_ROLE_POST_ATTN_NORM, "post_self_attn_layernorm.weight"},
    {OCTAVO_ROLE_POST_FFW_NORM, "post_mlp_layernorm.weight"},
    {OCTAVO_ROLE_NONE, NULL},
};

octavo_status octavo_family_glm4(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_status status = octavo_family_llama(reader, config);
    config->pairing = OCTAVO_ROPE_PAIRWISE;
    config->has_post_norms = true;
    config->gate_fusion = OCTAVO_FUSION_ROWS;
    config->attn_o_bias = OCTAVO_BIAS_NONE;
    return status;
}
