/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses, error messages, version. A message is always terminated and never ends in the middle of
 * a UTF-8 character.
 */
#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x)  #x
#define TEXT(value) TEXT_OF(value)

/* Bytes announced by a UTF-8 lead byte; 1 for what is none. */
static size_t sequence_length(unsigned char lead) {
    if (lead >= 0xf0) return 4;
    if (lead >= 0xe0) return 3;
    if (lead >= 0xc0) return 2;
    return 1;
}

/* Removes the start of a character whose rest was cut off. */
static void drop_partial_character(char *text) {
    size_t length = strlen(text);
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char c = (unsigned char)text[length - back];
        if ((c & 0xc0) == 0x80) continue;
        if (sequence_length(c) > back) text[length - back] = '\0';
        return;
    }
}

static OCTAVO_PRINTF(4, 0) void fill(octavo_error *error, octavo_status status, int64_t offset,
                                     const char *format, va_list args) {
    if (error == NULL) return;
    /* Formatted aside, so that an argument may be the old message: wrapping an error is common. */
    char message[sizeof(error->message)];
    int length = vsnprintf(message, sizeof(message), format, args);
    if (length < 0) message[0] = '\0';
    if (length >= (int)sizeof(message)) drop_partial_character(message);
    error->status = status;
    error->offset = offset;
    memcpy(error->message, message, strlen(message) + 1);
}

octavo_status octavo_fail(octavo_error *error, octavo_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(error, status, -1, format, args);
    va_end(args);
    return status;
}

octavo_status octavo_fail_at(octavo_error *error, octavo_status status, int64_t offset,
                             const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(error, status, offset, format, args);
    va_end(args);
    return status;
}

octavo_status octavo_fail_memory(octavo_error *error, const char *what, uint64_t bytes) {
    return octavo_fail(error, OCTAVO_ERROR_MEMORY,
                       "out of memory (%s): %" PRIu64
                       " bytes more are not to be had; ask for less or free some",
                       what, bytes);
}

const char *octavo_status_name(octavo_status status) {
    switch (status) {
    case OCTAVO_OK:
        return "ok";
    case OCTAVO_ERROR_INVALID:
        return "invalid";
    case OCTAVO_ERROR_MEMORY:
        return "memory";
    case OCTAVO_ERROR_IO:
        return "io";
    case OCTAVO_ERROR_FORMAT:
        return "format";
    case OCTAVO_ERROR_UNSUPPORTED:
        return "unsupported";
    case OCTAVO_ERROR_NOT_FOUND:
        return "not found";
    case OCTAVO_ERROR_LIMIT:
        return "limit";
    case OCTAVO_ERROR_CANCELLED:
        return "cancelled";
    }
    return "unknown";
}

const char *octavo_version(void) {
    return TEXT(OCTAVO_VERSION_MAJOR) "." TEXT(OCTAVO_VERSION_MINOR) "." TEXT(OCTAVO_VERSION_PATCH);
}
