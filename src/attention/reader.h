/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks for the cache memory that an item is going to read, in the order in which it lies there:
 * page after page, all the item's heads of a slot together. Arithmetic goes through a block head by
 * head, with strides; memory so asked for would come at half its speed.
 *
 * It stays a distance ahead of the arithmetic. Kernels do the asking, a little at each step;
 * between them attention_reader_pace tells how much there is to ask for.
 */
#ifndef OCTAVO_ATTENTION_READER_H
#define OCTAVO_ATTENTION_READER_H

#include "attention/internal.h"

typedef struct attention_reader {
    octavo_ahead ahead;
    const attention_pages *pages;
    const uint8_t *cache;  /* of the item's first head */
    const int32_t *table;  /* page ids of the sequence */
    attention_range range; /* positions that are read */
    int64_t next;          /* the first that `ahead` has not been given yet */
    int32_t n_heads;
    int64_t position_bytes; /* that are asked for of one position */
    int64_t given;          /* bytes that `ahead` has been given in all */
    int64_t due;            /* bytes that should have been asked for by now */
} attention_reader;

/* Begins to read a range, and asks for its first part. */
void attention_reader_start(attention_reader *reader, const attention_pages *pages,
                            const uint8_t *cache, const int32_t *table, attention_range range,
                            int32_t n_heads);

/* Before a piece of arithmetic after which `bytes` more of the range will have been used. */
void attention_reader_pace(attention_reader *reader, int64_t bytes);

#endif
