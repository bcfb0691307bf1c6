/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of 8-bit floats with their scales (formats/safetensors_scale.h). An element's value is
 * its own times its scale, rounded to f32 once. Where each 64 inputs of an output share a scale
 * they stay bytes; other shapes, which published models do not have, become F32.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_F8_H
#define OCTAVO_MODEL_WEIGHTS_F8_H

#include "formats/safetensors_scale.h"
#include "model/weights_load.h"

typedef struct octavo_f8_source {
    octavo_safetensors_scale scale;
    octavo_weight_type type; /* of the rows */
    bool is_e4m3;
    const uint8_t *codes; /* of the matrix */
    uint64_t matrix;      /* in the stack */
    int64_t k, width;     /* inputs; elements of a row of the tensor */
    octavo_row_map rows;
    octavo_column_map columns;
} octavo_f8_source;

bool octavo_f8_is(const octavo_loader *load, const octavo_checkpoint_tensor *tensor);

/* Finds the scales of a tensor whose shape has been checked, and chooses the type of `weight`,
 * whose extents are set. The source is of the first matrix. Statuses as
 * octavo_safetensors_find_scale. */
OCTAVO_MUST_CHECK octavo_status octavo_f8_find(octavo_loader *load,
                                               const octavo_checkpoint_tensor *tensor,
                                               const octavo_weight *weight, octavo_row_map rows,
                                               octavo_column_map columns, octavo_f8_source *source);
/* octavo_pack_fill_fn of a source. False: a value or scale is not finite. */
bool octavo_f8_fill(const void *source, uint8_t *to, int64_t row, int n, int64_t k0, int64_t k1);

#endif
