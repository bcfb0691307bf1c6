/* SPDX-License-Identifier: Apache-2.0
 *
 * Where diagnostics go: a callback and its cookie, given in the options of whatever logs.
 */
#ifndef OCTAVO_LOG_H
#define OCTAVO_LOG_H

#include "octavo/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum octavo_log_level {
    OCTAVO_LOG_ERROR = 0,
    OCTAVO_LOG_WARN = 1,
    OCTAVO_LOG_INFO = 2,
    OCTAVO_LOG_DEBUG = 3,
} octavo_log_level;

/* `write` may be called from any thread, one line at a time per thread, without a line end. */
typedef struct octavo_log {
    octavo_log_level level; /* most detailed level that is wanted */
    void (*write)(void *cookie, octavo_log_level level, const char *line);
    void *cookie;
} octavo_log;

#ifdef __cplusplus
}
#endif
#endif
