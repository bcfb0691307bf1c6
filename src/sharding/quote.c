/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/quote.h"

#include <stdio.h>

octavo_quoted octavo_quote(const char *text, size_t length) {
    octavo_quoted quoted;
    const size_t most = sizeof quoted.text - sizeof "\"...\"";
    size_t n = length <= most ? length : most;
    /* not in the middle of a character */
    while (n < length && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    snprintf(quoted.text, sizeof quoted.text, "\"%.*s%s\"", (int)n, text, n < length ? "..." : "");
    for (char *c = quoted.text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    return quoted;
}
