/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs of tokens merge, and in what order: a hash table from two ids to a rank.
 */
#ifndef OCTAVO_TEXT_BPE_PAIRS_H
#define OCTAVO_TEXT_BPE_PAIRS_H

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct octavo_bpe_pair {
    int32_t left, right; /* left is -1 where the table is free */
    uint32_t rank;
} octavo_bpe_pair;

/* Immutable once filled. Open addressing, at most two thirds full. */
typedef struct octavo_bpe_pairs {
    octavo_bpe_pair *entries; /* [mask + 1] */
    uint32_t mask;
} octavo_bpe_pairs;

/* An empty table with room for n pairs. False without memory. */
bool octavo_bpe_pairs_init(octavo_bpe_pairs *pairs, octavo_arena *arena, size_t n);
/* Enters a pair; one that is there already gets the new rank. */
void octavo_bpe_pairs_set(octavo_bpe_pairs *pairs, int32_t left, int32_t right, uint32_t rank);
/* octavo_bpe_rules.rank over a table of pairs; the text does not matter. */
uint32_t octavo_bpe_pairs_rank(const void *pairs, int32_t left, int32_t right, const char *text,
                               uint32_t begin, uint32_t end);

#endif
