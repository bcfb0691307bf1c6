/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that are looked for in the text as a whole, before it is split: special and user-defined
 * ones. The leftmost match wins, and of those the longest.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_ADDED_H
#define OCTAVO_TEXT_TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A trie over bytes; the children of a node are a list. Immutable once filled. Zero-initialised is
 * empty and may be searched. */
typedef struct octavo_added_node {
    uint8_t byte;
    int32_t id;       /* the token that ends here, or -1 */
    uint32_t child;   /* first child, or 0 */
    uint32_t sibling; /* next node of the same parent, or 0 */
} octavo_added_node;

typedef struct octavo_added {
    octavo_added_node *nodes; /* [n_nodes]; node 0 is not used */
    size_t n_nodes, capacity;
    uint32_t roots[256]; /* node of a first byte, or 0 */
} octavo_added;

/* Adds a text, which must not be empty. False without memory. */
bool octavo_added_insert(octavo_added *added, const char *text, size_t length, int32_t id);
void octavo_added_deinit(octavo_added *added);

/* The next match in text[from..length): its token and place, or -1. Time grows with the text times
 * the longest added token. */
int32_t octavo_added_find(const octavo_added *added, const char *text, size_t length, size_t from,
                          size_t *begin, size_t *end);

/* The child of a node (0: the root) for a byte, or 0: for walking the trie as a set of texts. */
uint32_t octavo_added_step(const octavo_added *added, uint32_t node, uint8_t byte);

#endif
