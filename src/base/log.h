/* SPDX-License-Identifier: Apache-2.0
 *
 * Diagnostics. The library prints nothing by itself: it hands lines to the caller's sink.
 */
#ifndef OCTAVO_BASE_LOG_H
#define OCTAVO_BASE_LOG_H

#include "base/compiler.h"

#include "octavo/log.h"

/* Hands a line to log->write when `level` is at or under log->level. Line ends at the
 * end are cut off, others become spaces. `log`, or its `write`, may be NULL: dropped. */
void octavo_log_write(const octavo_log *log, octavo_log_level level, const char *format, ...)
    OCTAVO_PRINTF(3, 4);

#endif
