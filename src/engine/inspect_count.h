/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a model: values of its weights, however many bits a tensor of codes takes for one.
 */
#ifndef OCTAVO_ENGINE_INSPECT_COUNT_H
#define OCTAVO_ENGINE_INSPECT_COUNT_H

#include "model/checkpoint.h"

/* Scales, zeros and indices beside coded tensors are no parameters. */
uint64_t octavo_count_parameters(const octavo_checkpoint *checkpoint);

#endif
