/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads processor quotas of control groups, versions 1 and 2. Whatever is absent or unreadable sets
 * no limit.
 */
#include "base/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

/* Each line of `groups` is "ID:CONTROLLERS:GROUP"; version 2 has ID 0, no controllers. */
int octavo_cgroup_cores(const char *groups, const char *mount) {
    int least = INT_MAX;
    char line[PATH_MAX + 64];
    char cpu_mount[PATH_MAX];
    int length = snprintf(cpu_mount, sizeof(cpu_mount), "%s/cpu", mount);
    if (length < 0 || length >= (int)sizeof(cpu_mount)) return least;
    FILE *file = fopen(groups, "re");
    if (file == NULL) return least;
    while (fgets(line, sizeof(line), file) != NULL) {
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) continue;
        controllers++;
        line[strcspn(line, "\n")] = '\0';
        int cores = INT_MAX;
        if (group == controllers) {
            cores = group_cores(mount, group + 1);
        } else if (names_cpu(controllers, (size_t)(group - controllers))) {
            cores = group_cores(cpu_mount, group + 1);
        }
        if (cores < least) least = cores;
    }
    (void)fclose(file);
    return least;
}
