/* SPDX-License-Identifier: Apache-2.0
 *
 * The only file that calls malloc and free.
 */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From this size on a block is worth huge pages: fewer TLB misses over weights and caches. */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Larger objects than this break pointer subtraction; asking for one is a mistake in a size. */
static bool is_possible(size_t bytes) {
    return bytes <= PTRDIFF_MAX;
}

void *octavo_alloc(size_t bytes) {
    return is_possible(bytes) ? malloc(bytes != 0 ? bytes : 1) : NULL;
}

void *octavo_alloc_zero(size_t count, size_t size) {
    size_t bytes;
    if (!octavo_size_mul(count, size, &bytes) || !is_possible(bytes)) return NULL;
    return calloc(bytes != 0 ? bytes : 1, 1);
}

void *octavo_realloc(void *p, size_t bytes) {
    return is_possible(bytes) ? realloc(p, bytes != 0 ? bytes : 1) : NULL;
}

char *octavo_strdup(const char *text) {
    return octavo_strndup(text, strlen(text));
}

char *octavo_strndup(const char *text, size_t length) {
    size_t bytes;
    if (!octavo_size_add(length, 1, &bytes)) return NULL;
    char *copy = octavo_alloc(bytes);
    if (copy == NULL) return NULL;
    if (length != 0) memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void octavo_free(void *p) {
    free(p);
}

static void *alloc_aligned(size_t bytes, bool wants_huge) {
    size_t rounded;
    if (!octavo_size_add(bytes != 0 ? bytes : 1, OCTAVO_ALIGN - 1, &rounded)) return NULL;
    rounded -= rounded % OCTAVO_ALIGN;
    if (!is_possible(rounded)) return NULL;

    bool huge = wants_huge && rounded >= HUGE_PAGE_BYTES;
    void *p = NULL;
    if (posix_memalign(&p, huge ? HUGE_PAGE_BYTES : OCTAVO_ALIGN, rounded) != 0) return NULL;
#if defined(MADV_HUGEPAGE)
    /* Advice only, and only for whole huge pages: what follows the block is not ours. */
    if (huge) (void)madvise(p, rounded - rounded % HUGE_PAGE_BYTES, MADV_HUGEPAGE);
#endif
    return p;
}

void *octavo_alloc_aligned(size_t bytes) {
    return alloc_aligned(bytes, true);
}

void *octavo_alloc_sparse(size_t bytes) {
    return alloc_aligned(bytes, false);
}

void octavo_free_aligned(void *p) {
    free(p);
}

bool octavo_size_add(size_t a, size_t b, size_t *result) {
    if (a > SIZE_MAX - b) return false;
    *result = a + b;
    return true;
}

bool octavo_size_mul(size_t a, size_t b, size_t *result) {
    if (b != 0 && a > SIZE_MAX / b) return false;
    *result = a * b;
    return true;
}
