/* SPDX-License-Identifier: Apache-2.0
 *
 * The pairs of a long word, best first: by key, and for one key from left to right.
 */
#ifndef OCTAVO_TEXT_BPE_QUEUE_H
#define OCTAVO_TEXT_BPE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The places of one key. Mostly they come from left to right, and the bucket is a plain queue; from
 * the first that does not, it is a heap. */
typedef struct octavo_bpe_bucket {
    uint64_t key;
    uint32_t *places; /* [capacity]; waiting are places[head..size) */
    uint32_t head, size, capacity;
    bool is_heap;   /* then head is 0 */
    bool is_active; /* not empty, and listed in the queue's heap */
} octavo_bpe_bucket;

/* Zero-initialised is empty. Emptied, it keeps its memory. */
typedef struct octavo_bpe_queue {
    octavo_bpe_bucket *buckets; /* [n_made]; the first n_buckets have keys */
    uint32_t n_buckets, n_made, capacity;
    uint32_t *table; /* [mask + 1]: hash of a key to bucket + 1, or 0 */
    uint32_t mask;
    uint32_t *active; /* [capacity]: heap of buckets by key */
    uint32_t n_active;
} octavo_bpe_queue;

void octavo_bpe_queue_clear(octavo_bpe_queue *queue);
/* False without memory. */
bool octavo_bpe_queue_push(octavo_bpe_queue *queue, uint64_t key, uint32_t place);
/* Takes the best out. False when there is none. */
bool octavo_bpe_queue_pop(octavo_bpe_queue *queue, uint64_t *key, uint32_t *place);
void octavo_bpe_queue_deinit(octavo_bpe_queue *queue);

#endif
