/* SPDX-License-Identifier: Apache-2.0
 *
 * The merging itself. Words of ordinary length are searched again for every merge, which is fastest
 * for them; long ones keep their pairs in a queue, so that a text of one letter takes n log n
 * steps. A queued pair is out of date when its symbol's rank has changed: a rank names the text
 * that a merge makes, and a symbol's text and that of its neighbour only ever grow, so a rank never
 * returns to a symbol.
 */
#include "text/bpe.h"

#include "base/error.h"
#include "base/memory.h"

#define LONG_WORD 48 /* symbols */

octavo_status octavo_bpe_word_begin(octavo_bpe_word *word, const char *text, uint32_t length,
                                    uint32_t n_symbols, octavo_error *error) {
    word->text = text;
    word->length = length;
    word->n_symbols = 0;
    if (n_symbols <= word->capacity) return OCTAVO_OK;

    uint32_t capacity = n_symbols < 64 ? 64 : n_symbols;
    size_t bytes;
    octavo_bpe_symbol *symbols = NULL;
    if (octavo_size_mul(capacity, sizeof(*symbols), &bytes)) {
        octavo_free(word->symbols); /* nothing in it is wanted any more */
        word->symbols = NULL;
        word->capacity = 0;
        symbols = octavo_alloc(bytes);
    }
    if (symbols == NULL)
        return octavo_fail_memory(error, "symbols of a text",
                                  (uint64_t)capacity * sizeof(*symbols));
    word->symbols = symbols;
    word->capacity = capacity;
    return OCTAVO_OK;
}

void octavo_bpe_word_deinit(octavo_bpe_word *word) {
    octavo_free(word->symbols);
    octavo_bpe_queue_deinit(&word->queue);
    *word = (octavo_bpe_word){0};
}

/* Looks up the rank of the pair that starts at symbol `at`. */
static void update_rank(octavo_bpe_word *word, const octavo_bpe_rules *rules, uint32_t at) {
    octavo_bpe_symbol *left = &word->symbols[at];
    left->rank = OCTAVO_BPE_NONE;
    if (left->next == OCTAVO_BPE_NONE) return;
    const octavo_bpe_symbol *right = &word->symbols[left->next];
    uint32_t end = right->next == OCTAVO_BPE_NONE ? word->length : word->symbols[right->next].begin;
    left->rank = rules->rank(rules->table, left->id, right->id, word->text, left->begin, end);
}

/* Merges the pair at `at`; its symbol stands for both, the right one leaves the line. */
static void merge_pair(octavo_bpe_word *word, const octavo_bpe_rules *rules, uint32_t at) {
    octavo_bpe_symbol *left = &word->symbols[at];
    octavo_bpe_symbol *right = &word->symbols[left->next];
    left->id = rules->results[left->rank];
    left->next = right->next;
    if (left->next != OCTAVO_BPE_NONE) word->symbols[left->next].previous = at;
    right->rank = OCTAVO_BPE_NONE;
    update_rank(word, rules, at);
    if (left->previous != OCTAVO_BPE_NONE) update_rank(word, rules, left->previous);
}

static void merge_short(octavo_bpe_word *word, const octavo_bpe_rules *rules) {
    const octavo_bpe_symbol *symbols = word->symbols;
    for (;;) {
        uint32_t best = 0;
        for (uint32_t at = symbols[0].next; at != OCTAVO_BPE_NONE; at = symbols[at].next)
            if (symbols[at].rank < symbols[best].rank ||
                (symbols[at].rank == symbols[best].rank && symbols[at].id < symbols[best].id))
                best = at;
        if (symbols[best].rank == OCTAVO_BPE_NONE) return;
        merge_pair(word, rules, best);
    }
}

/* Queues the pair that starts at symbol `at`, if it can merge. False without memory. */
static bool queue_pair(octavo_bpe_word *word, uint32_t at) {
    const octavo_bpe_symbol *symbol = &word->symbols[at];
    if (symbol->rank == OCTAVO_BPE_NONE) return true;
    uint64_t key = (uint64_t)symbol->rank << 32 | (uint32_t)symbol->id;
    return octavo_bpe_queue_push(&word->queue, key, at);
}

static octavo_status merge_long(octavo_bpe_word *word, const octavo_bpe_rules *rules,
                                octavo_error *error) {
    const octavo_bpe_symbol *symbols = word->symbols;
    octavo_bpe_queue_clear(&word->queue);
    bool has_room = true;
    for (uint32_t at = 0; at + 1 < word->n_symbols && has_room; at++)
        has_room = queue_pair(word, at);

    uint64_t key;
    uint32_t at;
    while (has_room && octavo_bpe_queue_pop(&word->queue, &key, &at)) {
        if (symbols[at].rank != key >> 32) continue;
        merge_pair(word, rules, at);
        has_room = queue_pair(word, at);
        if (has_room && symbols[at].previous != OCTAVO_BPE_NONE)
            has_room = queue_pair(word, symbols[at].previous);
    }
    if (!has_room)
        return octavo_fail_memory(error, "pairs of a text",
                                  (uint64_t)word->n_symbols * sizeof(*symbols));
    return OCTAVO_OK;
}

octavo_status octavo_bpe_word_merge(octavo_bpe_word *word, const octavo_bpe_rules *rules,
                                    octavo_error *error) {
    if (word->n_symbols < 2) return OCTAVO_OK;
    for (uint32_t at = 0; at + 1 < word->n_symbols; at++)
        update_rank(word, rules, at);
    if (word->n_symbols >= LONG_WORD) return merge_long(word, rules, error);
    merge_short(word, rules);
    return OCTAVO_OK;
}
