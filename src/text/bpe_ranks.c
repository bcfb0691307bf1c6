/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranking tokens by sorting one number for each, made of its score and its id.
 */
#include "text/bpe_ranks.h"

#include "base/error.h"
#include "text/bpe.h"
#include "text/tokenizer_state.h"

#include <math.h>
#include <stdlib.h>

/* Sorts descending by score, then ascending by id, when compared as a number. */
static uint64_t rank_key(float score, size_t id) {
    union {
        float f;
        uint32_t u;
    } bits = {.f = score == 0.0f ? 0.0f : score}; /* one zero, not two */
    uint32_t ascending = bits.u & 0x80000000u ? ~bits.u : bits.u | 0x80000000u;
    return (uint64_t)~ascending << 32 | (uint32_t)id;
}

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

octavo_status octavo_bpe_rank_tokens(const octavo_vocab *vocab, octavo_arena *arena,
                                     uint32_t **ranks, int32_t **results, octavo_error *error) {
    size_t n = vocab->n_tokens, n_ranks = 0;
    bool is_sorted = true;
    for (size_t i = 0; vocab->scores != NULL && i < n; i++)
        if (isnan(vocab->scores[i]))
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "vocabulary (token %zu): its score is not a number; the file is "
                               "damaged",
                               i);
    uint64_t *order = octavo_alloc(n * sizeof(*order));
    *ranks = octavo_arena_alloc(arena, n * sizeof(**ranks));
    *results = octavo_arena_alloc(arena, n * sizeof(**results));
    if (order == NULL || *ranks == NULL || *results == NULL) {
        octavo_free(order);
        return octavo_fail_memory(error, "vocabulary", n * sizeof(*order));
    }
    for (size_t i = 0; i < n; i++) {
        (*ranks)[i] = OCTAVO_BPE_NONE;
        if (vocab->types != NULL && vocab->types[i] != OCTAVO_TOKEN_NORMAL) continue;
        order[n_ranks] = rank_key(vocab->scores != NULL ? vocab->scores[i] : 0.0f, i);
        if (n_ranks > 0 && order[n_ranks] < order[n_ranks - 1]) is_sorted = false;
        n_ranks++;
    }
    if (!is_sorted) qsort(order, n_ranks, sizeof(*order), compare_keys);
    for (size_t rank = 0; rank < n_ranks; rank++) {
        uint32_t id = (uint32_t)order[rank];
        (*ranks)[id] = (uint32_t)rank;
        (*results)[rank] = (int32_t)id;
    }
    octavo_free(order);
    return OCTAVO_OK;
}

uint32_t octavo_bpe_text_rank(const void *tokenizer, int32_t left, int32_t right, const char *text,
                              uint32_t begin, uint32_t end) {
    const octavo_tokenizer *t = tokenizer;
    if ((t->flags[left] & t->flags[right] & OCTAVO_TOKEN_MERGES) == 0) return OCTAVO_BPE_NONE;
    int32_t id = octavo_token_index_find(&t->index, text + begin, end - begin);
    return id < 0 ? OCTAVO_BPE_NONE : t->ranks[id];
}
