/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of measuring loops.
 */
#include "kernels/machine.h"

#include "kernels/scalar/machine_scalar.h"

void octavo_machine_kernels_init(octavo_machine_kernels *kernels, octavo_cpu_flags flags) {
    octavo_machine_kernels_scalar(kernels);
#if OCTAVO_HAVE_AVX2
    if (flags & OCTAVO_CPU_AVX2) octavo_machine_kernels_avx2(kernels);
#endif
#if OCTAVO_HAVE_AVX512
    if (flags & OCTAVO_CPU_AVX512) octavo_machine_kernels_avx512(kernels);
#endif
#if OCTAVO_HAVE_AVX512_VNNI
    if (flags & OCTAVO_CPU_AVX512_VNNI) octavo_machine_kernels_avx512_vnni(kernels);
#endif
#if OCTAVO_HAVE_AVX512_BF16
    if (flags & OCTAVO_CPU_AVX512_BF16) octavo_machine_kernels_avx512_bf16(kernels);
#endif
    (void)flags;
}
