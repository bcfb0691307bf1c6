/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block for AVX2, FMA and F16C: the words of attention_tmpl.h, and what is not
 * worth wider vectors.
 */
#include "kernels/attention.h"
#include "kernels/x86/attention_e4m3_avx2.h"
#include "kernels/x86/attention_load.h"
#include "kernels/x86/attention_transpose.h"
#include "kernels/x86/vector_ops_avx2.h"

static inline vec low_f16(__m256i halves) {
    return _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
}

static inline vec high_f16(__m256i halves) {
    return _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
}

/* Lanes [i, i + 16). Those of bf16 are split into even and odd ones, an instruction for each. */
static OCTAVO_ALWAYS_INLINE void vec_load_group(vec x[2], const void *row, int64_t i,
                                                const int type) {
    const uint8_t *bytes = row;
    switch (type) {
    case F32:
        x[0] = _mm256_loadu_ps((const float *)row + i);
        x[1] = _mm256_loadu_ps((const float *)row + i + 8);
        return;
    case F16:
        x[0] = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(bytes + 2 * i)));
        x[1] = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(bytes + 2 * i + 16)));
        return;
    case BF16: {
        __m256i pairs = _mm256_loadu_si256((const void *)(bytes + 2 * i));
        x[0] = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
        x[1] = _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000u)));
        return;
    }
    case INT8:
        x[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(bytes + i))));
        x[1] = _mm256_cvtepi32_ps(
            _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(bytes + i + 8))));
        return;
    default: {
        __m256i halves = load_fp8_as_f16(bytes + i, type);
        x[0] = low_f16(halves);
        x[1] = high_f16(halves);
    }
    }
}

static OCTAVO_ALWAYS_INLINE void vec_load_acc(vec a[2], const float *acc, const int type) {
    a[0] = _mm256_loadu_ps(acc);
    a[1] = _mm256_loadu_ps(acc + 8);
    if (type != BF16) return;
    vec low = _mm256_permute2f128_ps(a[0], a[1], 0x20);
    vec high = _mm256_permute2f128_ps(a[0], a[1], 0x31);
    a[0] = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0));
    a[1] = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1));
}

static OCTAVO_ALWAYS_INLINE void vec_store_acc(float *acc, const vec a[2], const int type) {
    vec first = a[0], second = a[1];
    if (type == BF16) {
        vec low = _mm256_unpacklo_ps(a[0], a[1]), high = _mm256_unpackhi_ps(a[0], a[1]);
        first = _mm256_permute2f128_ps(low, high, 0x20);
        second = _mm256_permute2f128_ps(low, high, 0x31);
    }
    _mm256_storeu_ps(acc, first);
    _mm256_storeu_ps(acc + 8, second);
}

/* Of 8 words halves or bytes lane and lane + 1, lane even, in the upper bits of 16-bit lanes: those
 * of `lane` in the lower half, those of lane + 1 in the upper one. */
static OCTAVO_ALWAYS_INLINE __m256i word_halves(const uint32_t *words, const int lane,
                                                const int type) {
    const int z = -128; /* a zero */
    const __m256i at =
        type == F16 ? _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1,
                                       4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)
        : lane == 0 ? _mm256_setr_epi8(z, 0, z, 4, z, 8, z, 12, z, 1, z, 5, z, 9, z, 13, z, 0, z, 4,
                                       z, 8, z, 12, z, 1, z, 5, z, 9, z, 13)
                    : _mm256_setr_epi8(z, 2, z, 6, z, 10, z, 14, z, 3, z, 7, z, 11, z, 15, z, 2, z,
                                       6, z, 10, z, 14, z, 3, z, 7, z, 11, z, 15);
    __m256i halves = _mm256_loadu_si256((const void *)words);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(halves, at), _MM_SHUFFLE(3, 1, 2, 0));
}

static OCTAVO_ALWAYS_INLINE vec vec_word_lane(const uint32_t *words, const int lane,
                                              const int type) {
    if (type == F32) return vec_load_held((const void *)words);
    if (type == BF16 || type == FP8_E4M3) {
        __m256i pairs = _mm256_loadu_si256((const void *)words);
        if (type == FP8_E4M3) pairs = e4m3_word_pairs(pairs, lane / 2 * 2);
        return _mm256_castsi256_ps(
            lane % 2 == 0 ? _mm256_slli_epi32(pairs, 16)
                          : _mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000u)));
    }
    if (type == INT8) {
        __m256i quads = _mm256_loadu_si256((const void *)words);
        quads = _mm256_srai_epi32(_mm256_slli_epi32(quads, 24 - 8 * lane), 24);
        return _mm256_cvtepi32_ps(quads);
    }
    __m256i halves = word_halves(words, lane / 2 * 2, type);
    return lane % 2 == 0 ? low_f16(halves) : high_f16(halves);
}

static inline vec vec_load_type(const void *x, int64_t i, int type) {
    const uint8_t *bytes = x;
    const __m128i *halves = (const void *)(bytes + 2 * i);
    switch (type) {
    case F32:
        return _mm256_loadu_ps((const float *)x + i);
    case F16:
        return _mm256_cvtph_ps(_mm_loadu_si128(halves));
    case BF16: {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(halves));
        return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
    }
    case INT8:
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(bytes + i))));
    default: {
        __m128i eight = _mm_loadl_epi64((const void *)(bytes + i));
        __m256i upper = _mm256_castsi128_si256(_mm_unpacklo_epi8(_mm_setzero_si128(), eight));
        if (type == FP8_E5M2) return low_f16(upper);
        return _mm256_mul_ps(low_f16(e4m3_as_f16(upper)), _mm256_set1_ps(E4M3_AS_F16));
    }
    }
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

/* Of one token's keys. */
enum { TOKEN_GROUPS = 1 };

#include "kernels/attention_tmpl.h"

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

void octavo_attention_kernels_avx2(octavo_attention_kernels *kernels) {
    set_kernels(kernels);
    kernels->store[F16] = store_f16;
    kernels->store[BF16] = store_bf16;
}
