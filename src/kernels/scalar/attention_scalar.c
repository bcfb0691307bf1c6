/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block, in portable C. The maths is in the header.
 */
#include "kernels/scalar/attention_scalar.h"

#include "base/number.h"
#include "kernels/scalar/vector_scalar.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define BLOCK OCTAVO_SOFTMAX_BLOCK
#define GROUP OCTAVO_KEY_GROUP

/* --- rows of each number type --- */

static void load_f32(float *out, const void *x, int64_t n) {
    memcpy(out, x, (size_t)n * sizeof *out);
}

static void load_f16(float *out, const void *x, int64_t n) {
    const uint16_t *bits = x;
    for (int64_t i = 0; i < n; i++)
        out[i] = octavo_f16_to_f32(bits[i]);
}

static void load_bf16(float *out, const void *x, int64_t n) {
    const uint16_t *bits = x;
    for (int64_t i = 0; i < n; i++)
        out[i] = octavo_bf16_to_f32(bits[i]);
}

static void load_fp8_e4m3(float *out, const void *x, int64_t n) {
    const uint8_t *bits = x;
    for (int64_t i = 0; i < n; i++)
        out[i] = octavo_fp8_e4m3_to_f32(bits[i]);
}

static void load_fp8_e5m2(float *out, const void *x, int64_t n) {
    const uint8_t *bits = x;
    for (int64_t i = 0; i < n; i++)
        out[i] = octavo_fp8_e5m2_to_f32(bits[i]);
}

static void load_int8(float *out, const void *x, int64_t n) {
    const int8_t *from = x;
    for (int64_t i = 0; i < n; i++)
        out[i] = from[i];
}

static void store_f32(void *out, const float *x, float scale, int64_t n) {
    float *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] * scale;
}

static void store_f16(void *out, const float *x, float scale, int64_t n) {
    uint16_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = octavo_f32_to_f16(x[i] * scale);
}

static void store_bf16(void *out, const float *x, float scale, int64_t n) {
    uint16_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = octavo_f32_to_bf16(x[i] * scale);
}

/* A NaN passes. */
static float clipped(float x, float limit) {
    if (x > limit) return limit;
    return x < -limit ? -limit : x;
}

static void quantise_f32(void *out, const float *x, float divisor, int64_t n) {
    float *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = clipped(x[i] / divisor, FLT_MAX);
}

static void quantise_f16(void *out, const float *x, float divisor, int64_t n) {
    uint16_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = octavo_f32_to_f16(clipped(x[i] / divisor, 65504.0f));
}

static void quantise_bf16(void *out, const float *x, float divisor, int64_t n) {
    const float largest = octavo_bf16_to_f32(0x7f7f);
    uint16_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = octavo_f32_to_bf16(clipped(x[i] / divisor, largest));
}

static void quantise_fp8_e4m3(void *out, const float *x, float divisor, int64_t n) {
    uint8_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = octavo_f32_to_fp8_e4m3(x[i] / divisor);
}

static void quantise_fp8_e5m2(void *out, const float *x, float divisor, int64_t n) {
    uint8_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = octavo_f32_to_fp8_e5m2(x[i] / divisor);
}

/* The magnitude is clipped and rounded, by adding what has steps of 1; then the sign. Without
 * branches, as fp8 is. */
static inline int8_t int8_of(float x) {
    const uint32_t bits = octavo_f32_bits(x), unit = 0x4b000000; /* 2^23 */
    const int32_t given = (int32_t)(bits & 0x7fffffffu), is_negative = -(int32_t)(bits >> 31);
    const int32_t largest = 0x42fe0000 + (is_negative & 0x20000); /* 127, 128 */
    const int32_t is_number = -(given <= 0x7f800000);
    const uint32_t clipped = (uint32_t)(given < largest ? given : largest);
    const float moved = octavo_f32_from_bits(clipped) + octavo_f32_from_bits(unit);
    const int32_t code = (int32_t)(octavo_f32_bits(moved) - unit) & is_number;
    return (int8_t)((code ^ is_negative) - is_negative);
}

static void quantise_int8(void *out, const float *x, float divisor, int64_t n) {
    int8_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = int8_of(x[i] / divisor);
}

/* --- keys --- */

typedef void load_fn(float *out, const void *x, int64_t n);

static void gather_keys(uint32_t *words, const uint8_t *const *slots, size_t offset, int n_words,
                        octavo_ahead *ahead) {
    (void)ahead;
    for (int j = 0; j < GROUP; j++) {
        for (int w = 0; w < n_words; w++)
            memcpy(&words[w * GROUP + j], slots[j] + offset + 4 * (size_t)w, 4);
    }
}

