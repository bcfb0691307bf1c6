/* SPDX-License-Identifier: Apache-2.0
 *
 * OLMo 2: as Llama with halves rotated, but norms stand behind attention and feed-forward instead
 * of before them, and queries and keys are normed over all heads together.
 */
#include "model/family.h"

octavo_status octavo_family_olmo2(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_status status = octavo_family_llama(reader, config);
    config->pairing = OCTAVO_ROPE_HALF;
    config->has_attn_norm = config->has_ffw_norm = false;
    config->has_post_norms = true;
    config->qk_norm = OCTAVO_QK_NORM_WHOLE;
    return status;
}
