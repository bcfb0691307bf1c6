/* SPDX-License-Identifier: Apache-2.0
 *
 * What a packed record of each quantised type holds and where, for packers and kernels; and the
 * plain way to take one output's block apart, from which the scalar reference and the unpacking are
 * made. Kernels read the table with the type as a constant, so that the compiler folds it.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_LAYOUT_H
#define OCTAVO_KERNELS_WEIGHT_LAYOUT_H

#include "kernels/weight.h"

/* Bytes of the parts of a block of 32 inputs. */
enum {
    OCTAVO_CODES8_BYTES = 1024,
    OCTAVO_CODES4_BYTES = 512,
    OCTAVO_CODES2_BYTES = 256,
    OCTAVO_CODES1_BYTES = 128,
    OCTAVO_SIGNS_BYTES = 128, /* a bit an input */
    OCTAVO_HALVES_BYTES = 64, /* 32 f16: d, m or dmin */
    OCTAVO_BYTES_BYTES = 32,  /* 32 bytes: scales, mins, indices */
};

/* F8, the only float types of more than an element, has no row in the table below. */
enum {
    OCTAVO_F8_INPUTS = 64,
    OCTAVO_F8_HEAD_BYTES = 128, /* 32 f32 */
    OCTAVO_F8_RECORD_BYTES = OCTAVO_F8_HEAD_BYTES + OCTAVO_F8_INPUTS * OCTAVO_PANEL,
};

/* What a code stands for, where not for itself. */
typedef enum octavo_code_table {
    OCTAVO_TABLE_NONE,
    OCTAVO_TABLE_IQ4, /* value + 128 of 16 values */
    OCTAVO_TABLE_FP4, /* value + 12, twice the values of e2m1 */
    OCTAVO_TABLE_IQ2, /* grids: see weight_tables.h */
    OCTAVO_TABLE_IQ3_XXS,
    OCTAVO_TABLE_IQ3_S,
    OCTAVO_TABLE_IQ1,
} octavo_code_table;

typedef enum octavo_d_kind {
    OCTAVO_D_F16,
    OCTAVO_D_F32,  /* only staged blocks, see x86/matmul_stage.h */
    OCTAVO_D_E8M0, /* a byte e: 2^(e - 128) */
    OCTAVO_D_ONE,  /* none */
} octavo_d_kind;

/* The factor of d; kinds from OCTAVO_SCALE_S8_2 on have one for inputs 0-15 and one for 16-31. */
typedef enum octavo_scale_kind {
    OCTAVO_SCALE_NONE,
    OCTAVO_SCALE_U8,
    OCTAVO_SCALE_S8,
    OCTAVO_SCALE_ODD, /* 2s + 1 of the lower nibble s */
    OCTAVO_SCALE_F32, /* only staged blocks */
    OCTAVO_SCALE_S8_2,
    OCTAVO_SCALE_NIBBLE_2, /* the lower and the upper nibble of a byte */
    OCTAVO_SCALE_ODD_2,    /* 2s + 1 of both nibbles s */
    OCTAVO_SCALE_UE4M3_2,  /* half of an unsigned e4m3, 0x7f being 240 */
    OCTAVO_SCALE_F32_2,
} octavo_scale_kind;

typedef enum octavo_min_kind {
    OCTAVO_MIN_NONE,
    OCTAVO_MIN_F16,      /* of the record: m itself */
    OCTAVO_MIN_U8,       /* of the block: m = -(dmin * min) */
    OCTAVO_MIN_S8,       /* of the record: m = -(d * min), at min_at; m_at is d_at */
    OCTAVO_MIN_NIBBLE_2, /* of the block: as U8 for each half */
} octavo_min_kind;

typedef struct octavo_weight_layout {
    int bits;       /* of a code in the block's first part: 8, 4, 2, 1; 0: indices into a grid */
    int high_bits;  /* above them: 1 or 2 of a code (0: none) in the part behind; or of an index */
    int indices;    /* of a grid: 4 or 8 for 32 inputs */
    bool is_signed; /* a grid: signs follow the indices */
    octavo_code_table table; /* from codes (or indices) to values + offset */
    int offset;              /* what is subtracted */
    int blocks;              /* in a record: 1, 2, 4, 8 */
    int head_bytes;          /* of the record, before its blocks */
    int block_bytes;
    octavo_d_kind d;
    int d_at;       /* in the record */
    float d_factor; /* a power of two; 0: 1 */
    octavo_scale_kind scale;
    int scale_at; /* in the block */
    octavo_min_kind min;
    int m_at;   /* m or dmin in the record */
    int min_at; /* in the block, or record */
} octavo_weight_layout;

