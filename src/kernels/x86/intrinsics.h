/* SPDX-License-Identifier: Apache-2.0
 *
 * x86 intrinsics. With OCTAVO_EMULATE_AVX512 the AVX-512 ones come from SIMDe, so that a machine
 * without AVX-512 can check the AVX-512 kernels (tests only; slow).
 */
#ifndef OCTAVO_KERNELS_X86_INTRINSICS_H
#define OCTAVO_KERNELS_X86_INTRINSICS_H

#ifdef OCTAVO_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#else
#include <immintrin.h>
#endif

#endif
