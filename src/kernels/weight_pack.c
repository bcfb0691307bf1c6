/* SPDX-License-Identifier: Apache-2.0
 *
 * From rows of gguf blocks to panels: float types and those of blocks of 32 and a few more inputs.
 */
#include "kernels/weight_pack.h"

/* Each put_* stores one block of the file as output o of a record. */

/* block: d, 32 signed codes */
static inline void put_q8_0(uint8_t *record, int o, const uint8_t *block) {
    for (int g = 0; g < 8; g++)
        put_word(record, g, o, load_word(block + 2 + 4 * g) ^ 0x80808080u);
    put_half(record + 1024, o, block);
}

/* block: d, nibbles */
static inline void put_q4_0(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 2);
    put_half(record + 512, o, block);
}

/* block: d, m, nibbles */
static inline void put_q4_1(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 4);
    put_half(record + 512, o, block);
    put_half(record + 576, o, block + 2);
}

/* Bits 0, 4, 8, ... 28 of x as bits 0..7. */
static inline uint32_t every_fourth_bit(uint32_t x) {
    x &= 0x11111111u;
    x = (x | x >> 3) & 0x03030303u;
    x = (x | x >> 6) & 0x000f000fu;
    return (x | x >> 12) & 0xffu;
}

/* 32 bits, bit i of input i, as codes1 or high1 */
static inline void put_bits(uint8_t *part, int o, uint32_t bits) {
    uint32_t word = 0;
    for (int j = 0; j < 4; j++)
        word |= every_fourth_bit(bits >> j) << (8 * j);
    put_word(part, 0, o, word);
}

/* block: d, 32 bits (bit i: bit 4 of code i), nibbles */
static inline void put_q5_0(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 6);
    put_bits(record + 512, o, load_word(block + 2));
    put_half(record + 640, o, block);
}

/* block: d, m, 32 bits, nibbles */
static inline void put_q5_1(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 8);
    put_bits(record + 512, o, load_word(block + 4));
    put_half(record + 640, o, block);
    put_half(record + 704, o, block + 2);
}

/* block: d, 128 bits */
static inline void put_q1_0(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    for (int b = 0; b < 4; b++)
        put_bits(record + OCTAVO_HALVES_BYTES + b * OCTAVO_CODES1_BYTES, o,
                 load_word(block + 2 + 4 * b));
}

/* block: e, nibbles */
static inline void put_mxfp4(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 1);
    record[512 + o] = block[0];
}

/* block: 4 scales, and for each 8 bytes whose nibbles are (input i, input i + 8). The scale 0x7f
 * means 0, and the highest bit nothing. */
static inline void put_nvfp4(uint8_t *record, int o, const uint8_t *block) {
    for (int b = 0; b < 2; b++) {
        uint8_t *to = record + (size_t)b * 576;
        const uint8_t *from = block + 4 + 16 * b;
        for (int g = 0; g < 4; g++) {
            uint32_t near = load_word(from + g % 2 * 4) >> (g / 2 * 4) & 0x0f0f0f0fu;
            uint32_t far = load_word(from + 8 + g % 2 * 4) >> (g / 2 * 4) & 0x0f0f0f0fu;
            put_word(to, g, o, near | far << 4);
        }
        for (int half = 0; half < 2; half++) {
            const uint8_t scale = block[2 * b + half];
            to[512 + half * OCTAVO_BYTES_BYTES + o] = scale == 0x7f ? 0 : scale & 0x7f;
        }
    }
}

/* block: d, z, codes in the order of their part */
static inline void put_z(uint8_t *record, int o, const uint8_t *block, int words) {
    for (int g = 0; g < words; g++)
        put_word(record, g, o, load_word(block + 3 + 4 * g));
    put_half(record + words * 128, o, block);
    record[words * 128 + OCTAVO_HALVES_BYTES + o] = block[2];
}

static inline void put_z2(uint8_t *record, int o, const uint8_t *block) {
    put_z(record, o, block, 2);
}

static inline void put_z3(uint8_t *record, int o, const uint8_t *block) {
    put_z(record, o, block, 3);
}

static inline void put_z4(uint8_t *record, int o, const uint8_t *block) {
    put_z(record, o, block, 4);
}

static inline void put_z8(uint8_t *record, int o, const uint8_t *block) {
    put_z(record, o, block, 8);
}

static inline void put_z4_64(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    record[OCTAVO_HALVES_BYTES + o] = block[2];
    put_codes4(record + 96, o, block + 3);
    put_codes4(record + 96 + OCTAVO_CODES4_BYTES, o, block + 19);
}

