/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading: whole files, lines, JSON in them. "-" is standard input.
 */
#ifndef OCTAVO_CLI_INPUT_H
#define OCTAVO_CLI_INPUT_H

#include "base/buffer.h"

#include "octavo/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Appends all of a file. Statuses: NOT_FOUND, IO, MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_input_read(const char *path, octavo_buffer *text,
                                                  octavo_error *error);

/* The next line of a stream, without its end, in `line`, which is emptied first. *has_line is false
 * at the end of the stream. Statuses: IO, MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_input_line(FILE *stream, octavo_buffer *line, bool *has_line,
                                                  octavo_error *error);

/* A JSON value of any type; strings may hold zeros. `where` goes into the error: "line 3". The
 * caller gives *value to json_decref. Statuses: FORMAT, with the byte's offset. */
OCTAVO_MUST_CHECK octavo_status octavo_input_json(const char *text, size_t length,
                                                  const char *where, json_t **value,
                                                  octavo_error *error);

#endif
