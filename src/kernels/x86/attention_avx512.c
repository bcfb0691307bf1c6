/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block for AVX-512 F, BW, DQ, VL: the words of attention_tmpl.h. Every result
 * equals AVX2's bit for bit: the same operations in the same order, twice as wide.
 */
#include "kernels/attention.h"
#include "kernels/x86/attention_load.h"
#include "kernels/x86/attention_tile_avx512.h"
#include "kernels/x86/attention_transpose.h"
#include "kernels/x86/vector_ops_avx512.h"

static inline vec vec_load_type(const void *x, int64_t i, int type) {
    const uint8_t *bytes = x;
    const __m256i *halves = (const void *)(bytes + 2 * i);
    const __m128i *quarters = (const void *)(bytes + i);
    switch (type) {
    case F32:
        return _mm512_loadu_ps((const float *)x + i);
    case F16:
        return _mm512_cvtph_ps(_mm256_loadu_si256(halves));
    case BF16: {
        __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(halves));
        return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
    }
    case FP8_E4M3: {
        vec scaled = _mm512_cvtph_ps(load_fp8_as_f16(bytes + i, type));
        return _mm512_mul_ps(scaled, _mm512_set1_ps(E4M3_AS_F16));
    }
    case FP8_E5M2:
        return _mm512_cvtph_ps(load_fp8_as_f16(bytes + i, type));
    default:
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(quarters)));
    }
}

static OCTAVO_ALWAYS_INLINE void vec_load_group(vec x[1], const void *row, int64_t i,
                                                const int type) {
    const uint8_t *bytes = row;
    x[0] = type == FP8_E4M3 ? _mm512_cvtph_ps(load_fp8_as_f16(bytes + i, type))
                            : vec_load_type(row, i, type);
}

static OCTAVO_ALWAYS_INLINE vec vec_word_lane(const uint32_t *words, const int lane,
                                              const int type) {
    const __m512i word = _mm512_loadu_si512(words);
    switch (type) {
    case F32:
        return _mm512_castsi512_ps(word);
    case F16:
        return _mm512_cvtph_ps(
            _mm512_cvtepi32_epi16(_mm512_srlv_epi32(word, _mm512_set1_epi32(16 * lane))));
    case BF16:
        return _mm512_castsi512_ps(
            lane == 0 ? _mm512_slli_epi32(word, 16)
                      : _mm512_and_si512(word, _mm512_set1_epi32((int)0xffff0000u)));
    case INT8:
        return _mm512_cvtepi32_ps(
            _mm512_srai_epi32(_mm512_sllv_epi32(word, _mm512_set1_epi32(24 - 8 * lane)), 24));
    default: {
        __m512i upper = _mm512_sllv_epi32(word, _mm512_set1_epi32(24 - 8 * lane));
        __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(upper, 16));
        halves = _mm256_and_si256(halves, _mm256_set1_epi16((short)0xff00));
        if (type == FP8_E5M2) return _mm512_cvtph_ps(halves);
        return _mm512_mul_ps(_mm512_cvtph_ps(e4m3_as_f16(halves)), _mm512_set1_ps(E4M3_AS_F16));
    }
    }
}

static inline vec vec_round_bf16(vec v) {
    __m512i u = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    u = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    u = _mm512_and_si512(u, _mm512_set1_epi32((int)0xffff0000u));
    return _mm512_mask_mov_ps(_mm512_castsi512_ps(u), _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v);
}

static inline vec vec_count(float first, int add) {
    __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    count = _mm512_add_epi32(count, _mm512_set1_epi32(add));
    return _mm512_add_ps(_mm512_set1_ps(first), _mm512_cvtepi32_ps(count));
}

static inline vec keep_range(vec x, int first, int begin, int end) {
    const uint64_t inside = ~(uint64_t)0 << begin & ~(uint64_t)0 >> (OCTAVO_SOFTMAX_BLOCK - end);
    return _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), (__mmask16)(inside >> first), x);
}

/* Of one token's keys: enough accumulators to keep both pipes busy. */
enum { TOKEN_GROUPS = 2 };

#include "kernels/attention_tmpl.h"

void octavo_attention_kernels_avx512(octavo_attention_kernels *kernels) {
    set_kernels(kernels);
}
