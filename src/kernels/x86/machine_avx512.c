/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring loops for AVX-512 without its later extensions.
 */
#include "kernels/machine.h"
#include "kernels/x86/intrinsics.h"

enum { F32_CHAINS = 12, INT8_CHAINS = 8 };

static uint64_t read_words(const void *buffer, size_t bytes) {
    const uint8_t *p = buffer;
    __m512i sum[4];
    for (int j = 0; j < 4; j++)
        sum[j] = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 256 <= bytes; i += 256) {
        for (int j = 0; j < 4; j++)
            sum[j] = _mm512_add_epi64(sum[j], _mm512_load_si512(p + i + 64 * j));
    }
    for (; i < bytes; i += 64)
        sum[0] = _mm512_add_epi64(sum[0], _mm512_load_si512(p + i));
    uint64_t words[8], total = 0;
    _mm512_storeu_si512(words, _mm512_add_epi64(_mm512_add_epi64(sum[0], sum[1]),
                                                _mm512_add_epi64(sum[2], sum[3])));
    for (int j = 0; j < 8; j++)
        total += words[j];
    return total;
}

static double f32(int64_t iterations, void *scratch) {
    float *data = scratch;
    __m512 a = _mm512_load_ps(data), b = _mm512_load_ps(data + 16), acc[F32_CHAINS];
    for (int j = 0; j < F32_CHAINS; j++)
        acc[j] = _mm512_setzero_ps();
    for (int64_t i = 0; i < iterations; i++) {
        for (int j = 0; j < F32_CHAINS; j++)
            acc[j] = _mm512_fmadd_ps(a, b, acc[j]);
    }
    for (int j = 1; j < F32_CHAINS; j++)
        acc[0] = _mm512_max_ps(acc[0], acc[j]);
    _mm512_store_ps(data + 32, acc[0]);
    return 2.0 * 16 * F32_CHAINS * (double)iterations;
}

/* See machine_avx2.c. */
static double int8(int64_t iterations, void *scratch) {
    uint8_t *data = scratch;
    const __m512i ones = _mm512_set1_epi16(1), u = _mm512_load_si512(data);
    __m512i acc[INT8_CHAINS];
    for (int j = 0; j < INT8_CHAINS; j++)
        acc[j] = _mm512_setzero_si512();
    for (int64_t i = 0; i < iterations; i++) {
        const uint8_t *s =
            data + i % (OCTAVO_MACHINE_SCRATCH / 64 / INT8_CHAINS) * 64 * INT8_CHAINS;
        for (int j = 0; j < INT8_CHAINS; j++) {
            __m512i pairs = _mm512_maddubs_epi16(u, _mm512_load_si512(s + 64 * j));
            acc[j] = _mm512_add_epi32(acc[j], _mm512_madd_epi16(pairs, ones));
        }
    }
    for (int j = 1; j < INT8_CHAINS; j++)
        acc[0] = _mm512_xor_si512(acc[0], acc[j]);
    _mm512_store_si512(data + 64, acc[0]);
    return 2.0 * 64 * INT8_CHAINS * (double)iterations;
}

void octavo_machine_kernels_avx512(octavo_machine_kernels *kernels) {
    kernels->read = read_words;
    kernels->f32 = f32;
    kernels->int8 = int8;
}
