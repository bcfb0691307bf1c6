/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of file blocks of one type to rows of another: for models whose weights are to run in
 * another type than their file's.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_CONVERT_H
#define OCTAVO_KERNELS_WEIGHT_CONVERT_H

#include "kernels/weight.h"

/* `want`, or the next wider type whose blocks fill rows of k values; `from` is what they are. A
 * result other than `want` can hold what `want` can, near enough. */
octavo_weight_type octavo_weight_type_that_fits(octavo_weight_type want, octavo_weight_type from,
                                                int64_t k);

/* Bytes of `scratch` below; false where they cannot be counted. */
bool octavo_weight_convert_bytes(octavo_weight_type from, octavo_weight_type to, int64_t k,
                                 size_t *bytes);

/* Packs n_rows (1..32) rows of k values of type `from`, row_bytes apart, as a panel of `to`, which
 * octavo_weight_quantize makes: the same bits as a file of that type would give. k is whole blocks
 * of both. scratch: 64-aligned. False for values that are infinite, no numbers, or larger than the
 * scales of `to` reach; the panel is not to be used then. */
bool octavo_weight_convert(octavo_weight_type from, octavo_weight_type to, uint8_t *panel,
                           const uint8_t *source, size_t row_bytes, int n_rows, int64_t k,
                           uint8_t *scratch);

/* The rows as f32, values [n_rows][k]; scratch as for a conversion to F32. */
void octavo_weight_widen(octavo_weight_type from, float *values, const uint8_t *source,
                         size_t row_bytes, int n_rows, int64_t k, uint8_t *scratch);

#endif
