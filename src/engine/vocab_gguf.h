/* SPDX-License-Identifier: Apache-2.0
 *
 * The vocabulary of a GGUF file (its tokenizer.ggml entries) as the plain arrays that text/ takes.
 */
#ifndef OCTAVO_ENGINE_VOCAB_GGUF_H
#define OCTAVO_ENGINE_VOCAB_GGUF_H

#include "base/memory.h"
#include "formats/gguf.h"
#include "text/vocab.h"

/* Reads the vocabulary. Texts are views into the file, arrays are of the arena: *out is good while
 * both live. Entries that are absent leave the field empty or at the default of the kind; what is
 * there is not judged here, but by octavo_tokenizer_create.
 * Statuses: NOT_FOUND (no tokenizer in the file), FORMAT (an entry has another type, or an array
 * another length than the tokens), MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_vocab_from_gguf(const octavo_gguf *gguf, octavo_arena *arena,
                                                       octavo_vocab *out, octavo_error *error);
/* Builds the tokenizer of a file. Messages name it. */
OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_from_gguf(const octavo_gguf *gguf,
                                                           octavo_tokenizer **tokenizer,
                                                           octavo_error *error);

/* How added tokens are recognised in text, octavo_vocab.added_flags, for which GGUF has no key;
 * files have it that were made of a tokenizer.json that says so. */
#define OCTAVO_VOCAB_FLAGS_KEY "tokenizer.octavo.added_flags"

/* Whether the file says that it has no tokenizer: the model takes ids only. */
bool octavo_vocab_is_none(const octavo_gguf *gguf);

#endif
