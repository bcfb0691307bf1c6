/* SPDX-License-Identifier: Apache-2.0
 *
 * A fork-join pool for one rank. The caller of octavo_pool_run is thread 0; the others spin for a
 * short while between runs and then sleep. One run at a time: the pool has one owner.
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

/* Starts n_threads - 1 workers (1 <= n_threads <= 1024). With `pin` each thread, the caller
 * included, is bound to a physical core of its own through hwloc; where that fails the pool runs
 * unbound. */
OCTAVO_MUST_CHECK octavo_status octavo_pool_create(octavo_pool **pool, int n_threads, bool pin,
                                                   octavo_error *error);
void octavo_pool_destroy(octavo_pool **pool); /* takes NULL handles; joins the workers */
int octavo_pool_threads(const octavo_pool *pool);

/* Calls task on all threads and returns when all have returned. What a thread wrote before is seen
 * by all inside, and what they wrote inside is seen by the caller afterwards. Allocates nothing. */
void octavo_pool_run(octavo_pool *pool, octavo_pool_task *task, void *arg);

/* Inside a task: returns when every thread of the pool has called it. Memory written before by any
 * thread is visible to all after. */
void octavo_pool_barrier(octavo_pool *pool, int thread);

/* [begin, end) of `count` things for `thread`: contiguous, sizes differ by at most one `grain`. */
void octavo_pool_share(int64_t count, int64_t grain, int thread, int n_threads, int64_t *begin,
                       int64_t *end);

#endif
