/* SPDX-License-Identifier: Apache-2.0
 *
 * out[t][n] = sum over k of x[t][k] * W[n][k] (+ bias[n]) with packed weights (weight.h).
 *
 * A level supplies one thing per weight type and kind of activation: the dot of one slice of one
 * panel with a few rows. The driver here walks panels, row tiles and slices, and adds slices by the
 * tree; it is the same for one row and many, so the bits are too.
 */
#ifndef OCTAVO_KERNELS_MATMUL_H
#define OCTAVO_KERNELS_MATMUL_H

#include "base/cpu.h"
#include "kernels/order.h"
#include "kernels/weight.h"

#include <stddef.h>
#include <stdint.h>

/* Most rows a dot kernel is given at once; and one of a type of grids or of 8-bit floats, whose
 * blocks take longer to come by. */
#define OCTAVO_TILE_ROWS 8
#define OCTAVO_GRID_ROWS 48

/* 32 activations of one row, quantised by themselves: x = d * q. d = max|x| / 127 and
 * q = round to nearest even of x * (127 / max|x|), both in f32; all zero when max|x| is 0 (or 127 /
 * max|x| is not finite). A block that holds a NaN or infinity gets d = NaN. */
typedef struct octavo_q8_block {
    float d;
    int16_t sum[2]; /* of q[0..15] and of q[16..31] */
    int8_t q[32];
} octavo_q8_block;

/* One slice of one panel: acc[r * 32 + o] = sum over inputs k0..k1-1, from zero, ascending in
 * blocks. panel  the panel's first record; x  row 0: f32 [k] or octavo_q8_block [k / 32]; x_stride
 * bytes between rows; n_rows 1..OCTAVO_TILE_ROWS (grids, F8: OCTAVO_GRID_ROWS); k0, k1 on records
 * of the weight type. acc 64-aligned, not aliased. The result of a row does not depend on n_rows or
 * the row's place.
 *
 * q8 activations: per block of 32, with w = d * scale * (code - offset) + m as weight.h has it
 * (there m is -dmin * min) and the integers S = sum of (code - offset) * q of the block, S0 and S1
 * of its halves:
 *   one scale or none   acc += f32(scale * S) * (d * d_x)
 *   a scale a half      acc += f32(scale0 * S0 + scale1 * S1) * (d * d_x)
 *   then with m         acc += m * (d_x * f32(sum))
 *   of Q2_K             acc += m0 * (d_x * f32(sum0)), acc += m1 * (d_x * f32(sum1))
 *
 * "acc += a * b" is one fused multiply-add at levels that have it. Integers stay below 2^24, so
 * that they are exact in f32; of NVFP4 scales are floats, and their sum is rounded. Within 8 *
 * 2^-24 * k/32 * sum|term| of exact arithmetic on the same quantised operands.
 *
 * f32 activations: w dequantised to f32 as weight.h defines (each product and sum there rounded
 * once), then acc += w * x, ascending k. Within 2^-24 * k * sum|w x|. */
typedef void octavo_dot_fn(float *acc, const uint8_t *panel, const void *x, size_t x_stride,
                           int n_rows, int64_t k0, int64_t k1);

typedef struct octavo_matmul_kernels {
    octavo_dot_fn *dot_f32[OCTAVO_WEIGHT_TYPES]; /* f32 activations */
    octavo_dot_fn
        *dot_q8[OCTAVO_WEIGHT_TYPES]; /* q8 activations; float types hold a function that asserts */
    int tile_rows_f32; /* rows per call at which this level is at its best, 1..OCTAVO_TILE_ROWS */
    int tile_rows_q8;
    int tile_rows_grid; /* the same for types of grids and F8 and both kinds, 1..OCTAVO_GRID_ROWS */
} octavo_matmul_kernels;

/* Scalar first, then raised level by level as far as `flags` go. Nothing is null afterwards. */
void octavo_matmul_kernels_init(octavo_matmul_kernels *kernels, octavo_cpu_flags flags);

/* Raise entries to the level (called by the init; in x86/, arm/). */
void octavo_matmul_kernels_avx2(octavo_matmul_kernels *kernels);
void octavo_matmul_kernels_avx512(octavo_matmul_kernels *kernels);
void octavo_matmul_kernels_avx512_vnni(octavo_matmul_kernels *kernels);

typedef struct octavo_matmul_args {
    octavo_weight_type type;
    const uint8_t *weight;       /* packed [ceil(n / 32)] panels */
    int64_t n, k;                /* outputs, inputs */
    int64_t first;               /* outputs before it, within the first panel, are not stored; `out`
                                    and `bias` begin with it */
    const octavo_slices *slices; /* of k */
    int slice_begin,
        slice_end;   /* which of them: all, or a rank's subtree (a power of two of them) */
    const void *x;   /* row 0: f32 [k] or octavo_q8_block [k / 32] */
    size_t x_stride; /* bytes between rows */
    int is_q8;       /* what x holds */
    int64_t n_rows;
    float *out;          /* [n_rows, n] f32 */
    int64_t out_stride;  /* f32 between rows */
    const float *factor; /* of all products, before the bias; NULL: 1 */
    const float *bias;   /* [n] or NULL */
} octavo_matmul_args;

/* Panels [panel_begin, panel_end) of the product. Any thread; threads take disjoint panels. */
void octavo_matmul(const octavo_matmul_kernels *kernels, const octavo_matmul_args *args,
                   int64_t panel_begin, int64_t panel_end);

#endif
