/* SPDX-License-Identifier: Apache-2.0
 *
 * From rows of gguf blocks to panels: types whose codes are indices into grids. Signs that the file
 * keeps as 7 bits of 8, the last one following from the others, become 8.
 */
#include "kernels/weight_pack.h"

enum { BLOCKS = 8 };

/* What output o has in a block of a packed record. */
typedef struct grid_block {
    uint8_t *indices; /* 32 bytes apart, as the next two */
    uint8_t *high;
    uint8_t *scale;
    uint8_t *signs; /* 16 bytes apart; a nibble of the byte */
    int sign_shift; /* 0 or 4 */
} grid_block;

static OCTAVO_ALWAYS_INLINE grid_block block_of(octavo_weight_type type, uint8_t *record, int b,
                                                int o) {
    const octavo_weight_layout *layout = &octavo_weight_layouts[type];
    uint8_t *block = record + layout->head_bytes + b * layout->block_bytes;
    return (grid_block){block + o, block + octavo_layout_high_at(layout) + o,
                        block + layout->scale_at + o,
                        block + octavo_layout_codes_bytes(layout) + o / 2, o % 2 * 4};
}

static inline void put_indices(const grid_block *to, const uint8_t *indices, int n) {
    for (int i = 0; i < n; i++)
        to->indices[i * OCTAVO_BYTES_BYTES] = indices[i];
}

/* Bit i: input i is negative. Outputs come in ascending order, so an odd one finds the even one's.
 */
static inline void put_signs(const grid_block *to, uint32_t signs) {
    for (int g = 0; g < 8; g++) {
        const uint32_t four = signs >> (4 * g) & 15;
        uint8_t *at = to->signs + g * 16;
        *at = (uint8_t)(to->sign_shift ? *at | four << 4 : four);
    }
}

/* 7 signs; an eighth makes their number even */
static inline uint32_t eight_signs(uint32_t signs) {
    uint32_t odd = signs ^ signs >> 4;
    odd ^= odd >> 2;
    return signs | ((odd ^ odd >> 1) & 1) << 7;
}

/* 4 x 7 signs and above them a scale */
static inline void put_signs_scale(const grid_block *to, const uint8_t *from) {
    const uint32_t packed = load_word(from);
    uint32_t signs = 0;
    for (int i = 0; i < 4; i++)
        signs |= eight_signs(packed >> (7 * i) & 127) << (8 * i);
    put_signs(to, signs);
    *to->scale = (uint8_t)(packed >> 28);
}

/* block: d, 8 x (4 indices, signs and scale) */
static inline void put_iq2_xxs(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    for (int b = 0; b < BLOCKS; b++) {
        const grid_block to = block_of(OCTAVO_WEIGHT_IQ2_XXS, record, b, o);
        put_indices(&to, block + 2 + 8 * b, 4);
        put_signs_scale(&to, block + 6 + 8 * b);
    }
}

/* block: d, 32 x 16 bits (index of 9 bits, 7 signs), 8 bytes of two scales */
static inline void put_iq2_xs(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    for (int b = 0; b < BLOCKS; b++) {
        const grid_block to = block_of(OCTAVO_WEIGHT_IQ2_XS, record, b, o);
        uint32_t signs = 0, high = 0;
        for (int i = 0; i < 4; i++) {
            const uint32_t both = load_half(block + 2 + 8 * b + 2 * i);
            to.indices[i * OCTAVO_BYTES_BYTES] = (uint8_t)both;
            high |= (both >> 8 & 1) << (2 * i);
            signs |= eight_signs(both >> 9) << (8 * i);
        }
        *to.high = (uint8_t)high;
        put_signs(&to, signs);
        *to.scale = block[66 + b];
    }
}

/* block: d, 32 lower bytes of indices, 32 bytes of signs, 8 bytes of upper bits, 8 of two scales */
static inline void put_iq2_s(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    for (int b = 0; b < BLOCKS; b++) {
        const grid_block to = block_of(OCTAVO_WEIGHT_IQ2_S, record, b, o);
        put_indices(&to, block + 2 + 4 * b, 4);
        put_signs(&to, load_word(block + 34 + 4 * b));
        *to.high = block[66 + b];
        *to.scale = block[74 + b];
    }
}

