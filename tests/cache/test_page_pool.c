/* SPDX-License-Identifier: Apache-2.0
 *
 * The page pool, block tables and the memory of keys and values.
 */
#include "../unit.h"
#include "cache/bit_tree.h"
#include "cache/block_table.h"
#include "cache/kv_cache.h"
#include "cache/page_pool.h"

#include <stdlib.h>
#include <string.h>

static uint32_t random_state;

static uint32_t random_below(uint32_t n) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)random_state * n >> 32);
}

static octavo_page_pool *pool_of(int64_t n_pages) {
    octavo_page_pool *pool = NULL;
    octavo_error error;
    assert_int_equal(octavo_page_pool_create(&pool, n_pages, &error), OCTAVO_OK);
    return pool;
}

/* Against a plain array of flags, over sizes on and around whole words of each level. */
static void bit_tree_finds_the_next_member(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 9000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const int64_t size = sizes[s];
        octavo_bit_tree tree;
        assert_true(octavo_bit_tree_init(&tree, size));
        bool *has = calloc((size_t)size + 1, sizeof *has);
        assert_int_equal(octavo_bit_tree_next(&tree, 0), -1);
        for (int turn = 0; turn < 300 && size > 0; turn++) {
            int64_t i = random_below((uint32_t)size);
            has[i] = turn % 3 != 2;
            if (has[i])
                octavo_bit_tree_add(&tree, i);
            else
                octavo_bit_tree_remove(&tree, i);
            int64_t from = turn % 7 == 0 ? 0 : random_below((uint32_t)size + 2), want = from;
            while (want < size && !has[want])
                want++;
            assert_int_equal(octavo_bit_tree_next(&tree, from), want < size ? want : -1);
            assert_int_equal(octavo_bit_tree_has(&tree, i), has[i]);
        }
        free(has);
        octavo_bit_tree_deinit(&tree);
    }
}

static void every_page_is_handed_out_once(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 15, 16, 17, 100, 5000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        octavo_page_pool *pool = pool_of(sizes[s]);
        bool *seen = calloc((size_t)sizes[s] + 1, sizeof *seen);
        int32_t last = -1;
        for (int64_t i = 0; i < sizes[s]; i++) {
            assert_int_equal(octavo_page_pool_free_pages(pool), sizes[s] - i);
            last = octavo_page_pool_take(pool, i % 5 == 0 ? -1 : last);
            assert_true(last >= 0 && last < sizes[s] && !seen[last]);
            assert_int_equal(octavo_page_pool_users(pool, last), 1);
            seen[last] = true;
        }
        assert_int_equal(octavo_page_pool_take(pool, -1), -1);
        assert_int_equal(octavo_page_pool_take(pool, last), -1);
        free(seen);
        octavo_page_pool_destroy(&pool);
        assert_null(pool);
    }
}

static void pages_are_counted(void **state) {
    (void)state;
    octavo_page_pool *pool = pool_of(3);
    int32_t page = octavo_page_pool_take(pool, -1);
    octavo_page_pool_retain(pool, page);
    assert_int_equal(octavo_page_pool_users(pool, page), 2);
    octavo_page_pool_release(pool, page);
    assert_int_equal(octavo_page_pool_free_pages(pool), 2);
    octavo_page_pool_release(pool, page);
    assert_int_equal(octavo_page_pool_free_pages(pool), 3);
    assert_int_equal(octavo_page_pool_users(pool, page), 0);
    octavo_page_pool_destroy(&pool);
}

