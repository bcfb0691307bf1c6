/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block in vectors of VEC_WIDTH (a divisor of OCTAVO_KEY_GROUP) floats. Included
 * once by each level's file, after the header with its vec_ operations and after
 *   vec_load_type               VEC_WIDTH elements of a type as f32
 *   vec_round_bf16, vec_count   as named
 *   keep_range                  lanes outside a range of positions become -inf
 *   tile_groups                 how many groups of 16 keys or lanes a tile of so many rows takes:
 *                               1, 2 or 4, less for more rows, as many accumulators as stay in
 *                               registers
 * How rows, keys and lanes are cut into tiles changes speed only. Contracts: kernels/attention.h;
 * maths: kernels/scalar/attention_scalar.h.
 */
#include "base/compiler.h"
#include "base/number.h"
#include "kernels/scalar/attention_scalar.h"
#include "kernels/vector_exp_tmpl.h"
#include "kernels/x86/attention_transpose.h"

#include <math.h>

#define BLOCK OCTAVO_SOFTMAX_BLOCK
#define GROUP OCTAVO_KEY_GROUP

enum { TILE_ROWS = 6, GROUP_VECS = GROUP / VEC_WIDTH, BLOCK_VECS = BLOCK / VEC_WIDTH };

/* --- rows of each number type --- */

static OCTAVO_ALWAYS_INLINE float load_one(const void *x, int64_t i, const int type) {
    switch (type) {
    case F32:
        return ((const float *)x)[i];
    case F16:
        return octavo_f16_to_f32(((const uint16_t *)x)[i]);
    case BF16:
        return octavo_bf16_to_f32(((const uint16_t *)x)[i]);
    case FP8_E4M3:
        return octavo_fp8_e4m3_to_f32(((const uint8_t *)x)[i]);
    case FP8_E5M2:
        return octavo_fp8_e5m2_to_f32(((const uint8_t *)x)[i]);
    default:
        return ((const int8_t *)x)[i];
    }
}

static OCTAVO_ALWAYS_INLINE void load_row(float *out, const void *x, int64_t n, const int type) {
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(out + i, vec_load_type(x, i, type));
    for (; i < n; i++)
        out[i] = load_one(x, i, type);
}

/* --- keys --- */

/* Lanes [i, i + n), n up to 8, of 16 rows to to[n][16]. */
static OCTAVO_ALWAYS_INLINE void stage_lanes(float *to, const uint8_t *const *slots, size_t offset,
                                             int i, int n, const int type) {
    for (int first = 0; first < GROUP; first += 8) {
        __m256 m[8];
        for (int k = 0; k < 8; k++)
            m[k] = load8(slots[first + k] + offset, i, type);
        transpose8(m);
        for (int k = 0; k < n; k++)
            _mm256_store_ps(to + k * GROUP + first, m[k]);
    }
}

static OCTAVO_ALWAYS_INLINE void stage_keys(float *kt, const uint8_t *const *slots, size_t offset,
                                            int begin, int end, int d, const int type) {
    for (int g = begin / GROUP; g < (end + GROUP - 1) / GROUP; g++) {
        float *to = kt + (size_t)g * (size_t)d * GROUP;
        const uint8_t *const *rows = slots + g * GROUP;
        int i = 0;
        for (; i + 8 <= d; i += 8, to += 8 * GROUP)
            stage_lanes(to, rows, offset, i, 8, type);
        if (i < d) stage_lanes(to, rows, offset, i, d - i, type);
    }
}

/* --- scores --- */

