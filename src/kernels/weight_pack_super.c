/* SPDX-License-Identifier: Apache-2.0
 *
 * From rows of gguf blocks to panels: the types whose blocks are 8 blocks of 32 inputs, without
 * grids.
 */
#include "kernels/weight_pack.h"

enum { BLOCKS = 8 };

/* Where a part of block b of the record lies; `type` is a constant. */
static OCTAVO_ALWAYS_INLINE uint8_t *block_of(octavo_weight_type type, uint8_t *record, int b) {
    const octavo_weight_layout *layout = &octavo_weight_layouts[type];
    return record + layout->head_bytes + b * layout->block_bytes;
}

static inline uint64_t load_two_words(const uint8_t *p) {
    uint64_t words;
    memcpy(&words, p, sizeof words);
    return words;
}

/* 32 bytes, code i in bits `shift` on of byte i, as codes2 or high2 */
static inline void put_codes2(uint8_t *part, int o, const uint8_t *from, int shift) {
    const uint64_t mask = UINT64_C(0x0303030303030303);
    for (int p = 0; p < 2; p++) {
        uint64_t two = (load_two_words(from + 16 * p) >> shift & mask) |
                       (load_two_words(from + 16 * p + 8) >> shift & mask) << 4;
        put_word(part, p, o, (uint32_t)two | (uint32_t)(two >> 32) << 2);
    }
}

/* 32 bytes, bit `shift` of byte i, as high1 */
static inline void put_high1(uint8_t *part, int o, const uint8_t *from, int shift) {
    const uint64_t mask = UINT64_C(0x0101010101010101);
    uint64_t two = 0;
    for (int i = 0; i < 4; i++)
        two |= (load_two_words(from + 8 * i) >> shift & mask) << (2 * i);
    put_word(part, 0, o, (uint32_t)two | (uint32_t)(two >> 32) << 1);
}

/* 32 bytes, code i in the nibble at bit `shift` of byte i, as codes4 */
static inline void put_nibbles(uint8_t *part, int o, const uint8_t *from, int shift) {
    for (int g = 0; g < 4; g++) {
        uint32_t near = load_word(from + 4 * g) >> shift & 0x0f0f0f0fu;
        uint32_t far = load_word(from + 16 + 4 * g) >> shift & 0x0f0f0f0fu;
        put_word(part, g, o, near | far << 4);
    }
}

/* block: 16 bytes of scales (lower) and mins (upper nibbles), 2 x 32 bytes of bit pairs, d, dmin.
 * Each 32 bytes hold four runs of 32 codes: run c at bit 2c. */
static inline void put_q2_k(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block + 80);
    put_half(record + OCTAVO_HALVES_BYTES, o, block + 82);
    for (int b = 0; b < BLOCKS; b++) {
        uint8_t *to = block_of(OCTAVO_WEIGHT_Q2_K, record, b);
        const uint8_t near = block[2 * b], far = block[2 * b + 1];
        put_codes2(to, o, block + 16 + b / 4 * 32, b % 4 * 2);
        to[256 + o] = (uint8_t)((near & 15) | (far & 15) << 4);
        to[288 + o] = (uint8_t)(near >> 4 | (far & 0xf0));
    }
}

/* block: 32 bytes of upper bits (bit b: run b), bit pairs as in Q2_K, 12 bytes of 6-bit scales, d.
 * Scale i less 32: four bits from the nibbles of the first 8 bytes, two from the last 4. */
static inline void put_q3_k(uint8_t *record, int o, const uint8_t *block) {
    const uint8_t *packed = block + 96;
    put_half(record, o, block + 108);
    for (int b = 0; b < BLOCKS; b++) {
        uint8_t *to = block_of(OCTAVO_WEIGHT_Q3_K, record, b);
        put_codes2(to, o, block + 32 + b / 4 * 32, b % 4 * 2);
        put_high1(to + 256, o, block, b);
        for (int half = 0; half < 2; half++) {
            const int i = 2 * b + half;
            int scale = (packed[i % 8] >> (i / 8 * 4) & 15) | (packed[8 + i % 4] >> (i / 4 * 2) & 3)
                                                                  << 4;
            to[384 + half * OCTAVO_BYTES_BYTES + o] = (uint8_t)(scale - 32);
        }
    }
}

/* 12 bytes: 6-bit scale and min of block b */
static inline void put_scale_min(uint8_t *scale, uint8_t *min, const uint8_t *packed, int b) {
    if (b < 4) {
        *scale = packed[b] & 63;
        *min = packed[b + 4] & 63;
    } else {
        *scale = (uint8_t)((packed[b + 4] & 15) | packed[b - 4] >> 6 << 4);
        *min = (uint8_t)(packed[b + 4] >> 4 | packed[b] >> 6 << 4);
    }
}

/* block: d, dmin, 12 bytes of 6-bit scales and mins, 4 x 32 bytes (lower nibbles: block 2i, upper
 * nibbles: block 2i + 1) */
