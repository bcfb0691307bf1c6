/* SPDX-License-Identifier: Apache-2.0
 *
 * Which type a matrix of a model is packed in.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_TYPE_H
#define OCTAVO_MODEL_WEIGHTS_TYPE_H

#include "formats/ggml_type.h"
#include "kernels/weight.h"
#include "model/weight_name.h"

#include "octavo/model.h"

/* How weights of a file's type are packed; false where it is no type of weights. */
bool octavo_weight_type_of(octavo_ggml_type type, octavo_weight_type *packed);

/* The other way round; F32 where files of GGUF have no such type. */
octavo_ggml_type octavo_weight_source_type(octavo_weight_type packed);

/* The type of a matrix, or a stack of them, of n_values values of type `from` in rows of k:
 * `from`, or what is asked for as far as the role and the rows allow. */
octavo_weight_type octavo_weights_choose(octavo_weights wanted, octavo_weight_role role,
                                         octavo_weight_type from, int64_t n_values, int64_t k);

#endif
