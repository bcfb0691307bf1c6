/* SPDX-License-Identifier: Apache-2.0
 *
 * Matmul for avx512_vnni.
 */
#include "kernels/matmul.h"

void octavo_matmul_kernels_avx512_vnni(octavo_matmul_kernels *kernels) {
    (void)kernels; /* nothing raised yet */
}
