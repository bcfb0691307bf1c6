/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block for AVX-512 F, BW, DQ, VL. Contracts: kernels/attention.h; maths:
 * kernels/scalar/attention_scalar.h. Every result equals AVX2's bit for bit: the same operations in
 * the same order, twice as wide.
 */
#include "base/compiler.h"
#include "base/number.h"
#include "kernels/scalar/attention_scalar.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/x86/attention_transpose.h"
#include "kernels/x86/intrinsics.h"

#include <math.h>

#define BLOCK OCTAVO_SOFTMAX_BLOCK
#define GROUP OCTAVO_KEY_GROUP

enum { F32, F16, BF16 };

static OCTAVO_ALWAYS_INLINE __m512 convert16(__m256i bits, const int type) {
    if (type == F16) return _mm512_cvtph_ps(bits);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/* 16 elements. */
static OCTAVO_ALWAYS_INLINE __m512 load16(const void *x, int64_t i, const int type) {
    if (type == F32) return _mm512_loadu_ps((const float *)x + i);
    return convert16(_mm256_loadu_si256((const void *)((const uint16_t *)x + i)), type);
}

/* --- rows of 16-bit types --- */

static void load_f16(float *out, const void *x, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, load16(x, i, F16));
    for (; i < n; i++)
        out[i] = octavo_f16_to_f32(((const uint16_t *)x)[i]);
}

static void load_bf16(float *out, const void *x, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, load16(x, i, BF16));
    for (; i < n; i++)
        out[i] = octavo_bf16_to_f32(((const uint16_t *)x)[i]);
}

/* --- keys --- */

/* Lanes [i, i + 8) of 16 rows to to[8][16]. */
static OCTAVO_ALWAYS_INLINE void stage_16bit(float *to, const uint8_t *const *slots, size_t offset,
                                             int i, int n, const int type) {
    __m256i column[8];
    offset += (size_t)i * sizeof(uint16_t);
    for (int k = 0; k < 8; k++) {
        __m128i low = _mm_loadu_si128((const void *)(slots[k] + offset));
        __m128i high = _mm_loadu_si128((const void *)(slots[k + 8] + offset));
        column[k] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    transpose16(column);
    for (int k = 0; k < n; k++)
        _mm512_store_ps(to + k * GROUP, convert16(column[k], type));
}

static OCTAVO_ALWAYS_INLINE void stage_32bit(float *to, const uint8_t *const *slots, size_t offset,
                                             int i, int n) {
    offset += (size_t)i * sizeof(float);
    for (int half = 0; half < GROUP; half += 8) {
        __m256 m[8];
        for (int k = 0; k < 8; k++)
            m[k] = _mm256_loadu_ps((const void *)(slots[half + k] + offset));
        transpose8(m);
        for (int k = 0; k < n; k++)
            _mm256_store_ps(to + k * GROUP + half, m[k]);
    }
}

static OCTAVO_ALWAYS_INLINE void stage_keys(float *kt, const uint8_t *const *slots, size_t offset,
                                            int begin, int end, int d, const int type) {
    for (int g = begin / GROUP; g < (end + GROUP - 1) / GROUP; g++) {
        float *to = kt + (size_t)g * (size_t)d * GROUP;
        const uint8_t *const *rows = slots + g * GROUP;
        for (int i = 0; i < d; i += 8, to += 8 * GROUP) {
            int n = d - i < 8 ? d - i : 8;
            if (type == F32)
                stage_32bit(to, rows, offset, i, n);
            else
                stage_16bit(to, rows, offset, i, n, type);
        }
    }
}

static void stage_keys_f32(float *kt, const uint8_t *const *slots, size_t offset, int begin,
                           int end, int d) {
    stage_keys(kt, slots, offset, begin, end, d, F32);
}

static void stage_keys_f16(float *kt, const uint8_t *const *slots, size_t offset, int begin,
                           int end, int d) {
    stage_keys(kt, slots, offset, begin, end, d, F16);
}

static void stage_keys_bf16(float *kt, const uint8_t *const *slots, size_t offset, int begin,
                            int end, int d) {
    stage_keys(kt, slots, offset, begin, end, d, BF16);
}

/* --- scores --- */

/* `rows` rows times `groups` groups of 16 keys: up to 24 accumulators. */
static OCTAVO_ALWAYS_INLINE void score_tile(float *s, const float *q, int64_t q_stride,
                                            const float *kt, int d, const int rows,
                                            const int groups) {
    __m512 acc[6][4];
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < groups; g++)
            acc[r][g] = _mm512_setzero_ps();
    }
    const size_t group = (size_t)d * GROUP;
    for (int i = 0; i < d; i++) {
        __m512 k[4];
        for (int g = 0; g < groups; g++)
            k[g] = _mm512_load_ps(kt + (size_t)g * group + i * GROUP);
        for (int r = 0; r < rows; r++) {
            __m512 x = _mm512_set1_ps(q[r * q_stride + i]);
            for (int g = 0; g < groups; g++)
                acc[r][g] = _mm512_fmadd_ps(x, k[g], acc[r][g]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < groups; g++)
            _mm512_store_ps(s + r * BLOCK + g * GROUP, acc[r][g]);
    }
}

