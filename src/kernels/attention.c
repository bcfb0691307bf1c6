/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of attention's arithmetic.
 */
#include "kernels/attention.h"

#include "kernels/scalar/attention_scalar.h"

void octavo_attention_kernels_init(octavo_attention_kernels *kernels, octavo_cpu_flags flags) {
    octavo_attention_kernels_scalar(kernels);
#if OCTAVO_HAVE_AVX2
    if (flags & OCTAVO_CPU_AVX2) octavo_attention_kernels_avx2(kernels);
#endif
#if OCTAVO_HAVE_AVX512
    if (flags & OCTAVO_CPU_AVX512) octavo_attention_kernels_avx512(kernels);
#endif
#if OCTAVO_HAVE_AVX512_VBMI
    if (flags & OCTAVO_CPU_AVX512_VBMI) octavo_attention_kernels_avx512_vbmi(kernels);
#endif
#if OCTAVO_HAVE_AVX512_BF16
    if (flags & OCTAVO_CPU_AVX512_BF16) octavo_attention_kernels_avx512_bf16(kernels);
#endif
#if OCTAVO_HAVE_NEON
    if (flags & OCTAVO_CPU_NEON) octavo_attention_kernels_neon(kernels);
#endif
    (void)flags;
}
