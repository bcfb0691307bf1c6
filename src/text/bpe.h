/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte pair encoding of one piece of text: the best pair of neighbours is merged until no pair can
 * be. Both kinds of tokenizer use it; they differ in what a pair is worth.
 */
#ifndef OCTAVO_TEXT_BPE_H
#define OCTAVO_TEXT_BPE_H

#include "text/bpe_queue.h"

#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>

#define OCTAVO_BPE_NONE UINT32_MAX /* no merge, no neighbour */

/* A token that stands for the text from `begin` to the `begin` of the next symbol. */
typedef struct octavo_bpe_symbol {
    int32_t id;
    uint32_t begin;
    uint32_t previous, next; /* neighbours, or OCTAVO_BPE_NONE */
    uint32_t rank;           /* of the pair of this and the next */
} octavo_bpe_symbol;

/* Pairs that may merge. Lower ranks merge first; of equal ranks the one with the lower left id;
 * then the leftmost. Pairs of one rank always make the same token, and a pair has one rank. */
typedef struct octavo_bpe_rules {
    /* Rank of the pair whose texts joined are text[begin..end), or OCTAVO_BPE_NONE. */
    uint32_t (*rank)(const void *table, int32_t left, int32_t right, const char *text,
                     uint32_t begin, uint32_t end);
    const void *table;
    const int32_t *results; /* [ranks]: the token that a merge of this rank makes */
} octavo_bpe_rules;

/* One piece at a time; its memory is kept for the next. Zero-initialised is empty. */
typedef struct octavo_bpe_word {
    const char *text;
    uint32_t length;
    octavo_bpe_symbol *symbols; /* [capacity]; symbol 0 is first in line before and after merging */
    uint32_t n_symbols, capacity;
    octavo_bpe_queue queue; /* only for long words */
} octavo_bpe_word;

/* Starts a word over `text`, which must live as long as the word is used, with room for n_symbols.
 */
OCTAVO_MUST_CHECK octavo_status octavo_bpe_word_begin(octavo_bpe_word *word, const char *text,
                                                      uint32_t length, uint32_t n_symbols,
                                                      octavo_error *error);
/* Adds a symbol behind the others. */
static inline void octavo_bpe_word_push(octavo_bpe_word *word, int32_t id, uint32_t begin) {
    uint32_t n = word->n_symbols++;
    word->symbols[n] = (octavo_bpe_symbol){.id = id,
                                           .begin = begin,
                                           .previous = n - 1, /* of symbol 0: OCTAVO_BPE_NONE */
                                           .next = OCTAVO_BPE_NONE,
                                           .rank = OCTAVO_BPE_NONE};
    if (n > 0) word->symbols[n - 1].next = n;
}
/* Merges. What is left is the line of symbols that starts at symbol 0, when there is one. */
OCTAVO_MUST_CHECK octavo_status octavo_bpe_word_merge(octavo_bpe_word *word,
                                                      const octavo_bpe_rules *rules,
                                                      octavo_error *error);
void octavo_bpe_word_deinit(octavo_bpe_word *word);

#endif
