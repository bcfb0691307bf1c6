/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of characters that tokenizers ask for. Every predicate takes a code point.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_CHARACTERS_H
#define OCTAVO_TEXT_TOKENIZER_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

typedef bool octavo_character_test(uint32_t point);

bool octavo_is_space(uint32_t point);  /* Unicode's White_Space */
bool octavo_is_word(uint32_t point);   /* a regular expression's \w */
bool octavo_is_number(uint32_t point); /* N: digits, letters and others that count */
bool octavo_is_punctuation(
    uint32_t point);                 /* P, and all of ASCII that is neither letter nor digit */
bool octavo_is_mark(uint32_t point); /* M */
bool octavo_is_nonspacing(uint32_t point); /* Mn */
bool octavo_is_control(uint32_t point); /* Cc, Cf, Co, but not tab, line feed and carriage return */
bool octavo_is_ideograph(uint32_t point); /* the CJK blocks that BERT puts spaces around */

/* The lower case of a character: one code point, or two into more[0..1]. Returns how many. */
int octavo_lower_case(uint32_t point, uint32_t more[2]);

#endif
