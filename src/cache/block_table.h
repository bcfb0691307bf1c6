/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence's block table: which page holds which of its positions. The row of page ids is the
 * caller's memory, so that the rows of a batch can be what attention reads. Holds one use of each
 * of its pages. Not thread-safe.
 *
 * Where kv splits are dealt to parts (attention/attention.h), one table serves all: each part has
 * pages of the same ids for its own positions, of which the first part has the most.
 */
#ifndef OCTAVO_CACHE_BLOCK_TABLE_H
#define OCTAVO_CACHE_BLOCK_TABLE_H

#include "cache/page_pool.h"
#include "kernels/order.h"

typedef struct octavo_block_table {
    int32_t *pages;    /* [capacity] page of slots [i * page_size, (i + 1) * page_size) */
    int32_t capacity;  /* entries of the row */
    int32_t n_pages;   /* entries in use */
    int64_t n_tokens;  /* positions that have a slot */
    int64_t page_size; /* at least 1 */
    int64_t n_parts;   /* at least 1 */
} octavo_block_table;

/* Pages that so many positions take. */
static inline int64_t octavo_pages_for(int64_t n_tokens, int64_t page_size, int64_t n_parts) {
    const int64_t turn = n_parts * OCTAVO_KV_SPLIT, rest = n_tokens % turn;
    const int64_t slots =
        n_tokens / turn * OCTAVO_KV_SPLIT + (rest < OCTAVO_KV_SPLIT ? rest : OCTAVO_KV_SPLIT);
    if (n_parts == 1) return n_tokens / page_size + (n_tokens % page_size != 0);
    return slots / page_size + (slots % page_size != 0);
}

/* An empty table over a row of `capacity` entries, all splits in one part. */
void octavo_block_table_init(octavo_block_table *table, int32_t *row, int32_t capacity,
                             int64_t page_size);

/* Slots for n_tokens more positions, all or none. OCTAVO_ERROR_LIMIT tells how many pages are
 * needed and how many are free, or that the row is too short. */
OCTAVO_MUST_CHECK octavo_status octavo_block_table_append(octavo_block_table *table,
                                                          octavo_page_pool *pool, int64_t n_tokens,
                                                          octavo_error *error);
/* Shortens to n_tokens positions (no effect if it is shorter) and gives back the pages past them.
 */
void octavo_block_table_truncate(octavo_block_table *table, octavo_page_pool *pool,
                                 int64_t n_tokens);
/* Pages that append(n_tokens) would take from the pool. */
int64_t octavo_block_table_need(const octavo_block_table *table, int64_t n_tokens);

#endif
