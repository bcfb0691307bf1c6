/* SPDX-License-Identifier: Apache-2.0 */
#include "base/placement.h"

#include "base/cpu.h"
#include "base/memory.h"

#include <hwloc.h>
#include <stdint.h>
#include <unistd.h>

/* Constant after it was made. */
struct octavo_placement {
    hwloc_topology_t topology;
    hwloc_bitmap_t before; /* what the creating thread was bound to */
    int threads_per_team;
    int n_nodes; /* that have a core in `before` */
    int *core;   /* [n_teams * threads_per_team], logical indices */
};

/* The node of least teams that has room for one more, as the index of its first core; -1 for none.
 */
static int roomiest_node(const int *size, const int *teams, int n_cores, int threads_per_team) {
    int best = -1;
    for (int i = 0; i < n_cores; i++) {
        if (size[i] / threads_per_team <= teams[i]) continue;
        if (best < 0 || teams[i] < teams[best]) best = i;
    }
    return best;
}

bool octavo_placement_plan(const int *node, int n_cores, int n_teams, int threads_per_team,
                           int *core) {
    if (n_cores / n_teams < threads_per_team) return false;
    /* Of the node that starts at core i: how many cores it has, how many teams it gets. */
    int *size = octavo_alloc_zero((size_t)n_cores, 2 * sizeof(*size));
    if (size == NULL) return false;
    int *teams = size + n_cores;
    for (int i = 0; i < n_cores; i++) {
        int first = 0;
        while (node[first] != node[i])
            first++;
        size[first]++;
    }
    int placed = 0;
    while (placed < n_teams) {
        int first = roomiest_node(size, teams, n_cores, threads_per_team);
        if (first < 0) break;
        teams[first]++;
        placed++;
    }
    int thread = 0;
    if (placed < n_teams) {
        for (; thread < n_teams * threads_per_team; thread++) {
            core[thread] = thread;
        }
    }
    for (int first = 0; placed == n_teams && first < n_cores; first++) {
        int left = teams[first] * threads_per_team;
        for (int i = first; left > 0; i++) {
            if (node[i] != node[first]) continue;
            core[thread++] = i;
            left--;
        }
    }
    octavo_free(size);
    return true;
}

/* The cores that have a part in `allowed`: their logical indices, and the NUMA node of each. */
static int list_cores(hwloc_topology_t topology, hwloc_const_bitmap_t allowed, int *index,
                      int *node) {
    int n = 0;
    for (hwloc_obj_t core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, NULL);
         core != NULL; core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) {
        if (!hwloc_bitmap_intersects(core->cpuset, allowed)) continue;
        index[n] = (int)core->logical_index;
        node[n] = hwloc_bitmap_first(core->nodeset);
        n++;
    }
    return n;
}

static int count_distinct(const int *value, int n) {
    int distinct = 0;
    for (int i = 0; i < n; i++) {
        int first = 0;
        while (value[first] != value[i])
            first++;
        if (first == i) distinct++;
    }
    return distinct;
}

/* Fills p->core and p->n_nodes. */
static bool choose_cores(octavo_placement *p, int n_teams) {
    int most = hwloc_get_nbobjs_by_type(p->topology, HWLOC_OBJ_CORE);
    if (most <= 0) return false;
    int *index = octavo_alloc_zero((size_t)most, 2 * sizeof(*index));
    if (index == NULL) return false;
    int *node = index + most;
    int n = list_cores(p->topology, p->before, index, node);
    p->n_nodes = count_distinct(node, n);
    bool fits = octavo_placement_plan(node, n, n_teams, p->threads_per_team, p->core);
    for (int i = 0; fits && i < n_teams * p->threads_per_team; i++) {
        p->core[i] = index[p->core[i]];
    }
    octavo_free(index);
    return fits;
}