/* The lanes of a word of 16 keys. */
static inline void load_words(load_fn *load, size_t size, float lanes[4][GROUP],
                              const uint32_t *words) {
    const int pk = (int)(4 / size);
    for (int j = 0; j < GROUP; j++) {
        const union {
            uint32_t word;
            float f32;
            uint16_t halves[2];
            uint8_t bytes[4];
        } at = {.word = words[j]};
        float x[4];
        load(x, &at, pk);
        for (int k = 0; k < pk; k++)
            lanes[k][j] = x[k];
    }
}

static inline void widen_keys(load_fn *load, size_t size, float *columns, const uint32_t *words,
                              int d) {
    const int pk = (int)(4 / size);
    for (int i = 0; i < d; i += pk, words += GROUP) {
        float lanes[4][GROUP];
        load_words(load, size, lanes, words);
        memcpy(columns + i * GROUP, lanes, sizeof lanes[0] * (size_t)(d - i < pk ? d - i : pk));
    }
}

static inline void scores(load_fn *load, size_t size, float *s, const float *q, int64_t q_stride,
                          int n_rows, const uint32_t *const *groups, int first, int last, int d) {
    float columns[OCTAVO_ATTENTION_MAX_KEY_DIM * GROUP];
    for (int g = first; g < last; g++) {
        widen_keys(load, size, columns, groups[g], d);
        for (int r = 0; r < n_rows; r++) {
            const float *row = q + r * q_stride;
            float acc[GROUP] = {0};
            for (int i = 0; i < d; i++) {
                for (int j = 0; j < GROUP; j++)
                    acc[j] += row[i] * columns[i * GROUP + j];
            }
            memcpy(s + r * BLOCK + g * GROUP, acc, sizeof acc);
        }
    }
}

/* --- softmax --- */

/* cap * tanh(x / cap) by 1 - 2 / (exp(2 y) + 1), whose absolute error is that of a few roundings
 * near 1. From |y| = 40 on tanh is 1 in f32. */
static float soft_cap(float x, float cap) {
    float y = x / cap;
    if (y > 40.0f) y = 40.0f;
    if (y < -40.0f) y = -40.0f;
    return cap * (1.0f - 2.0f / (octavo_exp_scalar(2.0f * y) + 1.0f));
}

static float softmax_row(float *s, int begin, int end, const octavo_logit *logit, float *max,
                         float *sum) {
    float top = *max;
    for (int j = 0; j < BLOCK; j++) {
        if (j < begin || j >= end) {
            s[j] = -INFINITY;
            continue;
        }
        if (logit->key_scales) s[j] *= logit->key_scales[j];
        s[j] *= logit->scale;
        if (logit->soft_cap != 0.0f) s[j] = soft_cap(s[j], logit->soft_cap);
        if (logit->slope != 0.0f) s[j] -= logit->slope * fabsf(logit->first + (float)j);
        top = octavo_attention_max(top, s[j]);
    }
    float base = octavo_attention_base(top);
    for (int j = 0; j < BLOCK; j++) {
        s[j] = octavo_exp_scalar(s[j] - base);
        if (logit->round_weights) s[j] = octavo_bf16_to_f32(octavo_f32_to_bf16(s[j]));
    }
    float parts[BLOCK];
    memcpy(parts, s, sizeof parts);
    octavo_tree_add(parts, BLOCK, 1, 1);
    float rescale = octavo_exp_scalar(*max - base);
    *sum = *sum * rescale + parts[0];
    *max = top;
    for (int j = 0; logit->value_scales && j < BLOCK; j++)
        s[j] *= logit->value_scales[j];
    return rescale;
}

static void softmax(float *s, int n_rows, int begin, int end, const octavo_logit *logit, float *max,
                    float *sum, float *rescale) {
    for (int r = 0; r < n_rows; r++)
        rescale[r] = softmax_row(s + r * BLOCK, begin, end, logit, max + r, sum + r);
}

/* --- values --- */

static inline void values(load_fn *load, float *acc, int64_t acc_stride, const float *rescale,
                          const float *p, int n_rows, const uint8_t *const *slots, size_t offset,
                          int begin, int end, int d) {
    float row[OCTAVO_ATTENTION_MAX_DIM];
    for (int r = 0; rescale && r < n_rows; r++) {
        for (int i = 0; i < d; i++)
            acc[r * acc_stride + i] *= rescale[r];
    }
    for (int j = begin; j < end; j++) {
        load(row, slots[j] + offset, d);
        for (int r = 0; r < n_rows; r++) {
            float *restrict to = acc + r * acc_stride;
            float weight = p[r * BLOCK + j];
            for (int i = 0; i < d; i++)
                to[i] += weight * row[i];
        }
    }
}

