/* SPDX-License-Identifier: Apache-2.0
 *
 * Processor quotas read from small trees that look like /sys/fs/cgroup.
 */
#include "../unit.h"
#include "base/cgroup.h"

#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static int make_root(void **unused) {
    (void)unused;
    (void)snprintf(root, sizeof(root), "/tmp/octavo-cgroup-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_root(void **unused) {
    (void)unused;
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes root/PATH, making the folders on the way. */
static void put(const char *path, const char *text) {
    char full[256];
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int cores_of(const char *groups) {
    char path[256];
    put("groups", groups);
    (void)snprintf(path, sizeof(path), "%s/groups", root);
    return octavo_cgroup_cores(path, root);
}

static void test_no_quota(void **unused) {
    (void)unused;
    assert_int_equal(octavo_cgroup_cores("/nonexistent/groups", root), INT_MAX);
    assert_int_equal(cores_of(""), INT_MAX);
    assert_int_equal(cores_of("0::/\n"), INT_MAX);
    assert_int_equal(cores_of("garbage\n::\n:\n\n"), INT_MAX);
    put("cpu.max", "max 100000\n");
    assert_int_equal(cores_of("0::/\n"), INT_MAX);
    put("cpu.max", "");
    assert_int_equal(cores_of("0::/\n"), INT_MAX);
    put("cpu.max", "200000 0\n");
    assert_int_equal(cores_of("0::/\n"), INT_MAX);
}

static void test_version_2(void **unused) {
    (void)unused;
    put("cpu.max", "400000 100000\n");
    assert_int_equal(cores_of("0::/\n"), 4);
    put("cpu.max", "350000 100000\n"); /* the half core only throttles */
    assert_int_equal(cores_of("0::/\n"), 3);
    put("cpu.max", "20000 100000\n");
    assert_int_equal(cores_of("0::/\n"), 1);
    put("cpu.max", "9000000000000000000 1\n");
    assert_int_equal(cores_of("0::/\n"), INT_MAX);

    /* the tightest group on the way to the root counts */
    put("cpu.max", "max 100000\n");
    put("pod/cpu.max", "200000 100000\n");
    put("pod/box/cpu.max", "500000 100000\n");
    assert_int_equal(cores_of("0::/pod/box\n"), 2);
    assert_int_equal(cores_of("0::/pod\n"), 2);
    assert_int_equal(cores_of("0::/other\n"), INT_MAX);
    assert_int_equal(cores_of("0::/pod/absent/deeper\n"), 2);
    put("pod/box/cpu.max", "100000 100000\n");
    assert_int_equal(cores_of("0::/pod/box\n"), 1);
}

static void test_version_1(void **unused) {
    (void)unused;
    put("cpu/cpu.cfs_quota_us", "-1\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    put("cpu/job/cpu.cfs_quota_us", "600000\n");
    put("cpu/job/cpu.cfs_period_us", "200000\n");
    assert_int_equal(cores_of("4:memory:/job\n3:cpu,cpuacct:/job\n"), 3);
    assert_int_equal(cores_of("3:cpuacct,cpu:/job\n"), 3);
    assert_int_equal(cores_of("3:cpu:/job\n0::/\n"), 3);
    assert_int_equal(cores_of("3:cpu:/\n"), INT_MAX);
    assert_int_equal(cores_of("3:cpuacct:/job\n"), INT_MAX);
    assert_int_equal(cores_of("3:cpuset:/job\n"), INT_MAX);
    assert_int_equal(cores_of("3:name=cpu:/job\n"), INT_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_quota, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_version_1, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