/* block: d, 64 indices, 8 x (signs and scale) */
static inline void put_iq3_xxs(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    for (int b = 0; b < BLOCKS; b++) {
        const grid_block to = block_of(OCTAVO_WEIGHT_IQ3_XXS, record, b, o);
        put_indices(&to, block + 2 + 8 * b, 8);
        put_signs_scale(&to, block + 66 + 4 * b);
    }
}

/* block: d, 64 lower bytes of indices, 8 bytes of upper bits, 32 bytes of signs, 4 of two scales */
static inline void put_iq3_s(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    for (int b = 0; b < BLOCKS; b++) {
        const grid_block to = block_of(OCTAVO_WEIGHT_IQ3_S, record, b, o);
        put_indices(&to, block + 2 + 8 * b, 8);
        *to.high = block[66 + b];
        put_signs(&to, load_word(block + 74 + 4 * b));
        *to.scale = block[106 + b / 2] >> (b % 2 * 4) & 15;
    }
}

/* block: d, 32 lower bytes of indices, 8 x 16 bits (4 x 3 upper bits, scale of 3, sign of the 1) */
static inline void put_iq1_s(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    for (int b = 0; b < BLOCKS; b++) {
        const grid_block to = block_of(OCTAVO_WEIGHT_IQ1_S, record, b, o);
        const uint32_t packed = load_half(block + 34 + 2 * b), scale = packed >> 12 & 7;
        uint32_t high = packed >> 15 ? 0x8888 : 0;
        for (int i = 0; i < 4; i++)
            high |= (packed >> (3 * i) & 7) << (4 * i);
        put_indices(&to, block + 2 + 4 * b, 4);
        to.high[0] = (uint8_t)high;
        to.high[OCTAVO_BYTES_BYTES] = (uint8_t)(high >> 8);
        *to.scale = (uint8_t)(scale | scale << 4);
    }
}

/* block: 32 lower bytes of indices, 32 nibbles (3 upper bits, sign of the 1), 4 x 16 bits (4 scales
 * of 3, a quarter of d) */
static inline void put_iq1_m(uint8_t *record, int o, const uint8_t *block) {
    uint32_t d = 0;
    for (int i = 0; i < 4; i++)
        d |= (uint32_t)(block[49 + 2 * i] >> 4) << (4 * i);
    put_half(record, o, (const uint8_t[]){(uint8_t)d, (uint8_t)(d >> 8)});
    for (int b = 0; b < BLOCKS; b++) {
        const grid_block to = block_of(OCTAVO_WEIGHT_IQ1_M, record, b, o);
        const uint32_t scales = (uint32_t)load_half(block + 48 + b / 2 * 2) >> (b % 2 * 6);
        put_indices(&to, block + 4 * b, 4);
        to.high[0] = block[32 + 2 * b];
        to.high[OCTAVO_BYTES_BYTES] = block[32 + 2 * b + 1];
        *to.scale = (uint8_t)((scales & 7) | (scales >> 3 & 7) << 4);
    }
}

void octavo_weight_pack_grid(octavo_weight_type type, uint8_t *panel, source_rows rows, int64_t k) {
    switch (type) {
    case OCTAVO_WEIGHT_IQ2_XXS:
        pack_records(put_iq2_xxs, OCTAVO_WEIGHT_IQ2_XXS, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ2_XS:
        pack_records(put_iq2_xs, OCTAVO_WEIGHT_IQ2_XS, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ2_S:
        pack_records(put_iq2_s, OCTAVO_WEIGHT_IQ2_S, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ3_XXS:
        pack_records(put_iq3_xxs, OCTAVO_WEIGHT_IQ3_XXS, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ3_S:
        pack_records(put_iq3_s, OCTAVO_WEIGHT_IQ3_S, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ1_S:
        pack_records(put_iq1_s, OCTAVO_WEIGHT_IQ1_S, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ1_M:
        pack_records(put_iq1_m, OCTAVO_WEIGHT_IQ1_M, panel, rows, k);
        break;
    default:
        octavo_assert(!"a type of grids");
        break;
    }
}
