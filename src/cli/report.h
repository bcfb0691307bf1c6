/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command says on standard error, and the status with which it ends.
 */
#ifndef OCTAVO_CLI_REPORT_H
#define OCTAVO_CLI_REPORT_H

#include "base/compiler.h"

#include "octavo/log.h"
#include "octavo/status.h"

enum {
    OCTAVO_EXIT_DONE = 0,
    OCTAVO_EXIT_FAILED = 1,
    OCTAVO_EXIT_USAGE = 2, /* the command line is wrong */
};

/* "octavo: error: MESSAGE". Returns OCTAVO_EXIT_FAILED. */
int octavo_cli_fail(const octavo_error *error);
/* The same from a format, of the form "WHAT (WHERE): WHY; HINT". Returns OCTAVO_EXIT_USAGE. */
int octavo_cli_usage(const char *format, ...) OCTAVO_PRINTF(1, 2);
/* The exit status of a command that ended with `status`; says what went wrong. */
int octavo_cli_exit(octavo_status status, const octavo_error *error);

/* Lines up to `level` on standard error. */
octavo_log octavo_cli_log(octavo_log_level level);

#endif
