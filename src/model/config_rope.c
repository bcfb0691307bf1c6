/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary embeddings: reading what kind they are, and turning that into frequencies. config.json has
 * it in two styles: "rope_theta" beside a "rope_scaling" object, or all in "rope_parameters", there
 * once for the model or once for each kind of layer.
 */
#include "model/config_rope.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/family.h"

#include <math.h>
#include <string.h>

/* ---- reading ---- */

static octavo_status read_linear(const octavo_config_reader *reader, octavo_rope_config *rope) {
    const octavo_key factor = {"rope.scaling.factor", "factor"};
    rope->scaling = OCTAVO_ROPE_SCALING_LINEAR;
    return octavo_config_positive(reader, factor, octavo_config_is_hf(reader) ? (double)NAN : 1.0,
                                  &rope->factor);
}

static octavo_status read_llama3(const octavo_config_reader *reader, octavo_rope_config *rope) {
    const octavo_key factor = {NULL, "factor"}, low = {NULL, "low_freq_factor"};
    const octavo_key high = {NULL, "high_freq_factor"};
    const octavo_key original = {NULL, "original_max_position_embeddings"};
    octavo_status status;
    rope->scaling = OCTAVO_ROPE_SCALING_LLAMA3;
    if ((status = octavo_config_positive(reader, factor, (double)NAN, &rope->factor)) ||
        (status = octavo_config_positive(reader, low, (double)NAN, &rope->low_factor)) ||
        (status = octavo_config_positive(reader, high, (double)NAN, &rope->high_factor)) ||
        (status = octavo_config_positive(reader, original, (double)NAN, &rope->original_context)))
        return status;
    if (rope->high_factor > rope->low_factor) return OCTAVO_OK;
    return octavo_config_fail(reader, high, OCTAVO_ERROR_FORMAT,
                              "%g is not above low_freq_factor, %g; the file is damaged",
                              (double)rope->high_factor, (double)rope->low_factor);
}

static octavo_status read_none(const octavo_config_reader *reader, octavo_rope_config *rope) {
    (void)reader;
    rope->scaling = OCTAVO_ROPE_SCALING_NONE;
    return OCTAVO_OK;
}

/* GGUF files of Llama 3 have its divisors as a tensor, so the kind is not among theirs. */
static const struct {
    const char *gguf, *hf;
    octavo_status (*read)(const octavo_config_reader *reader, octavo_rope_config *rope);
} kinds[] = {
    {"none", "default", read_none},
    {"linear", "linear", read_linear},
    {NULL, "llama3", read_llama3},
};

static octavo_status read_kind(const octavo_config_reader *reader, octavo_key key,
                               octavo_gguf_string kind, octavo_rope_config *rope) {
    const bool is_hf = octavo_config_is_hf(reader);
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++) {
        const char *name = is_hf ? kinds[i].hf : kinds[i].gguf;
        if (name && octavo_text_is(kind, name)) return kinds[i].read(reader, rope);
    }
    return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                              "rope scaling \"%.*s\" is not in this version; %s",
                              (int)(kind.size < 32 ? kind.size : 32), kind.data,
                              is_hf ? "default, linear and llama3 are" : "none and linear are");
}

static octavo_status read_gguf(const octavo_config_reader *reader, const octavo_rope_source *source,
                               octavo_rope_config *rope) {
    const octavo_key key = {"rope.scaling.type", NULL};
    octavo_gguf_string kind;
    octavo_status status =
        octavo_config_positive(reader, source->base, source->fallback, &rope->base);
    rope->use_factors = source->is_scaled;
    if (status || !source->is_scaled) return status;
    if ((status = octavo_config_text(reader, key, "none", &kind))) return status;
    return read_kind(reader, key, kind, rope);
}

/* "rope_type", which was "type" before; some writers put down both. */
static octavo_status read_hf_kind(const octavo_config_reader *reader, octavo_rope_config *rope) {
    const octavo_key key = {NULL, "rope_type"}, old_key = {NULL, "type"};
    octavo_gguf_string kind, old;
    octavo_status status;
    if ((status = octavo_config_text(reader, key, NULL, &kind)) ||
        (status = octavo_config_text(reader, old_key, NULL, &old)))
        return status;
    if (kind.data && old.data &&
        (kind.size != old.size || memcmp(kind.data, old.data, kind.size) != 0))
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "\"type\" beside it says another kind; leave one out");
    if (kind.data) return read_kind(reader, key, kind, rope);
    if (old.data) return read_kind(reader, old_key, old, rope);
    if (octavo_config_has(reader, (octavo_key){NULL, "factor"}))
        return octavo_config_fail(reader, key, OCTAVO_ERROR_NOT_FOUND,
                                  "the key is missing, so the kind of scaling is not known");
    return OCTAVO_OK;
}

/* The object about scaling; ->object is NULL without one. */
static octavo_status find_scaling(const octavo_config_reader *reader, const char *layer_type,
                                  octavo_config_reader *scaling, bool *is_by_layer) {
    octavo_config_reader old, inner;
    octavo_status status;
    if ((status = octavo_config_section(reader, "rope_parameters", scaling)) ||
        (status = octavo_config_section(reader, "rope_scaling", &old)))
        return status;
    if (scaling->object && old.object && !json_equal(scaling->object, old.object))
        return octavo_config_fail(reader, (octavo_key){NULL, "rope_scaling"}, OCTAVO_ERROR_FORMAT,
                                  "\"rope_parameters\" says otherwise; leave one out");
    if (!scaling->object) *scaling = old;
    *is_by_layer = false;
    if (!scaling->object || !layer_type) return OCTAVO_OK;
    status = octavo_config_section(scaling, layer_type, &inner);
    if (status || !inner.object) return status;
    *scaling = inner;
    *is_by_layer = true;
    return OCTAVO_OK;
}

