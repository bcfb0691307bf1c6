/* SPDX-License-Identifier: Apache-2.0
 *
 * x86 intrinsics. With OCTAVO_EMULATE_AVX512 the AVX-512 ones come from SIMDe, so that a machine
 * without AVX-512 can check the AVX-512 kernels (tests only; slow).
 */
#ifndef OCTAVO_KERNELS_X86_INTRINSICS_H
#define OCTAVO_KERNELS_X86_INTRINSICS_H

#ifdef OCTAVO_EMULATE_AVX512
#include "kernels/x86/intrinsics_emulated.h"
#else
#include <immintrin.h>
#endif

#endif
