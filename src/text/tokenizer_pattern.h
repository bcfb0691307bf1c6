/* SPDX-License-Identifier: Apache-2.0
 *
 * What text is cut at and replaced by: a regular expression, a fixed text, or a kind of character.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_PATTERN_H
#define OCTAVO_TEXT_TOKENIZER_PATTERN_H

#include "text/tokenizer_characters.h"
#include "text/vocab.h"

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Immutable once made: any thread may search with it. Zero-initialised matches nothing. */
typedef struct octavo_pattern {
    octavo_character_test *test; /* each character that passes; or */
    char *literal;               /* each occurrence of this text; or */
    size_t literal_length;
    struct octavo_regex *regex; /* each match */
} octavo_pattern;

/* Compiles a regular expression of Oniguruma's dialect, as tokenizer.json has them. UNSUPPORTED
 * where it means something that PCRE2 cannot say, FORMAT where it is malformed, MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_pattern_regex(octavo_pattern *pattern, octavo_text text,
                                                     octavo_error *error);
/* FORMAT where the text is empty. */
OCTAVO_MUST_CHECK octavo_status octavo_pattern_literal(octavo_pattern *pattern, octavo_text text,
                                                       octavo_error *error);
void octavo_pattern_deinit(octavo_pattern *pattern);

/* Takes the spans of a text from front to back: matches and what lies between. A match may be
 * empty, what lies between never is. Another status than OCTAVO_OK ends the run. */
typedef octavo_status octavo_span_sink(void *cookie, const char *text, size_t begin, size_t end,
                                       bool is_match, octavo_error *error);

/* Cuts valid UTF-8 into spans. LIMIT where a regular expression finds no end. */
OCTAVO_MUST_CHECK octavo_status octavo_pattern_run(const octavo_pattern *pattern, const char *text,
                                                   size_t length, octavo_span_sink *sink,
                                                   void *cookie, octavo_error *error);

#endif
