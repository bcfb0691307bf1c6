/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights that a configuration asks for, without a checkpoint: shapes alone, for plans.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_SHAPE_H
#define OCTAVO_MODEL_WEIGHTS_SHAPE_H

#include "model/weights.h"

/* Matrices of this type (F32 where its blocks do not fit), no data. What a checkpoint may have or
 * not is not there. To end with octavo_weights_deinit; on failure *weights is empty. Statuses:
 * MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_weights_shape(octavo_model_weights *weights,
                                                     const octavo_model_config *config,
                                                     octavo_weight_type type, octavo_error *error);

#endif
