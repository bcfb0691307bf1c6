/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie of added tokens.
 */
#include "text/tokenizer_added.h"

#include "base/memory.h"

/* The child of `parent` (0: the root) for `byte`, made when there is none; 0 without memory. */
static uint32_t child_make(octavo_added *added, uint32_t parent, uint8_t byte) {
    uint32_t first = parent == 0 ? added->roots[byte] : added->nodes[parent].child;
    for (uint32_t at = first; at != 0; at = added->nodes[at].sibling)
        if (added->nodes[at].byte == byte) return at;

    if (added->n_nodes >= added->capacity) {
        size_t capacity = added->capacity == 0 ? 64 : added->capacity * 2;
        octavo_added_node *nodes = octavo_realloc(added->nodes, capacity * sizeof(*nodes));
        if (nodes == NULL) return 0;
        added->nodes = nodes;
        added->capacity = capacity;
        if (added->n_nodes == 0) added->n_nodes = 1;
    }
    uint32_t node = (uint32_t)added->n_nodes++;
    added->nodes[node] = (octavo_added_node){.byte = byte, .id = -1};
    if (parent == 0) {
        added->roots[byte] = node;
    } else {
        added->nodes[node].sibling = first;
        added->nodes[parent].child = node;
    }
    return node;
}

bool octavo_added_insert(octavo_added *added, const char *text, size_t length, int32_t id) {
    if (length > UINT32_MAX / 2 - added->n_nodes) return false;
    uint32_t node = 0;
    for (size_t i = 0; i < length; i++) {
        node = child_make(added, node, (uint8_t)text[i]);
        if (node == 0) return false;
    }
    added->nodes[node].id = id;
    return true;
}

void octavo_added_deinit(octavo_added *added) {
    octavo_free(added->nodes);
    *added = (octavo_added){0};
}

uint32_t octavo_added_step(const octavo_added *added, uint32_t node, uint8_t byte) {
    if (node == 0) return added->roots[byte];
    uint32_t child = added->nodes[node].child;
    while (child != 0 && added->nodes[child].byte != byte)
        child = added->nodes[child].sibling;
    return child;
}

/* The longest token that starts at text[from], or -1. */
static int32_t longest_at(const octavo_added *added, const char *text, size_t length, size_t from,
                          size_t *end) {
    const octavo_added_node *nodes = added->nodes;
    int32_t id = -1;
    uint32_t node = added->roots[(uint8_t)text[from]];
    for (size_t at = from + 1; node != 0; at++) {
        if (nodes[node].id >= 0) {
            id = nodes[node].id;
            *end = at;
        }
        if (at == length) break;
        node = octavo_added_step(added, node, (uint8_t)text[at]);
    }
    return id;
}

int32_t octavo_added_find(const octavo_added *added, const char *text, size_t length, size_t from,
                          size_t *begin, size_t *end) {
    if (added->n_nodes == 0) return -1;
    for (size_t at = from; at < length; at++) {
        if (added->roots[(uint8_t)text[at]] == 0) continue;
        int32_t id = longest_at(added, text, length, at, end);
        if (id >= 0) {
            *begin = at;
            return id;
        }
    }
    return -1;
}
