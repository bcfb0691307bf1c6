/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing matrices for weights_load.c: rows are taken from where they lie in a tensor, by all
 * threads, panel by panel.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_PACK_H
#define OCTAVO_MODEL_WEIGHTS_PACK_H

#include "model/weights_load.h"

/* Rows [row, row + n) of a matrix as blocks of its type (kernels/weight.h), one behind the other.
 * False: what they are made of is no number. Any thread. */
typedef bool octavo_pack_fill_fn(const void *cookie, uint8_t *to, int64_t row, int n);

/* Where the rows of a matrix lie. */
typedef struct octavo_pack_source {
    const octavo_checkpoint_tensor *tensor;
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

/* Rows [row, row + n) of a matrix of k inputs as blocks of the source's type, one behind the other,
 * and the bytes of one. False as octavo_pack_fill_fn. */
size_t octavo_pack_row_bytes(const octavo_pack_source *source, int64_t k);
bool octavo_pack_source_rows(const octavo_pack_source *source, int64_t k, uint8_t *to, int64_t row,
                             int n);

/* Both do no more than count where weights are only checked (no pool).
 *
 * Memory for the matrix, or for all of the stack; the weights own it. */
OCTAVO_MUST_CHECK octavo_status octavo_pack_alloc(octavo_loader *load, octavo_weight *weight,
                                                  const char *name);
/* Packs the matrix, of a stack that of the expert, and reports its bytes as done. */
OCTAVO_MUST_CHECK octavo_status octavo_pack_matrix(octavo_loader *load, const octavo_weight *weight,
                                                   int expert, const octavo_pack_source *source);

#endif
