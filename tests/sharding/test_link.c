/* SPDX-License-Identifier: Apache-2.0
 *
 * The line through measured times, and what threads of this machine give. Asserts no time.
 */
#include "../unit.h"
#include "sharding/link.h"

#include <math.h>

static void test_fit(void **unused) {
    (void)unused;
    const double bytes[4] = {100, 10000, 1e6, 1e8};
    double seconds[4];
    for (int i = 0; i < 4; i++) {
        seconds[i] = 3e-6 + bytes[i] / 5e9;
    }
    octavo_link link = octavo_link_fit(bytes, seconds, 4);
    assert_true(fabs(link.latency_s - 3e-6) < 1e-12);
    assert_true(fabs(link.bytes_per_s - 5e9) < 1);
    /* One size that took a tenth longer moves the line by no more than that. */
    seconds[3] *= 1.1;
    link = octavo_link_fit(bytes, seconds, 4);
    for (int i = 0; i < 4; i++) {
        const double told = link.latency_s + bytes[i] / link.bytes_per_s;
        assert_true(fabs(told / seconds[i] - 1) < 0.1);
    }
    /* Larger ones that take no longer: no slope, and never a negative one. */
    const double flat[4] = {2e-6, 1e-6, 1e-6, 1e-6};
    link = octavo_link_fit(bytes, flat, 4);
    assert_true(link.latency_s > 0 && link.bytes_per_s > 0);
}

static void test_insert(void **unused) {
    (void)unused;
    static const double values[] = {3, 1, 2, 5, 4, 1};
    double sorted[6];
    for (int i = 0; i < 6; i++) {
        octavo_link_insert(sorted, i, values[i]);
        for (int j = 1; j <= i; j++) {
            assert_true(sorted[j - 1] <= sorted[j]);
        }
    }
    assert_true(sorted[0] == 1 && sorted[5] == 5);
}

static void test_threads(void **unused) {
    (void)unused;
    for (int n_teams = 1; n_teams <= 3; n_teams++) {
        for (int each = 1; each <= 2; each++) {
            octavo_pool *pool = NULL;
            octavo_link link = {0};
            assert_int_equal(octavo_pool_create_teams(&pool, n_teams, each, true, NULL), OCTAVO_OK);
            assert_int_equal(octavo_link_measure_threads(pool, &link, NULL), OCTAVO_OK);
            assert_true(link.latency_s >= 0 && link.bytes_per_s > 0);
            if (n_teams == 1) assert_true(isinf(link.bytes_per_s) && link.latency_s == 0);
            print_message("%d ranks of %d threads: %.2f us + bytes / %.2f GB/s\n", n_teams, each,
                          link.latency_s * 1e6, link.bytes_per_s * 1e-9);
            octavo_pool_destroy(&pool);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_insert),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
