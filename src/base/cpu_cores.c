/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is of caches and cores: how much this process may use, not what the machine has.
 */
#include "base/cpu.h"

#include <hwloc.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

/* Cores that hold at least one processing unit this process is allowed and bound to. */
static int bound_cores(void) {
    hwloc_topology_t topology = NULL;
    hwloc_bitmap_t bound = NULL;
    int cores = 0;
    if (hwloc_topology_init(&topology) != 0) return 0;
    if (hwloc_topology_load(topology) != 0) goto done;
    bound = hwloc_bitmap_alloc();
    if (bound == NULL) goto done;
    if (hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) != 0) {
        hwloc_bitmap_copy(bound, hwloc_topology_get_allowed_cpuset(topology));
    }
    hwloc_bitmap_and(bound, bound, hwloc_topology_get_allowed_cpuset(topology));
    for (hwloc_obj_t core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, NULL);
         core != NULL; core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) {
        if (hwloc_bitmap_intersects(core->cpuset, bound)) cores++;
    }
    /* A system that shows no cores shows at least its processing units. */
    if (cores == 0) cores = hwloc_bitmap_weight(bound);

done:
    hwloc_bitmap_free(bound);
    hwloc_topology_destroy(topology);
    return cores;
}

#if defined(__linux__)

/* Whole processors in a quota; what is left over would only cause throttling. */
static int quota_cores(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return INT_MAX;
    long long cores = quota / period;
    return cores < 1 ? 1 : cores < INT_MAX ? (int)cores : INT_MAX;
}

/* Reads the first number of a small file. */
static bool read_number(const char *folder, const char *name, long long *value) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (length < 0 || length >= (int)sizeof(path)) return false;
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    bool found = fscanf(file, "%lld", value) == 1;
    (void)fclose(file);
    return found;
}

/* The quota set at one group's folder, version 2 ("cpu.max": "QUOTA PERIOD" or "max PERIOD") or
 * version 1 (two files, -1 = none). */
static int folder_cores(const char *folder) {
    char path[PATH_MAX];
    long long quota, period;
    int length = snprintf(path, sizeof(path), "%s/cpu.max", folder);
    FILE *file = length > 0 && length < (int)sizeof(path) ? fopen(path, "re") : NULL;
    if (file != NULL) {
        bool limited = fscanf(file, "%lld %lld", &quota, &period) == 2;
        (void)fclose(file);
        return limited ? quota_cores(quota, period) : INT_MAX;
    }
    if (read_number(folder, "cpu.cfs_quota_us", &quota) &&
        read_number(folder, "cpu.cfs_period_us", &period)) {
        return quota_cores(quota, period);
    }
    return INT_MAX;
}

/* The tightest quota from `group` up to the root of `mount`. A container may see names of its host
 * that its own mount lacks: those folders are simply absent on the way up. */
static int group_cores(const char *mount, const char *group) {
    char folder[PATH_MAX];
    int least = INT_MAX;
    int length = snprintf(folder, sizeof(folder), "%s%s", mount, group);
    if (length < 0 || length >= (int)sizeof(folder)) return least;
    size_t root = strlen(mount);
    for (;;) {
        int cores = folder_cores(folder);
        if (cores < least) least = cores;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < root) return least;
        *slash = '\0';
    }
}

/* Whether the comma-separated list of controllers names the cpu controller. */
static bool names_cpu(const char *controllers, size_t size) {
    for (size_t at = 0; at < size;) {
        size_t length = strcspn(controllers + at, ",:");
        if (length == 3 && memcmp(controllers + at, "cpu", 3) == 0) return true;
        at += length + 1;
    }
    return false;
}

/* Each line of /proc/self/cgroup is "ID:CONTROLLERS:GROUP"; version 2 has ID 0, no controllers. */
static int allotted_cores(void) {
    int least = INT_MAX;
    char line[PATH_MAX + 64];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) return least;
    while (fgets(line, sizeof(line), file) != NULL) {
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) continue;
        controllers++;
        line[strcspn(line, "\n")] = '\0';
        int cores = INT_MAX;
        if (group == controllers) {
            cores = group_cores("/sys/fs/cgroup", group + 1);
        } else if (names_cpu(controllers, (size_t)(group - controllers))) {
            cores = group_cores("/sys/fs/cgroup/cpu", group + 1);
        }
        if (cores < least) least = cores;
    }
    (void)fclose(file);
    return least;
}

#else

static int allotted_cores(void) {
    return INT_MAX;
}

#endif

int octavo_cpu_cores(void) {
    int cores = bound_cores();
    int quota = allotted_cores();
    if (quota < cores) cores = quota;
    return cores < 1 ? 1 : cores;
}
