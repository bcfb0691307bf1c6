/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a block of a packed quantised weight lies and how its codes come into vectors. Written in
 * the words of matmul_words_*.h, which must be included before.
 */
#ifndef OCTAVO_KERNELS_X86_MATMUL_CODES_H
#define OCTAVO_KERNELS_X86_MATMUL_CODES_H

#include "base/compiler.h"
#include "kernels/matmul.h"
#include "kernels/weight_layout.h"

/* 32 inputs of a panel: their codes (with what follows in the block), and the record's head, which
 * for types without super-blocks is the record itself. */
typedef struct block_place {
    const uint8_t *codes;
    const uint8_t *head;
} block_place;

static OCTAVO_ALWAYS_INLINE block_place place_block(octavo_weight_type type, const uint8_t *panel,
                                                    int64_t k) {
    const int64_t block = k / OCTAVO_BLOCK;
    const int64_t super = block / OCTAVO_SUPER_BLOCKS, sub = block % OCTAVO_SUPER_BLOCKS;
    const uint8_t *at = panel;
    switch (type) {
    case OCTAVO_WEIGHT_Q8_0:
        at += block * OCTAVO_Q8_0_RECORD;
        break;
    case OCTAVO_WEIGHT_Q4_0:
        at += block * OCTAVO_Q4_0_RECORD;
        break;
    case OCTAVO_WEIGHT_Q4_1:
        at += block * OCTAVO_Q4_1_RECORD;
        break;
    case OCTAVO_WEIGHT_Q5_0:
        at += block * OCTAVO_Q5_0_RECORD;
        break;
    case OCTAVO_WEIGHT_Q4_K:
        at += super * OCTAVO_Q4_K_RECORD;
        return (block_place){at + OCTAVO_Q4_K_HEAD + sub * OCTAVO_Q4_K_BLOCK, at};
    case OCTAVO_WEIGHT_Q6_K:
        at += super * OCTAVO_Q6_K_RECORD;
        return (block_place){at + OCTAVO_Q6_K_HEAD + sub * OCTAVO_Q6_K_BLOCK, at};
    default:
        break;
    }
    return (block_place){at, at};
}

/* Bit g of each byte, as bit 4. */
static OCTAVO_ALWAYS_INLINE vi high1_of(vi bits, int g) {
    switch (g) {
    case 0:
        bits = vi_shl16(bits, 4);
        break;
    case 1:
        bits = vi_shl16(bits, 3);
        break;
    case 2:
        bits = vi_shl16(bits, 2);
        break;
    case 3:
        bits = vi_shl16(bits, 1);
        break;
    case 5:
        bits = vi_shr16(bits, 1);
        break;
    case 6:
        bits = vi_shr16(bits, 2);
        break;
    case 7:
        bits = vi_shr16(bits, 3);
        break;
    default:
        break;
    }
    return vi_and(bits, vi_set8(0x10));
}

/* Bits 2b and 2b + 1 of each byte, as bits 4 and 5. */
static OCTAVO_ALWAYS_INLINE vi high2_of(vi pairs, int b) {
    switch (b) {
    case 0:
        pairs = vi_shl16(pairs, 4);
        break;
    case 1:
        pairs = vi_shl16(pairs, 2);
        break;
    case 3:
        pairs = vi_shr16(pairs, 2);
        break;
    default:
        break;
    }
    return vi_and(pairs, vi_set8(0x30));
}

/* Codes of inputs 4g..4g + 3 (bytes of a lane) of outputs o..o + LANES - 1; g 0..7. */
static OCTAVO_ALWAYS_INLINE vi load_codes(octavo_weight_type type, const uint8_t *codes, int o,
                                          int g) {
    if (type == OCTAVO_WEIGHT_Q8_0) return vi_load(codes + (g * OCTAVO_PANEL + o) * 4);
    vi code = vi_load(codes + (g % 4 * OCTAVO_PANEL + o) * 4);
    if (g >= 4) code = vi_shr16(code, 4);
    code = vi_and(code, vi_set8(15));
    if (type == OCTAVO_WEIGHT_Q5_0)
        code = vi_or(code, high1_of(vi_load(codes + OCTAVO_Q5_0_HIGH + o * 4), g));
    if (type == OCTAVO_WEIGHT_Q6_K)
        code =
            vi_or(code, high2_of(vi_load(codes + OCTAVO_Q6_K_HIGH + g / 4 * 128 + o * 4), g % 4));
    return code;
}

