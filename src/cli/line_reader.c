/* SPDX-License-Identifier: Apache-2.0
 *
 * Past stdio, whose buffer cannot be asked what it holds.
 */
#include "cli/line_reader.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

static octavo_status read_more(octavo_line_reader *reader, octavo_error *error) {
    octavo_buffer *text = &reader->text;
    const size_t left = text->size - reader->at;
    if (reader->at > 0 && left > 0) memmove(text->data, text->data + reader->at, left);
    text->size = left;
    reader->at = 0;
    if (!octavo_buffer_reserve(text, READ_BYTES))
        return octavo_fail_memory(error, "line", text->size + READ_BYTES);
    ssize_t n;
    do
        n = read(STDIN_FILENO, text->data + text->size, READ_BYTES - 1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return octavo_fail(error, OCTAVO_ERROR_IO, "standard input: cannot be read: %s",
                           strerror(errno));
    text->size += (size_t)n;
    reader->is_end = n == 0;
    return OCTAVO_OK;
}

/* Gives out `length` bytes and leaves out the `ending` behind them. */
static void take(octavo_line_reader *reader, size_t length, size_t ending, const char **line,
                 size_t *taken) {
    *line = reader->text.data + reader->at;
    reader->at += length + ending;
    if (length > 0 && (*line)[length - 1] == '\r') length--;
    *taken = length;
}

octavo_status octavo_line_reader_next(octavo_line_reader *reader, bool may_wait, const char **line,
                                      size_t *length, bool *has_line, octavo_error *error) {
    size_t looked_at = 0;
    *has_line = false;
    for (;;) {
        const size_t left = reader->text.size - reader->at;
        const char *from = left > 0 ? reader->text.data + reader->at : "";
        const char *end =
            left > looked_at ? memchr(from + looked_at, '\n', left - looked_at) : NULL;
        if (end || (reader->is_end && left > 0)) {
            *has_line = true;
            take(reader, end ? (size_t)(end - from) : left, end ? 1 : 0, line, length);
            return OCTAVO_OK;
        }
        if (reader->is_end || !may_wait) return OCTAVO_OK;
        looked_at = left;
        octavo_status status = read_more(reader, error);
        if (status) return status;
    }
}

void octavo_line_reader_deinit(octavo_line_reader *reader) {
    octavo_buffer_deinit(&reader->text);
    *reader = (octavo_line_reader){0};
}
