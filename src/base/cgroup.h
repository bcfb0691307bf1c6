/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits that Linux control groups, and so containers, put on this process.
 */
#ifndef OCTAVO_BASE_CGROUP_H
#define OCTAVO_BASE_CGROUP_H

/* Whole cores that the processor quotas leave to this process, at least 1; INT_MAX without a quota.
 * `groups` is the file that lists the process's groups (/proc/self/cgroup), `mount` the folder they
 * are mounted at (/sys/fs/cgroup). Any thread. */
int octavo_cgroup_cores(const char *groups, const char *mount);

#endif
