/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of merges, with linear probing.
 */
#include "text/bpe_pairs.h"

#include "text/bpe.h"

static uint32_t pair_hash(int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(key >> 32);
}

bool octavo_bpe_pairs_init(octavo_bpe_pairs *pairs, octavo_arena *arena, size_t n) {
    size_t size = 16;
    while (size < n + n / 2)
        size *= 2;
    pairs->entries = octavo_arena_alloc(arena, size * sizeof(*pairs->entries));
    if (pairs->entries == NULL) return false;
    pairs->mask = (uint32_t)(size - 1);
    for (size_t i = 0; i < size; i++)
        pairs->entries[i].left = -1;
    return true;
}

/* The place of a pair, or the free place where it would go. */
static octavo_bpe_pair *find_pair(const octavo_bpe_pairs *pairs, int32_t left, int32_t right) {
    uint32_t at = pair_hash(left, right) & pairs->mask;
    octavo_bpe_pair *entries = pairs->entries;
    while (entries[at].left >= 0 && (entries[at].left != left || entries[at].right != right))
        at = (at + 1) & pairs->mask;
    return &entries[at];
}

void octavo_bpe_pairs_set(octavo_bpe_pairs *pairs, int32_t left, int32_t right, uint32_t rank) {
    *find_pair(pairs, left, right) = (octavo_bpe_pair){.left = left, .right = right, .rank = rank};
}

uint32_t octavo_bpe_pairs_rank(const void *pairs, int32_t left, int32_t right, const char *text,
                               uint32_t begin, uint32_t end) {
    (void)text, (void)begin, (void)end;
    const octavo_bpe_pair *pair = find_pair(pairs, left, right);
    return pair->left < 0 ? OCTAVO_BPE_NONE : pair->rank;
}