/* block: d, 64 bytes */
static inline void put_f8(uint8_t *record, int o, const uint8_t *block) {
    memcpy(record + (size_t)o * 4, block, 4);
    for (int i = 0; i < OCTAVO_F8_INPUTS; i++)
        record[OCTAVO_F8_HEAD_BYTES + i * OCTAVO_PANEL + o] = block[4 + i];
}

/* Float types: a transposition of elements of 2 or 4 bytes, [32][n] to [n][32]. A cache line of a
 * row at a time: rows whose distance is a power of two share few cache sets. */
static OCTAVO_ALWAYS_INLINE void transpose(uint8_t *panel, source_rows rows, int64_t n,
                                           size_t element) {
    const int64_t run = (int64_t)(64 / element);
    for (int64_t i0 = 0; i0 < n; i0 += run) {
        const int64_t i1 = i0 + run < n ? i0 + run : n;
        for (int o = 0; o < rows.n_rows; o++) {
            const uint8_t *from = rows.first + (size_t)o * rows.row_bytes;
            uint8_t *to = panel + (size_t)o * element;
            for (int64_t i = i0; i < i1; i++)
                memcpy(to + (size_t)i * OCTAVO_PANEL * element, from + (size_t)i * element,
                       element);
        }
    }
}

/* The last pair of an odd row of BF16: its second half is zero. */
static void put_last_half(uint8_t *record, source_rows rows, int64_t k) {
    for (int o = 0; o < rows.n_rows; o++)
        memcpy(record + (size_t)o * 4,
               rows.first + (size_t)o * rows.row_bytes + (size_t)(k - 1) * 2, 2);
}

static void pack_floats(octavo_weight_type type, uint8_t *panel, source_rows rows, int64_t k) {
    if (rows.n_rows < OCTAVO_PANEL || k % 2) memset(panel, 0, octavo_weight_panel_bytes(type, k));
    if (type == OCTAVO_WEIGHT_F16) {
        transpose(panel, rows, k, 2);
    } else if (type == OCTAVO_WEIGHT_F32) {
        transpose(panel, rows, k, 4);
    } else {
        transpose(panel, rows, k / 2, 4);
        if (k % 2) put_last_half(panel + k / 2 * OCTAVO_PANEL * 4, rows, k);
    }
}

void octavo_weight_pack(octavo_weight_type type, uint8_t *panel, const uint8_t *source,
                        size_t row_bytes, int n_rows, int64_t k) {
    const source_rows rows = {source, row_bytes, n_rows};
    octavo_assert(n_rows >= 1 && n_rows <= OCTAVO_PANEL);
    octavo_assert(k % octavo_weight_info_of(type)->source_inputs == 0);
    switch (type) {
    case OCTAVO_WEIGHT_F32:
    case OCTAVO_WEIGHT_F16:
    case OCTAVO_WEIGHT_BF16:
        pack_floats(type, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_F8_E4M3:
        pack_records(put_f8, OCTAVO_WEIGHT_F8_E4M3, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_F8_E5M2:
        pack_records(put_f8, OCTAVO_WEIGHT_F8_E5M2, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Z2:
        pack_records(put_z2, OCTAVO_WEIGHT_Z2, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Z3:
        pack_records(put_z3, OCTAVO_WEIGHT_Z3, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Z4:
        pack_records(put_z4, OCTAVO_WEIGHT_Z4, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Z4_64:
        pack_records(put_z4_64, OCTAVO_WEIGHT_Z4_64, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Z8:
        pack_records(put_z8, OCTAVO_WEIGHT_Z8, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q8_0:
        pack_records(put_q8_0, OCTAVO_WEIGHT_Q8_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q4_0:
        pack_records(put_q4_0, OCTAVO_WEIGHT_Q4_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ4_NL:
        pack_records(put_q4_0, OCTAVO_WEIGHT_IQ4_NL, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q4_1:
        pack_records(put_q4_1, OCTAVO_WEIGHT_Q4_1, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q5_0:
        pack_records(put_q5_0, OCTAVO_WEIGHT_Q5_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q5_1:
        pack_records(put_q5_1, OCTAVO_WEIGHT_Q5_1, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q1_0:
        pack_records(put_q1_0, OCTAVO_WEIGHT_Q1_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_MXFP4:
        pack_records(put_mxfp4, OCTAVO_WEIGHT_MXFP4, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_NVFP4:
        pack_records(put_nvfp4, OCTAVO_WEIGHT_NVFP4, panel, rows, k);
        break;
    default:
        if (octavo_weight_layouts[type].bits)
            octavo_weight_pack_super(type, panel, rows, k);
        else
            octavo_weight_pack_grid(type, panel, rows, k);
        break;
    }
}
