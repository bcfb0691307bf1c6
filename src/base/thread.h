/* SPDX-License-Identifier: Apache-2.0
 *
 * A fork-join pool for the ranks of one process. The caller of octavo_pool_run is thread 0; the
 * others spin for a short while between runs and then sleep. One run at a time: the pool has one
 * owner. Its threads are cut into teams of equal size, each the threads of one rank: team i has the
 * threads from i * threads_per_team on.
 */
#ifndef OCTAVO_BASE_THREAD_H
#define OCTAVO_BASE_THREAD_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct octavo_pool octavo_pool;

/* Runs on every thread of the pool at once; `thread` is 0..n_threads-1. */
typedef void octavo_pool_task(void *arg, int thread, int n_threads);

/* Starts all threads but the caller's (1 to 1024 in all). With `pin` each thread, the caller
 * included, is bound to a physical core of its own through hwloc: threads of a team next to one
 * another, teams spread over the NUMA nodes, each inside one where it fits. The cores are those
 * that the calling thread is bound to, so pools that live side by side stay apart if their owners
 * are bound apart first. Where there are too few cores, or binding fails, no thread is bound.
 * Statuses: OCTAVO_ERROR_INVALID, OCTAVO_ERROR_MEMORY (also when the system gives no thread). */
OCTAVO_MUST_CHECK octavo_status octavo_pool_create_teams(octavo_pool **pool, int n_teams,
                                                         int threads_per_team, bool pin,
                                                         octavo_error *error);
/* One team. */
OCTAVO_MUST_CHECK octavo_status octavo_pool_create(octavo_pool **pool, int n_threads, bool pin,
                                                   octavo_error *error);
/* Joins the workers and gives the calling thread, which must be the one that created the pool, the
 * binding that it had before. Takes NULL handles; *pool is NULL afterwards. */
void octavo_pool_destroy(octavo_pool **pool);
int octavo_pool_threads(const octavo_pool *pool); /* of all teams */
int octavo_pool_teams(const octavo_pool *pool);

/* Moves the whole pages within [p, p + bytes) to the NUMA node of a team; pages not yet touched
 * will come from there. Best effort, and nothing where threads are not pinned or there is one node.
 * Any thread, also inside a task. */
void octavo_pool_bind_memory(const octavo_pool *pool, int team, void *p, size_t bytes);

/* Calls task on all threads and returns when all have returned. What a thread wrote before is seen
 * by all inside, and what they wrote inside is seen by the caller afterwards. Allocates nothing.
 * Not from inside a task. */
void octavo_pool_run(octavo_pool *pool, octavo_pool_task *task, void *arg);

/* Inside a task: returns when every thread of the pool has called it. Memory written before by any
 * thread is visible to all after. */
void octavo_pool_barrier(octavo_pool *pool, int thread);
/* The same among the threads of this thread's team. */
void octavo_pool_team_barrier(octavo_pool *pool, int thread);

/* [begin, end) of `count` >= 0 things for `thread`: contiguous, ascending by thread, cut at
 * multiples of `grain` >= 1; sizes differ by at most one grain. */
void octavo_pool_share(int64_t count, int64_t grain, int thread, int n_threads, int64_t *begin,
                       int64_t *end);

#endif
