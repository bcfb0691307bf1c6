/* SPDX-License-Identifier: Apache-2.0
 *
 * Command R7B and what follows it: attention and feed-forward in parallel behind one layer norm
 * without bias, pairs of neighbours rotated, a multiplier of the logits, and three layers with a
 * window to one without, which does not rotate.
 */
#include "model/family.h"

octavo_status octavo_family_cohere2(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    const octavo_key scale = {"logit_scale", "logit_scale"};
    octavo_window_rule rule = {0};
    octavo_status status;
    if ((status = octavo_family_llama(reader, config)) ||
        (status = octavo_config_positive(reader, scale, 0.0625, &config->logit_scale)) ||
        (status = octavo_family_window(reader, 4096, &rule.window)) ||
        (status = octavo_family_window_period(reader, 4, 1, &rule.period)))
        return status;
    config->pairing = OCTAVO_ROPE_PAIRWISE;
    config->is_parallel = true;
    config->has_ffw_norm = false;
    for (int i = 0; i < config->n_layers; i++)
        config->layers[i].rope = OCTAVO_NO_ROPE;
    return octavo_family_windows(reader, config, &rule);
}
