/* SPDX-License-Identifier: Apache-2.0
 *
 * From rows of gguf blocks to panels. A packed record is, for the most part, the rows' 32-bit words
 * transposed; so packers work on words of four codes. Words are little-endian, as gguf is.
 */
#include "base/compiler.h"
#include "kernels/weight.h"
#include "kernels/weight_layout.h"

#include <string.h>

enum { MAX_SOURCE_BYTES = 210 }; /* of a block of any quantised type */

static inline uint32_t load_word(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Word g of output o in a run of words [g][32]. */
static inline void put_word(uint8_t *part, int g, int o, uint32_t word) {
    memcpy(part + ((size_t)g * OCTAVO_PANEL + (size_t)o) * 4, &word, sizeof word);
}

static inline void put_half(uint8_t *part, int o, const uint8_t *half) {
    memcpy(part + (size_t)o * 2, half, 2);
}

/* Each put_* stores one block of the file as output o of a record. */

/* block: d, 32 signed codes */
static inline void put_q8_0(uint8_t *record, int o, const uint8_t *block) {
    for (int g = 0; g < 8; g++)
        put_word(record, g, o, load_word(block + 2 + 4 * g) ^ 0x80808080u);
    put_half(record + OCTAVO_Q8_0_D, o, block);
}

/* 16 bytes whose nibbles already are (input i, input i + 16) */
static inline void put_codes4(uint8_t *codes, int o, const uint8_t *nibbles) {
    for (int g = 0; g < 4; g++)
        put_word(codes, g, o, load_word(nibbles + 4 * g));
}

/* block: d, nibbles */
static inline void put_q4_0(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 2);
    put_half(record + OCTAVO_Q4_0_D, o, block);
}

/* block: d, m, nibbles */
static inline void put_q4_1(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 4);
    put_half(record + OCTAVO_Q4_1_D, o, block);
    put_half(record + OCTAVO_Q4_1_M, o, block + 2);
}

/* Bits 0, 4, 8, ... 28 of x as bits 0..7. */
static inline uint32_t every_fourth_bit(uint32_t x) {
    x &= 0x11111111u;
    x = (x | x >> 3) & 0x03030303u;
    x = (x | x >> 6) & 0x000f000fu;
    return (x | x >> 12) & 0xffu;
}

/* block: d, 32 bits (bit i: bit 4 of code i), nibbles */
static inline void put_q5_0(uint8_t *record, int o, const uint8_t *block) {
    put_codes4(record, o, block + 6);
    uint32_t bits = load_word(block + 2), high = 0;
    for (int j = 0; j < 4; j++)
        high |= every_fourth_bit(bits >> j) << (8 * j);
    put_word(record + OCTAVO_Q5_0_HIGH, 0, o, high);
    put_half(record + OCTAVO_Q5_0_D, o, block);
}

/* block: d, dmin, 12 bytes of 6-bit scales and mins, 4 x 32 bytes (lower nibbles: block 2i, upper
 * nibbles: block 2i + 1) */
static inline void put_q4_k(uint8_t *record, int o, const uint8_t *block) {
    const uint8_t *packed = block + 4;
    put_half(record + OCTAVO_Q4_K_D, o, block);
    put_half(record + OCTAVO_Q4_K_DMIN, o, block + 2);
    for (int b = 0; b < OCTAVO_SUPER_BLOCKS; b++) {
        uint8_t *to = record + OCTAVO_Q4_K_HEAD + (size_t)b * OCTAVO_Q4_K_BLOCK;
        const uint8_t *from = block + 16 + b / 2 * 32;
        for (int g = 0; g < 4; g++) {
            uint32_t near = load_word(from + 4 * g), far = load_word(from + 16 + 4 * g);
            put_word(to, g, o,
                     b % 2 ? (near >> 4 & 0x0f0f0f0fu) | (far & 0xf0f0f0f0u)
                           : (near & 0x0f0f0f0fu) | (far & 0x0f0f0f0fu) << 4);
        }
        if (b < 4) {
            to[OCTAVO_Q4_K_SCALE + o] = packed[b] & 63;
            to[OCTAVO_Q4_K_MIN + o] = packed[b + 4] & 63;
        } else {
            to[OCTAVO_Q4_K_SCALE + o] = (uint8_t)((packed[b + 4] & 15) | packed[b - 4] >> 6 << 4);
            to[OCTAVO_Q4_K_MIN + o] = (uint8_t)(packed[b + 4] >> 4 | packed[b] >> 6 << 4);
        }
    }
}