/* `rows` rows times `groups` groups of 16 keys. */
static OCTAVO_ALWAYS_INLINE void score_tile(float *s, const float *q, int64_t q_stride,
                                            const float *kt, int d, const int rows,
                                            const int groups) {
    if (groups > tile_groups(rows)) return; /* not at this level */
    const int vectors = groups * GROUP_VECS;
    vec acc[TILE_ROWS][BLOCK_VECS];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            acc[r][v] = vec_set(0.0f);
    }
    const size_t group = (size_t)d * GROUP;
    for (int i = 0; i < d; i++) {
        vec x[TILE_ROWS], k[BLOCK_VECS]; /* the fewer stay in registers, the others take turns */
        for (int r = 0; rows < vectors && r < rows; r++)
            x[r] = vec_set(q[r * q_stride + i]);
        for (int v = 0; v < vectors; v++) {
            const float *at = kt + (size_t)(v / GROUP_VECS) * group + i * GROUP;
            at += v % GROUP_VECS * VEC_WIDTH;
            k[v] = rows == 1 ? vec_load_aligned(at) : vec_load_held(at);
            for (int r = 0; rows < vectors && r < rows; r++)
                acc[r][v] = vec_fma(x[r], k[v], acc[r][v]);
        }
        for (int r = 0; rows >= vectors && r < rows; r++) {
            x[r] = vec_set(q[r * q_stride + i]);
            for (int v = 0; v < vectors; v++)
                acc[r][v] = vec_fma(x[r], k[v], acc[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            vec_store_aligned(s + r * BLOCK + v * VEC_WIDTH, acc[r][v]);
    }
}

/* All rows, `groups` groups. */
static OCTAVO_ALWAYS_INLINE void score_groups(float *s, const float *q, int64_t q_stride,
                                              int n_rows, const float *kt, int d,
                                              const int groups) {
    for (; n_rows >= TILE_ROWS;
         n_rows -= TILE_ROWS, q += TILE_ROWS * q_stride, s += TILE_ROWS * BLOCK)
        score_tile(s, q, q_stride, kt, d, TILE_ROWS, groups);
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
    const int most = tile_groups(n_rows);
    int g = begin / GROUP, last = (end + GROUP - 1) / GROUP;
    if (most == 4 && last - g == 4) {
        score_groups(s, q, q_stride, n_rows, kt, d, 4);
        return;
    }
    for (; most >= 2 && g + 2 <= last; g += 2)
        score_groups(s + g * GROUP, q, q_stride, n_rows, kt + (size_t)g * group, d, 2);
    for (; g < last; g++)
        score_groups(s + g * GROUP, q, q_stride, n_rows, kt + (size_t)g * group, d, 1);
}

/* --- softmax --- */

/* exp for x up to 0 or so (at most 88). */
static OCTAVO_ALWAYS_INLINE vec exp_low(vec x) {
    return vec_limit_low(exp_within_limits(x), x, OCTAVO_EXP_LOW);
}

static OCTAVO_ALWAYS_INLINE float exp1(float x) {
    return vec_first(exp_low(vec_set(x)));
}

static OCTAVO_ALWAYS_INLINE vec soft_cap(vec x, vec cap) {
    const vec one = vec_set(1.0f), two = vec_set(2.0f);
    vec y = vec_div(x, cap);
    y = vec_min(vec_set(40.0f), y); /* in this order a NaN passes */
    y = vec_max(vec_set(-40.0f), y);
    vec e = exp_low(vec_mul(two, y));
    return vec_mul(cap, vec_sub(one, vec_div(two, vec_add(e, one))));
}

/* A block's lanes joined by the tree down to one vector. */
static OCTAVO_ALWAYS_INLINE vec fold(vec join(vec, vec), const vec *v) {
    vec part[BLOCK_VECS / 2];
    for (int i = 0; i < BLOCK_VECS / 2; i++)
        part[i] = join(v[i], v[i + BLOCK_VECS / 2]);
    for (int n = BLOCK_VECS / 4; n > 0; n /= 2) {
        for (int i = 0; i < n; i++)
            part[i] = join(part[i], part[i + n]);
    }
    return part[0];
}

static float softmax(float *s, int begin, int end, const octavo_logit *logit, float *max,
                     float *sum) {
    vec v[BLOCK_VECS];
    const vec scale = vec_set(logit->scale);
    for (int i = 0; i < BLOCK_VECS; i++)
        v[i] = vec_mul(vec_load_aligned(s + i * VEC_WIDTH), scale);
    if (logit->soft_cap != 0.0f) {
        const vec cap = vec_set(logit->soft_cap);
        for (int i = 0; i < BLOCK_VECS; i++)
            v[i] = soft_cap(v[i], cap);
    }
    if (logit->slope != 0.0f) {
        const vec slope = vec_set(logit->slope);
        for (int i = 0; i < BLOCK_VECS; i++)
            v[i] = vec_fnma(slope, vec_abs(vec_count(logit->first, i * VEC_WIDTH)), v[i]);
    }
    if (begin > 0 || end < BLOCK) {
        for (int i = 0; i < BLOCK_VECS; i++)
            v[i] = keep_range(v[i], i * VEC_WIDTH, begin, end);
    }
    const float top = octavo_attention_max(*max, vec_reduce_max(fold(vec_max, v)));
    const float base = octavo_attention_base(top);
    for (int i = 0; i < BLOCK_VECS; i++) {
        v[i] = exp_low(vec_sub(v[i], vec_set(base)));
        if (logit->round_weights) v[i] = vec_round_bf16(v[i]);
        vec_store_aligned(s + i * VEC_WIDTH, v[i]);
    }
    const float rescale = *max == base ? 1.0f : exp1(*max - base);
    *sum = *sum * rescale + vec_reduce_add(fold(vec_add, v));
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

/* `rows` rows times `groups` groups of 16 lanes, from lane i. */
static OCTAVO_ALWAYS_INLINE void value_tile(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int i,
                                            const int rows, const int groups, const int type) {
    const int vectors = groups * GROUP_VECS;
    vec a[TILE_ROWS][BLOCK_VECS];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            a[r][v] = vec_load(acc + r * stride + i + v * VEC_WIDTH);
            if (rescale) a[r][v] = vec_mul(a[r][v], vec_set(rescale[r]));
        }
    }
    for (int j = block->begin; j < block->end; j++) {
        const uint8_t *row = block->slots[j] + block->offset;
        vec x[BLOCK_VECS];
        for (int v = 0; v < vectors; v++)
            x[v] = vec_load_type(row, i + v * VEC_WIDTH, type);
        for (int r = 0; r < rows; r++) {
            vec weight = vec_set(p[r * BLOCK + j]);
            for (int v = 0; v < vectors; v++)
                a[r][v] = vec_fma(weight, x[v], a[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            vec_store(acc + r * stride + i + v * VEC_WIDTH, a[r][v]);
    }
}

/* All lanes of `rows` rows; d is a multiple of 16. */
static OCTAVO_ALWAYS_INLINE void value_rows(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int d,
                                            const int rows, const int type) {
    const int most = tile_groups(rows);
    int i = 0;
    for (; most == 4 && i + 4 * GROUP <= d; i += 4 * GROUP)
        value_tile(acc, stride, rescale, p, block, i, rows, 4, type);
    for (; most >= 2 && i + 2 * GROUP <= d; i += 2 * GROUP)
        value_tile(acc, stride, rescale, p, block, i, rows, 2, type);
    for (; i < d; i += GROUP)
        value_tile(acc, stride, rescale, p, block, i, rows, 1, type);
}

static OCTAVO_ALWAYS_INLINE void values(float *acc, int64_t stride, const float *rescale,
                                        const float *p, int n_rows, const value_block *block, int d,
                                        const int type) {
    d = (d + GROUP - 1) / GROUP * GROUP;
    for (; n_rows >= TILE_ROWS;
         n_rows -= TILE_ROWS, acc += TILE_ROWS * stride, p += TILE_ROWS * BLOCK) {
        value_rows(acc, stride, rescale, p, block, d, TILE_ROWS, type);
        if (rescale) rescale += TILE_ROWS;
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

/* --- one entry per type for what depends on it --- */

#define ENTRIES(name, type)                                                                        \
    static void load_##name(float *out, const void *x, int64_t n) {                                \
        load_row(out, x, n, type);                                                                 \
    }                                                                                              \
    static void stage_keys_##name(float *kt, const uint8_t *const *slots, size_t offset,           \
                                  int begin, int end, int d) {                                     \
        stage_keys(kt, slots, offset, begin, end, d, type);                                        \
    }                                                                                              \
    static void values_##name(float *acc, int64_t acc_stride, const float *rescale,                \
                              const float *p, int n_rows, const uint8_t *const *slots,             \
                              size_t offset, int begin, int end, int d) {                          \
        values(acc, acc_stride, rescale, p, n_rows, &(value_block){slots, offset, begin, end}, d,  \
               type);                                                                              \
    }                                                                                              \
    static void set_##name(octavo_attention_kernels *kernels) {                                    \
        kernels->load[type] = load_##name;                                                         \
        kernels->stage_keys[type] = stage_keys_##name;                                             \
        kernels->values[type] = values_##name;                                                     \
    }

ENTRIES(f32, F32)
ENTRIES(f16, F16)
ENTRIES(bf16, BF16)
ENTRIES(fp8_e4m3, FP8_E4M3)
ENTRIES(fp8_e5m2, FP8_E5M2)
ENTRIES(int8, INT8)

#undef ENTRIES

/* All of the above. */
static void set_kernels(octavo_attention_kernels *kernels) {
    kernels->tile_rows = TILE_ROWS;
    set_f32(kernels);
    set_f16(kernels);
    set_bf16(kernels);
    set_fp8_e4m3(kernels);
    set_fp8_e5m2(kernels);
    set_int8(kernels);
    kernels->scores = scores;
    kernels->softmax = softmax;
}
