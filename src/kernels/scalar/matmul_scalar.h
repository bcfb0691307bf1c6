/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference level of matmul.h: fills every entry of the table.
 */
#ifndef OCTAVO_KERNELS_SCALAR_MATMUL_SCALAR_H
#define OCTAVO_KERNELS_SCALAR_MATMUL_SCALAR_H

#include "kernels/matmul.h"

void octavo_matmul_kernels_scalar(octavo_matmul_kernels *kernels);

#endif
