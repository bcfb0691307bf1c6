/* SPDX-License-Identifier: Apache-2.0
 *
 * A heap of buckets instead of one heap of pairs: a word of ten million letters has few different
 * pairs, and walking each kind from left to right stays in the caches where a heap of all of them
 * would not.
 */
#include "text/bpe_queue.h"

#include "base/memory.h"

#include <string.h>

#define TABLE_FIRST 64

void octavo_bpe_queue_clear(octavo_bpe_queue *queue) {
    if (queue->n_buckets == 0) return;
    memset(queue->table, 0, ((size_t)queue->mask + 1) * sizeof(*queue->table));
    queue->n_buckets = 0;
    queue->n_active = 0;
}

void octavo_bpe_queue_deinit(octavo_bpe_queue *queue) {
    for (uint32_t i = 0; i < queue->n_made; i++)
        octavo_free(queue->buckets[i].places);
    octavo_free(queue->buckets);
    octavo_free(queue->table);
    octavo_free(queue->active);
    *queue = (octavo_bpe_queue){0};
}

static uint32_t key_hash(uint64_t key) {
    return (uint32_t)(((key ^ key >> 31) * 0x9e3779b97f4a7c15u) >> 32);
}

/* The slot of a key in the table, or the free slot where it would go. */
static uint32_t find_slot(const octavo_bpe_queue *queue, uint64_t key) {
    uint32_t at = key_hash(key) & queue->mask;
    while (queue->table[at] != 0 && queue->buckets[queue->table[at] - 1].key != key)
        at = (at + 1) & queue->mask;
    return at;
}

/* Doubles the room for buckets; the table has four slots for each at most. */
static bool queue_grow(octavo_bpe_queue *queue) {
    uint32_t capacity = queue->capacity == 0 ? TABLE_FIRST / 4 : queue->capacity * 2;
    if (capacity > UINT32_MAX / 8) return false;
    uint32_t *table = octavo_alloc_zero((size_t)capacity * 4, sizeof(*table));
    if (table == NULL) return false;
    octavo_bpe_bucket *buckets = octavo_realloc(queue->buckets, capacity * sizeof(*queue->buckets));
    if (buckets != NULL) queue->buckets = buckets;
    uint32_t *active = octavo_realloc(queue->active, capacity * sizeof(*queue->active));
    if (active != NULL) queue->active = active;
    if (buckets == NULL || active == NULL) {
        octavo_free(table);
        return false;
    }
    octavo_free(queue->table);
    queue->table = table;
    queue->mask = capacity * 4 - 1;
    queue->capacity = capacity;
    for (uint32_t i = 0; i < queue->n_buckets; i++)
        queue->table[find_slot(queue, buckets[i].key)] = i + 1;
    return true;
}

/* The bucket of a key, made when there is none; NULL without memory. */
static octavo_bpe_bucket *bucket_of(octavo_bpe_queue *queue, uint64_t key) {
    uint32_t slot = 0;
    if (queue->capacity != 0) {
        slot = find_slot(queue, key);
        if (queue->table[slot] != 0) return &queue->buckets[queue->table[slot] - 1];
    }
    if (queue->n_buckets == queue->capacity) {
        if (!queue_grow(queue)) return NULL;
        slot = find_slot(queue, key);
    }
    uint32_t i = queue->n_buckets++;
    octavo_bpe_bucket *bucket = &queue->buckets[i];
    if (i == queue->n_made) {
        *bucket = (octavo_bpe_bucket){0};
        queue->n_made++;
    }
    *bucket =
        (octavo_bpe_bucket){.key = key, .places = bucket->places, .capacity = bucket->capacity};
    queue->table[slot] = i + 1;
    return bucket;
}

/* Puts a bucket that is not empty any more among the active ones. */
static void activate(octavo_bpe_queue *queue, uint32_t bucket) {
    uint64_t key = queue->buckets[bucket].key;
    uint32_t at = queue->n_active++;
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (queue->buckets[queue->active[parent]].key < key) break;
        queue->active[at] = queue->active[parent];
        at = parent;
    }
    queue->active[at] = bucket;
    queue->buckets[bucket].is_active = true;
}

