/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer from tekken.json, the vocabularies of Mistral's later models: byte-level BPE without
 * a list of merges, with the special tokens' ids in front.
 */
#ifndef OCTAVO_TEXT_TEKKEN_H
#define OCTAVO_TEXT_TEKKEN_H

#include "text/vocab_draft.h"

/* Builds a tokenizer; the JSON may go afterwards. A text begins with "<s>" unless the configuration
 * says otherwise. Every message names the file. FORMAT (something is missing, of a wrong type, or
 * out of order), UNSUPPORTED (the pattern), MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_from_tekken(const octavo_vocab_source *source,
                                                             const json_t *tekken,
                                                             octavo_tokenizer **tokenizer,
                                                             octavo_error *error);

#endif
