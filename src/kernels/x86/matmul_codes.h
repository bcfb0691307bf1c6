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
#include "kernels/weight_tables.h"

/* 32 inputs of a panel: their codes (with what follows in the block), and the record's head, which
 * for types without super-blocks is the record itself. */
typedef struct block_place {
    const uint8_t *codes;
    const uint8_t *head;
} block_place;

static OCTAVO_ALWAYS_INLINE const octavo_weight_layout *layout_of(octavo_weight_type type) {
    return &octavo_weight_layouts[type];
}

static OCTAVO_ALWAYS_INLINE block_place place_block(octavo_weight_type type, const uint8_t *panel,
                                                    int64_t k) {
    const octavo_weight_layout *layout = layout_of(type);
    const int64_t block = k / OCTAVO_BLOCK;
    const uint8_t *head = panel + block / layout->blocks *
                                      (layout->head_bytes + layout->blocks * layout->block_bytes);
    return (block_place){head + layout->head_bytes + block % layout->blocks * layout->block_bytes,
                         head};
}

/* Shifts left by n >= 0 or right; spelled out, since a count must be a literal. Bits that come from
 * the neighbouring byte are the caller's to mask. */
static OCTAVO_ALWAYS_INLINE vi shift_bits(vi x, int n) {
    switch (n) {
    case -7:
        return vi_shr16(x, 7);
    case -6:
        return vi_shr16(x, 6);
    case -5:
        return vi_shr16(x, 5);
    case -4:
        return vi_shr16(x, 4);
    case -3:
        return vi_shr16(x, 3);
    case -2:
        return vi_shr16(x, 2);
    case -1:
        return vi_shr16(x, 1);
    case 1:
        return vi_shl16(x, 1);
    case 2:
        return vi_shl16(x, 2);
    case 3:
        return vi_shl16(x, 3);
    case 4:
        return vi_shl16(x, 4);
    default:
        return x;
    }
}

/* Codes of inputs 4g..4g + 3 (bytes of a lane) of outputs o..o + LANES - 1; g 0..7. */
static OCTAVO_ALWAYS_INLINE vi load_codes(octavo_weight_type type, const uint8_t *block, int o,
                                          int g) {
    const octavo_weight_layout *layout = layout_of(type);
    const uint8_t *high = block + octavo_layout_high_at(layout) + o * 4;
    const int bits = layout->bits;
    vi code;
    if (bits == 8) return vi_load(block + (g * OCTAVO_PANEL + o) * 4);
    if (bits == 4) {
        code = vi_load(block + (g % 4 * OCTAVO_PANEL + o) * 4);
        code = vi_and(shift_bits(code, g >= 4 ? -4 : 0), vi_set8(15));
    } else if (bits == 2) {
        code = vi_load(block + (g / 4 * OCTAVO_PANEL + o) * 4);
        code = vi_and(shift_bits(code, -2 * (g % 4)), vi_set8(3));
    } else {
        code = vi_and(shift_bits(vi_load(block + o * 4), 1 - g), vi_set8(2));
    }
    if (layout->high_bits == 1)
        code = vi_or(code, vi_and(shift_bits(vi_load(high), bits - g), vi_set8(1 << bits)));
    if (layout->high_bits == 2)
        code = vi_or(code, vi_and(shift_bits(vi_load(high + g / 4 * 128), bits - 2 * (g % 4)),
                                  vi_set8(3 << bits)));
    if (layout->table == OCTAVO_TABLE_IQ4) return vi_lookup16(octavo_table_iq4, code);
    if (layout->table == OCTAVO_TABLE_FP4) return vi_lookup16(octavo_table_fp4, code);
    return code;
}

/* Bits of a code as the multiplication meets it. */
static OCTAVO_ALWAYS_INLINE int code_bits(octavo_weight_type type) {
    const octavo_weight_layout *layout = layout_of(type);
    if (layout->table == OCTAVO_TABLE_IQ4) return 8;
    if (layout->table == OCTAVO_TABLE_FP4) return 5;
    if (type >= OCTAVO_WEIGHT_STAGED) return 7;
    return layout->bits + layout->high_bits;
}

/* Whether inputs 0-15 and 16-31 of a block have scales of their own. */
static OCTAVO_ALWAYS_INLINE bool has_halves(octavo_weight_type type) {
    return layout_of(type)->scale >= OCTAVO_SCALE_S8_2;
}

/* What is subtracted from a code. */
static OCTAVO_ALWAYS_INLINE int code_offset(octavo_weight_type type) {
    return layout_of(type)->offset;
}

/* -offset * (sum of q) in every lane; of one half where a type has halves. */
static OCTAVO_ALWAYS_INLINE vi offset_sum(octavo_weight_type type, const octavo_q8_block *x,
                                          int half) {
    const int offset = -code_offset(type);
    const vi factors = !has_halves(type) ? vi_set16(offset)
                       : half == 0       ? vi_set32(offset & 0xffff)
                                         : vi_set32(offset * 0x10000);
    return vi_madd16(vi_set_word(x->sum), factors);
}

