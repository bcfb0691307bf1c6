/* SPDX-License-Identifier: Apache-2.0
 *
 * Teams over NUMA nodes: the plan as such, and over machines that hwloc only pretends to see.
 */
#include "../unit.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/placement.h"
#include "base/thread.h"

#include <sched.h>
#include <stdlib.h>

#define MOST 16

/* Every thread has a core of its own; with `inside` each team has one node, and no node has two
 * teams more than another of the same size. */
static void check_plan(const int *node, int n_cores, int n_teams, int each, const int *expected) {
    int core[MOST];
    for (int i = 0; i < MOST; i++) {
        core[i] = -1;
    }
    assert_true(octavo_placement_plan(node, n_cores, n_teams, each, core));
    for (int i = 0; i < MOST; i++) {
        assert_int_equal(core[i], i < n_teams * each ? expected[i] : -1);
    }
}

static void test_plan(void **unused) {
    (void)unused;
    static const int one[8] = {0};
    static const int two[8] = {0, 0, 0, 0, 1, 1, 1, 1};
    static const int mixed[8] = {5, 2, 5, 2, 5, 2, 5, 2};
    static const int uneven[8] = {0, 0, 1, 1, 1, 1, 1, 1};
    check_plan(one, 8, 1, 3, (int[]){0, 1, 2});
    check_plan(one, 8, 3, 2, (int[]){0, 1, 2, 3, 4, 5});
    check_plan(two, 8, 2, 1, (int[]){0, 4});
    check_plan(two, 8, 2, 4, (int[]){0, 1, 2, 3, 4, 5, 6, 7});
    check_plan(two, 8, 4, 1, (int[]){0, 1, 4, 5});
    check_plan(two, 8, 3, 1, (int[]){0, 1, 4});
    check_plan(two, 8, 2, 3, (int[]){0, 1, 2, 4, 5, 6});
    check_plan(mixed, 8, 2, 2, (int[]){0, 2, 1, 3});
    check_plan(uneven, 8, 4, 2, (int[]){0, 1, 2, 3, 4, 5, 6, 7});
    check_plan(uneven, 8, 2, 3, (int[]){2, 3, 4, 5, 6, 7});
    check_plan(uneven, 8, 1, 4, (int[]){2, 3, 4, 5});
    /* These teams fit in no node, or not all of them do. */
    check_plan(two, 8, 1, 6, (int[]){0, 1, 2, 3, 4, 5});
    check_plan(two, 8, 4, 2, (int[]){0, 1, 2, 3, 4, 5, 6, 7});
    check_plan(uneven, 8, 2, 4, (int[]){0, 1, 2, 3, 4, 5, 6, 7});
    int core[MOST];
    assert_false(octavo_placement_plan(two, 8, 3, 3, core));
    assert_false(octavo_placement_plan(two, 8, 9, 1, core));
    assert_false(octavo_placement_plan(two, 0, 1, 1, core));
}

static void pretend(const char *machine) {
    assert_int_equal(setenv("HWLOC_SYNTHETIC", machine, 1), 0);
}

static void test_nodes(void **unused) {
    (void)unused;
    assert_true(octavo_cpu_numa_nodes() >= 1);
    pretend("node:4 core:2 pu:2");
    assert_int_equal(octavo_cpu_numa_nodes(), 4);
    pretend("pack:1 core:2 pu:1");
    assert_int_equal(octavo_cpu_numa_nodes(), 1);
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
}

/* Binding does nothing on a machine that is not there, but all the ways are walked. */
static void test_binding(void **unused) {
    (void)unused;
    pretend("node:2 core:4 pu:2");
    octavo_placement *placement = octavo_placement_create(2, 3);
    assert_non_null(placement);
    for (int i = 0; i < 6; i++) {
        assert_true(octavo_placement_bind(placement, i, pthread_self()));
    }
    octavo_placement_unbind(placement, pthread_self());
    char *block = octavo_alloc_aligned(100000);
    assert_non_null(block);
    for (size_t bytes = 0; bytes <= 90000; bytes += 4500) {
        octavo_placement_bind_memory(placement, (int)(bytes / 4500) % 2, block + 64, bytes);
    }
    octavo_free_aligned(block);
    octavo_placement_destroy(&placement);
    assert_null(placement);
    assert_null(octavo_placement_create(3, 3));
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
}

static void test_narrow(void **unused) {
    (void)unused;
    pretend("node:2 core:2 pu:2");
    assert_false(octavo_placement_narrow(0, 5));
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
#if defined(__linux__)
    cpu_set_t before, parts[2];
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    if (octavo_cpu_cores() < 2) skip();
    for (int i = 0; i < 2; i++) {
        assert_true(octavo_placement_narrow(i, 2));
        assert_int_equal(sched_getaffinity(0, sizeof(parts[i]), &parts[i]), 0);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
        assert_true(CPU_COUNT(&parts[i]) > 0 && CPU_COUNT(&parts[i]) < CPU_COUNT(&before));
    }
    cpu_set_t both;
    CPU_AND(&both, &parts[0], &parts[1]);
    assert_int_equal(CPU_COUNT(&both), 0);
#endif
}

/* What was in the memory stays there. */
static void test_memory_stays(void **unused) {
    (void)unused;
    octavo_pool *pool = NULL;
    assert_int_equal(octavo_pool_create_teams(&pool, 2, 1, true, NULL), OCTAVO_OK);
    enum { BYTES = 3 << 20 };
    unsigned char *block = octavo_alloc_aligned(BYTES);
    assert_non_null(block);
    for (int i = 0; i < BYTES; i++) {
        block[i] = (unsigned char)(i * 7);
    }
    octavo_pool_bind_memory(pool, 0, block, BYTES / 2 + 5);
    octavo_pool_bind_memory(pool, 1, block + BYTES / 2 + 5, BYTES / 2 - 5);
    octavo_pool_bind_memory(pool, 1, NULL, 0);
    for (int i = 0; i < BYTES; i++) {
        assert_int_equal(block[i], (unsigned char)(i * 7));
    }
    octavo_free_aligned(block);
    octavo_pool_destroy(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),         cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_binding),      cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_memory_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
