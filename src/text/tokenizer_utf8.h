/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 for the tokenizers: walking valid text, finding where text stops being valid, and a stream
 * that holds back what is not a whole character yet.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_UTF8_H
#define OCTAVO_TEXT_TOKENIZER_UTF8_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that starts with `lead`, in valid text. */
static inline size_t octavo_utf8_size(char lead) {
    unsigned char c = (unsigned char)lead;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* The character at `text` and, in *size, its bytes. The text must be valid and not empty. */
static inline uint32_t octavo_utf8_read(const char *text, size_t *size) {
    const unsigned char *p = (const unsigned char *)text;
    *size = octavo_utf8_size(text[0]);
    switch (*size) {
    case 1:
        return p[0];
    case 2:
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    case 3:
        return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    default:
        return (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    }
}

/* The first byte of the character before `end`; there must be one. Valid text only. */
static inline size_t octavo_utf8_before(const char *text, size_t end) {
    do
        end--;
    while (((unsigned char)text[end] & 0xc0) == 0x80);
    return end;
}

/* Bytes from the start on that are whole, valid characters (Unicode's table 3-7: no surrogates, no
 * overlong forms, nothing over U+10FFFF). */
size_t octavo_utf8_valid_prefix(const char *text, size_t length);

/* Bytes that come in any portions, leaving as valid UTF-8: every maximal ill-formed part becomes
 * one U+FFFD. Zero-initialised is empty. */
typedef struct octavo_utf8_stream {
    char held[4];            /* [n_held]: an incomplete character, well-formed so far */
    uint8_t n_held, n_whole; /* bytes that are here; bytes it will have */
    uint8_t low, high;       /* what the next byte may be */
} octavo_utf8_stream;

/* Appends what is complete; at most 3 * (length + 3) bytes. */
void octavo_utf8_stream_push(octavo_utf8_stream *stream, const char *bytes, size_t length,
                             octavo_buffer *out);

/* Appends U+FFFD when a character is cut off, once for each ill-formed part. The stream is empty
 * afterwards. */
void octavo_utf8_stream_finish(octavo_utf8_stream *stream, octavo_buffer *out);

#endif
