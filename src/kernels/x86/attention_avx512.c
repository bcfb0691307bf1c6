/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block for AVX-512 F, BW, DQ, VL: the words of attention_tmpl.h. Every result
 * equals AVX2's bit for bit: the same operations in the same order, twice as wide.
 */
#include "kernels/attention.h"
#include "kernels/x86/vector_ops_avx512.h"

typedef __m256i half;

static inline half half_load(const uint16_t *x) {
    return _mm256_loadu_si256((const __m256i *)x);
}

static inline half half_of(__m256i x, int v) {
    (void)v; /* is 0 */
    return x;
}

static inline vec vec_from_f16(half bits) {
    return _mm512_cvtph_ps(bits);
}

static inline vec vec_from_bf16(half bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

static inline vec keep_range(vec x, int first, int begin, int end) {
    const uint64_t inside = ~(uint64_t)0 << begin & ~(uint64_t)0 >> (OCTAVO_SOFTMAX_BLOCK - end);
    return _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), (__mmask16)(inside >> first), x);
}

/* Up to 24 accumulators. */
static inline int tile_groups(int rows) {
    (void)rows;
    return 4;
}

#include "kernels/x86/attention_tmpl.h"

void octavo_attention_kernels_avx512(octavo_attention_kernels *kernels) {
    set_kernels(kernels);
}
