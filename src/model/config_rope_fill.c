/* SPDX-License-Identifier: Apache-2.0
 *
 * Frequencies of rotary embeddings.
 */
#include "base/error.h"
#include "base/memory.h"
#include "model/config_rope.h"

#include <math.h>

#define TWO_PI 6.283185307179586

/* Waves longer than original_context / low_factor turn slower by factor, those shorter than
 * original_context / high_factor are left alone, and between the two it is a mixture. */
static float scale_llama3(const octavo_rope_config *rope, float frequency) {
    const float wave = (float)TWO_PI / frequency;
    if (wave > rope->original_context / rope->low_factor) return frequency / rope->factor;
    if (wave < rope->original_context / rope->high_factor) return frequency;
    const float smooth =
        (rope->original_context / wave - rope->low_factor) / (rope->high_factor - rope->low_factor);
    return (1.0f - smooth) * frequency / rope->factor + smooth * frequency;
}

/* The pair, a fraction, that turns so many times within the original context. */
static double pair_of_turns(const octavo_rope_config *rope, int64_t dim, float turns) {
    return (double)dim * log((double)rope->original_context / ((double)turns * TWO_PI)) /
           (2.0 * log((double)rope->base));
}

/* Pairs that turn more than high_factor times are left alone, those that turn less than low_factor
 * times turn slower by factor, and between the two it is a mixture by the pair's number. */
static float scale_yarn(const octavo_rope_config *rope, int64_t dim, int64_t pair,
                        float frequency) {
    double low = pair_of_turns(rope, dim, rope->high_factor);
    double high = pair_of_turns(rope, dim, rope->low_factor);
    if (rope->has_whole_bounds) {
        low = floor(low);
        high = ceil(high);
    }
    if (low < 0.0) low = 0.0;
    if (high > (double)(dim - 1)) high = (double)(dim - 1);
    if (high == low) high += 0.001;
    double slow = ((double)pair - low) / (high - low);
    slow = slow < 0.0 ? 0.0 : slow > 1.0 ? 1.0 : slow;
    return frequency / rope->factor * (float)slow + frequency * (1.0f - (float)slow);
}

/* base^(-2i / dim), in f32 as the models' own code computes them. */
static void fill_table(const octavo_rope_config *rope, int64_t dim, const float *divisors,
                       float *frequencies) {
    for (int64_t i = 0; i < dim / 2; i++) {
        float exponent = (float)(2 * i) / (float)dim;
        float frequency = 1.0f / (float)pow((double)rope->base, (double)exponent);
        if (divisors) frequency /= divisors[i];
        if (rope->scaling == OCTAVO_ROPE_SCALING_LINEAR) frequency /= rope->factor;
        if (rope->scaling == OCTAVO_ROPE_SCALING_LLAMA3) frequency = scale_llama3(rope, frequency);
        if (rope->scaling == OCTAVO_ROPE_SCALING_YARN)
            frequency = scale_yarn(rope, dim, i, frequency);
        frequencies[i] = frequency;
    }
}

octavo_status octavo_rope_fill(octavo_model_config *config, octavo_error *error) {
    const size_t pairs = (size_t)(config->rope_dim / 2);
    for (int r = 0; r < config->n_ropes; r++) {
        octavo_rope_config *rope = &config->ropes[r];
        rope->frequencies = octavo_alloc_zero(pairs, sizeof(float));
        if (rope->long_divisors) rope->long_frequencies = octavo_alloc_zero(pairs, sizeof(float));
        if (!rope->frequencies || (rope->long_divisors && !rope->long_frequencies))
            return octavo_fail_memory(error, "rope frequencies", pairs * sizeof(float));
        fill_table(rope, config->rope_dim, rope->divisors, rope->frequencies);
        if (rope->long_divisors)
            fill_table(rope, config->rope_dim, rope->long_divisors, rope->long_frequencies);
    }
    return OCTAVO_OK;
}

void octavo_rope_deinit(octavo_rope_config *rope) {
    octavo_free(rope->divisors);
    octavo_free(rope->long_divisors);
    octavo_free(rope->frequencies);
    octavo_free(rope->long_frequencies);
}