/* What is subtracted from a code. */
static OCTAVO_ALWAYS_INLINE int code_offset(octavo_weight_type type) {
    switch (type) {
    case OCTAVO_WEIGHT_Q8_0:
        return 128;
    case OCTAVO_WEIGHT_Q4_0:
        return 8;
    case OCTAVO_WEIGHT_Q5_0:
        return 16;
    case OCTAVO_WEIGHT_Q6_K:
        return 32;
    default:
        return 0;
    }
}

/* -offset * (sum of q) in every lane; of one half for Q6_K. */
static OCTAVO_ALWAYS_INLINE vi offset_sum(octavo_weight_type type, const octavo_q8_block *x,
                                          int half) {
    const int offset = -code_offset(type);
    const vi factors = type != OCTAVO_WEIGHT_Q6_K ? vi_set16(offset)
                       : half == 0                ? vi_set32(offset & 0xffff)
                                                  : vi_set32(offset * 0x10000);
    return vi_madd16(vi_set_word(x->sum), factors);
}

/* The type's f16 d of outputs o..o + LANES - 1. */
static OCTAVO_ALWAYS_INLINE vf load_d(octavo_weight_type type, const uint8_t *head, int o) {
    const int at = type == OCTAVO_WEIGHT_Q8_0   ? OCTAVO_Q8_0_D
                   : type == OCTAVO_WEIGHT_Q4_0 ? OCTAVO_Q4_0_D
                   : type == OCTAVO_WEIGHT_Q4_1 ? OCTAVO_Q4_1_D
                   : type == OCTAVO_WEIGHT_Q5_0 ? OCTAVO_Q5_0_D
                   : type == OCTAVO_WEIGHT_Q4_K ? OCTAVO_Q4_K_D
                                                : OCTAVO_Q6_K_D;
    return vf_from_f16(head + at + o * 2);
}

/* Scales inside a super-block; those of inputs 0-15 (half 0) and 16-31 of a block. */
static OCTAVO_ALWAYS_INLINE bool has_scale(octavo_weight_type type) {
    return type == OCTAVO_WEIGHT_Q4_K || type == OCTAVO_WEIGHT_Q6_K;
}

static OCTAVO_ALWAYS_INLINE vf load_scale(octavo_weight_type type, block_place at, int o,
                                          int half) {
    if (type == OCTAVO_WEIGHT_Q4_K) return vf_from_u8(at.codes + OCTAVO_Q4_K_SCALE + o);
    return vf_from_s8(at.codes + OCTAVO_Q6_K_SCALE + half * OCTAVO_SCALES_BYTES + o);
}

/* What is added to d * scale * (code - offset): m, or -(dmin * min). */
static OCTAVO_ALWAYS_INLINE bool has_m(octavo_weight_type type) {
    return type == OCTAVO_WEIGHT_Q4_1 || type == OCTAVO_WEIGHT_Q4_K;
}

static OCTAVO_ALWAYS_INLINE vf load_m(octavo_weight_type type, block_place at, int o) {
    if (type == OCTAVO_WEIGHT_Q4_1) return vf_from_f16(at.head + OCTAVO_Q4_1_M + o * 2);
    vf dmin = vf_from_f16(at.head + OCTAVO_Q4_K_DMIN + o * 2);
    vf product = vf_mul(dmin, vf_from_u8(at.codes + OCTAVO_Q4_K_MIN + o));
    return vf_negate(product);
}

#endif
