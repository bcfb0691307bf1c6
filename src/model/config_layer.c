/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers slide and which rotate, which products have biases, and what the gate computes.
 */
#include "model/family.h"

#include <string.h>

octavo_status octavo_family_window(const octavo_config_reader *reader, int64_t fallback,
                                   int64_t *window) {
    const octavo_key key = {"attention.sliding_window", "sliding_window"};
    if (octavo_config_is_null(reader, key)) {
        *window = 0;
        octavo_config_note_integer(reader->notes, key.gguf, 0);
        return OCTAVO_OK;
    }
    return octavo_config_integer(reader, key, fallback, 0, 1 << 28, window);
}

static bool is_sliding(const octavo_window_rule *rule, int layer) {
    if (layer < rule->first) return false;
    return rule->period == 0 ||
           ((int64_t)layer + (rule->is_first_whole ? 0 : 1)) % rule->period != 0;
}

static void set_window(octavo_layer_config *layer, const octavo_window_rule *rule) {
    layer->rope = rule->rope;
    layer->window = rule->window;
}

static octavo_status read_layer_type(const octavo_config_reader *reader, octavo_key key,
                                     const octavo_window_rule *rule, const json_t *item, int layer,
                                     octavo_layer_config *config) {
    const char *type = json_string_value(item);
    if (!type)
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "entry %d is no text; the file is damaged", layer);
    if (strcmp(type, "full_attention") == 0) return OCTAVO_OK;
    if (strcmp(type, "sliding_attention") != 0)
        return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                                  "\"%.32s\" is not in this version; full_attention and "
                                  "sliding_attention are",
                                  type);
    if (rule->window == 0)
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "layer %d slides, but the file gives no window (sliding_window); "
                                  "it contradicts itself",
                                  layer);
    set_window(config, rule);
    return OCTAVO_OK;
}

static const octavo_key PATTERN = {"attention.sliding_window_pattern", "sliding_window_pattern"};

octavo_status octavo_family_window_period(const octavo_config_reader *reader, int64_t fallback,
                                          int64_t low, int64_t *period) {
    octavo_gguf_array array;
    *period = fallback;
    if (octavo_config_array(reader, PATTERN, &array)) return OCTAVO_OK;
    return octavo_config_integer(reader, PATTERN, fallback, low, 1 << 20, period);
}

/* One flag for each layer: does it slide? */
static octavo_status set_listed(const octavo_config_reader *reader, octavo_model_config *config,
                                const octavo_window_rule *rule, const octavo_gguf_array *list) {
    if (list->count != (size_t)config->n_layers)
        return octavo_config_fail(reader, PATTERN, OCTAVO_ERROR_FORMAT,
                                  "not one entry for each of the %d layers; the file is damaged",
                                  config->n_layers);
    for (int i = 0; i < config->n_layers; i++) {
        if (octavo_gguf_array_i64(list, (size_t)i) == 0) continue;
        if (rule->window == 0)
            return octavo_config_fail(reader, PATTERN, OCTAVO_ERROR_FORMAT,
                                      "layer %d slides, but the file gives no window; it "
                                      "contradicts itself",
                                      i);
        set_window(&config->layers[i], rule);
    }
    return OCTAVO_OK;
}

octavo_status octavo_family_windows(const octavo_config_reader *reader, octavo_model_config *config,
                                    const octavo_window_rule *rule) {
    const octavo_key key = {NULL, "layer_types"};
    octavo_gguf_array list;
    if (octavo_config_array(reader, PATTERN, &list)) return set_listed(reader, config, rule, &list);
    if (!octavo_config_has(reader, key)) {
        for (int i = 0; i < config->n_layers && rule->window > 0; i++)
            if (is_sliding(rule, i)) set_window(&config->layers[i], rule);
        return OCTAVO_OK;
    }
    const json_t *types = json_object_get(reader->object, key.hf);
    if (!json_is_array(types) || json_array_size(types) != (size_t)config->n_layers)
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "not one entry for each of the %d layers; the file is damaged",
                                  config->n_layers);
    for (int i = 0; i < config->n_layers; i++) {
        octavo_status status = read_layer_type(reader, key, rule, json_array_get(types, (size_t)i),
                                               i, &config->layers[i]);
        if (status) return status;
    }
    return OCTAVO_OK;
}

