/* SPDX-License-Identifier: Apache-2.0
 *
 * Phi-3 and Phi-4: as Llama with halves rotated (Phi-4-mini: a part of each head), q, k and v in
 * one tensor, gate and up in another, and for long contexts longrope. Some have a window on every
 * layer.
 */
#include "model/family.h"

octavo_status octavo_family_phi3(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_window_rule rule = {0};
    octavo_status status;
    if ((status = octavo_family_llama(reader, config)) ||
        (status = octavo_family_window(reader, 0, &rule.window)))
        return status;
    config->pairing = OCTAVO_ROPE_HALF;
    config->qkv_fusion = config->gate_fusion = OCTAVO_FUSION_ROWS;
    return octavo_family_windows(reader, config, &rule);
}