/* Takes the first of the active buckets, which has become empty, from among them. */
static void deactivate_first(octavo_bpe_queue *queue) {
    queue->buckets[queue->active[0]].is_active = false;
    uint32_t moved = queue->active[--queue->n_active];
    uint64_t key = queue->buckets[moved].key;
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= queue->n_active) break;
        if (child + 1 < queue->n_active &&
            queue->buckets[queue->active[child + 1]].key < queue->buckets[queue->active[child]].key)
            child++;
        if (key < queue->buckets[queue->active[child]].key) break;
        queue->active[at] = queue->active[child];
        at = child;
    }
    queue->active[at] = moved;
}

/* Makes room for one more place: what was taken from the front is given up, or the room grows. */
static bool bucket_reserve(octavo_bpe_bucket *bucket) {
    if (bucket->size < bucket->capacity) return true;
    if (bucket->head > bucket->capacity / 2) {
        bucket->size -= bucket->head;
        memmove(bucket->places, bucket->places + bucket->head,
                bucket->size * sizeof(*bucket->places));
        bucket->head = 0;
        return true;
    }
    if (bucket->capacity > UINT32_MAX / 2) return false;
    uint32_t capacity = bucket->capacity == 0 ? 4 : bucket->capacity * 2;
    uint32_t *places = octavo_realloc(bucket->places, capacity * sizeof(*places));
    if (places == NULL) return false;
    bucket->places = places;
    bucket->capacity = capacity;
    return true;
}

/* Adds a place; there is room. A sorted queue is a heap as it stands, so turning it into one only
 * takes moving it to the front. */
static void bucket_push(octavo_bpe_bucket *bucket, uint32_t place) {
    if (bucket->head == bucket->size) {
        bucket->head = bucket->size = 0;
        bucket->is_heap = false;
    }
    if (!bucket->is_heap) {
        if (bucket->size == 0 || place > bucket->places[bucket->size - 1]) {
            bucket->places[bucket->size++] = place;
            return;
        }
        bucket->size -= bucket->head;
        memmove(bucket->places, bucket->places + bucket->head,
                bucket->size * sizeof(*bucket->places));
        bucket->head = 0;
        bucket->is_heap = true;
    }
    uint32_t at = bucket->size++;
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (bucket->places[parent] <= place) break;
        bucket->places[at] = bucket->places[parent];
        at = parent;
    }
    bucket->places[at] = place;
}

/* Takes the leftmost place out of a bucket that is not empty. */
static uint32_t bucket_pop(octavo_bpe_bucket *bucket) {
    uint32_t *places = bucket->places;
    if (!bucket->is_heap) return places[bucket->head++];
    uint32_t first = places[0];
    uint32_t moved = places[--bucket->size];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= bucket->size) break;
        if (child + 1 < bucket->size && places[child + 1] < places[child]) child++;
        if (moved <= places[child]) break;
        places[at] = places[child];
        at = child;
    }
    places[at] = moved;
    return first;
}

bool octavo_bpe_queue_push(octavo_bpe_queue *queue, uint64_t key, uint32_t place) {
    octavo_bpe_bucket *bucket = bucket_of(queue, key);
    if (bucket == NULL || !bucket_reserve(bucket)) return false;
    bucket_push(bucket, place);
    if (!bucket->is_active) activate(queue, (uint32_t)(bucket - queue->buckets));
    return true;
}

bool octavo_bpe_queue_pop(octavo_bpe_queue *queue, uint64_t *key, uint32_t *place) {
    if (queue->n_active == 0) return false;
    octavo_bpe_bucket *bucket = &queue->buckets[queue->active[0]];
    *key = bucket->key;
    *place = bucket_pop(bucket);
    if (bucket->head == bucket->size) deactivate_first(queue);
    return true;
}
