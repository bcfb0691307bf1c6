/* SPDX-License-Identifier: Apache-2.0
 *
 * OLMo 2: as Llama with halves rotated, but norms stand behind attention and feed-forward instead
 * of before them, and queries and keys are normed over all heads together. OLMo 3 adds a window on
 * three layers of four, whose rope is not scaled; its GGUF files call themselves olmo2.
 */
#include "model/family.h"

enum { GLOBAL, LOCAL }; /* ropes */

static octavo_status read_windows(const octavo_config_reader *reader, octavo_model_config *config,
                                  int64_t usual) {
    const octavo_rope_source local = {.base = {"rope.freq_base", "rope_theta"},
                                      .fallback = 1e4,
                                      .layer_type = "sliding_attention"};
    const octavo_rope_source global = {.base = {"rope.freq_base", "rope_theta"},
                                       .fallback = 1e4,
                                       .is_scaled = true,
                                       .layer_type = "full_attention"};
    octavo_window_rule rule = {.rope = LOCAL};
    octavo_status status;
    if ((status = octavo_family_window(reader, usual, &rule.window)) || rule.window == 0 ||
        (status = octavo_family_window_period(reader, 4, 1, &rule.period)) ||
        (status = octavo_family_rope(reader, config, GLOBAL, &global)) ||
        (status = octavo_family_rope(reader, config, LOCAL, &local)))
        return status;
    return octavo_family_windows(reader, config, &rule);
}

octavo_status octavo_family_olmo2(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_status status = octavo_family_llama(reader, config);
    if (status == OCTAVO_OK && !octavo_config_is_hf(reader))
        status = read_windows(reader, config, 0);
    config->pairing = OCTAVO_ROPE_HALF;
    config->has_attn_norm = config->has_ffw_norm = false;
    config->has_post_norms = true;
    config->qk_norm = OCTAVO_QK_NORM_WHOLE;
    return status;
}

octavo_status octavo_family_olmo3(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_status status = octavo_family_olmo2(reader, config);
    return status ? status : read_windows(reader, config, 4096);
}
