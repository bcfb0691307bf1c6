/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of grid types as bytes: indices are looked up and signs applied once for all rows of a
 * tile, and what is then multiplied is a block of codes of 8 bits with d and scales in f32.
 * Included after matmul_codes.h.
 */

enum { STAGED_BLOCKS = 8 }; /* at a time: they stay in the first cache */

typedef struct staged_block {
    uint8_t codes[OCTAVO_CODES8_BYTES]; /* codes8, value + 64 */
    float d[OCTAVO_PANEL];
    float scale[2][OCTAVO_PANEL];
} staged_block;

static OCTAVO_ALWAYS_INLINE octavo_weight_type staged_type(octavo_weight_type type) {
    return has_halves(type) ? OCTAVO_WEIGHT_STAGED_2 : OCTAVO_WEIGHT_STAGED;
}

/* The lower 4 places of an entry as bytes: of 2 bits (every second one shifted by as many), and of
 * 4. */
static OCTAVO_ALWAYS_INLINE vi spread_pairs(vi entry) {
    vi x = vi_and(entry, vi_set32(0xff));
    x = vi_and(vi_or(x, vi_shl32(x, 12)), vi_set32(0x000f000f));
    return vi_and(vi_or(x, vi_shl32(x, 8)), vi_set32(0x0c030c03));
}

static OCTAVO_ALWAYS_INLINE vi spread_nibbles(vi entry) {
    vi x = vi_and(entry, vi_set32(0xffff));
    x = vi_and(vi_or(x, vi_shl32(x, 8)), vi_set32(0x00ff00ff));
    return vi_and(vi_or(x, vi_shl32(x, 4)), vi_set8(15));
}

/* Four values + 64 of an entry. */
static OCTAVO_ALWAYS_INLINE vi grid_codes(octavo_code_table table, vi entry) {
    switch (table) {
    case OCTAVO_TABLE_IQ2:
        return vi_lookup16(octavo_places_iq2, spread_pairs(entry));
    case OCTAVO_TABLE_IQ3_XXS:
        return vi_lookup16(octavo_places_iq3_xxs, spread_nibbles(entry));
    case OCTAVO_TABLE_IQ3_S:
        return vi_lookup16(octavo_places_iq3_s, spread_nibbles(entry));
    default: /* with its 1 */
        return vi_lookup16(octavo_places_iq1, spread_pairs(entry));
    }
}

/* What follows the lower 8 bits of index i. */
static OCTAVO_ALWAYS_INLINE vi index_rest(const octavo_weight_layout *layout, const uint8_t *high,
                                          int i) {
    const int at = i * layout->high_bits;
    const vi mask = vi_set32((1 << layout->high_bits) - 1);
    const vi row = vi_from_u8(high + at / 8 * OCTAVO_BYTES_BYTES);
    return vi_and(shift_bits(row, -(at % 8)), mask);
}

/* Index i of outputs o..o + LANES - 1; *less: what IQ1 subtracts for its sign. */
static OCTAVO_ALWAYS_INLINE vi load_index(const octavo_weight_layout *layout, const uint8_t *block,
                                          int o, int i, vi *less) {
    const vi index = vi_from_u8(block + i * OCTAVO_BYTES_BYTES + o);
    if (!layout->high_bits) return index;
    vi rest = index_rest(layout, block + octavo_layout_high_at(layout) + o, i);
    if (layout->table == OCTAVO_TABLE_IQ1) {
        *less = vi_and(vi_sub32(vi_zero(), vi_shr32(rest, 3)), vi_set8(2));
        rest = vi_and(rest, vi_set32(7));
    }
    return vi_or(index, vi_shl32(rest, 8));
}

/* Outputs o..o + LANES - 1 of the codes. */
static OCTAVO_ALWAYS_INLINE void stage_codes(octavo_weight_type type, staged_block *to,
                                             const uint8_t *block, int o) {
    const octavo_weight_layout *layout = layout_of(type);
    const uint8_t *signs = block + octavo_layout_codes_bytes(layout) + o / 2;
    vi less = vi_zero();
    for (int i = 0; i < layout->indices; i++) {
        vi entry = vi_gather16(octavo_grid_of(type), load_index(layout, block, o, i, &less));
        for (int g = i * 8 / layout->indices; g < (i + 1) * 8 / layout->indices; g++) {
            vi codes = grid_codes(layout->table, entry);
            if (layout->table == OCTAVO_TABLE_IQ1) codes = vi_sub32(codes, less);
            if (layout->is_signed) codes = vi_mirror8(codes, signs + g * 16);
            vi_store(to->codes + (g * OCTAVO_PANEL + o) * 4, codes);
            entry = vi_shr32(entry, 8);
        }
    }
}

static OCTAVO_ALWAYS_INLINE void stage_block(octavo_weight_type type, staged_block *to,
                                             const uint8_t *panel, int64_t k) {
    const block_place at = place_block(type, panel, k);
    for (int o = 0; o < OCTAVO_PANEL; o += LANES) {
        stage_codes(type, to, at.codes, o);
        vf_store(to->d + o, load_d(type, at.head, o));
        vf_store(to->scale[0] + o, load_scale(type, at, o, 0));
        if (has_halves(type)) vf_store(to->scale[1] + o, load_scale(type, at, o, 1));
    }
}
