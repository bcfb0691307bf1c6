/* SPDX-License-Identifier: Apache-2.0
 *
 * The alphabet in which byte-level vocabularies spell bytes: a printable character for each.
 */
#ifndef OCTAVO_TEXT_BPE_ALPHABET_H
#define OCTAVO_TEXT_BPE_ALPHABET_H

#include "text/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OCTAVO_ALPHABET = 324 }; /* the spelling uses code points under this */

/* table[point] is the byte that it spells, or -1. */
void octavo_alphabet_init(int16_t table[OCTAVO_ALPHABET]);

/* Undoes the spelling into `out`, which has room for text.length bytes. False where a character is
 * not of the alphabet. */
bool octavo_alphabet_unspell(const int16_t table[OCTAVO_ALPHABET], octavo_text text, char *out,
                             size_t *length);

#endif