/* GGUF files have the interval and no list; a list that is none is missed when they are compared.
 */
static void note_no_rope(const octavo_config_reader *reader, const octavo_model_config *config) {
    int first = 0;
    while (first < config->n_layers && config->layers[first].rope != OCTAVO_NO_ROPE)
        first++;
    octavo_config_note_integer(reader->notes, "no_rope_layer_interval", first + 1);
}

/* 0 or 1 for each layer, where there is such a list. */
static octavo_status read_no_rope(const octavo_config_reader *reader, octavo_key key,
                                  octavo_model_config *config) {
    const json_t *list = json_object_get(reader->object, key.hf);
    if (!json_is_array(list) || json_array_size(list) != (size_t)config->n_layers)
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "not one entry for each of the %d layers; the file is damaged",
                                  config->n_layers);
    for (int i = 0; i < config->n_layers; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        const json_int_t rotates = json_integer_value(item);
        if (!json_is_integer(item) || rotates < 0 || rotates > 1)
            return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                      "entry %d is not 0 or 1; the file is damaged", i);
        if (!rotates) config->layers[i].rope = OCTAVO_NO_ROPE;
    }
    note_no_rope(reader, config);
    return OCTAVO_OK;
}

octavo_status octavo_family_no_rope(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    const octavo_key list = {NULL, "no_rope_layers"},
                     interval = {"no_rope_layer_interval", "no_rope_layer_interval"};
    int64_t period;
    const json_t *named = json_object_get(reader->object, list.hf);
    if (octavo_config_has(reader, list) && (!json_is_array(named) || json_array_size(named) > 0))
        return read_no_rope(reader, list, config);
    octavo_status status = octavo_config_integer(reader, interval, 4, 1, 1 << 20, &period);
    if (status) return status;
    for (int i = 0; i < config->n_layers; i++)
        if ((i + 1) % period == 0) config->layers[i].rope = OCTAVO_NO_ROPE;
    return OCTAVO_OK;
}

/* Takes the experts off the layers of a list. */
static octavo_status read_dense_layers(const octavo_config_reader *reader, octavo_key key,
                                       octavo_model_config *config) {
    const json_t *list = json_object_get(reader->object, key.hf);
    if (!octavo_config_has(reader, key)) return OCTAVO_OK;
    if (!json_is_array(list))
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "not a list; the file is damaged");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t layer = json_integer_value(item);
        if (!json_is_integer(item) || layer < 0 || layer >= config->n_layers)
            return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                      "entry %zu is none of the %d layers; the file is damaged", i,
                                      config->n_layers);
        config->layers[layer].is_sparse = false;
    }
    return OCTAVO_OK;
}

