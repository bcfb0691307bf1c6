/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring loops for AVX2: enough independent chains to hide the latency of their instructions.
 */
#include "kernels/machine.h"
#include "kernels/x86/intrinsics.h"

enum { F32_CHAINS = 12, INT8_CHAINS = 8 };

static uint64_t read_words(const void *buffer, size_t bytes) {
    const uint8_t *p = buffer;
    __m256i sum[4];
    for (int j = 0; j < 4; j++)
        sum[j] = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 128 <= bytes; i += 128) {
        for (int j = 0; j < 4; j++)
            sum[j] = _mm256_add_epi64(sum[j], _mm256_load_si256((const __m256i *)(p + i + 32 * j)));
    }
    for (; i < bytes; i += 32)
        sum[0] = _mm256_add_epi64(sum[0], _mm256_load_si256((const __m256i *)(p + i)));
    uint64_t words[4];
    _mm256_storeu_si256((__m256i *)words, _mm256_add_epi64(_mm256_add_epi64(sum[0], sum[1]),
                                                           _mm256_add_epi64(sum[2], sum[3])));
    return (words[0] + words[1]) + (words[2] + words[3]);
}

static double f32(int64_t iterations, void *scratch) {
    float *data = scratch;
    __m256 a = _mm256_load_ps(data), b = _mm256_load_ps(data + 8), acc[F32_CHAINS];
    for (int j = 0; j < F32_CHAINS; j++)
        acc[j] = _mm256_setzero_ps();
    for (int64_t i = 0; i < iterations; i++) {
        for (int j = 0; j < F32_CHAINS; j++)
            acc[j] = _mm256_fmadd_ps(a, b, acc[j]);
    }
    for (int j = 1; j < F32_CHAINS; j++)
        acc[0] = _mm256_max_ps(acc[0], acc[j]);
    _mm256_store_ps(data + 16, acc[0]);
    return 2.0 * 8 * F32_CHAINS * (double)iterations;
}

/* One operand is loaded anew each time: with both in registers the compiler would multiply once. */
static double int8(int64_t iterations, void *scratch) {
    __m256i *data = scratch;
    const __m256i ones = _mm256_set1_epi16(1), u = _mm256_load_si256(data);
    __m256i acc[INT8_CHAINS];
    for (int j = 0; j < INT8_CHAINS; j++)
        acc[j] = _mm256_setzero_si256();
    for (int64_t i = 0; i < iterations; i++) {
        const __m256i *s = data + i % (OCTAVO_MACHINE_SCRATCH / 32 / INT8_CHAINS) * INT8_CHAINS;
        for (int j = 0; j < INT8_CHAINS; j++) {
            __m256i pairs = _mm256_maddubs_epi16(u, _mm256_load_si256(s + j));
            acc[j] = _mm256_add_epi32(acc[j], _mm256_madd_epi16(pairs, ones));
        }
    }
    for (int j = 1; j < INT8_CHAINS; j++)
        acc[0] = _mm256_xor_si256(acc[0], acc[j]);
    _mm256_store_si256(data + 1, acc[0]);
    return 2.0 * 32 * INT8_CHAINS * (double)iterations;
}

void octavo_machine_kernels_avx2(octavo_machine_kernels *kernels) {
    kernels->read = read_words;
    kernels->f32 = f32;
    kernels->int8 = int8;
}
