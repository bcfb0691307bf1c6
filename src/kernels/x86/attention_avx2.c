/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block for AVX2, FMA and F16C. Contracts: kernels/attention.h; maths:
 * kernels/scalar/attention_scalar.h. Tiles hold up to 12 accumulators in registers; how rows and
 * keys are cut into tiles changes speed only.
 */
#include "base/compiler.h"
#include "base/number.h"
#include "kernels/scalar/attention_scalar.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/x86/attention_transpose.h"
#include "kernels/x86/intrinsics.h"

#include <math.h>
#include <string.h>

#define BLOCK OCTAVO_SOFTMAX_BLOCK
#define GROUP OCTAVO_KEY_GROUP

enum { F32, F16, BF16 };

static OCTAVO_ALWAYS_INLINE __m256 from_bf16(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

/* 8 elements. */
static OCTAVO_ALWAYS_INLINE __m256 load8(const void *x, int64_t i, const int type) {
    if (type == F32) return _mm256_loadu_ps((const float *)x + i);
    __m128i bits = _mm_loadu_si128((const void *)((const uint16_t *)x + i));
    return type == F16 ? _mm256_cvtph_ps(bits) : from_bf16(bits);
}

/* --- rows of each number type --- */

static OCTAVO_ALWAYS_INLINE void load_row(float *out, const void *x, int64_t n, const int type) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, load8(x, i, type));
    for (; i < n; i++) {
        uint16_t bits = ((const uint16_t *)x)[i];
        out[i] = type == F16 ? octavo_f16_to_f32(bits) : octavo_bf16_to_f32(bits);
    }
}

static void load_f16(float *out, const void *x, int64_t n) {
    load_row(out, x, n, F16);
}

static void load_bf16(float *out, const void *x, int64_t n) {
    load_row(out, x, n, BF16);
}

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
    for (int k = 0; k < n; k++) {
        __m128i low = _mm256_castsi256_si128(column[k]);
        __m128i high = _mm256_extracti128_si256(column[k], 1);
        _mm256_store_ps(to + k * GROUP, type == F16 ? _mm256_cvtph_ps(low) : from_bf16(low));
        _mm256_store_ps(to + k * GROUP + 8, type == F16 ? _mm256_cvtph_ps(high) : from_bf16(high));
    }
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
        int i = 0;
        for (; i + 8 <= d; i += 8, to += 8 * GROUP) {
            if (type == F32)
                stage_32bit(to, rows, offset, i, 8);
            else
                stage_16bit(to, rows, offset, i, 8, type);
        }
        if (i == d) continue;
        if (type == F32)
            stage_32bit(to, rows, offset, i, d - i);
        else
            stage_16bit(to, rows, offset, i, d - i, type);
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

