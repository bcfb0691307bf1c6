/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic for AVX2 and FMA. What vector.h calls the same at every level uses no fused
 * operation.
 */
#include "base/compiler.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/vector.h"
#include "kernels/x86/vector_ops_avx2.h"

/* (c, s) pairs of eight positions, apart. */
static inline void split_pairs(const float *cs, __m256 *c, __m256 *s) {
    __m256 low = _mm256_loadu_ps(cs), high = _mm256_loadu_ps(cs + 8);
    __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
    __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
    *c = _mm256_castpd_ps(_mm256_permute4x64_pd(even, _MM_SHUFFLE(3, 1, 2, 0)));
    *s = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, _MM_SHUFFLE(3, 1, 2, 0)));
}

static void rope_half(float *x, const float *cs, int64_t n_pairs) {
    int64_t i = 0;
    for (; i + 8 <= n_pairs; i += 8) {
        __m256 c, s, a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + n_pairs);
        split_pairs(cs + 2 * i, &c, &s);
        _mm256_storeu_ps(x + i, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(x + i + n_pairs, _mm256_add_ps(_mm256_mul_ps(b, c), _mm256_mul_ps(a, s)));
    }
    for (; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[i], &x[i + n_pairs], &cs[2 * i]);
}

static void rope_pairwise(float *x, const float *cs, int64_t n_pairs) {
    int64_t i = 0;
    for (; i + 4 <= n_pairs; i += 4) {
        __m256 pairs = _mm256_loadu_ps(x + 2 * i), turn = _mm256_loadu_ps(cs + 2 * i);
        __m256 swapped = _mm256_permute_ps(pairs, _MM_SHUFFLE(2, 3, 0, 1));
        __m256 by_c = _mm256_mul_ps(pairs, _mm256_moveldup_ps(turn));
        __m256 by_s = _mm256_mul_ps(swapped, _mm256_movehdup_ps(turn));
        _mm256_storeu_ps(x + 2 * i, _mm256_addsub_ps(by_c, by_s));
    }
    for (; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[2 * i], &x[2 * i + 1], &cs[2 * i]);
}

/* The largest of |x|, as bits: see the scalar version. */
static inline uint32_t max_bits_of(const __m256i *x) {
    __m256i no_sign = _mm256_set1_epi32(0x7fffffff);
    __m256i m = _mm256_and_si256(x[0], no_sign);
    for (int v = 1; v < 4; v++)
        m = _mm256_max_epi32(m, _mm256_and_si256(x[v], no_sign));
    __m128i h = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, _MM_SHUFFLE(1, 0, 3, 2)));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm_cvtsi128_si32(h);
}

static void quantise_block(octavo_q8_block *out, const float *x) {
    __m256i bits[4];
    for (int v = 0; v < 4; v++)
        bits[v] = _mm256_loadu_si256((const __m256i *)(x + 8 * v));
    uint32_t max_bits = max_bits_of(bits);
    float max = octavo_f32_from_bits(max_bits), inverse = 127.0f / max;
    if (max_bits >= 0x7f800000u || !isfinite(inverse)) {
        *out = (octavo_q8_block){.d = max_bits >= 0x7f800000u ? NAN : 0.0f};
        return;
    }
    __m256 by = _mm256_set1_ps(inverse);
    __m256i q[4];
    for (int v = 0; v < 4; v++)
        q[v] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_castsi256_ps(bits[v]), by));
    /* The packs work within halves, which leaves groups of four in the order 0 2 4 6 1 3 5 7. */
    __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    __m256i sums =
        _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
    sums = _mm256_hadd_epi32(sums, sums);
    sums = _mm256_hadd_epi32(sums, sums);
    out->d = max / 127.0f;
    out->sum[0] = (int16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(sums));
    out->sum[1] = (int16_t)_mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1));
    _mm256_storeu_si256((__m256i *)out->q, bytes);
}

static void quantise_q8(octavo_q8_block *out, const float *x, int64_t n) {
    octavo_assert(n % OCTAVO_BLOCK == 0);
    for (int64_t i = 0; i < n; i += OCTAVO_BLOCK)
        quantise_block(out++, x + i);
}

/* All other entries, written in the vec_ operations of this level. */
#include "kernels/vector_tmpl.h"

void octavo_vector_kernels_avx2(octavo_vector_kernels *kernels) {
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
