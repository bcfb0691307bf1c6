/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing and shortening a sequence's row of pages.
 */
#include "cache/block_table.h"

#include "base/compiler.h"
#include "base/error.h"

void octavo_block_table_init(octavo_block_table *table, int32_t *row, int32_t capacity,
                             int64_t page_size) {
    octavo_assert(capacity >= 0 && page_size >= 1);
    *table = (octavo_block_table){
        .pages = row, .capacity = capacity, .page_size = page_size, .n_parts = 1};
}

/* Pages for n positions, n >= 0. */
static int64_t pages_for(const octavo_block_table *table, int64_t n) {
    return octavo_pages_for(n, table->page_size, table->n_parts);
}

int64_t octavo_block_table_need(const octavo_block_table *table, int64_t n_tokens) {
    if (n_tokens > INT64_MAX - table->n_tokens) n_tokens = INT64_MAX - table->n_tokens;
    return pages_for(table, table->n_tokens + n_tokens) - table->n_pages;
}

octavo_status octavo_block_table_append(octavo_block_table *table, octavo_page_pool *pool,
                                        int64_t n_tokens, octavo_error *error) {
    octavo_assert(n_tokens >= 0);
    const int64_t need = octavo_block_table_need(table, n_tokens);
    if (need > table->capacity - table->n_pages)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "block table (%lld tokens and %lld more): longer than the %lld tokens "
                           "that a row of %d pages holds; allow a longer context",
                           (long long)table->n_tokens, (long long)n_tokens,
                           (long long)table->capacity * table->page_size * table->n_parts,
                           (int)table->capacity);
    if (need > octavo_page_pool_free_pages(pool))
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "page pool (%lld pages): %lld more pages are needed, %lld are free; end "
                           "a sequence or make the cache larger",
                           (long long)octavo_page_pool_pages(pool), (long long)need,
                           (long long)octavo_page_pool_free_pages(pool));
    for (int64_t i = 0; i < need; i++) {
        int32_t last = table->n_pages > 0 ? table->pages[table->n_pages - 1] : -1;
        table->pages[table->n_pages++] = octavo_page_pool_take(pool, last);
    }
    table->n_tokens += n_tokens;
    return OCTAVO_OK;
}

void octavo_block_table_truncate(octavo_block_table *table, octavo_page_pool *pool,
                                 int64_t n_tokens) {
    octavo_assert(n_tokens >= 0);
    if (n_tokens >= table->n_tokens) return;
    const int64_t keep = pages_for(table, n_tokens);
    while (table->n_pages > keep)
        octavo_page_pool_release(pool, table->pages[--table->n_pages]);
    table->n_tokens = n_tokens;
}
