/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is of caches and cores: how much this process may use, not what the machine has.
 */
#include "base/cgroup.h"
#include "base/cpu.h"

#include <hwloc.h>
#include <unistd.h>

/* Bytes of a cache as hwloc sees it; 0 if unknown. */
static size_t hwloc_cache_bytes(hwloc_obj_type_t type) {
    hwloc_topology_t topology = NULL;
    size_t bytes = 0;
    if (hwloc_topology_init(&topology) != 0) return 0;
    if (hwloc_topology_load(topology) == 0) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
        if (cache != NULL) bytes = (size_t)cache->attr->cache.size;
    }
    hwloc_topology_destroy(topology);
    return bytes;
}

static size_t cache_bytes(int name, hwloc_obj_type_t type, size_t guess) {
    long bytes = name >= 0 ? sysconf(name) : 0;
    if (bytes > 0) return (size_t)bytes;
    size_t found = hwloc_cache_bytes(type);
    return found != 0 ? found : guess;
}

size_t octavo_cpu_l1_bytes(void) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    return cache_bytes(_SC_LEVEL1_DCACHE_SIZE, HWLOC_OBJ_L1CACHE, (size_t)32 << 10);
#else
    return cache_bytes(-1, HWLOC_OBJ_L1CACHE, (size_t)32 << 10);
#endif
}

size_t octavo_cpu_l2_bytes(void) {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    return cache_bytes(_SC_LEVEL2_CACHE_SIZE, HWLOC_OBJ_L2CACHE, (size_t)512 << 10);
#else
    return cache_bytes(-1, HWLOC_OBJ_L2CACHE, (size_t)512 << 10);
#endif
}

/* Cores that hold at least one processing unit this process is allowed and bound to; and in *nodes
 * the NUMA nodes nearest to them. */
static int bound_cores(int *nodes) {
    hwloc_topology_t topology = NULL;
    hwloc_bitmap_t bound = NULL;
    hwloc_bitmap_t near = NULL;
    int cores = 0;
    *nodes = 0;
    if (hwloc_topology_init(&topology) != 0) return 0;
    if (hwloc_topology_load(topology) != 0) goto done;
    bound = hwloc_bitmap_alloc();
    near = hwloc_bitmap_alloc();
    if (bound == NULL || near == NULL) goto done;
    if (hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) != 0) {
        hwloc_bitmap_copy(bound, hwloc_topology_get_allowed_cpuset(topology));
    }
    hwloc_bitmap_and(bound, bound, hwloc_topology_get_allowed_cpuset(topology));
    for (hwloc_obj_t core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, NULL);
         core != NULL; core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) {
        if (!hwloc_bitmap_intersects(core->cpuset, bound)) continue;
        cores++;
        int node = hwloc_bitmap_first(core->nodeset);
        if (node >= 0) (void)hwloc_bitmap_set(near, (unsigned)node);
    }
    /* A system that shows no cores shows at least its processing units. */
    if (cores == 0) cores = hwloc_bitmap_weight(bound);
    *nodes = hwloc_bitmap_weight(near);

done:
    hwloc_bitmap_free(near);
    hwloc_bitmap_free(bound);
    hwloc_topology_destroy(topology);
    return cores;
}

int octavo_cpu_cores(void) {
    int nodes = 0;
    int cores = bound_cores(&nodes);
    int quota = octavo_cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota < cores) cores = quota;
    return cores < 1 ? 1 : cores;
}

int octavo_cpu_numa_nodes(void) {
    int nodes = 0;
    (void)bound_cores(&nodes);
    return nodes < 1 ? 1 : nodes;
}
