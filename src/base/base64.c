/* SPDX-License-Identifier: Apache-2.0
 *
 * Six bits a character; what does not make a byte at the end is dropped.
 */
#include "base/base64.h"

#include <stdint.h>

static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool octavo_base64_decode(const char *text, size_t length, octavo_buffer *out) {
    uint32_t held = 0;
    int n_bits = 0;
    while (length > 0 && text[length - 1] == '=')
        length--;
    for (size_t i = 0; i < length; i++) {
        int value = digit(text[i]);
        if (value < 0) return false;
        held = (held << 6 | (uint32_t)value) & 0xffffff;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        octavo_buffer_putc(out, (char)(held >> n_bits & 0xff));
    }
    return true;
}
