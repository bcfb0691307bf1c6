/* SPDX-License-Identifier: Apache-2.0
 *
 * Matmul for avx2.
 */
#include "kernels/matmul.h"

void octavo_matmul_kernels_avx2(octavo_matmul_kernels *kernels) {
    (void)kernels; /* nothing raised yet */
}
