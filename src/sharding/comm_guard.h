/* SPDX-License-Identifier: Apache-2.0
 *
 * Until a job has come together nobody can tell that a process is missing: MPI waits for all of
 * them. So a guard ends this process when that takes too long.
 */
#ifndef OCTAVO_SHARDING_COMM_GUARD_H
#define OCTAVO_SHARDING_COMM_GUARD_H

#include "octavo/log.h"
#include "octavo/status.h"

typedef struct octavo_guard octavo_guard;

/* `launched` of `processes` is this process. */
OCTAVO_MUST_CHECK octavo_status octavo_guard_start(octavo_guard **guard, int launched,
                                                   int processes, double seconds,
                                                   const octavo_log *log, octavo_error *error);
/* The job is together, or given up. Takes NULL handles. */
void octavo_guard_stop(octavo_guard **guard);

/* The last word of a process: to the log, or on standard error where there is none. */
void octavo_last_word(const octavo_log *log, const char *line);

#endif
