/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of experts as gpt-oss is published in folders: NAME_blocks, U8 [experts, outputs,
 * inputs / 32, 16], and NAME_scales, U8 [experts, outputs, inputs / 32], NAME being that of the
 * tensor of floats. Byte j of a block has the code of input 2j in its lower half and that of 2j + 1
 * in its upper; codes and scales are those of ggml's MXFP4 (kernels/weight.h).
 */
#ifndef OCTAVO_MODEL_WEIGHTS_MXFP4_H
#define OCTAVO_MODEL_WEIGHTS_MXFP4_H

#include "model/weights_load.h"

typedef struct octavo_mxfp4 {
    octavo_checkpoint_tensor blocks, scales;
} octavo_mxfp4;

/* Has the checkpoint one of the two tensors? */
bool octavo_mxfp4_is_there(const octavo_loader *load, octavo_weight_role role, int layer);

/* Finds both and checks them: [stack, rows, k].
 *   OCTAVO_ERROR_NOT_FOUND    one is absent
 *   OCTAVO_ERROR_UNSUPPORTED  one is not of U8
 *   OCTAVO_ERROR_FORMAT       one has another shape, or k is no multiple of 32 */
OCTAVO_MUST_CHECK octavo_status octavo_mxfp4_find(octavo_loader *load, int64_t stack, int64_t rows,
                                                  int64_t k, octavo_weight_role role, int layer,
                                                  octavo_mxfp4 *found);

/* Those of one matrix of the stack. */
typedef struct octavo_mxfp4_source {
    const uint8_t *blocks, *scales;
    int64_t n_blocks; /* of a row */
    octavo_column_map columns;
} octavo_mxfp4_source;

/* octavo_pack_fill_fn of a source: rows as ggml has them. False: a scale is 255, which is no
 * number. */
bool octavo_mxfp4_fill(const void *source, uint8_t *to, int64_t row, int n, int64_t k0, int64_t k1);

#endif
