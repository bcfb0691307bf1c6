/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of tokenizer.json, which are Oniguruma's, as PCRE2 wants them.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_REGEX_H
#define OCTAVO_TEXT_TOKENIZER_REGEX_H

#include "base/buffer.h"
#include "text/vocab.h"

#include "octavo/status.h"

/* Appends the expression, terminated. UNSUPPORTED names what PCRE2 would read differently. */
OCTAVO_MUST_CHECK octavo_status octavo_regex_translate(octavo_text text, octavo_buffer *out,
                                                       octavo_error *error);

#endif
