/* SPDX-License-Identifier: Apache-2.0
 *
 * Which token has this text: a hash table over texts that lie in one run of bytes.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_INDEX_H
#define OCTAVO_TEXT_TOKENIZER_INDEX_H

#include "base/memory.h"

#include <stdint.h>

/* The texts of all tokens, one behind the other: text i is bytes[offsets[i] .. offsets[i + 1]). */
typedef struct octavo_token_texts {
    char *bytes;
    uint32_t *offsets; /* [n + 1] */
} octavo_token_texts;

static inline const char *octavo_token_text(const octavo_token_texts *texts, int32_t id,
                                            size_t *length) {
    uint32_t begin = texts->offsets[id];
    *length = texts->offsets[id + 1] - begin;
    return texts->bytes + begin;
}

typedef struct octavo_index_entry {
    uint32_t hash;
    int32_t id; /* -1: free */
} octavo_index_entry;

/* Immutable once filled. Open addressing, at most two thirds full. */
typedef struct octavo_token_index {
    const octavo_token_texts *texts;
    octavo_index_entry *entries; /* [mask + 1] */
    uint32_t mask;
    size_t longest; /* bytes of the longest text in the table */
    bool has_twins; /* some text was added more than once */
} octavo_token_index;

/* An empty index with room for `n` texts. False without memory. */
bool octavo_token_index_init(octavo_token_index *index, octavo_arena *arena,
                             const octavo_token_texts *texts, size_t n);

/* Adds token `id` by its text; it takes the place of a token with the same text. Empty texts are
 * not added. */
void octavo_token_index_add(octavo_token_index *index, int32_t id);

/* The token with this text, or -1. */
int32_t octavo_token_index_find(const octavo_token_index *index, const char *text, size_t length);

#endif
