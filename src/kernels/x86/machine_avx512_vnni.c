/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring loop for AVX-512 VNNI.
 */
#include "kernels/machine.h"
#include "kernels/x86/intrinsics.h"

enum { CHAINS = 12 };

static double int8(int64_t iterations, void *scratch) {
    uint8_t *data = scratch;
    __m512i u = _mm512_load_si512(data), s = _mm512_load_si512(data + 64), acc[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        acc[j] = _mm512_setzero_si512();
    for (int64_t i = 0; i < iterations; i++) {
        for (int j = 0; j < CHAINS; j++)
            acc[j] = _mm512_dpbusd_epi32(acc[j], u, s);
    }
    for (int j = 1; j < CHAINS; j++)
        acc[0] = _mm512_xor_si512(acc[0], acc[j]);
    _mm512_store_si512(data + 128, acc[0]);
    return 2.0 * 64 * CHAINS * (double)iterations;
}

void octavo_machine_kernels_avx512_vnni(octavo_machine_kernels *kernels) {
    kernels->int8 = int8;
}
