/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tensor is told by its name, where the tensor that it belongs to is there.
 */
#include "engine/inspect_count.h"

#include "base/compiler.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 256 };

/* A tensor "X" + suffix counts `times` of its elements where there is one "X" + of. */
enum { CODES = -1 };

static const struct {
    const char *suffix, *of;
    int times; /* CODES: as many as codes in a word */
} coded[] = {
    {"_blocks", "_scales", 2},
    {"_scales", "_blocks", 0},
    {".qweight", ".scales", CODES},
    {".weight_packed", ".weight_scale", CODES},
    {".weight_scale", ".weight_packed", 0},
    {".weight_zero_point", ".weight_packed", 0},
    {".weight_shape", ".weight_packed", 0},
    {".weight_g_idx", ".weight_packed", 0},

    {".qzeros", ".qweight", 0},
    {".scales", ".qweight", 0},
    {".g_idx", ".qweight", 0},
    {"_scale", "", 0},
    {"_scale_inv", "", 0},
    {".scale", ".weight", 0},
    {".input_scale", ".weight", 0},
    {".activation_scale", ".weight", 0},
};

/* Bits of a code of GPTQ, AWQ and compressed-tensors, by config.json. */
static uint64_t bits_of(const octavo_checkpoint *checkpoint) {
    const json_t *quant = json_object_get(checkpoint->config, "quantization_config");
    json_int_t bits = json_integer_value(json_object_get(quant, "bits"));
    if (bits == 0) bits = json_integer_value(json_object_get(quant, "w_bit"));
    json_t *groups = json_object_get(quant, "config_groups");
    const json_t *group = json_object_iter_value(json_object_iter(groups));
    if (bits == 0)
        bits = json_integer_value(json_object_get(json_object_get(group, "weights"), "num_bits"));
    return bits >= 1 && bits <= 32 ? (uint64_t)bits : 32;
}

static uint64_t parameters_of(const octavo_checkpoint *checkpoint,
                              const octavo_checkpoint_tensor *tensor) {
    const size_t length = strlen(tensor->name);
    uint64_t n = 1;
    for (int i = 0; i < tensor->n_dims; i++)
        n *= tensor->extent[i];
    for (size_t i = 0; i < OCTAVO_COUNT(coded); i++) {
        char other[NAME_SIZE];
        const size_t tail = strlen(coded[i].suffix);
        if (length <= tail || strcmp(tensor->name + length - tail, coded[i].suffix) != 0) continue;
        snprintf(other, sizeof other, "%.*s%s", (int)(length - tail), tensor->name, coded[i].of);
        if (octavo_checkpoint_find(checkpoint, other) < 0) continue;
        if (coded[i].times == CODES) return n * 32 / bits_of(checkpoint);
        return n * (uint64_t)coded[i].times;
    }
    return n;
}

uint64_t octavo_count_parameters(const octavo_checkpoint *checkpoint) {
    uint64_t n = 0;
    for (size_t i = 0; i < octavo_checkpoint_n_tensors(checkpoint); i++) {
        const octavo_checkpoint_tensor tensor = octavo_checkpoint_tensor_at(checkpoint, i);
        n += parameters_of(checkpoint, &tensor);
    }
    return n;
}
