/* SPDX-License-Identifier: Apache-2.0
 *
 * Llama 2 and 3 and what is built like them (SmolLM2, TinyLlama): pre-norms, SiLU gate. GGUF files
 * of this family keep q and k rows in the order of pairwise rotation. Llama 3.1 and later carry
 * their frequency divisors as rope_freqs.weight.
 */
#include "model/family.h"

octavo_status octavo_family_llama(const octavo_gguf *gguf, octavo_model_config *config,
                                  octavo_error *error) {
    config->activation = OCTAVO_ACTIVATION_SILU;
    config->pairing = OCTAVO_ROPE_PAIRWISE;
    return octavo_family_rope(gguf, config, 0, "rope.freq_base", 10000.0f, true, error);
}
