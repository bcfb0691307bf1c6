/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer from a file of the SentencePiece library (tokenizer.model): BPE or Unigram, with its
 * table of normalisations.
 */
#ifndef OCTAVO_TEXT_SENTENCEPIECE_H
#define OCTAVO_TEXT_SENTENCEPIECE_H

#include "text/vocab_draft.h"

#include <stdbool.h>

/* Whether bytes look like such a file: they begin with a piece. */
bool octavo_is_sentencepiece(const void *data, size_t size);

/* Builds a tokenizer of the bytes of the file, which may go afterwards. A text begins with bos
 * where there is one, else it ends with eos, unless the configuration says otherwise. Every message
 * names the file. FORMAT (cut short, or no such file), UNSUPPORTED (models of words or characters,
 * white space behind words), MEMORY. */
OCTAVO_MUST_CHECK octavo_status
octavo_tokenizer_from_sentencepiece(const octavo_vocab_source *source, const void *data,
                                    size_t size, octavo_tokenizer **tokenizer, octavo_error *error);

#endif
