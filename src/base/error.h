/* SPDX-License-Identifier: Apache-2.0
 *
 * The one error idiom: `return octavo_fail(error, status, "WHAT (WHERE): WHY; HINT", ...)`.
 */
#ifndef OCTAVO_BASE_ERROR_H
#define OCTAVO_BASE_ERROR_H

#include "base/compiler.h"

#include "octavo/status.h"

/* Fills *error (may be NULL) and returns `status`. A message too long is cut at a whole UTF-8
 * character. error->message itself may be an argument: that is how an error is wrapped. */
octavo_status octavo_fail(octavo_error *error, octavo_status status, const char *format, ...)
    OCTAVO_PRINTF(3, 4);

/* The same for parsers: `offset` is the byte at which the input is wrong. */
octavo_status octavo_fail_at(octavo_error *error, octavo_status status, int64_t offset,
                             const char *format, ...) OCTAVO_PRINTF(4, 5);

/* "out of memory (WHAT): N bytes more are not to be had; ...". */
octavo_status octavo_fail_memory(octavo_error *error, const char *what, uint64_t bytes);

#endif
