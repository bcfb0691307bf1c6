/* SPDX-License-Identifier: Apache-2.0
 *
 * Which characters stand side by side in some token. Two that do not can never end up in one token,
 * and a text may be cut between them before it is merged: the ids are the same, the words short.
 */
#ifndef OCTAVO_TEXT_BPE_NEIGHBOURS_H
#define OCTAVO_TEXT_BPE_NEIGHBOURS_H

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A filter: a set bit may be another pair's (then a word is longer than it need be); a clear one
 * never lies. Immutable once filled. */
typedef struct octavo_bpe_neighbours {
    uint64_t *bits;
} octavo_bpe_neighbours;

/* An empty filter. False without memory. */
bool octavo_bpe_neighbours_init(octavo_bpe_neighbours *neighbours, octavo_arena *arena);
/* Adds the pairs of a token's text, which is valid UTF-8. */
void octavo_bpe_neighbours_add(octavo_bpe_neighbours *neighbours, const char *text, size_t length);
bool octavo_bpe_neighbours_has(const octavo_bpe_neighbours *neighbours, uint32_t left,
                               uint32_t right);

#endif
