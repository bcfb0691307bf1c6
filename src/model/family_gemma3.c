/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 3 text models: embeddings scaled by sqrt(d), norms before and after attention and
 * feed-forward, q/k norm per head, GELU gate, and five layers with a sliding window to one without.
 * Windowed layers rotate with a base of their own and are never scaled. GGUF files store norm
 * scales as 1 + w.
 */
#include "model/family.h"

#include <math.h>

enum { GLOBAL, LOCAL };

octavo_status octavo_family_gemma3(const octavo_gguf *gguf, octavo_model_config *config,
                                   octavo_error *error) {
    char window_key[96], pattern_key[96];
    uint32_t window, pattern;
    octavo_status status;
    octavo_family_key(config, "attention.sliding_window", window_key, sizeof window_key);
    octavo_family_key(config, "attention.sliding_window_pattern", pattern_key, sizeof pattern_key);
    if ((status = octavo_gguf_get_u32(gguf, window_key, &window, error)) ||
        (status = octavo_gguf_get_u32_or(gguf, pattern_key, 6, &pattern, error)) ||
        (status = octavo_family_rope(gguf, config, GLOBAL, "rope.freq_base", 1e6f, true, error)) ||
        (status =
             octavo_family_rope(gguf, config, LOCAL, "rope.freq_base_swa", 1e4f, false, error)))
        return status;

    for (int i = 0; i < config->n_layers; i++) {
        if (window == 0 || pattern == 0 || ((uint32_t)i + 1) % pattern == 0) continue;
        config->layers[i] = (octavo_layer_config){.rope = LOCAL, .window = window};
    }
    /* The 27B model, which has 62 layers, scales by d / n_heads; the file does not say so. */
    if (config->n_layers == 62)
        config->attention_scale = 1.0f / sqrtf((float)config->d / (float)config->n_heads);
    config->activation = OCTAVO_ACTIVATION_GELU_TANH;
    config->pairing = OCTAVO_ROPE_HALF;
    config->embed_scale = sqrtf((float)config->d);
    config->has_qk_norm = true;
    config->has_post_norms = true;
    return OCTAVO_OK;
}
