/* SPDX-License-Identifier: Apache-2.0
 *
 * What all families read the same way. Every number is checked here, so that the rest may multiply
 * them without fear.
 */
#include "model/config.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/config_encoder.h"
#include "model/config_rope.h"
#include "model/family.h"

#include <math.h>

static const octavo_key HEADS = {"attention.head_count", "num_attention_heads"};
static const octavo_key KV_HEADS = {"attention.head_count_kv", "num_key_value_heads"};
static const octavo_key HEAD_DIM = {"attention.key_length", "head_dim"};
static const octavo_key VOCAB = {NULL, "vocab_size"};

static int64_t needed_unless(int64_t fallback) {
    return fallback ? fallback : OCTAVO_REQUIRED;
}

static const octavo_key expert_keys[] = {
    {"expert_count", "num_local_experts"}, {NULL, "num_experts"}, {NULL, "n_routed_experts"}};

/* Experts under any of the names change what every layer is. */
static octavo_status read_experts(const octavo_config_reader *reader, octavo_model_config *config) {
    for (size_t i = 0; i < OCTAVO_COUNT(expert_keys); i++) {
        int64_t experts;
        octavo_status status =
            octavo_config_integer(reader, expert_keys[i], 0, 0, OCTAVO_MAX_EXPERTS, &experts);
        if (status) return status;
        if (experts > 0) config->n_experts = experts;
    }
    return OCTAVO_OK;
}

/* A family that does not know them left them alone. */
static octavo_status refuse_experts(const octavo_config_reader *reader,
                                    const octavo_model_config *config) {
    if (config->n_experts == 0 || config->router.n_chosen > 0) return OCTAVO_OK;
    for (size_t i = 0; i < OCTAVO_COUNT(expert_keys); i++)
        if (octavo_config_has(reader, expert_keys[i]))
            return octavo_config_fail(reader, expert_keys[i], OCTAVO_ERROR_UNSUPPORTED,
                                      "this architecture has no experts in this version");
    return OCTAVO_OK;
}

static octavo_status read_heads(const octavo_config_reader *reader, octavo_model_config *config,
                                const octavo_family *family,
                                const octavo_family_defaults *defaults) {
    octavo_status status = octavo_config_integer(reader, HEADS, needed_unless(defaults->n_heads), 1,
                                                 4096, &config->n_heads);
    if (status) return status;
    int64_t n_kv_heads = defaults->n_kv_heads ? defaults->n_kv_heads : config->n_heads;
    status = octavo_config_integer(reader, KV_HEADS, n_kv_heads, 1, config->n_heads,
                                   &config->n_kv_heads);
    if (status) return status;
    if (config->n_heads % config->n_kv_heads != 0)
        return octavo_config_fail(reader, KV_HEADS, OCTAVO_ERROR_FORMAT,
                                  "%lld query heads do not divide into %lld kv heads; the file is "
                                  "damaged",
                                  (long long)config->n_heads, (long long)config->n_kv_heads);
    if (family->has_own_heads) return OCTAVO_OK;
    int64_t head_dim = defaults->head_dim ? defaults->head_dim : config->d / config->n_heads;
    if (!defaults->head_dim && !octavo_config_has(reader, HEAD_DIM) &&
        config->d % config->n_heads != 0)
        return octavo_config_fail(reader, HEADS, OCTAVO_ERROR_FORMAT,
                                  "%lld heads do not divide a width of %lld, and no width of a "
                                  "head is given; the file is damaged",
                                  (long long)config->n_heads, (long long)config->d);
    return octavo_config_integer(reader, HEAD_DIM, head_dim, 1, 512, &config->head_dim);
}

/* Beside the other keys, or in newer files among those about rope. */
static octavo_status read_share(const octavo_config_reader *reader, const octavo_family *family,
                                float *share) {
    const octavo_key key = {NULL, family->rotated ? family->rotated : "partial_rotary_factor"};
    const double usual = family->defaults.rotated ? family->defaults.rotated : 1.0;
    octavo_config_reader rope;
    const octavo_config_reader *from = reader;
    *share = 1.0f;
    if (!octavo_config_is_hf(reader)) return OCTAVO_OK;
    octavo_status status = octavo_config_section(reader, "rope_parameters", &rope);
    if (status) return status;
    if (!octavo_config_has(reader, key) && rope.object) {
        from = &rope;
        status = octavo_config_positive(&rope, (octavo_key){NULL, "partial_rotary_factor"}, usual,
                                        share);
    } else {
        status = octavo_config_positive(reader, key, usual, share);
    }
    if (status) return status;
    if (*share > 1.0f)
        return octavo_config_fail(from, key, OCTAVO_ERROR_FORMAT,
                                  "%g of a head cannot be rotated; the file is damaged",
                                  (double)*share);
    if (*share != 1.0f && !family->rotated)
        return octavo_config_fail(from, key, OCTAVO_ERROR_UNSUPPORTED,
                                  "%g: heads of this architecture are rotated whole",
                                  (double)*share);
    return OCTAVO_OK;
}

