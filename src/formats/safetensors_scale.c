/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and checks the scales of 8-bit float weights. What it accepts never leads to an index
 * beyond the scales.
 */
#include "formats/safetensors_scale.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/number.h"
#include "formats/hf_folder_file.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE_BYTES = OCTAVO_SAFETENSORS_MAX_DIMS * 22 + 3 };

/* "[2, 3]". */
static const char *shape_text(const octavo_safetensors_tensor *tensor, char text[SHAPE_BYTES]) {
    int length = snprintf(text, SHAPE_BYTES, "[");
    for (int i = 0; i < tensor->n_dims; i++) {
        length += snprintf(text + length, (size_t)(SHAPE_BYTES - length), "%s%llu",
                           i == 0 ? "" : ", ", (unsigned long long)tensor->extent[i]);
    }
    snprintf(text + length, (size_t)(SHAPE_BYTES - length), "]");
    return text;
}

static const char *shown_part(const octavo_safetensors *safetensors,
                              const octavo_safetensors_tensor *tensor) {
    return octavo_hf_shown_path(octavo_safetensors_part_path(safetensors, tensor->part));
}

/* The tensor WEIGHT + suffix, or NULL. */
static const octavo_safetensors_tensor *find_beside(const octavo_safetensors *safetensors,
                                                    const octavo_safetensors_tensor *weight,
                                                    const char *suffix) {
    char name[OCTAVO_SAFETENSORS_MAX_NAME + 1];
    int length = snprintf(name, sizeof(name), "%s%s", weight->name, suffix);
    if (length < 0 || length >= (int)sizeof(name)) return NULL;
    ptrdiff_t index = octavo_safetensors_tensor_find(safetensors, name);
    return index < 0 ? NULL : octavo_safetensors_tensor_at(safetensors, (size_t)index);
}

static octavo_status find_tensor(const octavo_safetensors *safetensors,
                                 const octavo_safetensors_tensor *weight,
                                 const octavo_safetensors_tensor **tensor, octavo_error *error) {
    const octavo_safetensors_tensor *plain = find_beside(safetensors, weight, "_scale");
    const octavo_safetensors_tensor *inverse = find_beside(safetensors, weight, "_scale_inv");
    if (plain != NULL && inverse != NULL) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor \"%.120s\" (%s): it has scales of both names, _scale and "
                           "_scale_inv; the model is damaged or converted twice",
                           weight->name, shown_part(safetensors, weight));
    }
    if (plain == NULL && inverse == NULL) {
        return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                           "tensor \"%.120s\" (%s): it is of type %s and has no scales, neither "
                           "_scale nor _scale_inv; the model is incomplete, fetch it again",
                           weight->name, shown_part(safetensors, weight), weight->dtype_name);
    }
    *tensor = plain != NULL ? plain : inverse;
    return OCTAVO_OK;
}

static uint64_t blocks_of(uint64_t extent, uint64_t block) {
    return extent / block + (extent % block != 0 ? 1 : 0);
}

/* Fits [rows, columns] of scales to a matrix; false when they are none of the known ways. */
static bool fit_matrix(const uint64_t weight[2], const uint64_t block[2], const uint64_t scales[2],
                       octavo_safetensors_scale *scale) {
    uint64_t rows = weight[0], columns = weight[1];
    if (scales[0] == 1 && scales[1] == 1) {
        scale->kind = OCTAVO_SAFETENSORS_SCALE_MATRIX;
        scale->block_rows = rows;
        scale->block_columns = columns;
    } else if (scales[0] == rows && scales[1] == 1) {
        scale->kind = OCTAVO_SAFETENSORS_SCALE_ROW;
        scale->block_rows = 1;
        scale->block_columns = columns;
    } else if (scales[0] == 1 && scales[1] == columns) {
        scale->kind = OCTAVO_SAFETENSORS_SCALE_COLUMN;
        scale->block_rows = rows;
        scale->block_columns = 1;
    } else if (scales[0] == blocks_of(rows, block[0]) &&
               scales[1] == blocks_of(columns, block[1])) {
        scale->kind = OCTAVO_SAFETENSORS_SCALE_BLOCKS;
        scale->block_rows = block[0];
        scale->block_columns = block[1];
    } else {
        return false;
    }
    scale->row_stride = scales[1];
    return true;
}

