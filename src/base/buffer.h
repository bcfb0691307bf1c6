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

bool octavo_buffer_reserve(octavo_buffer *buffer, size_t more);
void octavo_buffer_append(octavo_buffer *buffer, const void *bytes, size_t size);
void octavo_buffer_puts(octavo_buffer *buffer, const char *text);
void octavo_buffer_putc(octavo_buffer *buffer, char c);
void octavo_buffer_printf(octavo_buffer *buffer, const char *format, ...) OCTAVO_PRINTF(2, 3);
void octavo_buffer_json_string(octavo_buffer *buffer, const char *text,
                               size_t size);     /* quoted; invalid UTF-8 becomes U+FFFD */
void octavo_buffer_clear(octavo_buffer *buffer); /* keeps the memory */
char *octavo_buffer_take(
    octavo_buffer *buffer); /* the caller frees the text; NULL if failed. Empty afterwards */
void octavo_buffer_deinit(octavo_buffer *buffer);

#endif
