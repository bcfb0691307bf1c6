/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks for the cache memory that an item is going to read, in the order in which it lies there:
 * page after page, all the item's heads of a slot together. Arithmetic goes through a block head by
 * head, with strides; memory so asked for would come at half its speed.
 *
 * It stays a distance ahead of the arithmetic, across the end of an item. Kernels do the asking, a
 * little at each step; between them attention_reader_pace tells how much there is to ask for.
 */
#ifndef OCTAVO_ATTENTION_READER_H
#define OCTAVO_ATTENTION_READER_H

#include "attention/internal.h"

/* What an item reads. */
typedef struct attention_source {
    const uint8_t *cache;  /* of its first head */
    const int32_t *table;  /* page ids of the sequence */
    attention_range range; /* of positions, counted among those that are read */
    int32_t n_heads;
} attention_source;

typedef struct attention_reader {
    octavo_ahead ahead;
    const attention_pages *pages;
    /* Called when all of a source has been asked for: the one to go on with. False: not now. */
    bool (*follow)(void *arg, attention_source *source);
    void *arg;
    attention_source source;
    int64_t next;   /* the first position of it that `ahead` has not been given yet */
    int64_t before; /* bytes that `ahead` has been given of the sources before */
    int64_t given;  /* and in all */
    int64_t due;    /* bytes that should have been asked for by now */
} attention_reader;

/* Bytes that are asked for of one position of so many heads. */
int64_t attention_position_bytes(const attention_pages *pages, int32_t n_heads);

/* Goes to a source and asks for its first part. pages, follow and arg are set. */
void attention_reader_start(attention_reader *reader, const attention_source *source);

/* The arithmetic comes to the source that `follow` gave last. */
void attention_reader_arrive(attention_reader *reader);

/* Before a piece of arithmetic after which `bytes` more of the source will have been used. */
void attention_reader_pace(attention_reader *reader, int64_t bytes);

#endif
