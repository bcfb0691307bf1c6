/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of families and what all of them read the same way. Every number is checked here, so
 * that the rest may multiply them without fear.
 */
#include "model/family.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const octavo_family families[] = {
    {"llama", octavo_family_llama},
    {"qwen2", octavo_family_qwen2},
    {"gemma3", octavo_family_gemma3},
};

octavo_status octavo_family_find(const octavo_gguf *gguf, const octavo_family **family,
                                 octavo_error *error) {
    octavo_gguf_string name;
    octavo_status status = octavo_gguf_get_string(gguf, "general.architecture", &name, error);
    if (status) return status;
    for (size_t i = 0; i < OCTAVO_COUNT(families); i++) {
        const char *known = families[i].architecture;
        if (name.size == strlen(known) && memcmp(name.data, known, name.size) == 0) {
            *family = &families[i];
            return OCTAVO_OK;
        }
    }
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < OCTAVO_COUNT(families); i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 families[i].architecture);
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                       "architecture \"%.*s\" (%s): unknown; this version runs %s",
                       (int)(name.size < 64 ? name.size : 64), name.data,
                       octavo_gguf_part_path(gguf, 0), list);
}

const char *octavo_family_key(const octavo_model_config *config, const char *suffix, char *key,
                              size_t size) {
    snprintf(key, size, "%s.%s", config->architecture, suffix);
    return key;
}

/* A whole number in [low, high]; `fallback` below 0: the key must be there. */
static octavo_status read_number(const octavo_gguf *gguf, const octavo_model_config *config,
                                 const char *suffix, int64_t fallback, int64_t low, int64_t high,
                                 int64_t *value, octavo_error *error) {
    char key[96];
    uint64_t raw = 0;
    octavo_family_key(config, suffix, key, sizeof key);
    octavo_status status = fallback < 0
                               ? octavo_gguf_get_u64(gguf, key, &raw, error)
                               : octavo_gguf_get_u64_or(gguf, key, (uint64_t)fallback, &raw, error);
    if (status) return status;
    if (raw < (uint64_t)low || raw > (uint64_t)high)
        return octavo_fail(
            error, OCTAVO_ERROR_FORMAT,
            "metadata \"%s\" (%s): %llu is outside %lld to %lld; the file is damaged or made "
            "for another program",
            key, octavo_gguf_part_path(gguf, 0), (unsigned long long)raw, (long long)low,
            (long long)high);
    *value = (int64_t)raw;
    return OCTAVO_OK;
}

static octavo_status refuse(const octavo_gguf *gguf, octavo_error *error, const char *what,
                            const char *why) {
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED, "%s (%s): %s", what,
                       octavo_gguf_part_path(gguf, 0), why);
}

/* The vocabulary is what the embedding has rows for. */
static octavo_status read_vocab(const octavo_gguf *gguf, octavo_model_config *config,
                                octavo_error *error) {
    const octavo_gguf_tensor *embed;
    octavo_status status = octavo_gguf_get_tensor(gguf, "token_embd.weight", &embed, error);
    if (status) return status;
    if (embed->extent[1] > (1u << 24))
        return refuse(gguf, error, "tensor \"token_embd.weight\"", "more than 16 million rows");
    config->vocab = (int64_t)embed->extent[1];
    return OCTAVO_OK;
}

static octavo_status read_common(const octavo_gguf *gguf, octavo_model_config *config,
                                 octavo_error *error) {
    octavo_status status;
    int64_t n_layers = 0, experts = 0, value_dim = 0;
    char key[96];
    if ((status = read_number(gguf, config, "block_count", -1, 1, 4096, &n_layers, error)) ||
        (status =
             read_number(gguf, config, "embedding_length", -1, 1, 1 << 20, &config->d, error)) ||
        (status = read_number(gguf, config, "feed_forward_length", -1, 1, 1 << 22, &config->ffw,
                              error)) ||
        (status = read_number(gguf, config, "attention.head_count", -1, 1, 4096, &config->n_heads,
                              error)) ||
        (status = read_number(gguf, config, "attention.head_count_kv", config->n_heads, 1,
                              config->n_heads, &config->n_kv_heads, error)) ||
        (status = read_number(gguf, config, "context_length", -1, 1, 1 << 28, &config->context,
                              error)) ||
        (status = read_number(gguf, config, "expert_count", 0, 0, 1 << 16, &experts, error)))
        return status;
    if (experts > 0)
        return refuse(gguf, error, "mixture of experts", "not in this version; use a dense model");
    if (config->n_heads % config->n_kv_heads != 0)
        return octavo_fail(
            error, OCTAVO_ERROR_FORMAT,
            "attention heads (%s): %lld query heads do not divide into %lld kv heads; the file "
            "is damaged",
            octavo_gguf_part_path(gguf, 0), (long long)config->n_heads,
            (long long)config->n_kv_heads);
    int64_t head_dim = config->d / config->n_heads;
    if ((status = read_number(gguf, config, "attention.key_length", head_dim, 1, 512,
                              &config->head_dim, error)) ||
        (status = read_number(gguf, config, "attention.value_length", config->head_dim, 1, 512,
                              &value_dim, error)) ||
        (status = read_number(gguf, config, "rope.dimension_count", config->head_dim, 2,
                              config->head_dim, &config->rope_dim, error)))
        return status;
    if (value_dim != config->head_dim)
        return refuse(gguf, error, "attention",
                      "keys and values of different widths are not in this version");
    if (config->rope_dim % 2 != 0)
        return refuse(gguf, error, "rope", "an odd number of rotated dimensions cannot be paired");
    octavo_family_key(config, "attention.layer_norm_rms_epsilon", key, sizeof key);
    status = octavo_gguf_get_f32(gguf, key, &config->norm_eps, error);
    if (status) return status;
    if (!(config->norm_eps >= 0.0f && config->norm_eps < 1.0f))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "metadata \"%s\" (%s): not in 0 to 1; the file is damaged", key,
                           octavo_gguf_part_path(gguf, 0));
    config->n_layers = (int)n_layers;
    config->embed_scale = 1.0f;
    config->attention_scale = 1.0f / sqrtf((float)config->head_dim);
    return read_vocab(gguf, config, error);
}