octavo_placement *octavo_placement_create(int n_teams, int threads_per_team) {
    octavo_placement *p = octavo_alloc_zero(1, sizeof(*p));
    if (p == NULL) return NULL;
    p->threads_per_team = threads_per_team;
    p->before = hwloc_bitmap_alloc();
    p->core = octavo_alloc_zero((size_t)n_teams * (size_t)threads_per_team, sizeof(*p->core));
    if (p->before == NULL || p->core == NULL || hwloc_topology_init(&p->topology) != 0 ||
        hwloc_topology_load(p->topology) != 0 ||
        hwloc_get_cpubind(p->topology, p->before, HWLOC_CPUBIND_THREAD) != 0 ||
        !choose_cores(p, n_teams)) {
        octavo_placement_destroy(&p);
    }
    return p;
}

void octavo_placement_destroy(octavo_placement **placement) {
    if (placement == NULL || *placement == NULL) return;
    octavo_placement *old = *placement;
    hwloc_bitmap_free(old->before);
    if (old->topology != NULL) hwloc_topology_destroy(old->topology);
    octavo_free(old->core);
    octavo_free(old);
    *placement = NULL;
}

static hwloc_obj_t core_of(const octavo_placement *p, int thread) {
    return hwloc_get_obj_by_type(p->topology, HWLOC_OBJ_CORE, (unsigned)p->core[thread]);
}

bool octavo_placement_bind(const octavo_placement *placement, int index, pthread_t thread) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    bool bound = set != NULL &&
                 hwloc_bitmap_and(set, core_of(placement, index)->cpuset, placement->before) == 0 &&
                 hwloc_set_thread_cpubind(placement->topology, thread, set, 0) == 0;
    hwloc_bitmap_free(set);
    return bound;
}

void octavo_placement_unbind(const octavo_placement *placement, pthread_t thread) {
    (void)hwloc_set_thread_cpubind(placement->topology, thread, placement->before, 0);
}

void octavo_placement_bind_memory(const octavo_placement *placement, int team, void *p,
                                  size_t bytes) {
    if (placement->n_nodes < 2) return;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t before = (page - (uintptr_t)p % page) % page; /* of another page's neighbour */
    if (bytes < before + page) return;
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    if (nodes == NULL) return;
    for (int i = 0; i < placement->threads_per_team; i++) {
        hwloc_obj_t core = core_of(placement, team * placement->threads_per_team + i);
        int node = hwloc_bitmap_first(core->nodeset); /* -1 for a core far from all memory */
        if (node >= 0) (void)hwloc_bitmap_set(nodes, (unsigned)node);
    }
    /* A team that fits in no node has its memory on all that it spans. */
    const hwloc_membind_policy_t policy =
        hwloc_bitmap_weight(nodes) > 1 ? HWLOC_MEMBIND_INTERLEAVE : HWLOC_MEMBIND_BIND;
    (void)hwloc_set_area_membind(placement->topology, (char *)p + before,
                                 (bytes - before) / page * page, nodes, policy,
                                 HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_MIGRATE);
    hwloc_bitmap_free(nodes);
}

/* All processing units of the share: siblings of a core stay together. */
static bool bind_process(const octavo_placement *p, int index) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    bool bound = set != NULL;
    for (int i = 0; bound && i < p->threads_per_team; i++) {
        hwloc_obj_t core = core_of(p, index * p->threads_per_team + i);
        bound = hwloc_bitmap_or(set, set, core->cpuset) == 0;
    }
    bound = bound && hwloc_bitmap_and(set, set, p->before) == 0 &&
            hwloc_set_cpubind(p->topology, set, HWLOC_CPUBIND_PROCESS) == 0;
    hwloc_bitmap_free(set);
    return bound;
}

bool octavo_placement_narrow(int index, int count) {
    const int share = octavo_cpu_cores() / count;
    octavo_placement *p = share > 0 ? octavo_placement_create(count, share) : NULL;
    bool bound = p != NULL && bind_process(p, index);
    octavo_placement_destroy(&p);
    return bound;
}