/* Sequences that grow in turns would otherwise interleave their pages. */
static void a_sequence_gets_neighbours(void **state) {
    (void)state;
    enum { SEQS = 4, PAGES = 2 * OCTAVO_PAGE_RUN };
    octavo_page_pool *pool = pool_of(SEQS * PAGES);
    int32_t rows[SEQS][PAGES];
    octavo_block_table tables[SEQS];
    for (int s = 0; s < SEQS; s++)
        octavo_block_table_init(&tables[s], rows[s], PAGES, 16);
    octavo_error error;
    for (int i = 0; i < PAGES * 16; i++) {
        for (int s = 0; s < SEQS; s++)
            assert_int_equal(octavo_block_table_append(&tables[s], pool, 1, &error), OCTAVO_OK);
    }
    for (int s = 0; s < SEQS; s++) {
        int jumps = 0;
        for (int i = 1; i < PAGES; i++)
            jumps += rows[s][i] != rows[s][i - 1] + 1;
        assert_true(jumps <= PAGES / OCTAVO_PAGE_RUN - 1);
    }
    assert_int_equal(octavo_page_pool_free_pages(pool), 0);
    octavo_page_pool_destroy(&pool);
}

static void append_takes_what_it_needs(void **state) {
    (void)state;
    octavo_page_pool *pool = pool_of(10);
    int32_t row[8];
    octavo_block_table table;
    octavo_block_table_init(&table, row, 8, 5);
    octavo_error error;
    static const struct {
        int64_t append, pages;
    } steps[] = {{0, 0}, {1, 1}, {4, 1}, {1, 2}, {14, 4}, {0, 4}, {20, 8}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(octavo_block_table_need(&table, steps[i].append),
                         steps[i].pages - table.n_pages);
        assert_int_equal(octavo_block_table_append(&table, pool, steps[i].append, &error),
                         OCTAVO_OK);
        assert_int_equal(table.n_pages, steps[i].pages);
        assert_int_equal(octavo_page_pool_free_pages(pool), 10 - steps[i].pages);
    }
    octavo_block_table_truncate(&table, pool, 50); /* longer: nothing happens */
    assert_int_equal(table.n_tokens, 40);
    octavo_block_table_truncate(&table, pool, 11);
    assert_int_equal(table.n_pages, 3);
    octavo_block_table_truncate(&table, pool, 10);
    assert_int_equal(table.n_pages, 2);
    octavo_block_table_truncate(&table, pool, 0);
    assert_int_equal(octavo_page_pool_free_pages(pool), 10);
    octavo_page_pool_destroy(&pool);
}

static void append_takes_nothing_when_it_fails(void **state) {
    (void)state;
    octavo_page_pool *pool = pool_of(5);
    int32_t rows[2][8];
    octavo_block_table a, b;
    octavo_block_table_init(&a, rows[0], 8, 16);
    octavo_block_table_init(&b, rows[1], 1, 16);
    octavo_error error;
    assert_int_equal(octavo_block_table_append(&a, pool, 33, &error), OCTAVO_OK);
    assert_int_equal(octavo_block_table_append(&a, pool, 64, &error), OCTAVO_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "4 more pages are needed, 2 are free"));
    assert_int_equal(a.n_tokens, 33);
    assert_int_equal(a.n_pages, 3);
    assert_int_equal(octavo_page_pool_free_pages(pool), 2);
    assert_int_equal(octavo_block_table_append(&b, pool, 17, &error), OCTAVO_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "16 tokens that a row of 1 pages holds"));
    assert_int_equal(octavo_block_table_append(&a, pool, INT64_MAX, &error), OCTAVO_ERROR_LIMIT);
    assert_int_equal(octavo_block_table_append(&a, pool, 15 + 32, &error), OCTAVO_OK);
    octavo_page_pool_destroy(&pool);
}

