/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, allocations, the arena.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

static void test_sizes(void **unused) {
    (void)unused;
    size_t r = 77;
    assert_true(octavo_size_add(2, 3, &r));
    assert_int_equal(r, 5);
    assert_true(octavo_size_add(SIZE_MAX, 0, &r));
    assert_true(r == SIZE_MAX);
    assert_true(octavo_size_add(SIZE_MAX - 5, 5, &r));
    assert_true(r == SIZE_MAX);
    r = 77;
    assert_false(octavo_size_add(SIZE_MAX, 1, &r));
    assert_false(octavo_size_add(SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, &r));
    assert_int_equal(r, 77);

    assert_true(octavo_size_mul(6, 7, &r));
    assert_int_equal(r, 42);
    assert_true(octavo_size_mul(SIZE_MAX, 0, &r));
    assert_int_equal(r, 0);
    assert_true(octavo_size_mul(0, SIZE_MAX, &r));
    assert_int_equal(r, 0);
    assert_true(octavo_size_mul(SIZE_MAX, 1, &r));
    assert_true(r == SIZE_MAX);
    assert_true(octavo_size_mul(SIZE_MAX / 3, 3, &r));
    r = 77;
    assert_false(octavo_size_mul(SIZE_MAX / 3 + 1, 3, &r));
    assert_false(octavo_size_mul(3, SIZE_MAX / 3 + 1, &r));
    assert_false(octavo_size_mul(SIZE_MAX, SIZE_MAX, &r));
    assert_int_equal(r, 77);

    assert_int_equal(octavo_align_up(0, 64), 0);
    assert_int_equal(octavo_align_up(1, 64), 64);
    assert_int_equal(octavo_align_up(64, 64), 64);
    assert_int_equal(octavo_align_up(65, 24), 72);
}

static void test_plain(void **unused) {
    (void)unused;
    void *empty = octavo_alloc(0);
    assert_non_null(empty);
    empty = octavo_realloc(empty, 0);
    assert_non_null(empty);
    octavo_free(empty);
    octavo_free(NULL);
    octavo_free_aligned(NULL);

    unsigned char *zero = octavo_alloc_zero(100, 3);
    assert_non_null(zero);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(zero[i], 0);
    }
    octavo_free(zero);
    zero = octavo_alloc_zero(0, 8);
    assert_non_null(zero);
    octavo_free(zero);

    /* Volatile keeps compilers from warning about the sizes that this test is about. */
    volatile size_t half = SIZE_MAX / 2 + 1;
    assert_null(octavo_alloc_zero(half, 2));
    assert_null(octavo_alloc_zero(half, 1));
    assert_null(octavo_alloc(half));
    assert_null(octavo_realloc(NULL, half * 2 - 1));
    assert_null(octavo_alloc_aligned(half - 1));
    assert_null(octavo_strndup("x", half * 2 - 1));

    char *text = octavo_strdup("octavo");
    assert_string_equal(text, "octavo");
    octavo_free(text);
    text = octavo_strndup("a\0b", 3);
    assert_memory_equal(text, "a\0b\0", 4);
    octavo_free(text);
    text = octavo_strndup(NULL, 0);
    assert_string_equal(text, "");
    octavo_free(text);
}

static void test_aligned(void **unused) {
    (void)unused;
    static const size_t huge = (size_t)2 << 20;
    static const size_t sizes[] = {0,         1,        63,   64,       65,          4097,
                                   huge - 65, huge - 1, huge, huge + 1, 3 * huge + 5};
    for (size_t i = 0; i < OCTAVO_COUNT(sizes); i++) {
        unsigned char *p = octavo_alloc_aligned(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % OCTAVO_ALIGN, 0);
        if (sizes[i] >= huge) assert_int_equal((uintptr_t)p % huge, 0);
        memset(p, 0xa5, sizes[i]);
        octavo_free_aligned(p);
    }
    volatile size_t most = SIZE_MAX;
    for (size_t less = 0; less < 130; less++) {
        assert_null(octavo_alloc_aligned(most - less));
    }
}

static void test_arena(void **unused) {
    (void)unused;
    enum { THINGS = 3000 };
    octavo_arena arena = {0};
    static unsigned char *things[THINGS];
    size_t handed_out = 0;
    for (int i = 0; i < THINGS; i++) {
        /* mostly small, now and then larger than a block */
        size_t size = i % 500 == 499 ? 600000 : (size_t)(i * 37 % 300);
        unsigned char *p = octavo_arena_alloc(&arena, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t k = 0; k < size; k++) {
            assert_true(p[k] == 0);
        }
        memset(p, i % 251 + 1, size);
        things[i] = p;
        handed_out += octavo_align_up(size != 0 ? size : 1, 16);
        assert_int_equal(arena.used, handed_out);
    }
    for (int i = 0; i < THINGS; i++) {
        size_t size = i % 500 == 499 ? 600000 : (size_t)(i * 37 % 300);
        for (size_t k = 0; k < size; k++) {
            assert_true(things[i][k] == i % 251 + 1);
        }
    }
    char *text = octavo_arena_strndup(&arena, "page one", 4);
    assert_string_equal(text, "page");
    assert_string_equal(octavo_arena_strndup(&arena, NULL, 0), "");

    volatile size_t most = SIZE_MAX;
    size_t used = arena.used;
    for (size_t less = 0; less < 80; less++) {
        assert_null(octavo_arena_alloc(&arena, most - less));
    }
    assert_null(octavo_arena_strndup(&arena, "x", most));
    assert_int_equal(arena.used, used);
    assert_non_null(octavo_arena_alloc(&arena, 10)); /* still of use */

    octavo_arena_deinit(&arena);
    assert_null(arena.head);
    assert_int_equal(arena.used, 0);
    octavo_arena_deinit(&arena);
    assert_non_null(octavo_arena_alloc(&arena, 100));
    octavo_arena_deinit(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
