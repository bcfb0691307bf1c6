/* SPDX-License-Identifier: Apache-2.0
 *
 * Code points of valid UTF-8, and the classes of characters as Python's str sees them.
 */
#ifndef OCTAVO_TEXT_TEMPLATE_STRING_H
#define OCTAVO_TEXT_TEMPLATE_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool octavo_utf8_valid(const char *data, size_t size, size_t *bad); /* *bad: the first bad byte */
size_t octavo_utf8_length(const char *data, size_t size);
/* The offset after (before) the code point at (before) `at`. */
size_t octavo_utf8_next(const char *data, size_t size, size_t at);
size_t octavo_utf8_previous(const char *data, size_t at);
int32_t octavo_utf8_codepoint(const char *data, size_t size, size_t at);
/* Writes 1-4 bytes and returns their number; what is no character becomes U+FFFD. */
size_t octavo_utf8_encode(int32_t codepoint, char bytes[4]);
/* Byte offset of code point number `index`, size when there are fewer. */
size_t octavo_utf8_offset(const char *data, size_t size, size_t index);

bool octavo_utf8_is_space(int32_t codepoint);
bool octavo_utf8_is_printable(int32_t codepoint);
bool octavo_utf8_is_name(int32_t codepoint, bool first); /* may stand in an identifier */
bool octavo_utf8_is_letter(int32_t codepoint);
bool octavo_utf8_is_upper(int32_t codepoint); /* also title case */
bool octavo_utf8_is_lower(int32_t codepoint);

/* The part of data[0..size) without white space at its start (end). */
size_t octavo_utf8_skip_space(const char *data, size_t size, size_t at);
size_t octavo_utf8_trim_end(const char *data, size_t size);

#endif
