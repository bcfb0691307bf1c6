/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a vocabulary makes the same ids as a tokenizer.
 */
#ifndef OCTAVO_ENGINE_VOCAB_COMPARE_H
#define OCTAVO_ENGINE_VOCAB_COMPARE_H

#include "text/vocab.h"

/* Over texts that tell the usual ways of cutting apart, the text of many tokens and special tokens
 * within text. A vocabulary of which no tokenizer can be made is not the same. Statuses: MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_vocab_compare(const octavo_vocab *vocab,
                                                     const octavo_tokenizer *truth, bool *is_same,
                                                     octavo_error *error);

#endif
