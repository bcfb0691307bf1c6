/* SPDX-License-Identifier: Apache-2.0
 *
 * The merging itself. Words of ordinary length are searched again for every merge, which is fastest
 * for them; long ones keep their pairs in a heap, so that a text of one letter takes n log n steps.
 * A queued pair is out of date when its symbol's rank has changed: a rank names the text that a
 * merge makes, and a symbol's text and that of its neighbour only ever grow, so a rank never
 * returns to a symbol.
 */
#include "text/bpe.h"

#include "base/error.h"
#include "base/memory.h"

#define LONG_WORD  48 /* symbols */
#define HEAP_ARITY 4

octavo_status octavo_bpe_word_begin(octavo_bpe_word *word, const char *text, uint32_t length,
                                    uint32_t n_symbols, octavo_error *error) {
    word->text = text;
    word->length = length;
    word->n_symbols = 0;
    word->n_queued = 0;
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
    octavo_free(word->queue);
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

static bool queued_before(const octavo_bpe_queued *a, const octavo_bpe_queued *b) {
    if (a->rank != b->rank) return a->rank < b->rank;
    if (a->left != b->left) return a->left < b->left;
    return a->at < b->at;
}

static void sift_down(octavo_bpe_queued *queue, size_t n, size_t at) {
    octavo_bpe_queued moved = queue[at];
    for (;;) {
        size_t first = HEAP_ARITY * at + 1;
        if (first >= n) break;
        size_t end = first + HEAP_ARITY < n ? first + HEAP_ARITY : n;
        size_t best = first;
        for (size_t child = first + 1; child < end; child++)
            if (queued_before(&queue[child], &queue[best])) best = child;
        if (!queued_before(&queue[best], &moved)) break;
        queue[at] = queue[best];
        at = best;
    }
    queue[at] = moved;
}

/* Puts the pair at symbol `at` into the heap, if it can merge. There must be room. */
static void queue_pair(octavo_bpe_word *word, uint32_t symbol) {
    octavo_bpe_queued added = {
        .rank = word->symbols[symbol].rank, .left = word->symbols[symbol].id, .at = symbol};
    if (added.rank == OCTAVO_BPE_NONE) return;
    octavo_bpe_queued *queue = word->queue;
    size_t at = word->n_queued++;
    while (at > 0) {
        size_t parent = (at - 1) / HEAP_ARITY;
        if (!queued_before(&added, &queue[parent])) break;
        queue[at] = queue[parent];
        at = parent;
    }
    queue[at] = added;
}

static octavo_bpe_queued queue_take(octavo_bpe_word *word) {
    octavo_bpe_queued first = word->queue[0];
    word->queue[0] = word->queue[--word->n_queued];
    if (word->n_queued > 1) sift_down(word->queue, word->n_queued, 0);
    return first;
}

/* Room for every pair that a word can ever queue: one per symbol at first, then at most two for
 * each merge, which takes one out. */
static octavo_status queue_reserve(octavo_bpe_word *word, octavo_error *error) {
    size_t capacity = 2 * (size_t)word->n_symbols;
    size_t bytes;
    if (capacity <= word->queue_capacity) return OCTAVO_OK;
    octavo_free(word->queue);
    word->queue = NULL;
    word->queue_capacity = 0;
    if (octavo_size_mul(capacity, sizeof(*word->queue), &bytes)) word->queue = octavo_alloc(bytes);
    if (word->queue == NULL)
        return octavo_fail_memory(error, "pairs of a text",
                                  (uint64_t)capacity * sizeof(*word->queue));
    word->queue_capacity = capacity;
    return OCTAVO_OK;
}

static octavo_status merge_long(octavo_bpe_word *word, const octavo_bpe_rules *rules,
                                octavo_error *error) {
    octavo_status status = queue_reserve(word, error);
    if (status != OCTAVO_OK) return status;
    const octavo_bpe_symbol *symbols = word->symbols;
    for (uint32_t at = 0; at + 1 < word->n_symbols; at++)
        if (symbols[at].rank != OCTAVO_BPE_NONE)
            word->queue[word->n_queued++] =
                (octavo_bpe_queued){.rank = symbols[at].rank, .left = symbols[at].id, .at = at};
    for (size_t at = word->n_queued / HEAP_ARITY + 1; at-- > 0;)
        if (at < word->n_queued) sift_down(word->queue, word->n_queued, at);

    while (word->n_queued > 0) {
        octavo_bpe_queued pair = queue_take(word);
        if (symbols[pair.at].rank != pair.rank) continue;
        merge_pair(word, rules, pair.at);
        queue_pair(word, pair.at);
        if (symbols[pair.at].previous != OCTAVO_BPE_NONE)
            queue_pair(word, symbols[pair.at].previous);
    }
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
