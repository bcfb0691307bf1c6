/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter of neighbouring characters.
 */
#include "text/bpe_neighbours.h"

#include "text/tokenizer_utf8.h"

enum { NEIGHBOUR_BITS = 20 }; /* log2 of the bits in the filter */

static uint32_t neighbour_bit(uint32_t left, uint32_t right) {
    uint64_t key = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(key >> (64 - NEIGHBOUR_BITS));
}

bool octavo_bpe_neighbours_init(octavo_bpe_neighbours *neighbours, octavo_arena *arena) {
    neighbours->bits = octavo_arena_alloc(arena, ((size_t)1 << NEIGHBOUR_BITS) / 8);
    return neighbours->bits != NULL;
}

void octavo_bpe_neighbours_add(octavo_bpe_neighbours *neighbours, const char *text, size_t length) {
    uint32_t left = 0;
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t right = octavo_utf8_read(text + at, &size);
        uint32_t bit = neighbour_bit(left, right);
        if (at > 0) neighbours->bits[bit / 64] |= (uint64_t)1 << (bit % 64);
        left = right;
    }
}

bool octavo_bpe_neighbours_has(const octavo_bpe_neighbours *neighbours, uint32_t left,
                               uint32_t right) {
    uint32_t bit = neighbour_bit(left, right);
    return (neighbours->bits[bit / 64] >> (bit % 64) & 1) != 0;
}