/* GGUF files do not say which layers have experts; they have the tensors. */
static bool is_dense(const octavo_config_reader *reader, int layer) {
    char router[OCTAVO_WEIGHT_NAME_SIZE], up[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_weight_name_gguf(NULL, OCTAVO_ROLE_ROUTER, layer, 0, router);
    octavo_weight_name_gguf(NULL, OCTAVO_ROLE_FFW_UP, layer, 0, up);
    return octavo_checkpoint_find(reader->checkpoint, router) < 0 &&
           octavo_checkpoint_find(reader->checkpoint, up) >= 0;
}

octavo_status octavo_family_experts(const octavo_config_reader *reader, octavo_model_config *config,
                                    const char *count, int64_t usual_chosen) {
    const octavo_key chosen = {"expert_used_count", "num_experts_per_tok"};
    const octavo_key step = {NULL, "decoder_sparse_step"}, dense = {NULL, "mlp_only_layers"};
    int64_t period, n_chosen = 0;
    octavo_status status;
    if (config->n_experts == 0)
        return octavo_config_fail(reader, (octavo_key){"expert_count", count},
                                  OCTAVO_ERROR_NOT_FOUND,
                                  "the number of experts is missing; the file is damaged");
    if ((status = octavo_config_integer(
             reader, chosen, octavo_config_is_hf(reader) ? usual_chosen : OCTAVO_REQUIRED, 1,
             config->n_experts, &n_chosen)) ||
        (status = octavo_config_integer(reader, step, 1, 1, 1 << 20, &period)))
        return status;
    config->router.n_chosen = (int)n_chosen;
    config->router.scale = 1.0f;
    for (int i = 0; i < config->n_layers; i++)
        config->layers[i].is_sparse =
            octavo_config_is_hf(reader) ? (i + 1) % period == 0 : !is_dense(reader, i);
    return read_dense_layers(reader, dense, config);
}

octavo_status octavo_family_biases(const octavo_config_reader *reader,
                                   octavo_model_config *config) {
    bool attention, ffw;
    octavo_status status;
    if (!octavo_config_is_hf(reader)) return OCTAVO_OK;
    if ((status =
             octavo_config_flag(reader, (octavo_key){NULL, "attention_bias"}, false, &attention)) ||
        (status = octavo_config_flag(reader, (octavo_key){NULL, "mlp_bias"}, false, &ffw)))
        return status;
    config->qkv_bias = config->attn_o_bias = attention ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE;
    config->ffw_bias = ffw ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE;
    return OCTAVO_OK;
}

/* The last of the first n layers that slides and rotates as layer i; -1 without one. */
static int last_alike(const octavo_model_config *config, int n, int i) {
    const octavo_layer_config *wanted = &config->layers[i];
    while (--n >= 0) {
        const octavo_layer_config *layer = &config->layers[n];
        if (layer->window == wanted->window && layer->chunk == wanted->chunk &&
            layer->rope == wanted->rope)
            break;
    }
    return n;
}

octavo_status octavo_family_kv_layers(const octavo_config_reader *reader,
                                      octavo_model_config *config) {
    const octavo_key key = {"attention.shared_kv_layers", "num_kv_shared_layers"};
    int64_t n_shared;
    octavo_status status =
        octavo_config_integer(reader, key, 0, 0, config->n_layers - 1, &n_shared);
    if (status) return status;
    if (n_shared > 0 && (config->latent.kv_rank > 0 || config->qkv_fusion != OCTAVO_FUSION_NONE))
        return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                                  "keys and values of this architecture cannot be shared");
    config->n_kv_layers = config->n_layers - (int)n_shared;
    for (int i = 0; i < config->n_layers; i++) {
        octavo_layer_config *layer = &config->layers[i];
        layer->kv_layer = i < config->n_kv_layers ? i : last_alike(config, config->n_kv_layers, i);
        if (layer->kv_layer < 0)
            return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                      "no layer before has keys and values for layer %d; the file "
                                      "is damaged",
                                      i);
    }
    return OCTAVO_OK;
}

octavo_status octavo_family_activation(const octavo_config_reader *reader, const char *key,
                                       const char *fallback, octavo_activation *activation) {
    static const struct {
        const char *name;
        octavo_activation activation;
    } known[] = {
        {"silu", OCTAVO_ACTIVATION_SILU},
        {"swish", OCTAVO_ACTIVATION_SILU},
        {"gelu_pytorch_tanh", OCTAVO_ACTIVATION_GELU_TANH},
        {"gelu_new", OCTAVO_ACTIVATION_GELU_TANH},
        {"gelu_fast", OCTAVO_ACTIVATION_GELU_TANH},
        {"gelu", OCTAVO_ACTIVATION_GELU},
        {"relu2", OCTAVO_ACTIVATION_RELU2},
    };
    const octavo_key name = {NULL, key};
    octavo_gguf_string text;
    octavo_status status = octavo_config_text(reader, name, fallback, &text);
    if (status) return status;
    for (size_t i = 0; i < OCTAVO_COUNT(known); i++) {
        if (!octavo_text_is(text, known[i].name)) continue;
        *activation = known[i].activation;
        return OCTAVO_OK;
    }
    return octavo_config_fail(reader, name, OCTAVO_ERROR_UNSUPPORTED,
                              "activation \"%.*s\" is not in this version; silu, gelu, "
                              "gelu_pytorch_tanh and relu2 are",
                              (int)(text.size < 32 ? text.size : 32), text.data);
}
