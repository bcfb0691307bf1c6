/* SPDX-License-Identifier: Apache-2.0
 *
 * Qwen2 and Qwen2.5: as Llama, with biases at q, k and v and halves rotated.
 */
#include "model/family.h"

octavo_status octavo_family_qwen2(const octavo_gguf *gguf, octavo_model_config *config,
                                  octavo_error *error) {
    char key[96];
    float base;
    octavo_family_key(config, "rope.freq_base", key, sizeof key);
    octavo_status status = octavo_gguf_get_f32_or(gguf, key, 1000000.0f, &base, error);
    if (status) return status;
    config->activation = OCTAVO_ACTIVATION_SILU;
    config->pairing = OCTAVO_ROPE_HALF;
    config->needs_qkv_bias = true;
    return octavo_family_rope(gguf, config, 0, base, true, error);
}
