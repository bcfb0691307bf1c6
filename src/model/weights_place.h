/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a matrix or vector a rank holds, for weights_load.c and weights_pack.c: the caller
 * of the load is asked (octavo_weights_options.place) and the answer checked.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_PLACE_H
#define OCTAVO_MODEL_WEIGHTS_PLACE_H

#include "model/weights_load.h"

/* Narrows *part, which comes as the whole. member: the address in load->weights where it is bound;
 * tensor: the one that holds it, or its first, for messages; type: that which it is packed in.
 *   OCTAVO_ERROR_INVALID  the answer is beyond the whole, or divides a record of the type */
OCTAVO_MUST_CHECK octavo_status octavo_load_place(octavo_loader *load, const void *member,
                                                  const octavo_checkpoint_tensor *tensor,
                                                  octavo_weight_type type,
                                                  octavo_weight_part *part);

#endif
