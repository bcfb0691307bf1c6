/* SPDX-License-Identifier: Apache-2.0
 *
 * The arena: a list of zeroed blocks, of which the first has the free room.
 */
#include "base/compiler.h"
#include "base/memory.h"

#include <stdalign.h>
#include <string.h>

#define ARENA_ALIGN       16
#define ARENA_BLOCK_FIRST ((size_t)4 << 10)
#define ARENA_BLOCK_MOST  ((size_t)256 << 10)

struct octavo_arena_block {
    octavo_arena_block *next;
    size_t size;                       /* of `bytes` */
    size_t used;                       /* of `bytes`, a multiple of ARENA_ALIGN */
    alignas(ARENA_ALIGN) char bytes[]; /* [size], zero from `used` on */
};

static octavo_arena_block *block_create(size_t size) {
    size_t total;
    if (!octavo_size_add(size, sizeof(octavo_arena_block), &total)) return NULL;
    octavo_arena_block *block = octavo_alloc_zero(1, total);
    if (block != NULL) block->size = size;
    return block;
}

/* A block with room for `bytes`: the head, a new head, or, for large things, a block of their own
 * behind the head, so that the head's room is not lost. */
static octavo_arena_block *block_for(octavo_arena *arena, size_t bytes) {
    octavo_arena_block *head = arena->head;
    if (head != NULL && head->size - head->used >= bytes) return head;

    size_t size = ARENA_BLOCK_FIRST;
    if (head != NULL) size = head->size < ARENA_BLOCK_MOST / 2 ? head->size * 2 : ARENA_BLOCK_MOST;
    bool own = bytes > size / 2;
    octavo_arena_block *block = block_create(own ? bytes : size);
    if (block == NULL) return NULL;
    if (own && head != NULL) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        arena->head = block;
    }
    return block;
}

void *octavo_arena_alloc(octavo_arena *arena, size_t bytes) {
    size_t rounded;
    if (!octavo_size_add(bytes != 0 ? bytes : 1, ARENA_ALIGN - 1, &rounded)) return NULL;
    rounded -= rounded % ARENA_ALIGN;

    octavo_arena_block *block = block_for(arena, rounded);
    if (block == NULL) return NULL;
    void *p = block->bytes + block->used;
    block->used += rounded;
    arena->used += rounded;
    return p;
}

char *octavo_arena_strndup(octavo_arena *arena, const char *text, size_t length) {
    size_t bytes;
    if (!octavo_size_add(length, 1, &bytes)) return NULL;
    char *copy = octavo_arena_alloc(arena, bytes);
    if (copy != NULL && length != 0) memcpy(copy, text, length);
    return copy;
}

void octavo_arena_deinit(octavo_arena *arena) {
    octavo_arena_block *block = arena->head;
    while (block != NULL) {
        octavo_arena_block *next = block->next;
        octavo_free(block);
        block = next;
    }
    *arena = (octavo_arena){0};
}
