/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece's table of normalisations, as tokenizer.json carries it ("precompiled_charsmap").
 */
#ifndef OCTAVO_TEXT_TOKENIZER_CHARSMAP_H
#define OCTAVO_TEXT_TOKENIZER_CHARSMAP_H

#include "base/buffer.h"
#include "text/vocab.h"

#include "octavo/status.h"

/* Immutable; any thread. */
typedef struct octavo_charsmap octavo_charsmap;

/* Makes a table of its base64 text. FORMAT where it is malformed, MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_charsmap_create(octavo_text base64,
                                                       octavo_charsmap **charsmap,
                                                       octavo_error *error);
/* The same of the table itself, applied as SentencePiece does: always the longest text of the
 * table, where tokenizer.json's library goes by grapheme clusters. */
OCTAVO_MUST_CHECK octavo_status octavo_charsmap_create_raw(octavo_text table,
                                                           octavo_charsmap **charsmap,
                                                           octavo_error *error);
void octavo_charsmap_destroy(octavo_charsmap **charsmap);

/* Appends valid UTF-8 `text`, normalised. Without memory out->failed is set. */
void octavo_charsmap_apply(const octavo_charsmap *charsmap, const char *text, size_t length,
                           octavo_buffer *out);

#endif
