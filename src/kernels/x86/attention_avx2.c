/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block for AVX2, FMA and F16C: the words of attention_tmpl.h, and what is not
 * worth wider vectors.
 */
#include "kernels/attention.h"
#include "kernels/x86/attention_load.h"
#include "kernels/x86/vector_ops_avx2.h"

static inline vec vec_load_type(const void *x, int64_t i, int type) {
    return load8(x, i, type);
}

/* Nearest even; see octavo_f32_to_bf16. */
static inline vec vec_round_bf16(vec v) {
    __m256i u = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    u = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    u = _mm256_and_si256(u, _mm256_set1_epi32((int)0xffff0000u));
    return _mm256_blendv_ps(_mm256_castsi256_ps(u), v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

/* first + add, first + add + 1 ... */
static inline vec vec_count(float first, int add) {
    __m256i count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    count = _mm256_add_epi32(count, _mm256_set1_epi32(add));
    return _mm256_add_ps(_mm256_set1_ps(first), _mm256_cvtepi32_ps(count));
}

/* Lanes outside [begin, end) become -inf; lane 0 is position `first`. */
static inline vec keep_range(vec x, int first, int begin, int end) {
    __m256i lane =
        _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane);
    __m256i inside = _mm256_andnot_si256(before, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), x, _mm256_castsi256_ps(inside));
}

/* Up to 12 accumulators. */
static inline int tile_groups(int rows) {
    return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}

#include "kernels/x86/attention_tmpl.h"

/* --- storing --- */

static void store_f16(void *out, const float *x, float scale, int64_t n) {
    uint16_t *to = out;
    __m256 by = _mm256_set1_ps(scale);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), by);
        _mm_storeu_si128((void *)(to + i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < n; i++)
        to[i] = octavo_f32_to_f16(x[i] * scale);
}

/* Nearest even in the upper half of each lane; see octavo_f32_to_bf16. */
static OCTAVO_ALWAYS_INLINE __m256i round_bf16(__m256 v) {
    __m256i u = _mm256_castps_si256(v);
    __m256i high = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, is_nan);
}

static void store_bf16(void *out, const float *x, float scale, int64_t n) {
    uint16_t *to = out;
    __m256 by = _mm256_set1_ps(scale);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i wide = round_bf16(_mm256_mul_ps(_mm256_loadu_ps(x + i), by));
        __m128i bits =
            _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
        _mm_storeu_si128((void *)(to + i), bits);
    }
    for (; i < n; i++)
        to[i] = octavo_f32_to_bf16(x[i] * scale);
}

/* --- joining --- */

static void merge(float *out, float *max, float *sum, const float *acc, float m, float l,
                  int64_t n) {
    const float top = octavo_attention_max(*max, m);
    const float base = octavo_attention_base(top);
    const float old = exp1(*max - base), new = exp1(m - base);
    for (int64_t i = 0; i < n; i += VEC_WIDTH) {
        vec x = vec_mul(vec_load(out + i), vec_set(old));
        vec_store(out + i, vec_fma(vec_load(acc + i), vec_set(new), x));
    }
    *sum = *sum * old + l * new;
    *max = top;
}

static float sink(float logit, float *max, float *sum) {
    const float top = octavo_attention_max(*max, logit);
    const float base = octavo_attention_base(top);
    const float rescale = exp1(*max - base);
    *sum = *sum * rescale + exp1(logit - base);
    *max = top;
    return rescale;
}

void octavo_attention_kernels_avx2(octavo_attention_kernels *kernels) {
    set_kernels(kernels);
    kernels->store[F16] = store_f16;
    kernels->store[BF16] = store_bf16;
    kernels->merge = merge;
    kernels->sink = sink;
}
