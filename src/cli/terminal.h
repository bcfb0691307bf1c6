/* SPDX-License-Identifier: Apache-2.0
 *
 * What only happens on a terminal: colour, progress, Ctrl-C that stops one answer.
 */
#ifndef OCTAVO_CLI_TERMINAL_H
#define OCTAVO_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A terminal that can do more than print lines (TERM is not "dumb"). */
bool octavo_terminal_is_rich(FILE *stream);
/* That, and the environment does not say NO_COLOR. */
bool octavo_terminal_has_color(FILE *stream);

/* A progress bar on standard error, if that is a terminal; it shows itself only when the work takes
 * longer than a moment. */
typedef struct octavo_progress {
    const char *what; /* "loading" */
    int64_t start_ns, drawn_ns;
} octavo_progress;

octavo_progress octavo_progress_start(const char *what);
void octavo_progress_update(octavo_progress *progress, uint64_t done, uint64_t total);
/* Wipes a bar that is shown, whoever drew it. */
void octavo_terminal_clear_progress(void);
/* octavo_progress_update in the shape that octavo_model_options wants; `cookie` is the progress. */
int octavo_progress_of_load(void *cookie, uint64_t done, uint64_t total);

/* From catch to release an interrupt (Ctrl-C) sets a flag instead of ending the process. */
void octavo_interrupt_catch(void);
void octavo_interrupt_release(void);
/* Non-zero once an interrupt was caught. Lives forever. */
const volatile int *octavo_interrupt_flag(void);
void octavo_interrupt_clear(void);
/* Waits until `fd` can be read, and returns true, or an interrupt was caught: false. */
bool octavo_interrupt_wait(int fd);
/* Ends the process as an interrupt that was not caught would have. */
void octavo_interrupt_die(void);

#endif
