/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of standard input that tells whether the next one is here already, so that what comes fast
 * can be worked on together and what comes slowly is not waited for.
 */
#ifndef OCTAVO_CLI_LINE_READER_H
#define OCTAVO_CLI_LINE_READER_H

#include "base/buffer.h"

#include "octavo/status.h"

#include <stdbool.h>

/* Zero-initialised is at the start. */
typedef struct octavo_line_reader {
    octavo_buffer text; /* read and not yet given out from `at` on */
    size_t at;
    bool is_end;
} octavo_line_reader;

/* The next line, without its end: a view that lives until the next call. *has_line is false at the
 * end of the input and, unless it may wait, where no whole line has been read yet. Statuses: IO,
 * MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_line_reader_next(octavo_line_reader *reader, bool may_wait,
                                                        const char **line, size_t *length,
                                                        bool *has_line, octavo_error *error);
void octavo_line_reader_deinit(octavo_line_reader *reader);

#endif