static bool fit(const octavo_safetensors_tensor *weight, const uint64_t block[2],
                const octavo_safetensors_tensor *tensor, octavo_safetensors_scale *scale) {
    const int stacked = weight->n_dims - 2; /* 1 for [experts, rows, columns] */
    const uint64_t one[2] = {1, 1};
    if (tensor->n_dims > weight->n_dims || weight->n_values == 0) return false;
    if (tensor->n_values == 1) return fit_matrix(weight->extent + stacked, block, one, scale);
    if (stacked == 1 && tensor->extent[0] != weight->extent[0]) return false;
    /* extents are 1 from n_dims on: [rows] is [rows, 1], [experts] is [experts, 1, 1] */
    if (!fit_matrix(weight->extent + stacked, block, tensor->extent + stacked, scale)) return false;
    if (stacked == 1) scale->matrix_stride = tensor->extent[1] * tensor->extent[2];
    return true;
}

octavo_status octavo_safetensors_find_scale(const octavo_safetensors *safetensors,
                                            const octavo_safetensors_tensor *weight,
                                            const uint64_t block[2],
                                            octavo_safetensors_scale *scale, octavo_error *error) {
    static const uint64_t usual[2] = {OCTAVO_SAFETENSORS_SCALE_BLOCK,
                                      OCTAVO_SAFETENSORS_SCALE_BLOCK};
    if (block == NULL) block = usual;
    char of_scales[SHAPE_BYTES], of_weight[SHAPE_BYTES];
    octavo_safetensors_scale found = {0};
    bool is_f8 =
        weight->dtype == OCTAVO_SAFETENSORS_F8_E4M3 || weight->dtype == OCTAVO_SAFETENSORS_F8_E5M2;
    if (!is_f8 || weight->n_dims < 2 || weight->n_dims > 3) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "tensor \"%.120s\" (%s): only matrices, and stacks of them, of F8_E4M3 "
                           "and F8_E5M2 have scales, not %.40s %s",
                           weight->name, shown_part(safetensors, weight), weight->dtype_name,
                           shape_text(weight, of_weight));
    }
    octavo_status status = find_tensor(safetensors, weight, &found.tensor, error);
    if (status != OCTAVO_OK) return status;
    const octavo_safetensors_tensor *tensor = found.tensor;
    if (tensor->dtype != OCTAVO_SAFETENSORS_F32 && tensor->dtype != OCTAVO_SAFETENSORS_F16 &&
        tensor->dtype != OCTAVO_SAFETENSORS_BF16 && tensor->dtype != OCTAVO_SAFETENSORS_F8_E8M0) {
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "tensor \"%.120s\" (%s): scales of type %.40s are not supported, F32, "
                           "F16, BF16 and F8_E8M0 are; convert the model",
                           tensor->name, shown_part(safetensors, tensor), tensor->dtype_name);
    }
    if (!fit(weight, block, tensor, &found)) {
        return octavo_fail(
            error, OCTAVO_ERROR_FORMAT,
            "tensor \"%.120s\" (%s): scales %.80s do not fit the weight %.80s, one "
            "for all, for each row, each column or each %llu x %llu do; the model is "
            "damaged or of a format that is not supported",
            tensor->name, shown_part(safetensors, tensor), shape_text(tensor, of_scales),
            shape_text(weight, of_weight), (unsigned long long)block[0],
            (unsigned long long)block[1]);
    }
    *scale = found;
    return OCTAVO_OK;
}

/* 2^(e - 127); the smallest is subnormal, 255 is NaN. */
static float e8m0_to_f32(uint8_t e) {
    if (e == 255) return octavo_f32_from_bits(0x7fc00000u);
    return octavo_f32_from_bits(e == 0 ? 0x00400000u : (uint32_t)e << 23);
}

float octavo_safetensors_scale_value(const octavo_safetensors_scale *scale, uint64_t index) {
    const octavo_safetensors_tensor *tensor = scale->tensor;
    octavo_assert(index < tensor->n_values);
    const uint8_t *p = tensor->data;
    switch (tensor->dtype) {
    case OCTAVO_SAFETENSORS_F32:
        p += index * 4;
        return octavo_f32_from_bits((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                    (uint32_t)p[3] << 24);
    case OCTAVO_SAFETENSORS_F16:
        p += index * 2;
        return octavo_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
    case OCTAVO_SAFETENSORS_BF16:
        p += index * 2;
        return octavo_bf16_to_f32((uint16_t)(p[0] | p[1] << 8));
    default: /* find_scale lets only F8_E8M0 through */
        return e8m0_to_f32(p[index]);
    }
}
