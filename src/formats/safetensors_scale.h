/* SPDX-License-Identifier: Apache-2.0
 *
 * The scales of 8-bit float weights in safetensors models. Checkpoints keep them in a tensor beside
 * the weight: W_scale (in the way of compressed-tensors, FBGEMM and ModelOpt) or W_scale_inv (in
 * the way of DeepSeek and those after it), W being the weight's name, as a rule "X.weight".
 *
 * Both mean the same, whatever the second is called: the value of an element is its own times its
 * scale. A scale stands for a whole matrix, a row (an output of [outputs, inputs]), a column, or a
 * block, as a rule of 128 x 128, the last blocks of an axis being cut where the axis ends. Of a
 * stack of matrices [experts, rows, columns] each has scales of its own, unless there is only one
 * in all. Scales of activations ("input_scale", "activation_scale") are another matter.
 */
#ifndef OCTAVO_FORMATS_SAFETENSORS_SCALE_H
#define OCTAVO_FORMATS_SAFETENSORS_SCALE_H

#include "formats/safetensors.h"

enum { OCTAVO_SAFETENSORS_SCALE_BLOCK = 128 };

typedef enum octavo_safetensors_scale_kind {
    OCTAVO_SAFETENSORS_SCALE_MATRIX,
    OCTAVO_SAFETENSORS_SCALE_ROW,
    OCTAVO_SAFETENSORS_SCALE_COLUMN,
    OCTAVO_SAFETENSORS_SCALE_BLOCKS,
} octavo_safetensors_scale_kind;

/* Element [m, r, c] of the weight, of type F8, is multiplied by the scale of index
 *   m * matrix_stride + r / block_rows * row_stride + c / block_columns
 * (m is 0 for a weight of two axes). That index is below tensor->n_values. */
typedef struct octavo_safetensors_scale {
    const octavo_safetensors_tensor *tensor; /* F32, F16, BF16 or F8_E8M0 */
    octavo_safetensors_scale_kind kind;
    uint64_t block_rows, block_columns; /* that share a scale: at least 1 */
    uint64_t row_stride, matrix_stride;
} octavo_safetensors_scale;

/* Finds the scales of a weight of F8_E4M3 or F8_E5M2 with two or three axes and checks their shape
 * against the weight's: [], [1] or [1, 1]; [rows] or [rows, 1]; [1, columns]; [ceil(rows /
 * block[0]), ceil(columns / block[1])]; for three axes the same after [experts], or one value.
 * block: NULL is 128 x 128.
 *   OCTAVO_ERROR_NOT_FOUND    the weight has none: whether it may is the caller's knowledge
 *   OCTAVO_ERROR_INVALID      the weight is of another type or has another number of axes
 *   OCTAVO_ERROR_FORMAT       both names are there, or the shape is none of these
 *   OCTAVO_ERROR_UNSUPPORTED  scales of another type
 * Any thread. */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_find_scale(
    const octavo_safetensors *safetensors, const octavo_safetensors_tensor *weight,
    const uint64_t block[2], octavo_safetensors_scale *scale, octavo_error *error);

/* The scale of an index as above, widened exactly. */
float octavo_safetensors_scale_value(const octavo_safetensors_scale *scale, uint64_t index);

#endif