static inline void put_q4_k(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    put_half(record + OCTAVO_HALVES_BYTES, o, block + 2);
    for (int b = 0; b < BLOCKS; b++) {
        uint8_t *to = block_of(OCTAVO_WEIGHT_Q4_K, record, b);
        put_nibbles(to, o, block + 16 + b / 2 * 32, b % 2 * 4);
        put_scale_min(to + 512 + o, to + 544 + o, block + 4, b);
    }
}

/* as Q4_K, with 32 bytes of upper bits (bit b: block b) before the nibbles */
static inline void put_q5_k(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block);
    put_half(record + OCTAVO_HALVES_BYTES, o, block + 2);
    for (int b = 0; b < BLOCKS; b++) {
        uint8_t *to = block_of(OCTAVO_WEIGHT_Q5_K, record, b);
        put_nibbles(to, o, block + 48 + b / 2 * 32, b % 2 * 4);
        put_high1(to + 512, o, block + 16, b);
        put_scale_min(to + 640 + o, to + 672 + o, block + 4, b);
    }
}

/* block: 2 x 64 bytes of lower nibbles, 2 x 32 bytes of upper bit pairs, 16 signed scales, d.
 * Each half holds four runs of 32 codes: run c has its nibbles in bytes 32 * (c % 2) on, lower
 * nibbles for c < 2, and its pairs at bit 2c. */
static inline void put_q6_k(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block + 208);
    for (int b = 0; b < BLOCKS; b++) {
        uint8_t *to = block_of(OCTAVO_WEIGHT_Q6_K, record, b);
        put_nibbles(to, o, block + b / 4 * 64 + b % 2 * 32, b % 4 / 2 * 4);
        put_codes2(to + 512, o, block + 128 + b / 4 * 32, b % 4 * 2);
        to[768 + o] = block[192 + 2 * b];
        to[800 + o] = block[192 + 2 * b + 1];
    }
}

/* block: d, 16 bits (upper two of 8 scales), 4 bytes (lower nibbles of 8 scales, less 32), 8 x 16
 * bytes whose nibbles are (input i, input i + 16) */
static inline void put_iq4_xs(uint8_t *record, int o, const uint8_t *block) {
    const int high = load_half(block + 2);
    put_half(record, o, block);
    for (int b = 0; b < BLOCKS; b++) {
        uint8_t *to = block_of(OCTAVO_WEIGHT_IQ4_XS, record, b);
        const int low = block[4 + b / 2] >> (b % 2 * 4) & 15;
        put_codes4(to, o, block + 8 + 16 * b);
        to[512 + o] = (uint8_t)((low | (high >> (2 * b) & 3) << 4) - 32);
    }
}

/* block: bit pairs as in Q2_K, d */
static inline void put_tq2_0(uint8_t *record, int o, const uint8_t *block) {
    put_half(record, o, block + 64);
    for (int b = 0; b < BLOCKS; b++)
        put_codes2(block_of(OCTAVO_WEIGHT_TQ2_0, record, b), o, block + b / 4 * 32, b % 4 * 2);
}

/* n bytes, each `digits` digits of base 3 in the fraction of a byte: digit t of byte i becomes
 * code[t * n + i] */
static inline void base_3(uint8_t *code, const uint8_t *from, int n, int digits) {
    for (int t = 0, power = 1; t < digits; t++, power *= 3)
        for (int i = 0; i < n; i++)
            code[t * n + i] = (uint8_t)((from[i] * power & 255) * 3 >> 8);
}

/* block: 32 and 16 bytes of 5 digits, 4 of 4, d */
static inline void put_tq1_0(uint8_t *record, int o, const uint8_t *block) {
    uint8_t code[256];
    base_3(code, block, 32, 5);
    base_3(code + 160, block + 32, 16, 5);
    base_3(code + 240, block + 48, 4, 4);
    put_half(record, o, block + 52);
    for (int b = 0; b < BLOCKS; b++)
        put_codes2(block_of(OCTAVO_WEIGHT_TQ1_0, record, b), o, code + 32 * b, 0);
}

void octavo_weight_pack_super(octavo_weight_type type, uint8_t *panel, source_rows rows,
                              int64_t k) {
    switch (type) {
    case OCTAVO_WEIGHT_Q2_K:
        pack_records(put_q2_k, OCTAVO_WEIGHT_Q2_K, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q3_K:
        pack_records(put_q3_k, OCTAVO_WEIGHT_Q3_K, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q4_K:
        pack_records(put_q4_k, OCTAVO_WEIGHT_Q4_K, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q5_K:
        pack_records(put_q5_k, OCTAVO_WEIGHT_Q5_K, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q6_K:
        pack_records(put_q6_k, OCTAVO_WEIGHT_Q6_K, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_IQ4_XS:
        pack_records(put_iq4_xs, OCTAVO_WEIGHT_IQ4_XS, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_TQ1_0:
        pack_records(put_tq1_0, OCTAVO_WEIGHT_TQ1_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_TQ2_0:
        pack_records(put_tq2_0, OCTAVO_WEIGHT_TQ2_0, panel, rows, k);
        break;
    default:
        octavo_assert(!"a type of super-blocks");
        break;
    }
}
