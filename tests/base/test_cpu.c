/* SPDX-License-Identifier: Apache-2.0
 *
 * Levels, their choice by option and environment, caches and cores.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static octavo_status select_isa(const char *variable, const char *isa, octavo_cpu_flags *flags,
                                octavo_error *error) {
    if (variable != NULL) {
        assert_int_equal(setenv("OCTAVO_CPU", variable, 1), 0);
    } else {
        assert_int_equal(unsetenv("OCTAVO_CPU"), 0);
    }
    octavo_status status = octavo_cpu_select(isa, flags, error);
    assert_int_equal(unsetenv("OCTAVO_CPU"), 0);
    return status;
}

static void test_levels(void **unused) {
    (void)unused;
    static const char *const names[] = {"scalar",      "avx2",        "avx512", "avx512_vnni",
                                        "avx512_vbmi", "avx512_bf16", "amx",    "neon"};
    size_t count = 0;
    const octavo_cpu_level *levels = octavo_cpu_levels(&count);
    assert_int_equal(count, OCTAVO_COUNT(names));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(levels[i].name, names[i]);
        assert_string_equal(octavo_cpu_name(levels[i].flags), names[i]);
    }
    assert_int_equal(levels[0].flags, 0);
    for (size_t i = 2; i <= 6; i++) { /* each x86 level holds the one below and one flag more */
        octavo_cpu_flags more = levels[i].flags & ~levels[i - 1].flags;
        assert_int_equal(levels[i].flags & levels[i - 1].flags, levels[i - 1].flags);
        assert_true(more != 0 && (more & (more - 1)) == 0);
    }
}

/* Detection gives a whole level, and none of another architecture. */
static void test_detect(void **unused) {
    (void)unused;
    octavo_cpu_flags machine = octavo_cpu_detect();
    assert_int_equal(octavo_cpu_detect(), machine);
    size_t count;
    const octavo_cpu_level *levels = octavo_cpu_levels(&count);
    bool whole = false;
    for (size_t i = 0; i < count; i++) {
        whole |= levels[i].flags == machine;
    }
    assert_true(whole);
#if defined(__aarch64__)
    assert_int_equal(machine, OCTAVO_CPU_NEON);
#else
    assert_int_equal(machine & OCTAVO_CPU_NEON, 0);
#endif
#if defined(__x86_64__) && defined(__GNUC__)
    /* The compiler's runtime knows too, by its own code. */
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    assert_int_equal((machine & OCTAVO_CPU_AVX2) != 0, avx2);
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    assert_int_equal((machine & OCTAVO_CPU_AVX512) != 0, avx512);
    assert_int_equal((machine & OCTAVO_CPU_AVX512_VNNI) != 0,
                     avx512 && __builtin_cpu_supports("avx512vnni"));
    assert_int_equal((machine & OCTAVO_CPU_AVX512_VBMI) != 0,
                     avx512 && __builtin_cpu_supports("avx512vnni") &&
                         __builtin_cpu_supports("avx512vbmi"));
#endif
}

static void test_select(void **unused) {
    (void)unused;
    const octavo_cpu_flags machine = octavo_cpu_detect();
    octavo_cpu_flags best = 12345, flags = 12345;
    assert_int_equal(select_isa(NULL, NULL, &best, NULL), OCTAVO_OK);
    assert_int_equal(best & ~machine, 0);
    const octavo_cpu_flags left_out = machine & ~best;
    assert_int_equal(left_out & ~(OCTAVO_CPU_AVX512_BF16 | OCTAVO_CPU_AMX), 0);
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!__builtin_cpu_is("intel")) assert_int_equal(best, machine);
    if (__builtin_cpu_is("intel")) assert_int_equal(best & OCTAVO_CPU_AVX512_BF16, 0);
#else
    assert_int_equal(best, machine);
#endif
    assert_int_equal(select_isa("", "best", &flags, NULL), OCTAVO_OK);
    assert_int_equal(flags, best);
    flags = 12345;
    assert_int_equal(select_isa("best", NULL, &flags, NULL), OCTAVO_OK);
    assert_int_equal(flags, best);

    size_t count;
    const octavo_cpu_level *levels = octavo_cpu_levels(&count);
    for (size_t i = 0; i < count; i++) {
        const octavo_cpu_level *level = &levels[i];
        bool possible = (level->flags & ~machine) == 0;
        octavo_status expected = possible ? OCTAVO_OK : OCTAVO_ERROR_UNSUPPORTED;
        octavo_error error = {0};
        for (int by_variable = 0; by_variable < 2; by_variable++) {
            flags = 12345;
            octavo_status status = by_variable ? select_isa(level->name, NULL, &flags, &error)
                                               : select_isa(NULL, level->name, &flags, &error);
            assert_int_equal(status, expected);
            assert_int_equal(flags, possible ? level->flags : 12345);
            if (possible) continue;
            assert_non_null(strstr(error.message, level->name));
            assert_non_null(strstr(error.message, "scalar"));
            assert_non_null(strstr(error.message, octavo_cpu_name(machine)));
        }
        if (!possible) continue;
        /* the variable narrows the option and the option the variable */
        assert_int_equal(select_isa("scalar", level->name, &flags, NULL), OCTAVO_OK);
        assert_int_equal(flags, 0);
        assert_int_equal(select_isa(level->name, "scalar", &flags, NULL), OCTAVO_OK);
        assert_int_equal(flags, 0);
    }
}

static void test_select_refuses(void **unused) {
    (void)unused;
    static const char *const wrong[] = {"avx9", "AVX2", "avx", "scalar ", "avx2,avx512"};
    for (size_t i = 0; i < OCTAVO_COUNT(wrong); i++) {
        octavo_cpu_flags flags = 12345;
        octavo_error error = {0};
        assert_int_equal(select_isa(NULL, wrong[i], &flags, &error), OCTAVO_ERROR_INVALID);
        assert_non_null(strstr(error.message, wrong[i]));
        assert_non_null(strstr(error.message, "scalar"));
        assert_null(strstr(error.message, "OCTAVO_CPU"));
        /* a bad variable is an error that names it, whatever the option says */
        assert_int_equal(select_isa(wrong[i], "scalar", &flags, &error), OCTAVO_ERROR_INVALID);
        assert_non_null(strstr(error.message, "OCTAVO_CPU"));
        assert_non_null(strstr(error.message, wrong[i]));
        assert_int_equal(flags, 12345);
    }
    octavo_cpu_flags flags;
    octavo_error error = {0};
    assert_int_equal(select_isa(NULL, "", &flags, NULL), OCTAVO_ERROR_INVALID);
    /* a long name is cut between characters */
    assert_int_equal(select_isa(NULL,
                                "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"
                                "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac",
                                &flags, &error),
                     OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "\u20ac\" (option isa)"));
}

static void test_caches_and_cores(void **unused) {
    (void)unused;
    size_t l1 = octavo_cpu_l1_bytes();
    size_t l2 = octavo_cpu_l2_bytes();
    assert_true(l1 >= 4096 && l1 <= (size_t)1 << 24);
    assert_true(l2 >= l1 && l2 <= (size_t)1 << 30);
    int cores = octavo_cpu_cores();
    assert_true(cores >= 1);
#if defined(__linux__)
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_true(cores <= CPU_COUNT(&before));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &before)) continue;
        CPU_SET(i, &one);
        break;
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    int alone = octavo_cpu_cores();
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(alone, 1);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),           cmocka_unit_test(test_detect),
        cmocka_unit_test(test_select),           cmocka_unit_test(test_select_refuses),
        cmocka_unit_test(test_caches_and_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
