/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic for AVX-512 (F, BW, DQ, VL). What vector.h calls the same at every level uses no
 * fused operation.
 */
#include "base/compiler.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/vector.h"
#include "kernels/x86/vector_ops_avx512.h"

/* (c, s) pairs of sixteen positions, apart. */
static inline void split_pairs(const float *cs, __m512 *c, __m512 *s) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    __m512 low = _mm512_loadu_ps(cs), high = _mm512_loadu_ps(cs + 16);
    *c = _mm512_permutex2var_ps(low, even, high);
    *s = _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
}

static void rope_half(float *x, const float *cs, int64_t n_pairs) {
    int64_t i = 0;
    for (; i + 16 <= n_pairs; i += 16) {
        __m512 c, s, a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + n_pairs);
        split_pairs(cs + 2 * i, &c, &s);
        _mm512_storeu_ps(x + i, _mm512_sub_ps(_mm512_mul_ps(a, c), _mm512_mul_ps(b, s)));
        _mm512_storeu_ps(x + i + n_pairs, _mm512_add_ps(_mm512_mul_ps(b, c), _mm512_mul_ps(a, s)));
    }
    for (; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[i], &x[i + n_pairs], &cs[2 * i]);
}

static void rope_pairwise(float *x, const float *cs, int64_t n_pairs) {
    int64_t i = 0;
    for (; i + 8 <= n_pairs; i += 8) {
        __m512 pairs = _mm512_loadu_ps(x + 2 * i), turn = _mm512_loadu_ps(cs + 2 * i);
        __m512 swapped = _mm512_shuffle_ps(pairs, pairs, _MM_SHUFFLE(2, 3, 0, 1));
        __m512 by_c = _mm512_mul_ps(pairs, _mm512_moveldup_ps(turn));
        __m512 by_s = _mm512_mul_ps(swapped, _mm512_movehdup_ps(turn));
        __m512 sum = _mm512_add_ps(by_c, by_s);
        _mm512_storeu_ps(x + 2 * i, _mm512_mask_sub_ps(sum, 0x5555, by_c, by_s));
    }
    for (; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[2 * i], &x[2 * i + 1], &cs[2 * i]);
}

/* The largest of |x|, as bits: see the scalar version. */
static inline uint32_t max_bits_of(__m512i a, __m512i b) {
    __m512i no_sign = _mm512_set1_epi32(0x7fffffff);
    __m512i m = _mm512_max_epi32(_mm512_and_si512(a, no_sign), _mm512_and_si512(b, no_sign));
    __m256i w = _mm256_max_epi32(_mm512_castsi512_si256(m), _mm512_extracti64x4_epi64(m, 1));
    __m128i h = _mm_max_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, _MM_SHUFFLE(1, 0, 3, 2)));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm_cvtsi128_si32(h);
}

static inline int16_t sum_bytes(__m128i bytes) {
    __m128i s = _mm_madd_epi16(_mm_maddubs_epi16(_mm_set1_epi8(1), bytes), _mm_set1_epi16(1));
    s = _mm_hadd_epi32(s, s);
    s = _mm_hadd_epi32(s, s);
    return (int16_t)_mm_cvtsi128_si32(s);
}

static void quantise_block(octavo_q8_block *out, const float *x) {
    __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
    uint32_t max_bits = max_bits_of(_mm512_castps_si512(a), _mm512_castps_si512(b));
    float max = octavo_f32_from_bits(max_bits), inverse = 127.0f / max;
    if (max_bits >= 0x7f800000u || !isfinite(inverse)) {
        *out = (octavo_q8_block){.d = max_bits >= 0x7f800000u ? NAN : 0.0f};
        return;
    }
    __m512 by = _mm512_set1_ps(inverse);
    __m128i low = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(a, by)));
    __m128i high = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(b, by)));
    out->d = max / 127.0f;
    out->sum[0] = sum_bytes(low);
    out->sum[1] = sum_bytes(high);
    _mm_storeu_si128((__m128i *)out->q, low);
    _mm_storeu_si128((__m128i *)(out->q + 16), high);
}

static void quantise_q8(octavo_q8_block *out, const float *x, int64_t n) {
    octavo_assert(n % OCTAVO_BLOCK == 0);
    for (int64_t i = 0; i < n; i += OCTAVO_BLOCK)
        quantise_block(out++, x + i);
}

/* All other entries, written in the vec_ operations of this level. */
#include "kernels/vector_tmpl.h"

void octavo_vector_kernels_avx512(octavo_vector_kernels *kernels) {
    *kernels = (octavo_vector_kernels){
        .sum_squares = sum_squares,
        .scale_mul = scale_mul,
        .add = add,
        .rope_half = rope_half,
        .rope_pairwise = rope_pairwise,
        .gate_silu = gate_silu,
        .gate_gelu_tanh = gate_gelu_tanh,
        .exp = exp_row,
        .softmax = softmax,
        .soft_cap = soft_cap,
        .quantise_q8 = quantise_q8,
    };
}