/* d of outputs o..o + LANES - 1. */
static OCTAVO_ALWAYS_INLINE vf load_d(octavo_weight_type type, const uint8_t *head, int o) {
    const octavo_weight_layout *layout = layout_of(type);
    const uint8_t *at = head + layout->d_at;
    if (layout->d == OCTAVO_D_ONE) return vf_set1(1.0f);
    if (layout->d == OCTAVO_D_F32) return vf_from_bits(vi_load(at + o * 4));
    if (layout->d == OCTAVO_D_E8M0) {
        /* e of 0 and 1 are subnormal */
        const vi e = vi_from_u8(at + o);
        const vi small = vi_shl32(vi_add32(vi_min32(e, vi_set32(1)), vi_set32(1)), 21);
        return vf_from_bits(vi_max32(vi_shl32(vi_sub32(e, vi_set32(1)), 23), small));
    }
    const vf d = vf_from_f16(at + o * 2);
    return layout->d_factor != 0.0f ? vf_mul(d, vf_set1(layout->d_factor)) : d;
}

static OCTAVO_ALWAYS_INLINE vi nibble_of(vi bytes, int half) {
    return half ? vi_shr32(bytes, 4) : vi_and(bytes, vi_set32(15));
}

/* Half of unsigned e4m3s, as whole multiples of 2^-10: subnormal f32 would be slow. */
static OCTAVO_ALWAYS_INLINE vf vf_from_ue4m3(vi x) {
    const vi e = vi_shr32(x, 3), hidden = vi_shl32(vi_min32(e, vi_set32(1)), 3);
    const vi m = vi_or(vi_and(x, vi_set32(7)), hidden);
    const vi count = vi_max32(vi_sub32(e, vi_set32(1)), vi_zero());
    return vf_mul(vf_from_s32(vi_shlv32(m, count)), vf_set1(0x1p-10f));
}

static OCTAVO_ALWAYS_INLINE bool has_scale(octavo_weight_type type) {
    return layout_of(type)->scale != OCTAVO_SCALE_NONE;
}

/* The factor of d; `half` 0: of inputs 0-15, or of the block. */
static OCTAVO_ALWAYS_INLINE vf load_scale(octavo_weight_type type, block_place at, int o,
                                          int half) {
    const octavo_weight_layout *layout = layout_of(type);
    const uint8_t *bytes = at.codes + layout->scale_at + o;
    vi odd;
    switch (layout->scale) {
    case OCTAVO_SCALE_U8:
        return vf_from_u8(bytes);
    case OCTAVO_SCALE_S8:
        return vf_from_s8(bytes);
    case OCTAVO_SCALE_S8_2:
        return vf_from_s8(bytes + half * OCTAVO_BYTES_BYTES);
    case OCTAVO_SCALE_NIBBLE_2:
        return vf_from_s32(nibble_of(vi_from_u8(bytes), half));
    case OCTAVO_SCALE_ODD:
    case OCTAVO_SCALE_ODD_2:
        odd = nibble_of(vi_from_u8(bytes), half);
        return vf_from_s32(vi_add32(vi_add32(odd, odd), vi_set32(1)));
    case OCTAVO_SCALE_UE4M3_2:
        return vf_from_ue4m3(vi_from_u8(bytes + half * OCTAVO_BYTES_BYTES));
    case OCTAVO_SCALE_F32:
    case OCTAVO_SCALE_F32_2:
        return vf_from_bits(vi_load(at.codes + layout->scale_at + (half * OCTAVO_PANEL + o) * 4));
    default:
        return vf_set1(1.0f);
    }
}

/* What is added to d * scale * (code - offset): m, or -(dmin * min), or -(d * min). */
static OCTAVO_ALWAYS_INLINE bool has_m(octavo_weight_type type) {
    return layout_of(type)->min != OCTAVO_MIN_NONE;
}

static OCTAVO_ALWAYS_INLINE bool has_m_halves(octavo_weight_type type) {
    return layout_of(type)->min == OCTAVO_MIN_NIBBLE_2;
}

static OCTAVO_ALWAYS_INLINE vf load_m(octavo_weight_type type, block_place at, int o, int half) {
    const octavo_weight_layout *layout = layout_of(type);
    const uint8_t *min = at.codes + layout->min_at + o;
    const vf m = vf_from_f16(at.head + layout->m_at + o * 2);
    if (layout->min == OCTAVO_MIN_F16) return m;
    if (layout->min == OCTAVO_MIN_S8)
        return vf_negate(vf_mul(m, vf_from_s8(at.head + layout->min_at + o)));
    if (layout->min == OCTAVO_MIN_U8) return vf_negate(vf_mul(m, vf_from_u8(min)));
    return vf_negate(vf_mul(m, vf_from_s32(nibble_of(vi_from_u8(min), half))));
}

#endif
