/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix as it is found in a checkpoint, in one tensor or in several, to be packed from there.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_FIND_H
#define OCTAVO_MODEL_WEIGHTS_FIND_H

#include "model/weights_f8.h"
#include "model/weights_groups.h"
#include "model/weights_pack.h"

/* The source points into it. */
typedef struct octavo_found_matrix {
    octavo_checkpoint_tensor tensor;
    octavo_f8_source f8;
    octavo_groups_source groups;
    octavo_pack_source source;
} octavo_found_matrix;

/* Finds one matrix of the extents of `weight`, of a stack that of an expert, and checks its shape.
 * Statuses as octavo_weights_load. */
OCTAVO_MUST_CHECK octavo_status octavo_load_find(octavo_loader *load, const octavo_weight *weight,
                                                 octavo_row_map rows, octavo_weight_role role,
                                                 int layer, int expert, octavo_found_matrix *found);
/* Sets weight->factors to those beside the tensor in GGUF files ("X.scale" of "X.weight"), one for
 * each matrix of a stack; NULL where there are none. */
OCTAVO_MUST_CHECK octavo_status octavo_load_factors(octavo_loader *load,
                                                    const octavo_checkpoint_tensor *tensor,
                                                    octavo_weight *weight);

#endif
