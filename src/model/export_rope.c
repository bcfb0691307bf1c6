/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotation in GGUF's words: kinds of scaling that it has a name for by their numbers, those of
 * Llama 3 and longrope by tensors of divisors.
 */
#include "base/error.h"
#include "base/memory.h"
#include "model/export.h"

#include <math.h>
#include <string.h>

static octavo_status add_divisors(octavo_export *model, const char *name, const float *values,
                                  octavo_error *error) {
    octavo_status status =
        octavo_export_add_vector(model, name, values, model->config.rope_dim / 2, error);
    model->n_first = model->n_tensors;
    return status;
}

/* By what the plain frequencies are divided. */
static octavo_status add_llama3(octavo_export *model, const octavo_rope_config *rope,
                                octavo_error *error) {
    const int64_t dim = model->config.rope_dim;
    model->rope_values = octavo_alloc_zero((size_t)(dim / 2), sizeof *model->rope_values);
    if (!model->rope_values) return octavo_fail_memory(error, "divisors", (uint64_t)dim * 2);
    for (int64_t i = 0; i < dim / 2; i++) {
        const float exponent = (float)(2 * i) / (float)dim;
        const float plain = 1.0f / (float)pow((double)rope->base, (double)exponent);
        model->rope_values[i] = plain / rope->frequencies[i];
    }
    return add_divisors(model, "rope_freqs.weight", model->rope_values, error);
}

static void note_yarn(octavo_config_notes *notes, const octavo_rope_config *rope) {
    /* GGUF's readers take a scale that follows from the factor, and this on top */
    const double usual = rope->factor > 1.0f ? 0.1 * log((double)rope->factor) + 1.0 : 1.0;
    const float on_top = (float)((double)rope->scale / usual);
    octavo_config_note_text(notes, "rope.scaling.type", "yarn");
    octavo_config_note_number(notes, "rope.scaling.factor", rope->factor);
    octavo_config_note_integer(notes, "rope.scaling.original_context_length",
                               (int64_t)rope->original_context);
    octavo_config_note_number(notes, "rope.scaling.yarn_beta_fast", rope->high_factor);
    octavo_config_note_number(notes, "rope.scaling.yarn_beta_slow", rope->low_factor);
    if (fabsf(on_top - 1.0f) > 1e-6f)
        octavo_config_note_number(notes, "rope.scaling.attn_factor", on_top);
}

static octavo_status add_longrope(octavo_export *model, const octavo_rope_config *rope,
                                  octavo_error *error) {
    octavo_config_notes *notes = &model->notes;
    octavo_config_note_text(notes, "rope.scaling.type", "longrope");
    octavo_config_note_integer(notes, "rope.scaling.original_context_length",
                               (int64_t)rope->original_context);
    octavo_config_note_number(notes, "rope.scaling.attn_factor", rope->scale);
    octavo_status status = add_divisors(model, "rope_factors_short.weight", rope->divisors, error);
    if (status) return status;
    return add_divisors(model, "rope_factors_long.weight", rope->long_divisors, error);
}

octavo_status octavo_export_rope(octavo_export *model, octavo_error *error) {
    static const char *const read[] = {
        "rope.scaling.factor",         "rope.scaling.original_context_length",
        "rope.scaling.attn_factor",    "rope.scaling.yarn_beta_fast",
        "rope.scaling.yarn_beta_slow",
    };
    const octavo_rope_config *rope = &model->config.ropes[0];
    for (size_t i = 0; i < OCTAVO_COUNT(read); i++) /* not all in GGUF's sense */
        octavo_config_note_remove(&model->notes, read[i]);
    if (model->config.n_ropes == 0) return OCTAVO_OK;
    if (rope->long_divisors) return add_longrope(model, rope, error);
    switch (rope->scaling) {
    case OCTAVO_ROPE_SCALING_NONE:
        break;
    case OCTAVO_ROPE_SCALING_LINEAR:
        octavo_config_note_text(&model->notes, "rope.scaling.type", "linear");
        octavo_config_note_number(&model->notes, "rope.scaling.factor", rope->factor);
        break;
    case OCTAVO_ROPE_SCALING_LLAMA3:
        return add_llama3(model, rope, error);
    case OCTAVO_ROPE_SCALING_YARN:
        note_yarn(&model->notes, rope);
        break;
    }
    return OCTAVO_OK;
}
