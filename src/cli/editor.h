/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading lines from a person: with editing and history where libedit is there, plainly elsewhere.
 */
#ifndef OCTAVO_CLI_EDITOR_H
#define OCTAVO_CLI_EDITOR_H

#include "base/buffer.h"

#include "octavo/status.h"

typedef struct octavo_editor octavo_editor;

typedef enum octavo_editor_result {
    OCTAVO_EDITOR_LINE,
    OCTAVO_EDITOR_END,              /* Ctrl-D on an empty line, or the terminal is gone */
    OCTAVO_EDITOR_INTERRUPTED,      /* Ctrl-C; what was typed is dropped */
    OCTAVO_EDITOR_INTERRUPTED_EMPTY /* Ctrl-C, and nothing had been typed */
} octavo_editor_result;

/* Reads standard input, which is a terminal, and prompts on standard output. Interrupts must be
 * caught (octavo_interrupt_catch) while it is used. Statuses: MEMORY, IO. */
OCTAVO_MUST_CHECK octavo_status octavo_editor_create(octavo_editor **editor, octavo_error *error);
void octavo_editor_destroy(octavo_editor **editor); /* takes NULL; nulls the handle */

/* The next line, without its end, in `line`; it joins the history unless it is empty. */
octavo_editor_result octavo_editor_read(octavo_editor *editor, const char *prompt,
                                        octavo_buffer *line);

#endif
