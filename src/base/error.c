/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses, error messages, version. A message is always terminated, and valid UTF-8: what it
 * quotes may be cut in the middle of a character, or come from a file that is none.
 */
#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x)  #x
#define TEXT(value) TEXT_OF(value)

/* Bytes announced by a UTF-8 lead byte; 0 for what is none. */
static size_t sequence_length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead < 0xe0) return 2;
    if (lead >= 0xe0 && lead < 0xf0) return 3;
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

/* Whether `second` may follow a lead byte: some would spell a character that has a shorter
 * spelling, a surrogate, or nothing at all. */
static bool may_follow(unsigned char lead, unsigned char second) {
    if ((second & 0xc0) != 0x80) return false;
    if (lead == 0xe0) return second >= 0xa0;
    if (lead == 0xed) return second < 0xa0;
    if (lead == 0xf0) return second >= 0x90;
    return lead != 0xf4 || second < 0x90;
}

/* Puts a question mark for each part that is no UTF-8; such a part at the end was cut off and goes
 * without a trace. */
static void mend_characters(char *text, bool is_cut) {
    char *out = text;
    for (const char *at = text; *at != '\0';) {
        unsigned char lead = (unsigned char)at[0];
        size_t length = sequence_length(lead), n = 1;
        while (n < length && (n == 1 ? may_follow(lead, (unsigned char)at[1])
                                     : ((unsigned char)at[n] & 0xc0) == 0x80))
            n++;
        if (n == length)
            memmove(out, at, n);
        else if (at[n] != '\0' || !is_cut)
            *out = '?';
        else
            break;
        out += n == length ? n : 1;
        at += n;
    }
    *out = '\0';
}

static OCTAVO_PRINTF(4, 0) void fill(octavo_error *error, octavo_status status, int64_t offset,
                                     const char *format, va_list args) {
    if (error == NULL) return;
    /* Formatted aside, so that an argument may be the old message: wrapping an error is common. */
    char message[sizeof(error->message)];
    int length = vsnprintf(message, sizeof(message), format, args);
    if (length < 0) message[0] = '\0';
    mend_characters(message, length >= (int)sizeof(message));
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
