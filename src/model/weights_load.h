/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading single tensors for weights.c: finding them, checking their shape, packing matrices and
 * widening vectors.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_LOAD_H
#define OCTAVO_MODEL_WEIGHTS_LOAD_H

#include "model/weights.h"

typedef struct octavo_loader {
    octavo_model_weights *weights;
    const octavo_checkpoint *checkpoint;
    const octavo_model_config *config;
    const octavo_weights_options *options;
    octavo_error *error;
    uint64_t done, total;    /* source bytes */
    octavo_weight_role role; /* of what is being loaded */
    int layer;
} octavo_loader;

/* What a visitor of octavo_weights_options is shown. */
typedef struct octavo_bound {
    octavo_weight_role role; /* of the tensor that holds it, perhaps with others */
    int layer;
    bool is_second;                          /* of two in a tensor */
    int64_t n, k;                            /* rows and their width; of vectors lines */
    int64_t stack;                           /* experts of which this is one's; 0: no stack */
    const struct octavo_pack_source *source; /* of a matrix, else NULL; with its tensor gone after
                                                the visit */
    const float *values; /* [n, k] of a vector, as they are used: the weights' */
    octavo_error *error;
} octavo_bound;

/* The rows of a tensor that are one of several matrices (or biases) in it: output r is row first +
 * (r / group) * stride + r % group (stride 0: one group). All zero: the tensor is the matrix. */
typedef struct octavo_row_map {
    int64_t all;   /* rows of the tensor */
    int64_t lines; /* of biases: the tensor has two axes, the first of this; 0: one */
    int64_t first, group, stride;
} octavo_row_map;

static inline int64_t octavo_source_row(const octavo_row_map *rows, int64_t row) {
    if (rows->all == 0) return row;
    return rows->first + row / rows->group * rows->stride + row % rows->group;
}

/* Counts bytes of the tensor as done and tells the caller of the load, who may stop it. */
OCTAVO_MUST_CHECK octavo_status octavo_load_report(octavo_loader *load,
                                                   const octavo_checkpoint_tensor *tensor,
                                                   uint64_t bytes);

/* Statuses as octavo_weights_load. */
OCTAVO_MUST_CHECK octavo_status octavo_load_matrix(octavo_loader *load, octavo_weight *weight,
                                                   int64_t n, int64_t k, octavo_row_map rows,
                                                   octavo_weight_role role, int layer);
/* Where the matrices of experts lie in one tensor of [experts, inputs, columns]: those of a matrix
 * are columns first + i * step of it. columns 0: as the rows of matrices. */
typedef struct octavo_column_map {
    int64_t columns, first, step;
} octavo_column_map;

/* A stack of n_experts matrices: in one tensor [experts, n, k] in GGUF files (where gate and up may
 * share one, and old ones have a tensor each), or of columns, or of these in MXFP4
 * (weights_mxfp4.h); else a tensor each. */
OCTAVO_MUST_CHECK octavo_status octavo_load_experts(octavo_loader *load, octavo_weight *weight,
                                                    int64_t n, int64_t k, octavo_column_map columns,
                                                    octavo_weight_role role, int layer);
/* The same of so many matrices as weight says, in one tensor of its shape. */
OCTAVO_MUST_CHECK octavo_status octavo_load_stack(octavo_loader *load, octavo_weight *weight,
                                                  octavo_row_map rows, octavo_column_map columns,
                                                  octavo_weight_role role, int layer);
/* That a tensor has another shape than the n axes wanted. */
octavo_status octavo_load_fail_shape(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                                     int n, const int64_t *wanted);
/* *vector, f32 [extent] in the weights' arena, is the tensor's values + offset. */
OCTAVO_MUST_CHECK octavo_status octavo_load_vector(octavo_loader *load, const float **vector,
                                                   int64_t extent, float offset,
                                                   octavo_row_map rows, octavo_weight_role role,
                                                   int layer);
/* The same for what may be absent: then *vector is NULL. */
OCTAVO_MUST_CHECK octavo_status octavo_load_bias(octavo_loader *load, const float **vector,
                                                 int64_t extent, octavo_bias kind,
                                                 octavo_row_map rows, octavo_weight_role role,
                                                 int layer);

#endif
