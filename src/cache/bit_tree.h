/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of small integers that finds its next member in a few steps: a bit for each, and above 64
 * bits a bit that says whether any of them is set, level upon level.
 */
#ifndef OCTAVO_CACHE_BIT_TREE_H
#define OCTAVO_CACHE_BIT_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { OCTAVO_BIT_TREE_LEVELS = 6 }; /* 64^6 is more than INT32_MAX */

typedef struct octavo_bit_tree {
    uint64_t *words;                       /* all levels, the bits themselves first */
    int64_t size;                          /* members are 0..size-1 */
    int64_t level[OCTAVO_BIT_TREE_LEVELS]; /* first word of each level */
    int n_levels;
} octavo_bit_tree;

/* Empty set. False: no memory. 0 <= size <= INT32_MAX. */
bool octavo_bit_tree_init(octavo_bit_tree *tree, int64_t size);
void octavo_bit_tree_deinit(octavo_bit_tree *tree); /* takes a zero-initialised tree too */

bool octavo_bit_tree_has(const octavo_bit_tree *tree, int64_t i);
void octavo_bit_tree_add(octavo_bit_tree *tree, int64_t i);
void octavo_bit_tree_remove(octavo_bit_tree *tree, int64_t i);
/* The least member that is at least `from`, or -1. from >= 0. */
int64_t octavo_bit_tree_next(const octavo_bit_tree *tree, int64_t from);

#endif
