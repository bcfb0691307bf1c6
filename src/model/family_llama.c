/* SPDX-License-Identifier: Apache-2.0
 *
 * Llama 2 and 3 and what is built like them (SmolLM2, TinyLlama, Mistral): pre-norms, SiLU gate.
 * Checkpoints rotate halves; GGUF files of this family keep q and k rows in the order of pairwise
 * rotation. Llama 3.1 and later carry their frequency divisors there as rope_freqs.weight. Mistral
 * adds a window on every layer, or (Ministral) on some, Mixtral experts; their GGUF files call
 * themselves llama. Ministral 3 scales its queries by their position.
 */
#include "model/family.h"

#include <math.h>

const octavo_weight_name octavo_family_mixtral_names[] = {
    {OCTAVO_ROLE_ROUTER, "block_sparse_moe.gate.weight"},
    {OCTAVO_ROLE_EXPERT_GATE, "block_sparse_moe.experts.*.w1.weight"},
    {OCTAVO_ROLE_EXPERT_UP, "block_sparse_moe.experts.*.w3.weight"},
    {OCTAVO_ROLE_EXPERT_DOWN, "block_sparse_moe.experts.*.w2.weight"},
    {OCTAVO_ROLE_NONE, NULL},
};

static octavo_status configure_experts(const octavo_config_reader *reader,
                                       octavo_model_config *config) {
    config->router.is_normalised = true;
    config->ffw_expert = config->ffw;
    return octavo_family_experts(reader, config, "num_local_experts", 2);
}

octavo_status octavo_family_llama(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 10000.0, .is_scaled = true};
    octavo_status status;
    if ((status = octavo_family_activation(reader, "hidden_act", "silu", &config->activation)) ||
        (status = octavo_family_biases(reader, config)))
        return status;
    config->pairing = octavo_config_is_hf(reader) ? OCTAVO_ROPE_HALF : OCTAVO_ROPE_PAIRWISE;
    if (!octavo_config_is_hf(reader) && config->n_experts > 0 &&
        (status = configure_experts(reader, config)))
        return status;
    return octavo_family_rope(reader, config, 0, &rope);
}

/* Mistral's files have a window on every layer, or call themselves llama and have none. */
octavo_status octavo_family_llama_or_mistral(const octavo_config_reader *reader,
                                             octavo_model_config *config) {
    octavo_window_rule rule = {0};
    octavo_status status = octavo_family_llama(reader, config);
    if (status || octavo_config_is_hf(reader)) return status;
    if ((status = octavo_family_window(reader, 0, &rule.window))) return status;
    return octavo_family_windows(reader, config, &rule);
}

octavo_status octavo_family_mistral(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    octavo_window_rule rule = {0};
    octavo_status status;
    if ((status = octavo_family_llama(reader, config)) ||
        (status = octavo_family_window(reader, 4096, &rule.window)))
        return status;
    return octavo_family_windows(reader, config, &rule);
}

/* GGUF files count periods in the original context and say no more than the scale. */
static octavo_status read_temperature(const octavo_config_reader *reader,
                                      octavo_model_config *config) {
    const octavo_key scale = {"attention.temperature_scale", "llama_4_scaling_beta"};
    const octavo_key period = {"rope.scaling.original_context_length",
                               "original_max_position_embeddings"};
    octavo_config_reader rope = *reader;
    octavo_status status = OCTAVO_OK;
    if (octavo_config_is_hf(reader) &&
        ((status = octavo_config_section(reader, "rope_parameters", &rope)) ||
         (!rope.object && (status = octavo_config_section(reader, "rope_scaling", &rope)))))
        return status;
    if (octavo_config_is_hf(reader) && !rope.object) return OCTAVO_OK;
    if (!octavo_config_has(&rope, scale)) return OCTAVO_OK;
    int64_t positions = 0;
    config->has_temperature_everywhere = true;
    if ((status = octavo_config_positive(&rope, scale, (double)NAN, &config->temperature.scale)) ||
        (status = octavo_config_integer(&rope, period, OCTAVO_REQUIRED, 1, 1 << 28, &positions)))
        return status;
    config->temperature.period = (float)positions;
    return OCTAVO_OK;
}

octavo_status octavo_family_ministral3(const octavo_config_reader *reader,
                                       octavo_model_config *config) {
    octavo_window_rule rule = {0};
    octavo_status status;
    if ((status = octavo_family_llama(reader, config)) ||
        (status = octavo_family_window(reader, 0, &rule.window)) ||
        (status = read_temperature(reader, config)))
        return status;
    return octavo_family_windows(reader, config, &rule);
}

octavo_status octavo_family_mixtral(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    octavo_window_rule rule = {0};
    octavo_status status;
    if ((status = octavo_family_llama(reader, config)) ||
        (status = configure_experts(reader, config)) ||
        (status = octavo_family_window(reader, 0, &rule.window)))
        return status;
    return octavo_family_windows(reader, config, &rule);
}
