/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices in codes of integers, where groups of an output's inputs share a scale and a zero:
 * value = scale * (code - zero). Of a matrix [n outputs, k inputs] in place of X.weight:
 *
 *   tensor     of      GPTQ [bits 2, 3, 4, 8]           AWQ [4 bits]
 *   X.qweight  I32     [k bits / 32, n]: each column is  [k, n / 8]: an input's codes
 *                      a stream of its output's codes,
 *                      lowest bits first
 *   X.qzeros   I32     [groups, n bits / 32]: a stream   [groups, n / 8]: as the codes
 *                      of a group's zeros, from files
 *                      of version 1 less 1
 *   X.scales   F16     [groups, n]                       the same
 *   X.g_idx    I32     [k]: the group of an input;       none
 *                      may be absent
 *
 * and of compressed-tensors, format pack-quantized [4 and 8 bits], in place of X.weight:
 *
 *   X.weight_packed      I32  [n, k bits / 32]: each row is a stream of its output's codes
 *   X.weight_zero_point  I32  [n bits / 32, groups]: each column is a stream of a group's zeros;
 *                             may be absent, then they are 2^(bits - 1)
 *   X.weight_scale       F16  [n, groups]
 *   X.weight_g_idx       I32  as X.g_idx
 *
 * A word of AWQ holds those of 8 outputs in the order 0, 2, 4, 6, 1, 3, 5, 7, lowest bits first.
 * Scales may be of F32 or BF16.
 *
 * Packed they are the types Z, the inputs in the order of their groups. Where 32 of them do not
 * share a group, a scale is no f16 or a zero no signed byte, the matrix becomes F32. Sources of the
 * formats: AutoGPTQ, GPTQModel, AutoAWQ, compressed-tensors.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_GROUPS_H
#define OCTAVO_MODEL_WEIGHTS_GROUPS_H

#include "model/weights_load.h"

typedef struct octavo_groups_source {
    octavo_checkpoint_tensor codes, zeros, scales;
    octavo_weight_type type; /* of the rows */
    const uint8_t *indices;  /* [k] i32, the inputs' groups; NULL: in order */
    const int32_t *order;    /* [k] the input at each place of a row; NULL: in order */
    octavo_quant_kind kind;
    int bits, zero_more;         /* of a code; to be added to a zero of the file */
    int64_t n, k, group, groups; /* of the tensors; inputs in a group; so many groups */
    octavo_row_map rows;
} octavo_groups_source;

/* Finds the tensors in place of that of `name` ("X.weight"), checks them for a matrix of the
 * extents of `weight`, and chooses the type of its rows.
 *   OCTAVO_ERROR_NOT_FOUND    one is absent
 *   OCTAVO_ERROR_UNSUPPORTED  one is of a type that is none of the above
 *   OCTAVO_ERROR_FORMAT       one has another shape, or a group that is none */
OCTAVO_MUST_CHECK octavo_status octavo_groups_find(octavo_loader *load, const char *name,
                                                   const octavo_weight *weight, octavo_row_map rows,
                                                   octavo_groups_source *source);
/* octavo_pack_fill_fn of a source. False: a scale is not finite. */
bool octavo_groups_fill(const void *source, uint8_t *to, int64_t row, int n, int64_t k0,
                        int64_t k1);

#endif
