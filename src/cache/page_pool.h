/* SPDX-License-Identifier: Apache-2.0
 *
 * The page pool: a fixed number of pages, each with a count of its users. It knows page numbers
 * only, not what they hold. A sequence that grows gets the page after its last one where that is
 * free, and starts in a wholly free run of pages where there is one, so that its pages are
 * neighbours in memory. Nothing is allocated after create. Not thread-safe: the scheduler owns it.
 */
#ifndef OCTAVO_CACHE_PAGE_POOL_H
#define OCTAVO_CACHE_PAGE_POOL_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Pages in a run: what a sequence is offered at once to grow into. */
#define OCTAVO_PAGE_RUN 16

typedef struct octavo_page_pool octavo_page_pool;

/* 0 <= n_pages <= INT32_MAX. */
OCTAVO_MUST_CHECK octavo_status octavo_page_pool_create(octavo_page_pool **pool, int64_t n_pages,
                                                        octavo_error *error);
void octavo_page_pool_destroy(octavo_page_pool **pool); /* takes NULL handles */

int64_t octavo_page_pool_pages(const octavo_page_pool *pool);
int64_t octavo_page_pool_free_pages(const octavo_page_pool *pool);

/* A free page with one user, or -1 when there is none. `after`: the page it should follow, or -1.
 */
int32_t octavo_page_pool_take(octavo_page_pool *pool, int32_t after);
/* One user more (of a page in use). */
void octavo_page_pool_retain(octavo_page_pool *pool, int32_t page);
/* One user less; the last one frees the page. */
void octavo_page_pool_release(octavo_page_pool *pool, int32_t page);
/* Users of a page; 0 = free. */
int32_t octavo_page_pool_users(const octavo_page_pool *pool, int32_t page);

#endif
