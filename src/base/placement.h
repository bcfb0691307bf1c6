/* SPDX-License-Identifier: Apache-2.0
 *
 * Where threads and their memory go: each thread to a physical core of its own, each team of
 * threads inside one NUMA node, memory to the node of the team that uses it. All best effort: where
 * there are too few cores, or the system says no, nothing is bound.
 */
#ifndef OCTAVO_BASE_PLACEMENT_H
#define OCTAVO_BASE_PLACEMENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct octavo_placement octavo_placement;

/* Chooses a core for each thread of `n_teams` teams of equal size: core[thread] is an index into
 * node[n_cores], which tells the NUMA node of each core that may be used. Threads of a team get
 * neighbours. Teams are spread evenly over the nodes, each inside one; where they do not fit that
 * way the cores are taken in order. False when there are fewer cores than threads, or no memory. */
bool octavo_placement_plan(const int *node, int n_cores, int n_teams, int threads_per_team,
                           int *core);

/* A plan over the cores that the calling thread is bound to. NULL where none can be made. */
octavo_placement *octavo_placement_create(int n_teams, int threads_per_team);
/* Takes NULL handles; binds nothing. */
void octavo_placement_destroy(octavo_placement **placement);

/* To the core of thread `index`; false when the system refuses. */
bool octavo_placement_bind(const octavo_placement *placement, int index, pthread_t thread);
/* To all that the creating thread was bound to. */
void octavo_placement_unbind(const octavo_placement *placement, pthread_t thread);

/* Moves the whole pages within [p, p + bytes) to the node of a team; pages not yet touched will
 * come from there. Does nothing where the cores that may be used lie in one node. Any thread. */
void octavo_placement_bind_memory(const octavo_placement *placement, int team, void *p,
                                  size_t bytes);

/* Binds this whole process to the index-th of `count` equal shares of the cores that it is bound
 * to, within one NUMA node where that works out: for processes that a launcher left on the same
 * cores. False, and nothing is changed, where there are fewer cores than shares or the system
 * refuses. */
bool octavo_placement_narrow(int index, int count);

#endif
