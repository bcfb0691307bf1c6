/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic for AVX2 and FMA. What vector.h calls the same at every level uses no fused
 * operation.
 */
#include "base/compiler.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/vector.h"
#include "kernels/x86/vector_ops_avx2.h"

/* The largest of |x|, as bits: see the scalar version. */
static inline uint32_t max_bits_of(const float *x) {
    const __m256i no_sign = _mm256_set1_epi32(0x7fffffff);
    __m256i m = _mm256_setzero_si256();
    for (int v = 0; v < OCTAVO_BLOCK; v += 8) {
        __m256i bits = _mm256_loadu_si256((const __m256i *)(x + v));
        m = _mm256_max_epi32(m, _mm256_and_si256(bits, no_sign));
    }
    return (uint32_t)reduce_max8_s32(m);
}

static inline void round_block(octavo_q8_block *out, const float *x, float inverse) {
    __m256 by = _mm256_set1_ps(inverse);
    __m256i q[4];
    for (int v = 0; v < 4; v++)
        q[v] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * v), by));
    /* The packs work within halves, which leaves groups of four in the order 0 2 4 6 1 3 5 7. */
    __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    __m256i sums =
        _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
    sums = _mm256_hadd_epi32(sums, sums);
    sums = _mm256_hadd_epi32(sums, sums);
    out->sum[0] = (int16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(sums));
    out->sum[1] = (int16_t)_mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1));
    _mm256_storeu_si256((__m256i *)out->q, bytes);
}

#include "kernels/vector_tmpl.h"

void octavo_vector_kernels_avx2(octavo_vector_kernels *kernels) {
    *kernels = entries;
}
