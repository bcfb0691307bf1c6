/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to text before it is split into tokens.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_NORMALIZE_H
#define OCTAVO_TEXT_TOKENIZER_NORMALIZE_H

#include "base/buffer.h"

#include <stddef.h>

/* U+2581, which stands for a space in SentencePiece vocabularies. */
#define OCTAVO_SPACE_MARK "\xe2\x96\x81"

/* Unicode's normalisation forms. */
typedef enum octavo_normal_form {
    OCTAVO_NFC,
    OCTAVO_NFD,
    OCTAVO_NFKC,
    OCTAVO_NFKD,
} octavo_normal_form;

/* Appends `text`, which must be valid UTF-8, in a normalisation form. Linear in the length, however
 * many marks follow a letter. Without memory out->failed is set. */
void octavo_normalize(octavo_buffer *out, octavo_normal_form form, const char *text, size_t length);
void octavo_normalize_nfc(octavo_buffer *out, const char *text, size_t length);

/* Appends `text` with every space as OCTAVO_SPACE_MARK; with `prefix` one more in front of it. An
 * empty text stays empty. */
void octavo_normalize_spaces(octavo_buffer *out, const char *text, size_t length, bool prefix);

#endif