/* block: 2 x 64 bytes of lower nibbles, 2 x 32 bytes of upper bit pairs, 16 signed scales, d.
 * Each half holds four runs of 32 codes: run c has its nibbles in bytes 32 * (c % 2) on, lower
 * nibbles for c < 2, and its pairs at bit 2c. */
static inline void put_q6_k(uint8_t *record, int o, const uint8_t *block) {
    put_half(record + OCTAVO_Q6_K_D, o, block + 208);
    for (int b = 0; b < OCTAVO_SUPER_BLOCKS; b++) {
        uint8_t *to = record + OCTAVO_Q6_K_HEAD + (size_t)b * OCTAVO_Q6_K_BLOCK;
        const int c = b % 4;
        const uint8_t *low = block + b / 4 * 64 + c % 2 * 32;
        const uint8_t *high = block + 128 + b / 4 * 32;
        for (int g = 0; g < 4; g++) {
            uint32_t near = load_word(low + 4 * g) >> (c / 2 * 4) & 0x0f0f0f0fu;
            uint32_t far = load_word(low + 16 + 4 * g) >> (c / 2 * 4) & 0x0f0f0f0fu;
            put_word(to, g, o, near | far << 4);
        }
        for (int p = 0; p < 2; p++) {
            uint32_t pairs = 0;
            for (int g = 0; g < 4; g++)
                pairs |= (load_word(high + 16 * p + 4 * g) >> (2 * c) & 0x03030303u) << (2 * g);
            put_word(to + OCTAVO_Q6_K_HIGH, p, o, pairs);
        }
        to[OCTAVO_Q6_K_SCALE + o] = block[192 + 2 * b];
        to[OCTAVO_Q6_K_SCALE + OCTAVO_SCALES_BYTES + o] = block[192 + 2 * b + 1];
    }
}

/* Where the rows of a panel come from. */
typedef struct source_rows {
    const uint8_t *first;
    size_t row_bytes;
    int n_rows;
} source_rows;

typedef void put_fn(uint8_t *record, int o, const uint8_t *block);

/* `put` and `type` are constants at each call, so that every type gets a loop of its own. */
static OCTAVO_ALWAYS_INLINE void pack_records(put_fn *put, octavo_weight_type type, uint8_t *panel,
                                              source_rows rows, int64_t k) {
    static const uint8_t zeros[MAX_SOURCE_BYTES];
    const octavo_weight_info *info = octavo_weight_info_of(type);
    const int64_t n_records = k / info->record_inputs;
    for (int64_t i = 0; i < n_records; i++) {
        uint8_t *record = panel + i * info->record_bytes;
        const uint8_t *block = rows.first + i * info->source_bytes;
        for (int o = 0; o < rows.n_rows; o++)
            put(record, o, block + (size_t)o * rows.row_bytes);
        for (int o = rows.n_rows; o < OCTAVO_PANEL; o++)
            put(record, o, zeros);
    }
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
    case OCTAVO_WEIGHT_Q8_0:
        pack_records(put_q8_0, OCTAVO_WEIGHT_Q8_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q4_0:
        pack_records(put_q4_0, OCTAVO_WEIGHT_Q4_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q4_1:
        pack_records(put_q4_1, OCTAVO_WEIGHT_Q4_1, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q5_0:
        pack_records(put_q5_0, OCTAVO_WEIGHT_Q5_0, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q4_K:
        pack_records(put_q4_k, OCTAVO_WEIGHT_Q4_K, panel, rows, k);
        break;
    case OCTAVO_WEIGHT_Q6_K:
        pack_records(put_q6_k, OCTAVO_WEIGHT_Q6_K, panel, rows, k);
        break;
    default:
        pack_floats(type, panel, rows, k);
        break;
    }
}