/* Random life of many sequences against plain counts. */
static void tables_and_pool_agree(void **state) {
    (void)state;
    enum { SEQS = 12, PAGES = 90, ROW = 40 };
    octavo_page_pool *pool = pool_of(PAGES);
    int32_t rows[SEQS][ROW];
    octavo_block_table tables[SEQS];
    for (int s = 0; s < SEQS; s++)
        octavo_block_table_init(&tables[s], rows[s], ROW, 1 + s % 4);
    int refused = 0;
    for (int turn = 0; turn < 20000; turn++) {
        octavo_block_table *table = &tables[random_below(SEQS)];
        if (random_below(3) == 0) {
            octavo_block_table_truncate(table, pool, random_below(60));
        } else {
            octavo_status status = octavo_block_table_append(table, pool, random_below(12), NULL);
            refused += status == OCTAVO_ERROR_LIMIT;
        }
        int users[PAGES] = {0};
        int64_t in_use = 0;
        for (int s = 0; s < SEQS; s++) {
            int64_t size = tables[s].page_size;
            assert_int_equal(tables[s].n_pages, (tables[s].n_tokens + size - 1) / size);
            for (int i = 0; i < tables[s].n_pages; i++, in_use++)
                users[rows[s][i]]++;
        }
        for (int i = 0; i < PAGES; i++) {
            assert_true(users[i] <= 1);
            assert_int_equal(octavo_page_pool_users(pool, i), users[i]);
        }
        assert_int_equal(octavo_page_pool_free_pages(pool), PAGES - in_use);
    }
    assert_true(refused > 0);
    octavo_page_pool_destroy(&pool);
}

static void bad_sizes_are_refused(void **state) {
    (void)state;
    octavo_page_pool *pool = NULL;
    octavo_error error;
    assert_int_equal(octavo_page_pool_create(&pool, -1, &error), OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_page_pool_create(&pool, (int64_t)INT32_MAX + 1, &error),
                     OCTAVO_ERROR_INVALID);
    assert_null(pool);

    const octavo_kv_shape good = {2, 3, 16, 16 * 6 * 128, OCTAVO_KV_ROWS, OCTAVO_DTYPE_BF16};
    size_t bytes = 0;
    assert_int_equal(octavo_kv_cache_bytes(&good, &bytes, &error), OCTAVO_OK);
    assert_int_equal(bytes, 2 * 3 * 16 * 6 * 128 * 2);
    octavo_kv_shape bad = good;
    bad.n_pages = 0;
    assert_int_equal(octavo_kv_cache_bytes(&bad, &bytes, &error), OCTAVO_ERROR_INVALID);
    bad = good;
    bad.n_pages = INT64_MAX / 2;
    assert_int_equal(octavo_kv_cache_bytes(&bad, &bytes, &error), OCTAVO_ERROR_LIMIT);
    bad = good;
    bad.dtype = OCTAVO_DTYPE_I32;
    assert_int_equal(octavo_kv_cache_bytes(&bad, &bytes, &error), OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "i32"));
    assert_int_equal(bytes, 2 * 3 * 16 * 6 * 128 * 2);
}

static void layers_do_not_overlap(void **state) {
    (void)state;
    const octavo_kv_shape shape = {3, 2, 5, 5 * 2 * 256, OCTAVO_KV_ROWS, OCTAVO_DTYPE_F32};
    octavo_kv_cache cache;
    assert_int_equal(octavo_kv_cache_init(&cache, &shape, NULL), OCTAVO_OK);
    assert_int_equal(cache.layer_bytes, 2 * 5 * 2 * 256 * 4);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal((uintptr_t)octavo_kv_cache_layer(&cache, i) % 64, 0);
        memset(octavo_kv_cache_layer(&cache, i), i, cache.layer_bytes);
    }
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(((uint8_t *)octavo_kv_cache_layer(&cache, i))[cache.layer_bytes - 1], i);
    octavo_kv_cache_deinit(&cache);
    octavo_kv_cache_deinit(&cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bit_tree_finds_the_next_member),
        cmocka_unit_test(every_page_is_handed_out_once),
        cmocka_unit_test(pages_are_counted),
        cmocka_unit_test(a_sequence_gets_neighbours),
        cmocka_unit_test(append_takes_what_it_needs),
        cmocka_unit_test(append_takes_nothing_when_it_fails),
        cmocka_unit_test(tables_and_pool_agree),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(layers_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
