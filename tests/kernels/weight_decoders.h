/* SPDX-License-Identifier: Apache-2.0
 *
 * What a block of weights means, as gguf defines it.
 */
#ifndef OCTAVO_TESTS_KERNELS_WEIGHT_DECODERS_H
#define OCTAVO_TESTS_KERNELS_WEIGHT_DECODERS_H

#include "kernels/weight.h"

/* y [source_inputs] of one block of the file. */
void weight_decode(octavo_weight_type type, float *y, const uint8_t *block);

#endif
