/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes come in as they are; who reads them decides what they mean.
 */
#include "cli/input.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

enum { READ_BYTES = 64 << 10 };

static octavo_status read_stream(FILE *stream, const char *name, octavo_buffer *text,
                                 octavo_error *error) {
    for (;;) {
        if (!octavo_buffer_reserve(text, READ_BYTES))
            return octavo_fail_memory(error, name, text->size + READ_BYTES);
        size_t n = fread(text->data + text->size, 1, READ_BYTES - 1, stream);
        text->size += n;
        text->data[text->size] = '\0';
        if (n == 0) break;
    }
    if (ferror(stream))
        return octavo_fail(error, OCTAVO_ERROR_IO, "file (%s): cannot be read: %s", name,
                           strerror(errno));
    return OCTAVO_OK;
}

octavo_status octavo_input_read(const char *path, octavo_buffer *text, octavo_error *error) {
    if (strcmp(path, "-") == 0) return read_stream(stdin, "standard input", text, error);
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return octavo_fail(error, errno == ENOENT ? OCTAVO_ERROR_NOT_FOUND : OCTAVO_ERROR_IO,
                           "file (%s): cannot be opened: %s", path, strerror(errno));
    octavo_status status = read_stream(stream, path, text, error);
    fclose(stream);
    return status;
}

octavo_status octavo_input_line(FILE *stream, octavo_buffer *line, bool *has_line,
                                octavo_error *error) {
    int c = EOF;
    octavo_buffer_clear(line);
    octavo_buffer_puts(line, "");
    /* a line without end stops where the memory does */
    while (!line->failed && (c = getc(stream)) != EOF && c != '\n')
        octavo_buffer_putc(line, (char)c);
    if (line->failed) return octavo_fail_memory(error, "line", line->size);
    if (ferror(stream))
        return octavo_fail(error, OCTAVO_ERROR_IO, "standard input: cannot be read: %s",
                           strerror(errno));
    if (line->size > 0 && line->data[line->size - 1] == '\r') line->data[--line->size] = '\0';
    *has_line = c != EOF || line->size > 0;
    return OCTAVO_OK;
}

octavo_status octavo_input_json(const char *text, size_t length, const char *where, json_t **value,
                                octavo_error *error) {
    json_error_t problem;
    json_t *parsed = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
    if (!parsed)
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, problem.position,
                              "JSON (%s, byte %d): %s; give one JSON value", where,
                              problem.position, problem.text);
    *value = parsed;
    return OCTAVO_OK;
}