static octavo_status read_hf(const octavo_config_reader *reader, const octavo_rope_source *source,
                             octavo_rope_config *rope) {
    const octavo_key base_key = {NULL, "rope_theta"};
    octavo_config_reader scaling;
    bool is_by_layer;
    octavo_status status = find_scaling(reader, source->layer_type, &scaling, &is_by_layer);
    if (status) return status;
    const bool is_about_this = scaling.object && (source->is_scaled || is_by_layer);
    const bool has_inner = is_about_this && octavo_config_has(&scaling, base_key);
    status = has_inner
                 ? octavo_config_positive(&scaling, base_key, 0.0, &rope->base)
                 : octavo_config_positive(reader, source->base, source->fallback, &rope->base);
    if (status) return status;
    if (has_inner && octavo_config_has(reader, source->base)) {
        float outer;
        status = octavo_config_positive(reader, source->base, 0.0, &outer);
        if (status) return status;
        if (outer != rope->base)
            return octavo_config_fail(reader, source->base, OCTAVO_ERROR_FORMAT,
                                      "%g here, but %g in \"%s\"; leave one out", (double)outer,
                                      (double)rope->base, scaling.section);
    }
    if (!is_about_this) return OCTAVO_OK;
    return read_hf_kind(&scaling, rope);
}

octavo_status octavo_family_rope(const octavo_config_reader *reader, octavo_model_config *config,
                                 int index, const octavo_rope_source *source) {
    octavo_rope_config *rope = &config->ropes[index];
    *rope = (octavo_rope_config){.factor = 1.0f};
    if (index >= config->n_ropes) config->n_ropes = index + 1;
    return octavo_config_is_hf(reader) ? read_hf(reader, source, rope)
                                       : read_gguf(reader, source, rope);
}

/* ---- frequencies ---- */

/* rope_freqs.weight: one divisor for each pair, or NULL where the file has none. */
static octavo_status find_factors(const octavo_checkpoint *checkpoint, int64_t pairs,
                                  const uint8_t **factors, octavo_error *error) {
    octavo_checkpoint_tensor tensor;
    *factors = NULL;
    if (octavo_checkpoint_find(checkpoint, "rope_freqs.weight") < 0) return OCTAVO_OK;
    octavo_status status = octavo_checkpoint_get(checkpoint, "rope_freqs.weight", &tensor, error);
    if (status) return status;
    if (tensor.type != OCTAVO_GGML_F32 || tensor.bytes != (size_t)pairs * sizeof(float))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor \"%s\" (%s): not %lld f32 values; the file is damaged",
                           tensor.name, tensor.path, (long long)pairs);
    *factors = tensor.data;
    return OCTAVO_OK;
}

/* Waves longer than original_context / low_factor turn slower by factor, those shorter than
 * original_context / high_factor are left alone, and between the two it is a mixture. */
static float scale_llama3(const octavo_rope_config *rope, float frequency) {
    const float wave = 6.2831853f / frequency;
    if (wave > rope->original_context / rope->low_factor) return frequency / rope->factor;
    if (wave < rope->original_context / rope->high_factor) return frequency;
    const float smooth =
        (rope->original_context / wave - rope->low_factor) / (rope->high_factor - rope->low_factor);
    return (1.0f - smooth) * frequency / rope->factor + smooth * frequency;
}

/* base^(-2i / dim), in f32 as the models' own code computes them. */
static void fill_table(const octavo_model_config *config, octavo_rope_config *rope,
                       const uint8_t *factors) {
    for (int64_t i = 0; i < config->rope_dim / 2; i++) {
        float exponent = (float)(2 * i) / (float)config->rope_dim;
        float frequency = 1.0f / (float)pow((double)rope->base, (double)exponent);
        float divisor = 1.0f;
        if (factors) memcpy(&divisor, factors + (size_t)i * sizeof divisor, sizeof divisor);
        frequency /= divisor;
        if (rope->scaling == OCTAVO_ROPE_SCALING_LINEAR) frequency /= rope->factor;
        if (rope->scaling == OCTAVO_ROPE_SCALING_LLAMA3) frequency = scale_llama3(rope, frequency);
        rope->frequencies[i] = frequency;
    }
}

octavo_status octavo_rope_fill(const octavo_checkpoint *checkpoint, octavo_model_config *config,
                               octavo_error *error) {
    const int64_t pairs = config->rope_dim / 2;
    for (int r = 0; r < config->n_ropes; r++) {
        octavo_rope_config *rope = &config->ropes[r];
        const uint8_t *factors = NULL;
        if (rope->use_factors) {
            octavo_status status = find_factors(checkpoint, pairs, &factors, error);
            if (status) return status;
        }
        rope->frequencies = octavo_alloc_zero((size_t)pairs, sizeof(float));
        if (!rope->frequencies)
            return octavo_fail_memory(error, "rope frequencies", (uint64_t)pairs * 4);
        fill_table(config, rope, factors);
    }
    return OCTAVO_OK;
}