static inline void widen_values(load_fn *load, float *panels, const uint8_t *const *slots,
                                size_t offset, int begin, int end, int d) {
    float row[OCTAVO_ATTENTION_MAX_DIM];
    for (int j = begin; j < end; j++) {
        load(row, slots[j] + offset, d);
        for (int i = 0; i < d; i++)
            panels[(i / GROUP * BLOCK + j) * GROUP + i % GROUP] = row[i];
    }
}

static void panel_values(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                         int n_rows, const float *panels, int begin, int end, int d) {
    for (int r = 0; r < n_rows; r++) {
        float *restrict to = acc + r * acc_stride;
        for (int i = 0; rescale && i < d; i++)
            to[i] *= rescale[r];
        for (int j = begin; j < end; j++) {
            for (int i = 0; i < d; i++)
                to[i] += p[r * BLOCK + j] * panels[(i / GROUP * BLOCK + j) * GROUP + i % GROUP];
        }
    }
}

/* --- one entry per type for what depends on it --- */

#define ENTRIES(type, size)                                                                        \
    static void widen_keys_##type(float *columns, const uint32_t *words, int d) {                  \
        widen_keys(load_##type, size, columns, words, d);                                          \
    }                                                                                              \
    static void scores_##type(float *s, const float *q, int64_t q_stride, int n_rows,              \
                              const uint32_t *const *groups, int first, int last, int d,           \
                              octavo_ahead *ahead) {                                               \
        (void)ahead;                                                                               \
        scores(load_##type, size, s, q, q_stride, n_rows, groups, first, last, d);                 \
    }                                                                                              \
    static void values_##type(float *acc, int64_t acc_stride, const float *rescale,                \
                              const float *p, int n_rows, const uint8_t *const *slots,             \
                              size_t offset, int begin, int end, int d, octavo_ahead *ahead) {     \
        (void)ahead;                                                                               \
        values(load_##type, acc, acc_stride, rescale, p, n_rows, slots, offset, begin, end, d);    \
    }                                                                                              \
    static void widen_values_##type(float *panels, const uint8_t *const *slots, size_t offset,     \
                                    int begin, int end, int d) {                                   \
        widen_values(load_##type, panels, slots, offset, begin, end, d);                           \
    }                                                                                              \
    static void set_##type(octavo_attention_kernels *kernels, int i) {                             \
        kernels->load[i] = load_##type;                                                            \
        kernels->quantise[i] = quantise_##type;                                                    \
        kernels->widen_keys[i] = widen_keys_##type;                                                \
        kernels->scores[i] = scores_##type;                                                        \
        kernels->values[i] = values_##type;                                                        \
        kernels->widen_values[i] = widen_values_##type;                                            \
    }

ENTRIES(f32, 4)
ENTRIES(f16, 2)
ENTRIES(bf16, 2)
ENTRIES(fp8_e4m3, 1)
ENTRIES(fp8_e5m2, 1)
ENTRIES(int8, 1)

#undef ENTRIES

/* --- joining --- */

static void merge(float *out, float *max, float *sum, const float *acc, float m, float l,
                  int64_t n) {
    float top = octavo_attention_max(*max, m);
    float base = octavo_attention_base(top);
    float old = octavo_exp_scalar(*max - base);
    float new = octavo_exp_scalar(m - base);
    for (int64_t i = 0; i < n; i++)
        out[i] = out[i] * old + acc[i] * new;
    *sum = *sum * old + l * new;
    *max = top;
}

static float sink(float logit, float *max, float *sum) {
    float top = octavo_attention_max(*max, logit);
    float base = octavo_attention_base(top);
    float rescale = octavo_exp_scalar(*max - base);
    *sum = *sum * rescale + octavo_exp_scalar(logit - base);
    *max = top;
    return rescale;
}

void octavo_attention_kernels_scalar(octavo_attention_kernels *kernels) {
    *kernels = (octavo_attention_kernels){
        .tile_rows = 1,
        .tile_groups = 1,
        .many_groups = 1,
        .store = {store_f32, store_f16, store_bf16},
        .gather_keys = gather_keys,
        .softmax = softmax,
        .panel_values = panel_values,
        .merge = merge,
        .sink = sink,
    };
    set_f32(kernels, 0);
    set_f16(kernels, 1);
    set_bf16(kernels, 2);
    set_fp8_e4m3(kernels, 3);
    set_fp8_e5m2(kernels, 4);
    set_int8(kernels, 5);
}
