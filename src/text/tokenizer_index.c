/* SPDX-License-Identifier: Apache-2.0
 *
 * The token index. Linear probing; the stored half of the hash spares most comparisons of texts.
 */
#include "text/tokenizer_index.h"

#include <string.h>

/* Multiply and fold, eight bytes at a time. The length goes in first, so that a text padded with
 * zeros differs from the shorter one. */
static uint32_t text_hash(const char *text, size_t length) {
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t h = length * k;
    uint64_t word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * k;
        h ^= h >> 32;
    }
    if (length != 0) {
        word = 0;
        memcpy(&word, text, length);
        h = (h ^ word) * k;
        h ^= h >> 32;
    }
    h *= k;
    return (uint32_t)(h >> 32);
}

bool octavo_token_index_init(octavo_token_index *index, octavo_arena *arena,
                             const octavo_token_texts *texts, size_t n) {
    size_t size = 16;
    while (size < n + n / 2)
        size *= 2;
    octavo_index_entry *entries = octavo_arena_alloc(arena, size * sizeof(*entries));
    if (entries == NULL) return false;
    for (size_t i = 0; i < size; i++)
        entries[i].id = -1;
    *index = (octavo_token_index){.texts = texts, .entries = entries, .mask = (uint32_t)(size - 1)};
    return true;
}

/* Where this text is, or the free place where it would go. */
static uint32_t find_place(const octavo_token_index *index, const char *text, size_t length,
                           uint32_t hash) {
    uint32_t at = hash & index->mask;
    for (;; at = (at + 1) & index->mask) {
        const octavo_index_entry *entry = &index->entries[at];
        if (entry->id < 0) return at;
        if (entry->hash != hash) continue;
        size_t other_length;
        const char *other = octavo_token_text(index->texts, entry->id, &other_length);
        if (other_length == length && memcmp(other, text, length) == 0) return at;
    }
}

void octavo_token_index_add(octavo_token_index *index, int32_t id) {
    size_t length;
    const char *text = octavo_token_text(index->texts, id, &length);
    if (length == 0) return;
    uint32_t hash = text_hash(text, length);
    uint32_t at = find_place(index, text, length, hash);
    if (index->entries[at].id >= 0) index->has_twins = true;
    index->entries[at] = (octavo_index_entry){.hash = hash, .id = id};
    if (length > index->longest) index->longest = length;
}

int32_t octavo_token_index_find(const octavo_token_index *index, const char *text, size_t length) {
    if (length == 0 || length > index->longest) return -1;
    return index->entries[find_place(index, text, length, text_hash(text, length))].id;
}
