/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder's model as a GGUF file says it: metadata, and tensors made of the rows that lie in the
 * folder's. What is exported is read again (octavo_export_check) before it counts: a model that
 * GGUF cannot express is an error and never another model.
 */
#ifndef OCTAVO_MODEL_EXPORT_H
#define OCTAVO_MODEL_EXPORT_H

#include "model/weights_pack.h"

/* Some rows of a tensor. */
typedef struct octavo_export_piece {
    octavo_checkpoint_tensor tensor;
    octavo_pack_source source; /* of a matrix; its tensor is the one above, its cookie a copy */
    const float *values;       /* [n, k] of a vector, or NULL */
    int64_t n, k;
} octavo_export_piece;

typedef struct octavo_export_tensor {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_gguf_tensor head; /* without data */
    int64_t turned;          /* width of heads whose rows take turns in GGUF files where pairs of
                                neighbours are rotated; 0: none */
    int64_t n_rows;          /* of all pieces */
    octavo_export_piece *pieces; /* [n] */
    int n, capacity;
} octavo_export_tensor;

typedef struct octavo_export {
    octavo_checkpoint *checkpoint; /* borrowed */
    octavo_model_config config;
    octavo_config_notes notes;     /* under keys of the architecture */
    const char *architecture;      /* general.architecture; lives forever */
    octavo_model_weights weights;  /* without matrices */
    octavo_export_tensor *tensors; /* [n_tensors] */
    size_t n_tensors, capacity;
    size_t n_first;     /* tensors, the first, whose data is needed for reading the head */
    float *rope_values; /* of tensors about rotation */
    octavo_arena arena; /* of cookies */
    bool is_turned;     /* q and k are written for rotation of neighbours; known after the check */
} octavo_export;

/* Describes the model of a folder. On failure there is nothing to end. Statuses as
 * octavo_config_load and octavo_weights_load, and UNSUPPORTED for what has no place in GGUF. */
OCTAVO_MUST_CHECK octavo_status octavo_export_init(octavo_export *model,
                                                   octavo_checkpoint *checkpoint,
                                                   octavo_error *error);
void octavo_export_deinit(octavo_export *model);

/* Reads the file whose head was made of the export (its data may be missing but for n_first
 * tensors) and compares. UNSUPPORTED names what is not the same. */
OCTAVO_MUST_CHECK octavo_status octavo_export_check(octavo_export *model, const char *path,
                                                    octavo_error *error);

/* Bytes of a row of the tensor, and rows [row, row + n) of it in `to`. False where they hold what
 * is no number. scratch: 64-aligned. */
size_t octavo_export_row_bytes(const octavo_export_tensor *tensor);
size_t octavo_export_scratch_bytes(const octavo_export_tensor *tensor);
bool octavo_export_rows(const octavo_export *model, const octavo_export_tensor *tensor, uint8_t *to,
                        int64_t row, int64_t n, uint8_t *scratch);

/* ---- for export_rope.c ---- */

/* A vector as a tensor of its own; the values must live on. */
OCTAVO_MUST_CHECK octavo_status octavo_export_add_vector(octavo_export *model, const char *name,
                                                         const float *values, int64_t n,
                                                         octavo_error *error);
/* Notes and tensors about rotation. */
OCTAVO_MUST_CHECK octavo_status octavo_export_rope(octavo_export *model, octavo_error *error);

#endif
