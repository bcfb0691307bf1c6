/* SPDX-License-Identifier: Apache-2.0
 *
 * BPE without a list of merges: a pair of neighbours merges when its text is a token, the token of
 * the best rank first.
 */
#ifndef OCTAVO_TEXT_BPE_RANKS_H
#define OCTAVO_TEXT_BPE_RANKS_H

#include "base/memory.h"
#include "text/vocab.h"

#include <stdint.h>

/* Ranks the normal tokens of a vocabulary: by score, best first, and by id among equals; by id
 * alone where it has no scores. *ranks [n_tokens] is OCTAVO_BPE_NONE for other tokens, *results
 * [ranks] the way back; both are the arena's. FORMAT for a score that is no number, MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_bpe_rank_tokens(const octavo_vocab *vocab,
                                                       octavo_arena *arena, uint32_t **ranks,
                                                       int32_t **results, octavo_error *error);

/* octavo_bpe_rules.rank over a tokenizer with ranks: of the token that the text is, where both
 * halves may be part of a merge. */
uint32_t octavo_bpe_text_rank(const void *tokenizer, int32_t left, int32_t right, const char *text,
                              uint32_t begin, uint32_t end);

#endif
