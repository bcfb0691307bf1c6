/* SPDX-License-Identifier: Apache-2.0
 *
 * The growable buffer. While `failed` is unset, capacity > size wherever data is not NULL, and
 * data[size] is 0.
 */
#include "base/buffer.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUFFER_FIRST 64

bool octavo_buffer_reserve(octavo_buffer *buffer, size_t more) {
    if (buffer->failed) return false;
    size_t needed;
    if (!octavo_size_add(buffer->size, more, &needed) || !octavo_size_add(needed, 1, &needed)) {
        buffer->failed = true;
        return false;
    }
    if (needed <= buffer->capacity) return true;

    size_t capacity = buffer->capacity != 0 ? buffer->capacity : BUFFER_FIRST;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    char *data = octavo_realloc(buffer->data, capacity);
    if (data == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    buffer->data[buffer->size] = '\0';
    return true;
}

void octavo_buffer_append(octavo_buffer *buffer, const void *bytes, size_t size) {
    if (!octavo_buffer_reserve(buffer, size)) return;
    if (size != 0) memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void octavo_buffer_puts(octavo_buffer *buffer, const char *text) {
    octavo_buffer_append(buffer, text, strlen(text));
}

void octavo_buffer_putc(octavo_buffer *buffer, char c) {
    octavo_buffer_append(buffer, &c, 1);
}

void octavo_buffer_printf(octavo_buffer *buffer, const char *format, ...) {
    /* With room for BUFFER_FIRST bytes most texts fit at the first attempt. */
    if (!octavo_buffer_reserve(buffer, BUFFER_FIRST)) return;
    va_list args;
    va_start(args, format);
    size_t room = buffer->capacity - buffer->size;
    int length = vsnprintf(buffer->data + buffer->size, room, format, args);
    va_end(args);

    if (length >= 0 && (size_t)length >= room && octavo_buffer_reserve(buffer, (size_t)length)) {
        room = buffer->capacity - buffer->size;
        va_start(args, format);
        length = vsnprintf(buffer->data + buffer->size, room, format, args);
        va_end(args);
    }
    if (length < 0) buffer->failed = true;
    if (buffer->failed) {
        buffer->data[buffer->size] = '\0'; /* nothing half-written stays */
        return;
    }
    buffer->size += (size_t)length;
}

/* Length of the well-formed UTF-8 sequence at text[0..size), or 0 with *bad = the number of bytes
 * that one U+FFFD stands for (Unicode 15, section 3.9, "maximal subparts"). */
static size_t utf8_sequence(const unsigned char *text, size_t size, size_t *bad) {
    unsigned char lead = text[0];
    *bad = 1;
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;

    size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    /* The second byte's range excludes overlong forms, surrogates and what is past U+10FFFF. */
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < length; i++) {
        if (i >= size || text[i] < low || text[i] > high) return 0;
        *bad = i + 1;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

/* The short escape of a character in a JSON string; NULL if it has none. */
static const char *json_escape(unsigned char c) {
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

void octavo_buffer_json_string(octavo_buffer *buffer, const char *text, size_t size) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t done = 0; /* everything before is written */
    size_t at = 0;
    octavo_buffer_putc(buffer, '"');
    while (at < size && !buffer->failed) {
        size_t bad;
        size_t length = utf8_sequence(bytes + at, size - at, &bad);
        const char *escape = json_escape(bytes[at]);
        if (length != 0 && escape == NULL && bytes[at] >= 0x20) {
            at += length;
            continue;
        }
        if (at > done) octavo_buffer_append(buffer, text + done, at - done);
        if (length == 0) {
            octavo_buffer_puts(buffer, "\xef\xbf\xbd");
        } else if (escape != NULL) {
            octavo_buffer_puts(buffer, escape);
        } else {
            octavo_buffer_printf(buffer, "\\u%04x", (unsigned)bytes[at]);
        }
        at += length != 0 ? length : bad;
        done = at;
    }
    if (at > done) octavo_buffer_append(buffer, text + done, at - done);
    octavo_buffer_putc(buffer, '"');
}

void octavo_buffer_clear(octavo_buffer *buffer) {
    buffer->size = 0;
    buffer->failed = false;
    if (buffer->data != NULL) buffer->data[0] = '\0';
}

char *octavo_buffer_take(octavo_buffer *buffer) {
    char *text = NULL;
    if (octavo_buffer_reserve(buffer, 0)) {
        text = buffer->data;
        buffer->data = NULL;
    }
    octavo_buffer_deinit(buffer);
    return text;
}

void octavo_buffer_deinit(octavo_buffer *buffer) {
    octavo_free(buffer->data);
    *buffer = (octavo_buffer){0};
}
