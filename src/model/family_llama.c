/* SPDX-License-Identifier: Apache-2.0
 *
 * Llama 2 and 3 and what is built like them (SmolLM2, TinyLlama): pre-norms, SiLU gate. GGUF files
 * of this family keep q and k rows in the order of pairwise rotation. Llama 3.1 and later carry
 * their frequency divisors as rope_freqs.weight.
 */
#include "model/family.h"

octavo_status octavo_family_llama(const octavo_gguf *gguf, octavo_model_config *config,
                                  octavo_error *error) {
    char key[96];
    float base;
    octavo_family_key(config, "rope.freq_base", key, sizeof key);
    octavo_status status = octavo_gguf_get_f32_or(gguf, key, 10000.0f, &base, error);
    if (status) return status;
    config->activation = OCTAVO_ACTIVATION_SILU;
    config->pairing = OCTAVO_ROPE_PAIRWISE;
    return octavo_family_rope(gguf, config, 0, base, true, error);
}