static octavo_status read_rotated(const octavo_config_reader *reader, octavo_model_config *config,
                                  const octavo_family *family) {
    const octavo_key value_key = {"attention.value_length", NULL};
    const octavo_key rope_key = {"rope.dimension_count", NULL};
    int64_t value_dim;
    float share;
    octavo_status status;
    if ((status = octavo_config_integer(reader, value_key, config->head_dim, 1, 512, &value_dim)) ||
        (status = read_share(reader, family, &share)) ||
        (status = octavo_config_integer(
             reader, rope_key, (int64_t)((float)config->head_dim * share),
             octavo_config_is_hf(reader) ? 0 : 2, config->head_dim, &config->rope_dim)))
        return status;
    if (value_dim != config->head_dim)
        return octavo_config_fail(reader, value_key, OCTAVO_ERROR_UNSUPPORTED,
                                  "keys and values of different widths are not in this version");
    if (config->rope_dim % 2 != 0 || config->rope_dim == 0)
        return octavo_config_fail(
            reader, octavo_config_is_hf(reader) ? HEAD_DIM : rope_key, OCTAVO_ERROR_UNSUPPORTED,
            "%lld rotated dimensions cannot be paired", (long long)config->rope_dim);
    return OCTAVO_OK;
}

/* A GGUF file has as many tokens as the embedding has rows. */
static octavo_status read_vocab(const octavo_config_reader *reader, octavo_model_config *config,
                                const octavo_family_defaults *defaults) {
    enum { MOST = 1 << 24 };
    if (octavo_config_is_hf(reader))
        return octavo_config_integer(reader, VOCAB, needed_unless(defaults->vocab), 1, MOST,
                                     &config->vocab);
    octavo_checkpoint_tensor embed;
    octavo_status status =
        octavo_checkpoint_get(reader->checkpoint, "token_embd.weight", &embed, reader->error);
    if (status) return status;
    uint64_t rows = embed.n_dims >= 2 ? embed.extent[embed.n_dims - 2] : 1;
    if (rows > MOST)
        return octavo_fail(reader->error, OCTAVO_ERROR_UNSUPPORTED,
                           "tensor \"%s\" (%s): more than 16 million rows", embed.name, embed.path);
    config->vocab = (int64_t)rows;
    return OCTAVO_OK;
}

/* GGUF files leave the output out; config.json says so, of the text model or of the whole. Where
 * the two disagree it is the tensor that counts. */
static octavo_status read_tied(const octavo_config_reader *reader, octavo_model_config *config,
                               const octavo_family_defaults *defaults) {
    const octavo_key key = {NULL, "tie_word_embeddings"};
    if (!octavo_config_is_hf(reader)) {
        config->is_tied = octavo_checkpoint_find(reader->checkpoint, "output.weight") < 0;
        return OCTAVO_OK;
    }
    octavo_config_reader whole = *reader;
    char output[OCTAVO_WEIGHT_NAME_SIZE];
    whole.object = reader->checkpoint->config;
    if (!octavo_config_has(reader, key))
        return octavo_config_flag(&whole, key, defaults->is_tied, &config->is_tied);
    octavo_status status = octavo_config_flag(reader, key, defaults->is_tied, &config->is_tied);
    if (status || config->is_tied || whole.object == reader->object) return status;
    octavo_weight_name_make(reader->checkpoint, NULL, OCTAVO_ROLE_OUTPUT, 0, 0, output);
    if (octavo_checkpoint_find(reader->checkpoint, output) >= 0) return OCTAVO_OK;
    return octavo_config_flag(&whole, key, false, &config->is_tied);
}

static octavo_status read_norm_eps(const octavo_config_reader *reader, octavo_model_config *config,
                                   const octavo_family *family) {
    const octavo_key rms = {"attention.layer_norm_rms_epsilon", "rms_norm_eps"};
    const bool is_rms = !family->norm_eps.hf;
    const octavo_key key = is_rms ? rms : family->norm_eps;
    const double usual = family->defaults.norm_eps != 0.0 ? family->defaults.norm_eps : 1e-6;
    octavo_status status = octavo_config_positive(
        reader, key, octavo_config_is_hf(reader) ? usual : (double)NAN, &config->norm_eps);
    if (status) return status;
    config->norm = is_rms ? OCTAVO_NORM_RMS : OCTAVO_NORM_LAYER;
    if (config->norm_eps < 1.0f) return OCTAVO_OK;
    return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                              "not in 0 to 1; the file is damaged");
}

/* What a family leaves alone is as in Llama. GGUF files have the biases that a model has, and no
 * word about them. */
