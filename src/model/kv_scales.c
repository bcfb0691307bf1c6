/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding and checking them.
 */
#include "model/kv_scales.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/number.h"
#include "formats/hf_folder_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* As those who quantise checkpoints call them, behind "layers.N.self_attn.": keys and values. */
static const struct {
    const char *key, *value;
} NAMES[] = {
    {"k_scale", "v_scale"},
    {"attn.k_scale", "attn.v_scale"},
    {"k_proj.k_scale", "v_proj.v_scale"},
    {"qkv_proj.k_scale", "qkv_proj.v_scale"},
    {"k_proj.output_scale", "v_proj.output_scale"},
    {"kv_scale", "kv_scale"},
    {"attn.kv_scale", "attn.kv_scale"},
};

static void name_of(const octavo_checkpoint *checkpoint, int layer, const char *last, char *name) {
    snprintf(name, OCTAVO_WEIGHT_NAME_SIZE, "%slayers.%d.self_attn.%s", checkpoint->body_prefix,
             layer, last);
}

/* The row of NAMES that the checkpoint goes by, or -1. */
static int find_names(const octavo_checkpoint *checkpoint, int n_layers) {
    char key[OCTAVO_WEIGHT_NAME_SIZE], value[OCTAVO_WEIGHT_NAME_SIZE];
    for (int i = 0; i < (int)OCTAVO_COUNT(NAMES); i++) {
        for (int layer = 0; layer < n_layers; layer++) {
            name_of(checkpoint, layer, NAMES[i].key, key);
            name_of(checkpoint, layer, NAMES[i].value, value);
            if (octavo_checkpoint_find(checkpoint, key) >= 0 ||
                octavo_checkpoint_find(checkpoint, value) >= 0)
                return i;
        }
    }
    return -1;
}

/* Bytes of a number; 0: none that a scale may be. */
static size_t number_size(const octavo_checkpoint_tensor *tensor) {
    if (!tensor->has_type) return 0;
    if (tensor->type == OCTAVO_GGML_F32) return 4;
    return tensor->type == OCTAVO_GGML_F16 || tensor->type == OCTAVO_GGML_BF16 ? 2 : 0;
}

static float number_at(const octavo_checkpoint_tensor *tensor, size_t i) {
    uint16_t half;
    float single;
    if (tensor->type == OCTAVO_GGML_F32) {
        memcpy(&single, tensor->data + i * sizeof single, sizeof single);
        return single;
    }
    memcpy(&half, tensor->data + i * sizeof half, sizeof half);
    return tensor->type == OCTAVO_GGML_F16 ? octavo_f16_to_f32(half) : octavo_bf16_to_f32(half);
}

/* scales [n_heads] of a layer. */
static octavo_status load(const octavo_checkpoint *checkpoint, const char *name, float *scales,
                          int32_t n_heads, octavo_error *error) {
    octavo_checkpoint_tensor tensor;
    if (octavo_checkpoint_find(checkpoint, name) < 0)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor %s (%s): missing, though there are others of its kind; give "
                           "every layer the scales of its cache, or none",
                           name,
                           octavo_hf_shown_path(octavo_safetensors_path(checkpoint->safetensors)));
    octavo_status status = octavo_checkpoint_get(checkpoint, name, &tensor, error);
    if (status) return status;
    const size_t size = number_size(&tensor), n = size ? tensor.bytes / size : 0;
    if (n != 1 && n != (size_t)n_heads)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor %s (%s): %zu bytes of %s; scales of the cache are F32, F16 or "
                           "BF16, one for the layer or one for each of %d kv heads",
                           name, tensor.path, tensor.bytes, tensor.type_name, (int)n_heads);
    for (int32_t h = 0; h < n_heads; h++) {
        scales[h] = number_at(&tensor, n == 1 ? 0 : (size_t)h);
        if (isfinite(scales[h]) && scales[h] > 0.0f) continue;
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor %s (%s): %g; a scale of the cache is a finite number above 0",
                           name, tensor.path, (double)scales[h]);
    }
    return OCTAVO_OK;
}

octavo_status octavo_kv_scales_load(octavo_kv_scales *scales, const octavo_checkpoint *checkpoint,
                                    const octavo_model_config *config, octavo_error *error) {
    octavo_kv_scales made = {0};
    const int32_t n_heads = (int32_t)config->n_kv_heads;
    const int names = checkpoint->gguf ? -1 : find_names(checkpoint, config->n_kv_layers);
    octavo_status status = OCTAVO_OK;
    if (names >= 0) status = octavo_kv_scales_init(&made, config->n_kv_layers, n_heads, error);
    for (int i = 0; names >= 0 && i < config->n_kv_layers && status == OCTAVO_OK; i++) {
        char name[OCTAVO_WEIGHT_NAME_SIZE];
        name_of(checkpoint, i, NAMES[names].key, name);
        status = load(checkpoint, name, made.key + (int64_t)i * n_heads, n_heads, error);
        if (status) break;
        name_of(checkpoint, i, NAMES[names].value, name);
        status = load(checkpoint, name, made.value + (int64_t)i * n_heads, n_heads, error);
    }
    if (status)
        octavo_kv_scales_deinit(&made);
    else
        *scales = made;
    return status;
}