/* `rows` rows times `groups` groups of 16 keys. */
static OCTAVO_ALWAYS_INLINE void score_tile(float *s, const float *q, int64_t q_stride,
                                            const float *kt, int d, const int rows,
                                            const int groups) {
    __m256 acc[6][8];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < 2 * groups; v++)
            acc[r][v] = _mm256_setzero_ps();
    }
    const size_t group = (size_t)d * GROUP;
    for (int i = 0; i < d; i++) {
        __m256 k[8];
        for (int v = 0; v < 2 * groups; v++)
            k[v] = _mm256_load_ps(kt + (size_t)(v / 2) * group + i * GROUP + v % 2 * 8);
        for (int r = 0; r < rows; r++) {
            __m256 x = _mm256_broadcast_ss(q + r * q_stride + i);
            for (int v = 0; v < 2 * groups; v++)
                acc[r][v] = _mm256_fmadd_ps(x, k[v], acc[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < 2 * groups; v++)
            _mm256_store_ps(s + r * BLOCK + v * 8, acc[r][v]);
    }
}

/* All rows, one group. */
static void score_group(float *s, const float *q, int64_t q_stride, int n_rows, const float *kt,
                        int d) {
    for (; n_rows >= 6; n_rows -= 6, q += 6 * q_stride, s += 6 * BLOCK)
        score_tile(s, q, q_stride, kt, d, 6, 1);
    switch (n_rows) {
    case 5:
        score_tile(s, q, q_stride, kt, d, 5, 1);
        break;
    case 4:
        score_tile(s, q, q_stride, kt, d, 4, 1);
        break;
    case 3:
        score_tile(s, q, q_stride, kt, d, 3, 1);
        break;
    case 2:
        score_tile(s, q, q_stride, kt, d, 2, 1);
        break;
    case 1:
        score_tile(s, q, q_stride, kt, d, 1, 1);
        break;
    default:
        break;
    }
}

static void scores(float *s, const float *q, int64_t q_stride, int n_rows, const float *kt,
                   int begin, int end, int d) {
    const size_t group = (size_t)d * GROUP;
    int g = begin / GROUP, last = (end + GROUP - 1) / GROUP;
    if (n_rows == 1 && last - g == 4) {
        score_tile(s, q, q_stride, kt, d, 1, 4);
        return;
    }
    for (; n_rows <= 3 && g + 2 <= last; g += 2) {
        float *to = s + g * GROUP;
        const float *from = kt + (size_t)g * group;
        if (n_rows == 3)
            score_tile(to, q, q_stride, from, d, 3, 2);
        else if (n_rows == 2)
            score_tile(to, q, q_stride, from, d, 2, 2);
        else
            score_tile(to, q, q_stride, from, d, 1, 2);
    }
    for (; g < last; g++)
        score_group(s + g * GROUP, q, q_stride, n_rows, kt + (size_t)g * group, d);
}

/* --- softmax --- */

/* exp for x up to 0 or so (at most 88); see vector_scalar.h. */
static OCTAVO_ALWAYS_INLINE __m256 exp8(__m256 x) {
    const __m256 magic = _mm256_set1_ps(OCTAVO_ROUND_MAGIC);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(OCTAVO_EXP_LOG2E), magic);
    __m256 n = _mm256_sub_ps(shifted, magic);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(OCTAVO_EXP_LN2_HIGH), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(OCTAVO_EXP_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(OCTAVO_EXP_C3);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(OCTAVO_EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(OCTAVO_EXP_C1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(OCTAVO_EXP_C0));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));
    __m256i power = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    p = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), power));
    p = _mm256_and_ps(p, _mm256_cmp_ps(x, _mm256_set1_ps(OCTAVO_EXP_LOW), _CMP_GE_OQ));
    return _mm256_or_ps(p, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); /* NaN stays one */
}

static OCTAVO_ALWAYS_INLINE float exp1(float x) {
    return _mm256_cvtss_f32(exp8(_mm256_set1_ps(x)));
}

static OCTAVO_ALWAYS_INLINE __m256 soft_cap8(__m256 x, __m256 cap) {
    const __m256 one = _mm256_set1_ps(1.0f), two = _mm256_set1_ps(2.0f);
    __m256 y = _mm256_div_ps(x, cap);
    y = _mm256_min_ps(_mm256_set1_ps(40.0f), y); /* in this order a NaN passes */
    y = _mm256_max_ps(_mm256_set1_ps(-40.0f), y);
    __m256 e = exp8(_mm256_mul_ps(two, y));
    return _mm256_mul_ps(cap, _mm256_sub_ps(one, _mm256_div_ps(two, _mm256_add_ps(e, one))));
}

/* Lanes outside [begin, end) become -inf. */
static OCTAVO_ALWAYS_INLINE __m256 mask8(__m256 x, int first, int begin, int end) {
    __m256i lane =
        _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane);
    __m256i inside = _mm256_andnot_si256(before, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), x, _mm256_castsi256_ps(inside));
}

static OCTAVO_ALWAYS_INLINE float max_lanes(__m256 v) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

