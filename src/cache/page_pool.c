/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pages are free and how many use the others. A page is in `free` exactly if it has no users;
 * a run is in `free_runs` exactly if all its pages are free.
 */
#include "cache/page_pool.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "cache/bit_tree.h"

struct octavo_page_pool {
    int64_t n_pages;
    int64_t n_free;
    int32_t *users;       /* [n_pages] */
    uint8_t *taken;       /* [runs] pages in use in a run */
    octavo_bit_tree free; /* pages */
    octavo_bit_tree free_runs;
};

octavo_status octavo_page_pool_create(octavo_page_pool **pool, int64_t n_pages,
                                      octavo_error *error) {
    if (n_pages < 0 || n_pages > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "page pool (%lld pages): the number must be in 0..%d",
                           (long long)n_pages, INT32_MAX);
    octavo_page_pool *made = octavo_alloc_zero(1, sizeof *made);
    if (made == NULL) return octavo_fail_memory(error, "page pool", sizeof *made);
    const int64_t n_runs = (n_pages + OCTAVO_PAGE_RUN - 1) / OCTAVO_PAGE_RUN;
    made->n_pages = n_pages;
    made->n_free = n_pages;
    made->users = octavo_alloc_zero((size_t)n_pages, sizeof *made->users);
    made->taken = octavo_alloc_zero((size_t)n_runs, sizeof *made->taken);
    if (made->users == NULL || made->taken == NULL || !octavo_bit_tree_init(&made->free, n_pages) ||
        !octavo_bit_tree_init(&made->free_runs, n_runs)) {
        octavo_page_pool_destroy(&made);
        return octavo_fail_memory(error, "page pool", (uint64_t)n_pages * sizeof *made->users);
    }
    for (int64_t i = 0; i < n_pages; i++)
        octavo_bit_tree_add(&made->free, i);
    for (int64_t i = 0; i < n_runs; i++)
        octavo_bit_tree_add(&made->free_runs, i);
    *pool = made;
    return OCTAVO_OK;
}

void octavo_page_pool_destroy(octavo_page_pool **pool) {
    if (pool == NULL || *pool == NULL) return;
    octavo_bit_tree_deinit(&(*pool)->free);
    octavo_bit_tree_deinit(&(*pool)->free_runs);
    octavo_free((*pool)->users);
    octavo_free((*pool)->taken);
    octavo_free(*pool);
    *pool = NULL;
}

int64_t octavo_page_pool_pages(const octavo_page_pool *pool) {
    return pool->n_pages;
}

int64_t octavo_page_pool_free_pages(const octavo_page_pool *pool) {
    return pool->n_free;
}

/* The least member from `from` on, else the least of all. */
static int64_t next_around(const octavo_bit_tree *tree, int64_t from) {
    int64_t found = octavo_bit_tree_next(tree, from);
    return found >= 0 || from == 0 ? found : octavo_bit_tree_next(tree, 0);
}

/* The neighbour, else the start of a free run, else any page. */
static int64_t choose(const octavo_page_pool *pool, int64_t after) {
    const int64_t next = after + 1;
    if (after >= 0 && next < pool->n_pages && octavo_bit_tree_has(&pool->free, next)) return next;
    int64_t run = next_around(&pool->free_runs, next / OCTAVO_PAGE_RUN);
    if (run >= 0) return run * OCTAVO_PAGE_RUN;
    return next_around(&pool->free, next);
}

int32_t octavo_page_pool_take(octavo_page_pool *pool, int32_t after) {
    octavo_assert(after >= -1 && after < pool->n_pages);
    if (pool->n_free == 0) return -1;
    const int64_t page = choose(pool, after);
    pool->n_free--;
    pool->users[page] = 1;
    octavo_bit_tree_remove(&pool->free, page);
    if (pool->taken[page / OCTAVO_PAGE_RUN]++ == 0)
        octavo_bit_tree_remove(&pool->free_runs, page / OCTAVO_PAGE_RUN);
    return (int32_t)page;
}

void octavo_page_pool_retain(octavo_page_pool *pool, int32_t page) {
    octavo_assert(pool->users[page] > 0 && pool->users[page] < INT32_MAX);
    pool->users[page]++;
}

void octavo_page_pool_release(octavo_page_pool *pool, int32_t page) {
    octavo_assert(pool->users[page] > 0);
    if (--pool->users[page] > 0) return;
    pool->n_free++;
    octavo_bit_tree_add(&pool->free, page);
    if (--pool->taken[page / OCTAVO_PAGE_RUN] == 0)
        octavo_bit_tree_add(&pool->free_runs, page / OCTAVO_PAGE_RUN);
}

int32_t octavo_page_pool_users(const octavo_page_pool *pool, int32_t page) {
    return pool->users[page];
}