/* All rows, `groups` groups. */
static OCTAVO_ALWAYS_INLINE void score_groups(float *s, const float *q, int64_t q_stride,
                                              int n_rows, const float *kt, int d,
                                              const int groups) {
    for (; n_rows >= 6; n_rows -= 6, q += 6 * q_stride, s += 6 * BLOCK)
        score_tile(s, q, q_stride, kt, d, 6, groups);
    switch (n_rows) {
    case 5:
        score_tile(s, q, q_stride, kt, d, 5, groups);
        break;
    case 4:
        score_tile(s, q, q_stride, kt, d, 4, groups);
        break;
    case 3:
        score_tile(s, q, q_stride, kt, d, 3, groups);
        break;
    case 2:
        score_tile(s, q, q_stride, kt, d, 2, groups);
        break;
    case 1:
        score_tile(s, q, q_stride, kt, d, 1, groups);
        break;
    default:
        break;
    }
}

static void scores(float *s, const float *q, int64_t q_stride, int n_rows, const float *kt,
                   int begin, int end, int d) {
    const size_t group = (size_t)d * GROUP;
    int g = begin / GROUP, last = (end + GROUP - 1) / GROUP;
    if (last - g == 4) {
        score_groups(s, q, q_stride, n_rows, kt, d, 4);
        return;
    }
    for (; g + 2 <= last; g += 2)
        score_groups(s + g * GROUP, q, q_stride, n_rows, kt + (size_t)g * group, d, 2);
    if (g < last) score_groups(s + g * GROUP, q, q_stride, n_rows, kt + (size_t)g * group, d, 1);
}

/* --- softmax --- */

/* exp for x up to 0 or so (at most 88); see vector_scalar.h. */
static OCTAVO_ALWAYS_INLINE __m512 exp16(__m512 x) {
    const __m512 magic = _mm512_set1_ps(OCTAVO_ROUND_MAGIC);
    __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(OCTAVO_EXP_LOG2E), magic);
    __m512 n = _mm512_sub_ps(shifted, magic);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(OCTAVO_EXP_LN2_HIGH), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(OCTAVO_EXP_LN2_LOW), r);
    __m512 p = _mm512_set1_ps(OCTAVO_EXP_C3);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(OCTAVO_EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(OCTAVO_EXP_C1));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(OCTAVO_EXP_C0));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1.0f));
    __m512i power = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    p = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
    p = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(OCTAVO_EXP_LOW), _CMP_GE_OQ), p);
    return _mm512_mask_mov_ps(p, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x); /* NaN stays one */
}

static OCTAVO_ALWAYS_INLINE float exp1(float x) {
    return _mm512_cvtss_f32(exp16(_mm512_set1_ps(x)));
}

static OCTAVO_ALWAYS_INLINE __m512 soft_cap16(__m512 x, __m512 cap) {
    const __m512 one = _mm512_set1_ps(1.0f), two = _mm512_set1_ps(2.0f);
    __m512 y = _mm512_div_ps(x, cap);
    y = _mm512_min_ps(_mm512_set1_ps(40.0f), y); /* in this order a NaN passes */
    y = _mm512_max_ps(_mm512_set1_ps(-40.0f), y);
    __m512 e = exp16(_mm512_mul_ps(two, y));
    return _mm512_mul_ps(cap, _mm512_sub_ps(one, _mm512_div_ps(two, _mm512_add_ps(e, one))));
}

static OCTAVO_ALWAYS_INLINE __m256 low8(__m512 v) {
    return _mm512_castps512_ps256(v);
}

static OCTAVO_ALWAYS_INLINE __m256 high8(__m512 v) {
    return _mm512_extractf32x8_ps(v, 1);
}

static OCTAVO_ALWAYS_INLINE float max_lanes(__m512 v) {
    __m256 half = _mm256_max_ps(low8(v), high8(v));
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

static OCTAVO_ALWAYS_INLINE float add_lanes(__m512 v) {
    __m256 half = _mm256_add_ps(low8(v), high8(v));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

static float softmax(float *s, int begin, int end, const octavo_logit *logit, float *max,
                     float *sum) {
    __m512 v[4];
    const uint64_t inside = ~(uint64_t)0 << begin & ~(uint64_t)0 >> (BLOCK - end);
    const __m512 scale = _mm512_set1_ps(logit->scale), cap = _mm512_set1_ps(logit->soft_cap);
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_mul_ps(_mm512_load_ps(s + i * 16), scale);
        if (logit->soft_cap != 0.0f) v[i] = soft_cap16(v[i], cap);
        v[i] = _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), (__mmask16)(inside >> i * 16), v[i]);
    }
    __m512 top16 = _mm512_max_ps(_mm512_max_ps(v[0], v[2]), _mm512_max_ps(v[1], v[3]));
    const float top = octavo_attention_max(*max, max_lanes(top16));
    const float base = octavo_attention_base(top);
    for (int i = 0; i < 4; i++) {
        v[i] = exp16(_mm512_sub_ps(v[i], _mm512_set1_ps(base)));
        _mm512_store_ps(s + i * 16, v[i]);
    }
    __m512 sum16 = _mm512_add_ps(_mm512_add_ps(v[0], v[2]), _mm512_add_ps(v[1], v[3]));
    const float rescale = *max == base ? 1.0f : exp1(*max - base);
    *sum = *sum * rescale + add_lanes(sum16);
    *max = top;
    return rescale;
}

