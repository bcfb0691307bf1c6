/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring loop for AVX-512 BF16.
 */
#include "kernels/machine.h"
#include "kernels/x86/intrinsics.h"

enum { CHAINS = 12 };

static double bf16(int64_t iterations, void *scratch) {
    float *data = scratch;
    __m512 x = _mm512_load_ps(data);
    __m512bh a = _mm512_cvtne2ps_pbh(x, x);
    __m512 acc[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        acc[j] = _mm512_setzero_ps();
    for (int64_t i = 0; i < iterations; i++) {
        for (int j = 0; j < CHAINS; j++)
            acc[j] = _mm512_dpbf16_ps(acc[j], a, a);
    }
    for (int j = 1; j < CHAINS; j++)
        acc[0] = _mm512_max_ps(acc[0], acc[j]);
    _mm512_store_ps(data + 16, acc[0]);
    return 2.0 * 32 * CHAINS * (double)iterations;
}

void octavo_machine_kernels_avx512_bf16(octavo_machine_kernels *kernels) {
    kernels->bf16 = bf16;
}
