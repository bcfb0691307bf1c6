/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference for matmul: plain C, one formula for all quantised types.
 *
 *   f32 activations   acc[r][o] = sum over k of w[o][k] * x[r][k]
 *   q8 activations    with w = d scale[h] value + m[h] and x = d_x q, a block of 32 gives
 *                     acc[r][o] += T (d d_x), then acc[r][o] += m[h] (d_x sum of q) of both halves
 * h, T = sum over h of scale[h] * (sum of value q)
 *
 * Sums of value q times scale are integers below 2^24, so that T is exact in f32; but for NVFP4,
 * whose scales are floats and the sum of both halves is rounded once. Every product and sum of
 * floats is rounded once, blocks ascend. Where m is the same for both halves the sum of q is of the
 * block.
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

static float half_dot(const int8_t *value, const int8_t *q) {
    int sum = 0;
    for (int i = 0; i < OCTAVO_BLOCK / 2; i++)
        sum += value[i] * q[i];
    return (float)sum;
}

static float add_block(octavo_weight_type type, float acc, const octavo_weight_run *w,
                       const octavo_q8_block *x) {
    const float sum =
        w->scale[0] * half_dot(w->value, x->q) + w->scale[1] * half_dot(w->value + 16, x->q + 16);
    acc += sum * (w->d * x->d);
    if (!w->has_m) return acc;
    if (octavo_weight_layouts[type].min != OCTAVO_MIN_NIBBLE_2)
        return acc + w->m[0] * (x->d * (float)(x->sum[0] + x->sum[1]));
    acc += w->m[0] * (x->d * (float)x->sum[0]);
    return acc + w->m[1] * (x->d * (float)x->sum[1]);
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
                *to = add_block(type, *to, &run, row + k / OCTAVO_BLOCK);
            }
        }
    }
}

static void dot_q8_of_floats(float *acc, const uint8_t *panel, const void *x, size_t x_stride,
                             int n_rows, int64_t k0, int64_t k1) {
    (void)acc, (void)panel, (void)x, (void)x_stride, (void)n_rows, (void)k0, (void)k1;
    octavo_assert(!"float weights are multiplied with f32 activations");
}

#define DOT_F32 dot_f32
#define DOT_Q8  dot_q8
#include "kernels/matmul_entries_tmpl.h"

void octavo_matmul_kernels_scalar(octavo_matmul_kernels *kernels) {
    for (int type = 0; type < OCTAVO_WEIGHT_TYPES; type++) {
        kernels->dot_f32[type] = entries_f32[type];
        kernels->dot_q8[type] = entries_q8[type] ? entries_q8[type] : dot_q8_of_floats;
    }
    kernels->tile_rows_f32 = OCTAVO_TILE_ROWS;
    kernels->tile_rows_q8 = OCTAVO_TILE_ROWS;
    kernels->tile_rows_grid = OCTAVO_TILE_ROWS;
}
