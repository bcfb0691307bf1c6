/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator seam: every heap byte of the library comes from here. Also overflow-safe sizes
 * and the arena.
 */
#ifndef OCTAVO_BASE_MEMORY_H
#define OCTAVO_BASE_MEMORY_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Alignment of every tensor, panel and arena block: one cache line, one 512-bit vector. */
#define OCTAVO_ALIGN 64

/* NULL when there is no memory or the size is past PTRDIFF_MAX. A size of 0 gives a pointer that
 * may be freed. Free takes NULL. A failed octavo_realloc leaves the old block alone. */
void *octavo_alloc(size_t bytes);
void *octavo_alloc_zero(size_t count, size_t size); /* checks count * size */
void *octavo_realloc(void *p, size_t bytes);
char *octavo_strdup(const char *text);
/* A terminated copy of exactly `length` bytes. */
char *octavo_strndup(const char *text, size_t length);
void octavo_free(void *p);

/* OCTAVO_ALIGN-aligned, contents undefined. From 2 MiB on aligned to and advised as huge pages.
 * Freed by octavo_free_aligned only. */
void *octavo_alloc_aligned(size_t bytes);
/* The same without huge pages: for what is large but touched little by little, in many places. */
void *octavo_alloc_sparse(size_t bytes);
void octavo_free_aligned(void *p); /* of either */

/* *result = a op b, or false when it does not fit (then *result is untouched). */
bool octavo_size_add(size_t a, size_t b, size_t *result);
bool octavo_size_mul(size_t a, size_t b, size_t *result);

/* `n` must leave room for the rounding: check hostile sizes before. */
static inline size_t octavo_align_up(size_t n, size_t align) {
    return (n + align - 1) / align * align;
}

/* Many small things of one lifetime, freed all at once. Not thread-safe. Zero-initialised: empty.
 */
typedef struct octavo_arena_block octavo_arena_block;
typedef struct octavo_arena {
    octavo_arena_block *head;
    size_t used; /* bytes handed out, with alignment */
} octavo_arena;

/* Zeroed and 16-aligned; NULL without memory, and then the arena is as before. */
void *octavo_arena_alloc(octavo_arena *arena, size_t bytes);
char *octavo_arena_strndup(octavo_arena *arena, const char *text, size_t length);
/* Frees everything; the arena is empty again. */
void octavo_arena_deinit(octavo_arena *arena);

#endif