static OCTAVO_ALWAYS_INLINE float add_lanes(__m256 v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

static float softmax(float *s, int begin, int end, const octavo_logit *logit, float *max,
                     float *sum) {
    __m256 v[BLOCK / 8];
    const __m256 scale = _mm256_set1_ps(logit->scale);
    for (int i = 0; i < BLOCK / 8; i++)
        v[i] = _mm256_mul_ps(_mm256_load_ps(s + i * 8), scale);
    if (logit->soft_cap != 0.0f) {
        const __m256 cap = _mm256_set1_ps(logit->soft_cap);
        for (int i = 0; i < BLOCK / 8; i++)
            v[i] = soft_cap8(v[i], cap);
    }
    if (begin > 0 || end < BLOCK) {
        for (int i = 0; i < BLOCK / 8; i++)
            v[i] = mask8(v[i], i * 8, begin, end);
    }
    __m256 a = _mm256_max_ps(_mm256_max_ps(v[0], v[4]), _mm256_max_ps(v[2], v[6]));
    __m256 b = _mm256_max_ps(_mm256_max_ps(v[1], v[5]), _mm256_max_ps(v[3], v[7]));
    const float top = octavo_attention_max(*max, max_lanes(_mm256_max_ps(a, b)));
    const float base = octavo_attention_base(top);
    for (int i = 0; i < BLOCK / 8; i++) {
        v[i] = exp8(_mm256_sub_ps(v[i], _mm256_set1_ps(base)));
        _mm256_store_ps(s + i * 8, v[i]);
    }
    a = _mm256_add_ps(_mm256_add_ps(v[0], v[4]), _mm256_add_ps(v[2], v[6]));
    b = _mm256_add_ps(_mm256_add_ps(v[1], v[5]), _mm256_add_ps(v[3], v[7]));
    const float rescale = *max == base ? 1.0f : exp1(*max - base);
    *sum = *sum * rescale + add_lanes(_mm256_add_ps(a, b));
    *max = top;
    return rescale;
}

/* --- values --- */

/* What `values` is about: a slice of lanes of all keys. */
typedef struct value_block {
    const uint8_t *const *slots;
    size_t offset;
    int begin;
    int end;
} value_block;

/* `rows` rows times 8 * `vectors` lanes from lane i. */
static OCTAVO_ALWAYS_INLINE void value_tile(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int i,
                                            const int rows, const int vectors, const int type) {
    __m256 a[6][8];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            a[r][v] = _mm256_loadu_ps(acc + r * stride + i + v * 8);
            if (rescale) a[r][v] = _mm256_mul_ps(a[r][v], _mm256_set1_ps(rescale[r]));
        }
    }
    for (int j = block->begin; j < block->end; j++) {
        const uint8_t *row = block->slots[j] + block->offset;
        __m256 x[8];
        for (int v = 0; v < vectors; v++)
            x[v] = load8(row, i + v * 8, type);
        for (int r = 0; r < rows; r++) {
            __m256 weight = _mm256_broadcast_ss(p + r * BLOCK + j);
            for (int v = 0; v < vectors; v++)
                a[r][v] = _mm256_fmadd_ps(weight, x[v], a[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            _mm256_storeu_ps(acc + r * stride + i + v * 8, a[r][v]);
    }
}

/* All lanes of `rows` rows; d is rounded up to 16. */
static OCTAVO_ALWAYS_INLINE void value_rows(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int d,
                                            const int rows, const int type) {
    int i = 0;
    if (rows == 1) {
        for (; i + 64 <= d; i += 64)
            value_tile(acc, stride, rescale, p, block, i, rows, 8, type);
    }
    if (rows <= 3) {
        for (; i + 32 <= d; i += 32)
            value_tile(acc, stride, rescale, p, block, i, rows, 4, type);
    }
    for (; i < d; i += 16)
        value_tile(acc, stride, rescale, p, block, i, rows, 2, type);
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

/* --- joining --- */

static void merge(float *out, float *max, float *sum, const float *acc, float m, float l,
                  int64_t n) {
    const float top = octavo_attention_max(*max, m);
    const float base = octavo_attention_base(top);
    const float old = exp1(*max - base), new = exp1(m - base);
    for (int64_t i = 0; i < n; i += 8) {
        __m256 x = _mm256_mul_ps(_mm256_loadu_ps(out + i), _mm256_set1_ps(old));
        x = _mm256_fmadd_ps(_mm256_loadu_ps(acc + i), _mm256_set1_ps(new), x);
        _mm256_storeu_ps(out + i, x);
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
    kernels->tile_rows = 6;
    kernels->load[F16] = load_f16;
    kernels->load[BF16] = load_bf16;
    kernels->store[F16] = store_f16;
    kernels->store[BF16] = store_bf16;
    kernels->stage_keys[F32] = stage_keys_f32;
    kernels->stage_keys[F16] = stage_keys_f16;
    kernels->stage_keys[BF16] = stage_keys_bf16;
    kernels->scores = scores;
    kernels->softmax = softmax;
    kernels->values[F32] = values_f32;
    kernels->values[F16] = values_f16;
    kernels->values[BF16] = values_bf16;
    kernels->merge = merge;
    kernels->sink = sink;
}
