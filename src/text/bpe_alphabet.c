/* SPDX-License-Identifier: Apache-2.0
 *
 * Printable Latin-1 spells itself; the other bytes follow in order from U+0100 on.
 */
#include "text/bpe_alphabet.h"

#include "text/tokenizer_utf8.h"

#include <string.h>

void octavo_alphabet_init(int16_t table[OCTAVO_ALPHABET]) {
    int16_t other = 256;
    memset(table, 0xff, OCTAVO_ALPHABET * sizeof(table[0]));
    for (int16_t byte = 0; byte < 256; byte++) {
        bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
        table[printable ? byte : other++] = byte;
    }
}

bool octavo_alphabet_unspell(const int16_t table[OCTAVO_ALPHABET], octavo_text text, char *out,
                             size_t *length) {
    size_t n = 0;
    for (size_t at = 0, size; at < text.length; at += size) {
        uint32_t point = octavo_utf8_read(text.data + at, &size);
        if (point >= OCTAVO_ALPHABET || table[point] < 0) return false;
        out[n++] = (char)table[point];
    }
    *length = n;
    return true;
}
