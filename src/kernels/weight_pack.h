/* SPDX-License-Identifier: Apache-2.0
 *
 * What the packers of weight_pack*.c share. A packed record is, for the most part, the rows' 32-bit
 * words transposed; so packers work on words of four codes. Words are little-endian, as gguf is.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_PACK_H
#define OCTAVO_KERNELS_WEIGHT_PACK_H

#include "base/compiler.h"
#include "kernels/weight_layout.h"

#include <string.h>

enum { OCTAVO_MAX_SOURCE_BYTES = 210 }; /* of a block of any quantised type */

static inline uint16_t load_half(const uint8_t *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return half;
}

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

/* 16 bytes whose nibbles already are (input i, input i + 16) */
static inline void put_codes4(uint8_t *codes, int o, const uint8_t *nibbles) {
    for (int g = 0; g < 4; g++)
        put_word(codes, g, o, load_word(nibbles + 4 * g));
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
    static const uint8_t zeros[OCTAVO_MAX_SOURCE_BYTES];
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

/* Types of super-blocks without and with grids; rows as above. */
void octavo_weight_pack_super(octavo_weight_type type, uint8_t *panel, source_rows rows, int64_t k);
void octavo_weight_pack_grid(octavo_weight_type type, uint8_t *panel, source_rows rows, int64_t k);

#endif
