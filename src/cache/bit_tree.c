/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of integers behind the page pool.
 */
#include "cache/bit_tree.h"

#include "base/compiler.h"
#include "base/memory.h"

enum { WORD = 64 };

bool octavo_bit_tree_init(octavo_bit_tree *tree, int64_t size) {
    octavo_assert(size >= 0 && size <= INT32_MAX);
    octavo_bit_tree made = {.size = size};
    int64_t words = 0, bits = size;
    do {
        made.level[made.n_levels++] = words;
        bits = bits / WORD + 1;
        words += bits;
    } while (bits > 1);
    made.words = octavo_alloc_zero((size_t)words, sizeof *made.words);
    if (made.words == NULL) return false;
    *tree = made;
    return true;
}

void octavo_bit_tree_deinit(octavo_bit_tree *tree) {
    octavo_free(tree->words);
    *tree = (octavo_bit_tree){0};
}

bool octavo_bit_tree_has(const octavo_bit_tree *tree, int64_t i) {
    return tree->words[i / WORD] >> i % WORD & 1;
}

void octavo_bit_tree_add(octavo_bit_tree *tree, int64_t i) {
    for (int k = 0; k < tree->n_levels; k++, i /= WORD)
        tree->words[tree->level[k] + i / WORD] |= (uint64_t)1 << i % WORD;
}

void octavo_bit_tree_remove(octavo_bit_tree *tree, int64_t i) {
    for (int k = 0; k < tree->n_levels; k++, i /= WORD) {
        uint64_t *word = &tree->words[tree->level[k] + i / WORD];
        *word &= ~((uint64_t)1 << i % WORD);
        if (*word != 0) return;
    }
}

/* Number of the lowest bit of a word that has one. */
static int lowest(uint64_t word) {
    int n = 0;
    for (int half = 32; half > 0; half /= 2) {
        if ((word & (((uint64_t)1 << half) - 1)) == 0) {
            word >>= half;
            n += half;
        }
    }
    return n;
}

int64_t octavo_bit_tree_next(const octavo_bit_tree *tree, int64_t from) {
    if (from >= tree->size) return -1;
    /* up, until a word has a member at `from` or later ... */
    int k = 0;
    int64_t i = from;
    for (;; k++) {
        if (k == tree->n_levels) return -1;
        uint64_t word = tree->words[tree->level[k] + i / WORD] >> i % WORD;
        if (word != 0) {
            i += lowest(word);
            break;
        }
        i = i / WORD + 1; /* the words after this one; every level has one word to spare */
    }
    /* ... and down to its least */
    for (; k > 0; k--)
        i = i * WORD + lowest(tree->words[tree->level[k - 1] + i]);
    return i;
}
