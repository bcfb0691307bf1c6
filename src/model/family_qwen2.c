/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen2 and Qwen2.5: as Llama, with biases at q, k and v and halves rotated.
 */
#include "model/family.h"

octavo_status octavo_family_qwen2(const octavo_gguf *gguf, octavo_model_config *config,
                                  octavo_error *error) {
    config->activation = OCTAVO_ACTIVATION_SILU;
    config->pairing = OCTAVO_ROPE_HALF;
    config->needs_qkv_bias = true;
    return octavo_family_rope(gguf, config, 0, "rope.freq_base", 1000000.0f, true, error);
}