static void set_usual(const octavo_config_reader *reader, octavo_model_config *config) {
    if (!octavo_config_is_hf(reader))
        config->qkv_bias = config->attn_o_bias = config->ffw_bias = OCTAVO_BIAS_OPTIONAL;
    config->embed_scale = config->residual_scale = config->logit_scale = 1.0f;
    if (config->head_dim > 0) config->attention_scale = 1.0f / sqrtf((float)config->head_dim);
    config->pairing = OCTAVO_ROPE_HALF;
    config->has_attn_norm = config->has_ffw_norm = config->has_gate = true;
    config->has_output_norm = true;
}

static octavo_status read_common(const octavo_config_reader *reader, octavo_model_config *config,
                                 const octavo_family *family) {
    static const octavo_family_defaults none;
    const octavo_family_defaults *defaults =
        octavo_config_is_hf(reader) ? &family->defaults : &none;
    const octavo_key layers = {"block_count", "num_hidden_layers"};
    const octavo_key width = {"embedding_length", "hidden_size"};
    const octavo_key ffw = {"feed_forward_length", "intermediate_size"};
    const octavo_key context = {"context_length", "max_position_embeddings"};
    octavo_status status;
    int64_t n_layers = 0;
    if ((status = octavo_config_integer(reader, layers, OCTAVO_REQUIRED, 1, 4096, &n_layers)) ||
        (status = octavo_config_integer(reader, width, OCTAVO_REQUIRED, 1, 1 << 20, &config->d)) ||
        (status = octavo_config_integer(reader, ffw, OCTAVO_REQUIRED, 1, 1 << 22, &config->ffw)) ||
        (status = octavo_config_integer(reader, context, needed_unless(defaults->context), 1,
                                        1 << 28, &config->context)) ||
        (status = read_norm_eps(reader, config, family)) ||
        (status = octavo_config_quant(reader, family->quant_method, &config->quant)) ||
        (status = read_experts(reader, config)) ||
        (status = read_heads(reader, config, family, defaults)) ||
        (!family->has_own_heads && (status = read_rotated(reader, config, family))) ||
        (status = read_vocab(reader, config, defaults)) ||
        (status = read_tied(reader, config, defaults)))
        return status;
    config->n_layers = (int)n_layers;
    set_usual(reader, config);
    return OCTAVO_OK;
}

octavo_status octavo_config_load(octavo_model_config *config, const octavo_checkpoint *checkpoint,
                                 octavo_error *error) {
    return octavo_config_load_noted(config, checkpoint, NULL, error);
}

octavo_status octavo_config_load_noted(octavo_model_config *config,
                                       const octavo_checkpoint *checkpoint,
                                       octavo_config_notes *notes, octavo_error *error) {
    const octavo_family *family;
    octavo_status status = octavo_family_find(checkpoint, &family, error);
    *config = (octavo_model_config){0};
    if (status) return status;
    const octavo_config_reader reader = {
        .checkpoint = checkpoint,
        .architecture = checkpoint->gguf ? family->gguf : family->architecture,
        .object = checkpoint->gguf ? NULL : octavo_family_text_config(checkpoint),
        .section = "",
        .aliases = family->keys,
        .error = error,
        .notes = checkpoint->gguf ? NULL : notes,
    };
    octavo_model_config loaded = {.architecture = family->architecture,
                                  .names = checkpoint->gguf ? family->gguf_names : family->names};
    if ((status = read_common(&reader, &loaded, family))) goto cleanup;
    loaded.layers = octavo_alloc_zero((size_t)loaded.n_layers, sizeof *loaded.layers);
    if (!loaded.layers) {
        status =
            octavo_fail_memory(error, "layers", (uint64_t)loaded.n_layers * sizeof *loaded.layers);
        goto cleanup;
    }
    if ((status = octavo_config_encoder(&reader, &loaded, family->is_encoder)) ||
        (status = family->configure(&reader, &loaded)) ||
        (status = refuse_experts(&reader, &loaded)) ||
        (status = octavo_family_kv_layers(&reader, &loaded)))
        goto cleanup;
    if ((status = octavo_rope_fill(&loaded, error))) goto cleanup;
    *config = loaded;
    return OCTAVO_OK;
cleanup:
    octavo_config_deinit(&loaded);
    return status;
}

int64_t octavo_config_short_length(const octavo_model_config *config) {
    for (int i = 0; i < config->n_ropes; i++)
        if (config->ropes[i].long_divisors) return (int64_t)config->ropes[i].original_context;
    return 0;
}

void octavo_config_deinit(octavo_model_config *config) {
    for (int i = 0; i < OCTAVO_MAX_ROPES; i++)
        octavo_rope_deinit(&config->ropes[i]);
    octavo_free(config->layers);
    *config = (octavo_model_config){0};
}
