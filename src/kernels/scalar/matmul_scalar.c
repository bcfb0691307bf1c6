/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference for matmul: plain C, one formula for all quantised types.
 *
 *   f32 activations   acc[r][o] = sum over k of w[o][k] * x[r][k]
 *   q8 activations    with w = d scale[h] (code - offset) + m and x = d_x q, a block of 32 gives
 *                     acc[r][o] += T (d d_x) + m (d_x sum of q),
 *                     T = sum over both halves h of scale[h] * (sum of (code - offset) q)
 *
 * T is an integer below 2^24, so its conversion to f32 is exact. Every product and sum of floats is
 * rounded once, blocks ascend.
 */
#include "kernels/scalar/matmul_scalar.h"

#include "base/compiler.h"
#include "kernels/weight_layout.h"

#include <string.h>

static void dot_f32(octavo_weight_type type, float *acc, const uint8_t *panel, const void *x,
                    size_t x_stride, int n_rows, int64_t k0, int64_t k1) {
    float w[OCTAVO_BLOCK * OCTAVO_PANEL]; /* [32 inputs][32 outputs] */
    memset(acc, 0, (size_t)n_rows * OCTAVO_PANEL * sizeof *acc);
    for (int64_t k = k0; k < k1; k += OCTAVO_BLOCK) {
        const int64_t n = k1 - k < OCTAVO_BLOCK ? k1 - k : OCTAVO_BLOCK;
        octavo_weight_unpack(type, w, panel, k, k + n);
        for (int r = 0; r < n_rows; r++) {
            const float *row = (const float *)((const uint8_t *)x + (size_t)r * x_stride) + k;
            for (int64_t i = 0; i < n; i++)
                for (int o = 0; o < OCTAVO_PANEL; o++)
                    acc[r * OCTAVO_PANEL + o] += w[i * OCTAVO_PANEL + o] * row[i];
        }
    }
}

static int half_dot(const uint8_t *code, int offset, const int8_t *q) {
    int sum = 0;
    for (int i = 0; i < OCTAVO_BLOCK / 2; i++)
        sum += (code[i] - offset) * q[i];
    return sum;
}

static float add_block(float acc, const octavo_weight_run *w, const octavo_q8_block *x) {
    int sum = w->scale[0] * half_dot(w->code, w->offset, x->q) +
              w->scale[1] * half_dot(w->code + 16, w->offset, x->q + 16);
    acc += (float)sum * (w->d * x->d);
    if (w->has_m) acc += w->m * (x->d * (float)(x->sum[0] + x->sum[1]));
    return acc;
}

static void dot_q8(octavo_weight_type type, float *acc, const uint8_t *panel, const void *x,
                   size_t x_stride, int n_rows, int64_t k0, int64_t k1) {
    memset(acc, 0, (size_t)n_rows * OCTAVO_PANEL * sizeof *acc);
    for (int64_t k = k0; k < k1; k += OCTAVO_BLOCK) {
        for (int o = 0; o < OCTAVO_PANEL; o++) {
            octavo_weight_run run;
            octavo_weight_run_load(type, &run, panel, k, o);
            for (int r = 0; r < n_rows; r++) {
                const octavo_q8_block *row =
                    (const octavo_q8_block *)((const uint8_t *)x + (size_t)r * x_stride);
                float *to = acc + r * OCTAVO_PANEL + o;
                *to = add_block(*to, &run, row + k / OCTAVO_BLOCK);
            }
        }
    }
}

static void dot_q8_of_floats(float *acc, const uint8_t *panel, const void *x, size_t x_stride,
                             int n_rows, int64_t k0, int64_t k1) {
    (void)acc, (void)panel, (void)x, (void)x_stride, (void)n_rows, (void)k0, (void)k1;
    octavo_assert(!"float weights are multiplied with f32 activations");
}

/* A type's entry: the dot with the type as a constant. */
#define ENTRY(name, dot, type)                                                                     \
    static void name(float *acc, const uint8_t *panel, const void *x, size_t x_stride, int n_rows, \
                     int64_t k0, int64_t k1) {                                                     \
        dot(type, acc, panel, x, x_stride, n_rows, k0, k1);                                        \
    }

ENTRY(dot_f32_f32, dot_f32, OCTAVO_WEIGHT_F32)
ENTRY(dot_f32_f16, dot_f32, OCTAVO_WEIGHT_F16)
ENTRY(dot_f32_bf16, dot_f32, OCTAVO_WEIGHT_BF16)
ENTRY(dot_f32_q8_0, dot_f32, OCTAVO_WEIGHT_Q8_0)
ENTRY(dot_f32_q4_0, dot_f32, OCTAVO_WEIGHT_Q4_0)
ENTRY(dot_f32_q4_1, dot_f32, OCTAVO_WEIGHT_Q4_1)
ENTRY(dot_f32_q5_0, dot_f32, OCTAVO_WEIGHT_Q5_0)
ENTRY(dot_f32_q4_k, dot_f32, OCTAVO_WEIGHT_Q4_K)
ENTRY(dot_f32_q6_k, dot_f32, OCTAVO_WEIGHT_Q6_K)
ENTRY(dot_q8_q8_0, dot_q8, OCTAVO_WEIGHT_Q8_0)
ENTRY(dot_q8_q4_0, dot_q8, OCTAVO_WEIGHT_Q4_0)
ENTRY(dot_q8_q4_1, dot_q8, OCTAVO_WEIGHT_Q4_1)
ENTRY(dot_q8_q5_0, dot_q8, OCTAVO_WEIGHT_Q5_0)
ENTRY(dot_q8_q4_k, dot_q8, OCTAVO_WEIGHT_Q4_K)
ENTRY(dot_q8_q6_k, dot_q8, OCTAVO_WEIGHT_Q6_K)

void octavo_matmul_kernels_scalar(octavo_matmul_kernels *kernels) {
    *kernels = (octavo_matmul_kernels){
        .dot_f32 = {[OCTAVO_WEIGHT_F32] = dot_f32_f32,
                    [OCTAVO_WEIGHT_F16] = dot_f32_f16,
                    [OCTAVO_WEIGHT_BF16] = dot_f32_bf16,
                    [OCTAVO_WEIGHT_Q8_0] = dot_f32_q8_0,
                    [OCTAVO_WEIGHT_Q4_0] = dot_f32_q4_0,
                    [OCTAVO_WEIGHT_Q4_1] = dot_f32_q4_1,
                    [OCTAVO_WEIGHT_Q5_0] = dot_f32_q5_0,
                    [OCTAVO_WEIGHT_Q4_K] = dot_f32_q4_k,
                    [OCTAVO_WEIGHT_Q6_K] = dot_f32_q6_k},
        .dot_q8 = {[OCTAVO_WEIGHT_F32] = dot_q8_of_floats,
                   [OCTAVO_WEIGHT_F16] = dot_q8_of_floats,
                   [OCTAVO_WEIGHT_BF16] = dot_q8_of_floats,
                   [OCTAVO_WEIGHT_Q8_0] = dot_q8_q8_0,
                   [OCTAVO_WEIGHT_Q4_0] = dot_q8_q4_0,
                   [OCTAVO_WEIGHT_Q4_1] = dot_q8_q4_1,
                   [OCTAVO_WEIGHT_Q5_0] = dot_q8_q5_0,
                   [OCTAVO_WEIGHT_Q4_K] = dot_q8_q4_k,
                   [OCTAVO_WEIGHT_Q6_K] = dot_q8_q6_k},
        .tile_rows_f32 = OCTAVO_TILE_ROWS,
        .tile_rows_q8 = OCTAVO_TILE_ROWS,
    };
}
