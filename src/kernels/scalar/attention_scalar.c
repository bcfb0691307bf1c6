/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block, in portable C. The maths is in the header.
 */
#include "kernels/scalar/attention_scalar.h"

#include "base/number.h"
#include "kernels/scalar/vector_scalar.h"

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

/* --- keys --- */

typedef void load_fn(float *out, const void *x, int64_t n);

static inline void stage_keys(load_fn *load, float *kt, const uint8_t *const *slots, size_t offset,
                              int begin, int end, int d) {
    float row[OCTAVO_ATTENTION_MAX_DIM];
    for (int j = begin / GROUP * GROUP; j < (end + GROUP - 1) / GROUP * GROUP; j++) {
        float *column = kt + (size_t)(j / GROUP) * (size_t)d * GROUP + j % GROUP;
        load(row, slots[j] + offset, d);
        for (int i = 0; i < d; i++)
            column[i * GROUP] = row[i];
    }
}

static void stage_keys_f32(float *kt, const uint8_t *const *slots, size_t offset, int begin,
                           int end, int d) {
    stage_keys(load_f32, kt, slots, offset, begin, end, d);
}

static void stage_keys_f16(float *kt, const uint8_t *const *slots, size_t offset, int begin,
                           int end, int d) {
    stage_keys(load_f16, kt, slots, offset, begin, end, d);
}

static void stage_keys_bf16(float *kt, const uint8_t *const *slots, size_t offset, int begin,
                            int end, int d) {
    stage_keys(load_bf16, kt, slots, offset, begin, end, d);
}

static void scores(float *s, const float *q, int64_t q_stride, int n_rows, const float *kt,
                   int begin, int end, int d) {
    for (int g = begin / GROUP; g < (end + GROUP - 1) / GROUP; g++) {
        const float *group = kt + (size_t)g * (size_t)d * GROUP;
        for (int r = 0; r < n_rows; r++) {
            const float *row = q + r * q_stride;
            float acc[GROUP] = {0};
            for (int i = 0; i < d; i++) {
                for (int j = 0; j < GROUP; j++)
                    acc[j] += row[i] * group[i * GROUP + j];
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

static float softmax(float *s, int begin, int end, const octavo_logit *logit, float *max,
                     float *sum) {
    float top = *max;
    for (int j = 0; j < BLOCK; j++) {
        if (j < begin || j >= end) {
            s[j] = -INFINITY;
            continue;
        }
        s[j] *= logit->scale;
        if (logit->soft_cap != 0.0f) s[j] = soft_cap(s[j], logit->soft_cap);
        top = octavo_attention_max(top, s[j]);
    }
    float base = octavo_attention_base(top);
    for (int j = 0; j < BLOCK; j++)
        s[j] = octavo_exp_scalar(s[j] - base);
    float parts[BLOCK];
    memcpy(parts, s, sizeof parts);
    octavo_tree_add(parts, BLOCK, 1, 1);
    float rescale = octavo_exp_scalar(*max - base);
    *sum = *sum * rescale + parts[0];
    *max = top;
    return rescale;
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

static void values_f32(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                       int n_rows, const uint8_t *const *slots, size_t offset, int begin, int end,
                       int d) {
    values(load_f32, acc, acc_stride, rescale, p, n_rows, slots, offset, begin, end, d);
}

static void values_f16(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                       int n_rows, const uint8_t *const *slots, size_t offset, int begin, int end,
                       int d) {
    values(load_f16, acc, acc_stride, rescale, p, n_rows, slots, offset, begin, end, d);
}

static void values_bf16(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                        int n_rows, const uint8_t *const *slots, size_t offset, int begin, int end,
                        int d) {
    values(load_bf16, acc, acc_stride, rescale, p, n_rows, slots, offset, begin, end, d);
}

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
        .load = {load_f32, load_f16, load_bf16},
        .store = {store_f32, store_f16, store_bf16},
        .stage_keys = {stage_keys_f32, stage_keys_f16, stage_keys_bf16},
        .scores = scores,
        .softmax = softmax,
        .values = {values_f32, values_f16, values_bf16},
        .merge = merge,
        .sink = sink,
    };
}
