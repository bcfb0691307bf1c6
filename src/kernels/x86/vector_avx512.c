/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic for AVX-512 (F, BW, DQ, VL). What vector.h calls the same at every level uses no
 * fused operation.
 */
#include "base/compiler.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/vector.h"
#include "kernels/x86/vector_ops_avx512.h"

/* The largest of |x|, as bits: see the scalar version. */
static inline uint32_t max_bits_of(const float *x) {
    const __m512i no_sign = _mm512_set1_epi32(0x7fffffff);
    __m512i a = _mm512_and_si512(_mm512_loadu_si512(x), no_sign);
    __m512i b = _mm512_and_si512(_mm512_loadu_si512(x + 16), no_sign);
    __m512i m = _mm512_max_epi32(a, b);
    return (uint32_t)reduce_max8_s32(
        _mm256_max_epi32(_mm512_castsi512_si256(m), _mm512_extracti64x4_epi64(m, 1)));
}

static inline int16_t sum_bytes(__m128i bytes) {
    __m128i s = _mm_madd_epi16(_mm_maddubs_epi16(_mm_set1_epi8(1), bytes), _mm_set1_epi16(1));
    s = _mm_hadd_epi32(s, s);
    s = _mm_hadd_epi32(s, s);
    return (int16_t)_mm_cvtsi128_si32(s);
}

static inline void round_block(octavo_q8_block *out, const float *x, float inverse) {
    __m512 by = _mm512_set1_ps(inverse);
    __m512 a = _mm512_mul_ps(_mm512_loadu_ps(x), by);
    __m512 b = _mm512_mul_ps(_mm512_loadu_ps(x + 16), by);
    __m128i low = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a));
    __m128i high = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(b));
    out->sum[0] = sum_bytes(low);
    out->sum[1] = sum_bytes(high);
    _mm_storeu_si128((__m128i *)out->q, low);
    _mm_storeu_si128((__m128i *)(out->q + 16), high);
}

#include "kernels/vector_tmpl.h"

void octavo_vector_kernels_avx512(octavo_vector_kernels *kernels) {
    *kernels = entries;
}
