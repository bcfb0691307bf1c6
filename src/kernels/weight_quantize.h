/* SPDX-License-Identifier: Apache-2.0
 *
 * From f32 to rows of file blocks (gguf layouts), the other way round than weight_unpack.c.
 *
 * F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, MXFP4, TQ1_0 and TQ2_0 are the plain quantisation of the
 * format's reference: the same bits. For Q4_K and Q6_K, scales of inner blocks are searched for the
 * least squared error; there are no reference bits.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_QUANTIZE_H
#define OCTAVO_KERNELS_WEIGHT_QUANTIZE_H

#include "kernels/weight.h"

/* Whether rows of the type can be made. */
bool octavo_weight_can_quantize(octavo_weight_type type);

/* row: [k / source_inputs] blocks; values: [k], finite; k a multiple of source_inputs. A scale that
 * f16 cannot hold becomes infinite there. */
void octavo_weight_quantize(octavo_weight_type type, uint8_t *row, const float *values, int64_t k);

/* One block of 256 values. */
void octavo_weight_quantize_q4_k(uint8_t *block, const float *values);
void octavo_weight_quantize_q6_k(uint8_t *block, const float *values);

#endif
