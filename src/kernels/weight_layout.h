/* SPDX-License-Identifier: Apache-2.0
 *
 * Offsets inside the packed records of weight.h, for packers and kernels, and the plain way to take
 * one output's block apart, from which the scalar reference and the unpacking are made.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_LAYOUT_H
#define OCTAVO_KERNELS_WEIGHT_LAYOUT_H

#include "kernels/weight.h"

/* Bytes of the parts of a record. */
enum {
    OCTAVO_CODES8_BYTES = 1024,
    OCTAVO_CODES4_BYTES = 512,
    OCTAVO_HIGH1_BYTES = 128,
    OCTAVO_HIGH2_BYTES = 256,
    OCTAVO_HALVES_BYTES = 64, /* 32 f16: d, m or dmin */
    OCTAVO_SCALES_BYTES = 32, /* 32 u8 or s8 */
};

enum {
    OCTAVO_Q8_0_D = OCTAVO_CODES8_BYTES,
    OCTAVO_Q8_0_RECORD = OCTAVO_Q8_0_D + OCTAVO_HALVES_BYTES,

    OCTAVO_Q4_0_D = OCTAVO_CODES4_BYTES,
    OCTAVO_Q4_0_RECORD = OCTAVO_Q4_0_D + OCTAVO_HALVES_BYTES,

    OCTAVO_Q4_1_D = OCTAVO_CODES4_BYTES,
    OCTAVO_Q4_1_M = OCTAVO_Q4_1_D + OCTAVO_HALVES_BYTES,
    OCTAVO_Q4_1_RECORD = OCTAVO_Q4_1_M + OCTAVO_HALVES_BYTES,

    OCTAVO_Q5_0_HIGH = OCTAVO_CODES4_BYTES,
    OCTAVO_Q5_0_D = OCTAVO_Q5_0_HIGH + OCTAVO_HIGH1_BYTES,
    OCTAVO_Q5_0_RECORD = OCTAVO_Q5_0_D + OCTAVO_HALVES_BYTES,

    /* A super-block has 8 blocks of 32 inputs, which follow its head. */
    OCTAVO_SUPER_BLOCKS = 8,

    OCTAVO_Q4_K_D = 0,
    OCTAVO_Q4_K_DMIN = OCTAVO_HALVES_BYTES,
    OCTAVO_Q4_K_HEAD = 2 * OCTAVO_HALVES_BYTES,
    OCTAVO_Q4_K_SCALE = OCTAVO_CODES4_BYTES, /* in a block */
    OCTAVO_Q4_K_MIN = OCTAVO_Q4_K_SCALE + OCTAVO_SCALES_BYTES,
    OCTAVO_Q4_K_BLOCK = OCTAVO_Q4_K_MIN + OCTAVO_SCALES_BYTES,
    OCTAVO_Q4_K_RECORD = OCTAVO_Q4_K_HEAD + OCTAVO_SUPER_BLOCKS * OCTAVO_Q4_K_BLOCK,

    OCTAVO_Q6_K_D = 0,
    OCTAVO_Q6_K_HEAD = OCTAVO_HALVES_BYTES,
    OCTAVO_Q6_K_HIGH = OCTAVO_CODES4_BYTES, /* in a block */
    OCTAVO_Q6_K_SCALE = OCTAVO_Q6_K_HIGH + OCTAVO_HIGH2_BYTES,
    OCTAVO_Q6_K_BLOCK = OCTAVO_Q6_K_SCALE + 2 * OCTAVO_SCALES_BYTES,
    OCTAVO_Q6_K_RECORD = OCTAVO_Q6_K_HEAD + OCTAVO_SUPER_BLOCKS * OCTAVO_Q6_K_BLOCK,
};

/* One output's block of 32 inputs:
 *   w[i] = (d * scale[i / 16]) * (code[i] - offset) (+ m if has_m)
 * d * scale, the product with the code, and the sum are each rounded once to f32. m of Q4_K is
 * -(dmin * min), rounded once. */
typedef struct octavo_weight_run {
    uint8_t code[OCTAVO_BLOCK];
    int offset;
    int scale[2];
    float d;
    float m;
    bool has_m;
} octavo_weight_run;

/* Inputs [k, k + 32) of output `o` (0..31) of a panel of a quantised type; k a multiple of 32. */
void octavo_weight_run_load(octavo_weight_type type, octavo_weight_run *run, const uint8_t *panel,
                            int64_t k, int o);

#endif