/* clang-format off */
static const octavo_weight_layout octavo_weight_layouts[OCTAVO_WEIGHT_TYPES_AND_STAGED] = {
    [OCTAVO_WEIGHT_Q8_0] = {.bits = 8, .offset = 128, .blocks = 1, .block_bytes = 1088, .d_at = 1024},
    [OCTAVO_WEIGHT_Q4_0] = {.bits = 4, .offset = 8, .blocks = 1, .block_bytes = 576, .d_at = 512},
    [OCTAVO_WEIGHT_Q4_1] = {.bits = 4, .blocks = 1, .block_bytes = 640, .d_at = 512,
                            .min = OCTAVO_MIN_F16, .m_at = 576},
    [OCTAVO_WEIGHT_Q5_0] = {.bits = 4, .high_bits = 1, .offset = 16, .blocks = 1,
                            .block_bytes = 704, .d_at = 640},
    [OCTAVO_WEIGHT_Q5_1] = {.bits = 4, .high_bits = 1, .blocks = 1, .block_bytes = 768,
                            .d_at = 640, .min = OCTAVO_MIN_F16, .m_at = 704},
    /* a bit is the code 0 or 2 */
    [OCTAVO_WEIGHT_Q1_0] = {.bits = 1, .offset = 1, .blocks = 4, .head_bytes = 64,
                            .block_bytes = 128},
    [OCTAVO_WEIGHT_IQ4_NL] = {.bits = 4, .table = OCTAVO_TABLE_IQ4, .offset = 128, .blocks = 1,
                              .block_bytes = 576, .d_at = 512},
    [OCTAVO_WEIGHT_MXFP4] = {.bits = 4, .table = OCTAVO_TABLE_FP4, .offset = 12, .blocks = 1,
                             .block_bytes = 544, .d = OCTAVO_D_E8M0, .d_at = 512},
    [OCTAVO_WEIGHT_NVFP4] = {.bits = 4, .table = OCTAVO_TABLE_FP4, .offset = 12, .blocks = 2,
                             .block_bytes = 576, .d = OCTAVO_D_ONE,
                             .scale = OCTAVO_SCALE_UE4M3_2, .scale_at = 512},
    [OCTAVO_WEIGHT_Z2] = {.bits = 2, .blocks = 1, .block_bytes = 352, .d_at = 256,
                          .min = OCTAVO_MIN_S8, .m_at = 256, .min_at = 320},
    [OCTAVO_WEIGHT_Z3] = {.bits = 2, .high_bits = 1, .blocks = 1, .block_bytes = 480, .d_at = 384,
                          .min = OCTAVO_MIN_S8, .m_at = 384, .min_at = 448},
    [OCTAVO_WEIGHT_Z4] = {.bits = 4, .blocks = 1, .block_bytes = 608, .d_at = 512,
                          .min = OCTAVO_MIN_S8, .m_at = 512, .min_at = 576},
    [OCTAVO_WEIGHT_Z4_64] = {.bits = 4, .blocks = 2, .head_bytes = 96, .block_bytes = 512,
                             .min = OCTAVO_MIN_S8, .min_at = 64},
    [OCTAVO_WEIGHT_Z8] = {.bits = 8, .offset = 128, .blocks = 1, .block_bytes = 1120,
                          .d_at = 1024, .min = OCTAVO_MIN_S8, .m_at = 1024, .min_at = 1088},
    [OCTAVO_WEIGHT_Q2_K] = {.bits = 2, .blocks = 8, .head_bytes = 128, .block_bytes = 320,
                            .scale = OCTAVO_SCALE_NIBBLE_2, .scale_at = 256,
                            .min = OCTAVO_MIN_NIBBLE_2, .m_at = 64, .min_at = 288},
    [OCTAVO_WEIGHT_Q3_K] = {.bits = 2, .high_bits = 1, .offset = 4, .blocks = 8, .head_bytes = 64,
                            .block_bytes = 448, .scale = OCTAVO_SCALE_S8_2, .scale_at = 384},
    [OCTAVO_WEIGHT_Q4_K] = {.bits = 4, .blocks = 8, .head_bytes = 128, .block_bytes = 576,
                            .scale = OCTAVO_SCALE_U8, .scale_at = 512,
                            .min = OCTAVO_MIN_U8, .m_at = 64, .min_at = 544},
    [OCTAVO_WEIGHT_Q5_K] = {.bits = 4, .high_bits = 1, .blocks = 8, .head_bytes = 128,
                            .block_bytes = 704, .scale = OCTAVO_SCALE_U8, .scale_at = 640,
                            .min = OCTAVO_MIN_U8, .m_at = 64, .min_at = 672},
    [OCTAVO_WEIGHT_Q6_K] = {.bits = 4, .high_bits = 2, .offset = 32, .blocks = 8, .head_bytes = 64,
                            .block_bytes = 832, .scale = OCTAVO_SCALE_S8_2, .scale_at = 768},
    [OCTAVO_WEIGHT_IQ4_XS] = {.bits = 4, .table = OCTAVO_TABLE_IQ4, .offset = 128, .blocks = 8,
                              .head_bytes = 64, .block_bytes = 544, .scale = OCTAVO_SCALE_S8,
                              .scale_at = 512},
    [OCTAVO_WEIGHT_TQ1_0] = {.bits = 2, .offset = 1, .blocks = 8, .head_bytes = 64,
                             .block_bytes = 256},
    [OCTAVO_WEIGHT_TQ2_0] = {.bits = 2, .offset = 1, .blocks = 8, .head_bytes = 64,
                             .block_bytes = 256},
    [OCTAVO_WEIGHT_IQ2_XXS] = {.indices = 4, .is_signed = true, .table = OCTAVO_TABLE_IQ2,
                               .offset = 64, .blocks = 8, .head_bytes = 64, .block_bytes = 288,
                               .d_factor = 0.125f, .scale = OCTAVO_SCALE_ODD, .scale_at = 256},
    [OCTAVO_WEIGHT_IQ2_XS] = {.indices = 4, .high_bits = 2, .is_signed = true,
                              .table = OCTAVO_TABLE_IQ2, .offset = 64, .blocks = 8,
                              .head_bytes = 64, .block_bytes = 320, .d_factor = 0.125f,
                              .scale = OCTAVO_SCALE_ODD_2, .scale_at = 288},
    [OCTAVO_WEIGHT_IQ2_S] = {.indices = 4, .high_bits = 2, .is_signed = true,
                             .table = OCTAVO_TABLE_IQ2, .offset = 64, .blocks = 8,
                             .head_bytes = 64, .block_bytes = 320, .d_factor = 0.125f,
                             .scale = OCTAVO_SCALE_ODD_2, .scale_at = 288},
    [OCTAVO_WEIGHT_IQ3_XXS] = {.indices = 8, .is_signed = true, .table = OCTAVO_TABLE_IQ3_XXS,
                               .offset = 64, .blocks = 8, .head_bytes = 64, .block_bytes = 416,
                               .d_factor = 0.25f, .scale = OCTAVO_SCALE_ODD, .scale_at = 384},
    [OCTAVO_WEIGHT_IQ3_S] = {.indices = 8, .high_bits = 1, .is_signed = true,
                             .table = OCTAVO_TABLE_IQ3_S, .offset = 64, .blocks = 8,
                             .head_bytes = 64, .block_bytes = 448, .scale = OCTAVO_SCALE_ODD,
                             .scale_at = 416},
    [OCTAVO_WEIGHT_IQ1_S] = {.indices = 4, .high_bits = 4, .table = OCTAVO_TABLE_IQ1,
                             .offset = 64, .blocks = 8, .head_bytes = 64, .block_bytes = 224,
                             .d_factor = 0.125f, .scale = OCTAVO_SCALE_ODD_2, .scale_at = 192},
    [OCTAVO_WEIGHT_IQ1_M] = {.indices = 4, .high_bits = 4, .table = OCTAVO_TABLE_IQ1,
                             .offset = 64, .blocks = 8, .head_bytes = 64, .block_bytes = 224,
                             .d_factor = 0.125f, .scale = OCTAVO_SCALE_ODD_2, .scale_at = 192},
    [OCTAVO_WEIGHT_STAGED] = {.bits = 8, .offset = 64, .blocks = 1, .block_bytes = 1408,
                              .d = OCTAVO_D_F32, .d_at = 1024,
                              .scale = OCTAVO_SCALE_F32, .scale_at = 1152},
    [OCTAVO_WEIGHT_STAGED_2] = {.bits = 8, .offset = 64, .blocks = 1, .block_bytes = 1408,
                                .d = OCTAVO_D_F32, .d_at = 1024,
                                .scale = OCTAVO_SCALE_F32_2, .scale_at = 1152},
};
/* clang-format on */

/* Bytes of the indices or codes at the start of a block. */
static inline int octavo_layout_codes_bytes(const octavo_weight_layout *layout) {
    return layout->bits ? layout->bits * OCTAVO_CODES1_BYTES : layout->indices * OCTAVO_BYTES_BYTES;
}

/* Where the high bits lie in a block. */
static inline int octavo_layout_high_at(const octavo_weight_layout *layout) {
    return octavo_layout_codes_bytes(layout) + (layout->is_signed ? OCTAVO_SIGNS_BYTES : 0);
}

/* One output's block of 32 inputs:
 *   w[i] = (d * scale[i / 16]) * value[i] (+ m[i / 16] if has_m)
 * d * scale, the product with the value, and the sum are each rounded once to f32. m of types with
 * dmin is -(dmin * min), rounded once. */
typedef struct octavo_weight_run {
    int8_t value[OCTAVO_BLOCK];
    float scale[2];
    float d;
    float m[2];
    bool has_m;
} octavo_weight_run;

/* Inputs [k, k + 32) of output `o` (0..31) of a panel of a quantised type; k a multiple of 32. */
void octavo_weight_run_load(octavo_weight_type type, octavo_weight_run *run, const uint8_t *panel,
                            int64_t k, int o);

#endif
