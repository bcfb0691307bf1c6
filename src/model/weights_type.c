/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of files and of packed matrices, and what is chosen between them.
 */
#include "model/weights_type.h"

#include "kernels/weight_convert.h"

#include <stddef.h>

/* Values of a matrix that is not worth a loss. */
enum { SMALL_MATRIX = 1024 };

static const struct {
    octavo_ggml_type source;
    octavo_weight_type packed;
} types[] = {
    {OCTAVO_GGML_F32, OCTAVO_WEIGHT_F32},         {OCTAVO_GGML_F16, OCTAVO_WEIGHT_F16},
    {OCTAVO_GGML_BF16, OCTAVO_WEIGHT_BF16},       {OCTAVO_GGML_Q8_0, OCTAVO_WEIGHT_Q8_0},
    {OCTAVO_GGML_Q4_0, OCTAVO_WEIGHT_Q4_0},       {OCTAVO_GGML_Q4_1, OCTAVO_WEIGHT_Q4_1},
    {OCTAVO_GGML_Q5_0, OCTAVO_WEIGHT_Q5_0},       {OCTAVO_GGML_Q5_1, OCTAVO_WEIGHT_Q5_1},
    {OCTAVO_GGML_Q1_0, OCTAVO_WEIGHT_Q1_0},       {OCTAVO_GGML_IQ4_NL, OCTAVO_WEIGHT_IQ4_NL},
    {OCTAVO_GGML_MXFP4, OCTAVO_WEIGHT_MXFP4},     {OCTAVO_GGML_NVFP4, OCTAVO_WEIGHT_NVFP4},
    {OCTAVO_GGML_Q2_K, OCTAVO_WEIGHT_Q2_K},       {OCTAVO_GGML_Q3_K, OCTAVO_WEIGHT_Q3_K},
    {OCTAVO_GGML_Q4_K, OCTAVO_WEIGHT_Q4_K},       {OCTAVO_GGML_Q5_K, OCTAVO_WEIGHT_Q5_K},
    {OCTAVO_GGML_Q6_K, OCTAVO_WEIGHT_Q6_K},       {OCTAVO_GGML_IQ4_XS, OCTAVO_WEIGHT_IQ4_XS},
    {OCTAVO_GGML_TQ1_0, OCTAVO_WEIGHT_TQ1_0},     {OCTAVO_GGML_TQ2_0, OCTAVO_WEIGHT_TQ2_0},
    {OCTAVO_GGML_IQ2_XXS, OCTAVO_WEIGHT_IQ2_XXS}, {OCTAVO_GGML_IQ2_XS, OCTAVO_WEIGHT_IQ2_XS},
    {OCTAVO_GGML_IQ2_S, OCTAVO_WEIGHT_IQ2_S},     {OCTAVO_GGML_IQ3_XXS, OCTAVO_WEIGHT_IQ3_XXS},
    {OCTAVO_GGML_IQ3_S, OCTAVO_WEIGHT_IQ3_S},     {OCTAVO_GGML_IQ1_S, OCTAVO_WEIGHT_IQ1_S},
    {OCTAVO_GGML_IQ1_M, OCTAVO_WEIGHT_IQ1_M},
};

bool octavo_weight_type_of(octavo_ggml_type type, octavo_weight_type *packed) {
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        if (types[i].source == type) {
            *packed = types[i].packed;
            return true;
        }
    }
    return false;
}

octavo_ggml_type octavo_weight_source_type(octavo_weight_type packed) {
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++)
        if (types[i].packed == packed) return types[i].source;
    return OCTAVO_GGML_F32;
}

/* Whether rows of the type are of four bits (and their scales) or less already: to quantise once
 * more could only lose. */
static bool is_of_four_bits(octavo_weight_type type) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    return info->source_bytes * 8 <= info->source_inputs * 5;
}

static octavo_weight_type type_wanted(octavo_weights wanted, octavo_weight_role role,
                                      octavo_weight_type from) {
    switch (wanted) {
    case OCTAVO_WEIGHTS_F32:
        return OCTAVO_WEIGHT_F32;
    case OCTAVO_WEIGHTS_BF16:
        return OCTAVO_WEIGHT_BF16;
    case OCTAVO_WEIGHTS_Q8:
        return OCTAVO_WEIGHT_Q8_0;
    case OCTAVO_WEIGHTS_Q4:
        if (is_of_four_bits(from)) return from;
        /* an error of these shows in every logit */
        if (role == OCTAVO_ROLE_EMBED || role == OCTAVO_ROLE_OUTPUT) return OCTAVO_WEIGHT_Q8_0;
        return OCTAVO_WEIGHT_Q4_K;
    case OCTAVO_WEIGHTS_FILE:
        break;
    }
    return from;
}

/* What is a small part of a model and whose errors go far; octavo quantize keeps the same. */
static bool is_delicate(octavo_weight_role role) {
    return role == OCTAVO_ROLE_ROUTER || role == OCTAVO_ROLE_SHARED_ROUTER ||
           role == OCTAVO_ROLE_POSITIONS || role == OCTAVO_ROLE_TYPES;
}

octavo_weight_type octavo_weights_choose(octavo_weights wanted, octavo_weight_role role,
                                         octavo_weight_type from, int64_t n_values, int64_t k) {
    if (is_delicate(role) || n_values < SMALL_MATRIX) return from;
    const octavo_weight_type type = type_wanted(wanted, role, from);
    return type == from ? from : octavo_weight_type_that_fits(type, from, k);
}