/* A positive number under ARCHITECTURE.suffix. */
static octavo_status read_positive(const octavo_gguf *gguf, const octavo_model_config *config,
                                   const char *suffix, float fallback, float *value,
                                   octavo_error *error) {
    char key[96];
    float read;
    octavo_family_key(config, suffix, key, sizeof key);
    octavo_status status = octavo_gguf_get_f32_or(gguf, key, fallback, &read, error);
    if (status) return status;
    if (!(read > 0.0f) || !isfinite(read))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "metadata \"%s\" (%s): not a positive number; the file is damaged", key,
                           octavo_gguf_part_path(gguf, 0));
    *value = read;
    return OCTAVO_OK;
}

octavo_status octavo_family_rope(const octavo_gguf *gguf, octavo_model_config *config, int index,
                                 const char *base_key, float fallback, bool is_scaled,
                                 octavo_error *error) {
    octavo_rope_config *rope = &config->ropes[index];
    *rope = (octavo_rope_config){.linear_factor = 1.0f, .use_factors = is_scaled};
    if (index >= config->n_ropes) config->n_ropes = index + 1;
    octavo_status status = read_positive(gguf, config, base_key, fallback, &rope->base, error);
    if (status || !is_scaled) return status;

    char key[96];
    octavo_gguf_string kind;
    octavo_family_key(config, "rope.scaling.type", key, sizeof key);
    status = octavo_gguf_get_string_or(gguf, key, "none", &kind, error);
    if (status) return status;
    if (kind.size == 4 && memcmp(kind.data, "none", 4) == 0) return OCTAVO_OK;
    if (kind.size != 6 || memcmp(kind.data, "linear", 6) != 0)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "rope scaling \"%.*s\" (%s): not in this version; linear is",
                           (int)(kind.size < 32 ? kind.size : 32), kind.data,
                           octavo_gguf_part_path(gguf, 0));
    return read_positive(gguf, config, "rope.scaling.factor", 1.0f, &rope->linear_factor, error);
}

/* rope_freqs.weight: one divisor for each pair, or NULL where the file has none. */
static octavo_status find_factors(const octavo_gguf *gguf, int64_t pairs, const uint8_t **factors,
                                  octavo_error *error) {
    ptrdiff_t index = octavo_gguf_tensor_find(gguf, "rope_freqs.weight");
    *factors = NULL;
    if (index < 0) return OCTAVO_OK;
    const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(gguf, (size_t)index);
    if (tensor->type != OCTAVO_GGML_F32 || tensor->bytes != (size_t)pairs * sizeof(float))
        return octavo_fail(
            error, OCTAVO_ERROR_FORMAT,
            "tensor \"rope_freqs.weight\" (%s): not %lld f32 values; the file is damaged",
            octavo_gguf_part_path(gguf, tensor->part), (long long)pairs);
    *factors = tensor->data;
    return OCTAVO_OK;
}

/* base^(-2i / dim), in f32 as the models' own code computes them. */
static octavo_status fill_frequencies(const octavo_gguf *gguf, octavo_model_config *config,
                                      octavo_error *error) {
    const int64_t pairs = config->rope_dim / 2;
    for (int r = 0; r < config->n_ropes; r++) {
        octavo_rope_config *rope = &config->ropes[r];
        const uint8_t *factors = NULL;
        if (rope->use_factors) {
            octavo_status status = find_factors(gguf, pairs, &factors, error);
            if (status) return status;
        }
        rope->frequencies = octavo_alloc_zero((size_t)pairs, sizeof(float));
        if (!rope->frequencies)
            return octavo_fail_memory(error, "rope frequencies", (uint64_t)pairs * 4);
        for (int64_t i = 0; i < pairs; i++) {
            float exponent = (float)(2 * i) / (float)config->rope_dim;
            float frequency = 1.0f / (float)pow((double)rope->base, (double)exponent);
            float factor = 1.0f;
            if (factors) memcpy(&factor, factors + (size_t)i * sizeof factor, sizeof factor);
            rope->frequencies[i] = frequency / factor / rope->linear_factor;
        }
    }
    return OCTAVO_OK;
}

octavo_status octavo_config_load(octavo_model_config *config, const octavo_gguf *gguf,
                                 octavo_error *error) {
    const octavo_family *family;
    octavo_status status = octavo_family_find(gguf, &family, error);
    if (status) return status;
    octavo_model_config loaded = {.architecture = family->architecture};
    if ((status = read_common(gguf, &loaded, error))) goto cleanup;
    loaded.layers = octavo_alloc_zero((size_t)loaded.n_layers, sizeof *loaded.layers);
    if (!loaded.layers) {
        status =
            octavo_fail_memory(error, "layers", (uint64_t)loaded.n_layers * sizeof *loaded.layers);
        goto cleanup;
    }
    if ((status = family->configure(gguf, &loaded, error))) goto cleanup;
    if ((status = fill_frequencies(gguf, &loaded, error))) goto cleanup;
    *config = loaded;
    return OCTAVO_OK;
cleanup:
    octavo_config_deinit(&loaded);
    return status;
}

void octavo_config_deinit(octavo_model_config *config) {
    for (int i = 0; i < OCTAVO_MAX_ROPES; i++)
        octavo_free(config->ropes[i].frequencies);
    octavo_free(config->layers);
    *config = (octavo_model_config){0};
}
