/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable run of bytes. After a failed append `failed` stays set and further appends do nothing,
 * so that a writer checks once at the end. Zero-initialised is empty.
 */
#ifndef OCTAVO_BASE_BUFFER_H
#define OCTAVO_BASE_BUFFER_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct octavo_buffer {
    char *data; /* [capacity]; data[size] is a terminating 0 once anything was appended */
    size_t size;
    size_t capacity;
    bool failed; /* memory ran out at some append */
} octavo_buffer;

/* Makes room for `more` bytes; false (and `failed` set) without memory. */
bool octavo_buffer_reserve(octavo_buffer *buffer, size_t more);
void octavo_buffer_append(octavo_buffer *buffer, const void *bytes, size_t size);
void octavo_buffer_puts(octavo_buffer *buffer, const char *text);
void octavo_buffer_putc(octavo_buffer *buffer, char c);
void octavo_buffer_printf(octavo_buffer *buffer, const char *format, ...) OCTAVO_PRINTF(2, 3);
/* text[0..size) as a JSON string, quotes included: always valid JSON. What is not UTF-8 becomes
 * U+FFFD. */
void octavo_buffer_json_string(octavo_buffer *buffer, const char *text, size_t size);
/* Empties the buffer and forgets a failure; keeps the memory. */
void octavo_buffer_clear(octavo_buffer *buffer);
/* The terminated text, which the caller frees with octavo_free; NULL if an append failed. The
 * buffer is empty afterwards either way. */
char *octavo_buffer_take(octavo_buffer *buffer);
void octavo_buffer_deinit(octavo_buffer *buffer);

#endif
