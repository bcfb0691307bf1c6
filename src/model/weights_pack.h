/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing matrices for weights_load.c: rows are taken from where they lie in a tensor, by all
 * threads, panel by panel.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_PACK_H
#define OCTAVO_MODEL_WEIGHTS_PACK_H

#include "model/weights_load.h"

/* Inputs [k0, k1) of rows [row, row + n) of a matrix as blocks of its type (kernels/weight.h), one
 * row behind the other; both on blocks. False: what they are made of is no number. Any thread. */
typedef bool octavo_pack_fill_fn(const void *cookie, uint8_t *to, int64_t row, int n, int64_t k0,
                                 int64_t k1);

/* Where the rows of a matrix lie. */
typedef struct octavo_pack_source {
    const octavo_checkpoint_tensor *tensor;
    int64_t n, k;            /* of the matrix, of which a part may be held */
    octavo_weight_type type; /* of the rows; where the matrix has another they are converted */
    size_t begin;            /* of the matrix in it */
    size_t row_bytes;        /* of the tensor */
    octavo_row_map rows;
    octavo_column_map columns;
    octavo_pack_fill_fn *fill; /* puts rows together that lie in parts; or NULL */
    const void *cookie;
    size_t cookie_bytes;  /* of what it points to, which may be kept as a copy */
    size_t beside_bytes;  /* of other tensors, for the report */
    const int32_t *order; /* [k] which input stands at each place of a row; NULL: in order */
} octavo_pack_source;

/* As octavo_pack_fill_fn of any source, and the bytes of k inputs in such a row. */
bool octavo_pack_source_rows(const octavo_pack_source *source, uint8_t *to, int64_t row, int n,
                             int64_t k0, int64_t k1);
size_t octavo_pack_row_bytes(const octavo_pack_source *source, int64_t k);

/* Both do no more than count where weights are only checked (no pool).
 *
 * Narrows the matrix, or the stack, to the part that is held, with memory for it that the weights
 * own. The tensor is for messages. */
OCTAVO_MUST_CHECK octavo_status octavo_pack_place(octavo_loader *load, octavo_weight *weight,
                                                  const octavo_checkpoint_tensor *tensor,
                                                  octavo_weight_part *part);
/* Asks the system to read ahead the matrices, of so many bytes each, of a stack of the extents of
 * `whole` in one tensor: where they are held whole, else not. */
void octavo_pack_ask(const octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                     size_t matrix_bytes, const octavo_weight *whole,
                     const octavo_weight_part *part);
/* Packs the part of a matrix, of a stack that of the expert, which is one of the part's, and
 * reports its bytes as done. */
OCTAVO_MUST_CHECK octavo_status octavo_pack_matrix(octavo_loader *load, const octavo_weight *weight,
                                                   const octavo_weight_part *part, int64_t expert,
                                                   const octavo_pack_source *source);

#endif