/* --- values --- */

/* What `values` is about. */
typedef struct value_block {
    const uint8_t *const *slots;
    size_t offset;
    int begin;
    int end;
} value_block;

/* `rows` rows times 16 * `vectors` lanes from lane i. */
static OCTAVO_ALWAYS_INLINE void value_tile(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int i,
                                            const int rows, const int vectors, const int type) {
    __m512 a[6][4];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            a[r][v] = _mm512_loadu_ps(acc + r * stride + i + v * 16);
            if (rescale) a[r][v] = _mm512_mul_ps(a[r][v], _mm512_set1_ps(rescale[r]));
        }
    }
    for (int j = block->begin; j < block->end; j++) {
        const uint8_t *row = block->slots[j] + block->offset;
        __m512 x[4];
        for (int v = 0; v < vectors; v++)
            x[v] = load16(row, i + v * 16, type);
        for (int r = 0; r < rows; r++) {
            __m512 weight = _mm512_set1_ps(p[r * BLOCK + j]);
            for (int v = 0; v < vectors; v++)
                a[r][v] = _mm512_fmadd_ps(weight, x[v], a[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_ps(acc + r * stride + i + v * 16, a[r][v]);
    }
}

/* All lanes of `rows` rows; d is rounded up to 16. */
static OCTAVO_ALWAYS_INLINE void value_rows(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int d,
                                            const int rows, const int type) {
    int i = 0;
    for (; i + 64 <= d; i += 64)
        value_tile(acc, stride, rescale, p, block, i, rows, 4, type);
    for (; i < d; i += 16)
        value_tile(acc, stride, rescale, p, block, i, rows, 1, type);
}

static OCTAVO_ALWAYS_INLINE void values(float *acc, int64_t stride, const float *rescale,
                                        const float *p, int n_rows, const value_block *block, int d,
                                        const int type) {
    d = (d + 15) / 16 * 16;
    for (; n_rows >= 6; n_rows -= 6, acc += 6 * stride, p += 6 * BLOCK) {
        value_rows(acc, stride, rescale, p, block, d, 6, type);
        if (rescale) rescale += 6;
    }
    switch (n_rows) {
    case 5:
        value_rows(acc, stride, rescale, p, block, d, 5, type);
        break;
    case 4:
        value_rows(acc, stride, rescale, p, block, d, 4, type);
        break;
    case 3:
        value_rows(acc, stride, rescale, p, block, d, 3, type);
        break;
    case 2:
        value_rows(acc, stride, rescale, p, block, d, 2, type);
        break;
    case 1:
        value_rows(acc, stride, rescale, p, block, d, 1, type);
        break;
    default:
        break;
    }
}

static void values_f32(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                       int n_rows, const uint8_t *const *slots, size_t offset, int begin, int end,
                       int d) {
    values(acc, acc_stride, rescale, p, n_rows, &(value_block){slots, offset, begin, end}, d, F32);
}

static void values_f16(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                       int n_rows, const uint8_t *const *slots, size_t offset, int begin, int end,
                       int d) {
    values(acc, acc_stride, rescale, p, n_rows, &(value_block){slots, offset, begin, end}, d, F16);
}

static void values_bf16(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                        int n_rows, const uint8_t *const *slots, size_t offset, int begin, int end,
                        int d) {
    values(acc, acc_stride, rescale, p, n_rows, &(value_block){slots, offset, begin, end}, d, BF16);
}

void octavo_attention_kernels_avx512(octavo_attention_kernels *kernels) {
    kernels->tile_rows = 6;
    kernels->load[F16] = load_f16;
    kernels->load[BF16] = load_bf16;
    kernels->stage_keys[F32] = stage_keys_f32;
    kernels->stage_keys[F16] = stage_keys_f16;
    kernels->stage_keys[BF16] = stage_keys_bf16;
    kernels->scores = scores;
    kernels->softmax = softmax;
    kernels->values[F32] = values_f32;
    kernels->values[F16] = values_f16;
    kernels->values[BF16] = values_bf16;
}
