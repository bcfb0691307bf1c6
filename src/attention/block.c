/* SPDX-License-Identifier: Apache-2.0
 *
 * An item's rows against a block; see the header. The page table is resolved once, and keys and
 * values are turned once into what all rows use. Memory is asked for ahead, in the order in which
 * it lies, at the pace at which it is used (reader.h).
 */
#include "attention/block.h"

#include "base/compiler.h"
#include "base/memory.h"

#include <string.h>

enum { BLOCK = OCTAVO_SOFTMAX_BLOCK, GROUP = OCTAVO_KEY_GROUP, GROUPS = BLOCK / GROUP };

static_assert(OCTAVO_SOFTMAX_BLOCK % OCTAVO_KEY_GROUP == 0, "a block is whole groups");

/* Where the visible positions of a block lie. */
typedef struct block {
    int64_t first; /* absolute position of place 0 */
    int begin;     /* places [begin, end) are seen by some row */
    int end;
    bool is_full; /* all rows see all places */
    /* of whole groups; a place that no row sees repeats `begin` */
    const uint8_t *slots[BLOCK];
    const uint8_t *columns[BLOCK]; /* where keys are words: the first of each place's */
    const uint8_t *scales[BLOCK];  /* with slot_scales, of a page's first place in the block: its
                                      first head's key scale */
} block;

/* Resolves the page table for the part of `range` in block `index`. False: nothing there. */
static bool resolve(const attention_job *j, attention_range range, int64_t index, block *b) {
    const octavo_attention_batch *batch = &j->plan->batch;
    const int32_t *pages = batch->block_tables + j->item->seq * batch->pages_per_seq;
    const uint8_t *cache = j->op->kv_cache;
    const int64_t page_bytes = j->pages.page_bytes, slot_bytes = j->pages.slot_bytes;
    attention_range part = attention_intersect(range, index * BLOCK, (index + 1) * BLOCK);
    if (part.begin == part.end) return false;
    b->first = index * BLOCK;
    b->begin = (int)(part.begin - b->first);
    b->end = (int)(part.end - b->first);
    b->is_full = j->full.begin <= b->first && j->full.end >= b->first + BLOCK;

    const int64_t first = attention_cache_position(&j->plan->limits.splits, part.begin);
    int64_t page = first / batch->page_size, slot = first % batch->page_size;
    const uint8_t *base = cache + pages[page] * page_bytes;
    const size_t group_bytes = j->pages.group_bytes;
    b->scales[b->begin] = base + j->pages.scale_offset + (size_t)slot * sizeof(float);
    for (int i = b->begin; i < b->end; i++, slot++) {
        if (slot == batch->page_size) {
            slot = 0;
            base = cache + pages[++page] * page_bytes;
            b->scales[i] = base + j->pages.scale_offset;
        }
        b->slots[i] = base + slot * slot_bytes;
        b->columns[i] = base + (size_t)(slot / GROUP) * group_bytes + (size_t)(slot % GROUP) * 4;
    }
    for (int i = b->begin / GROUP * GROUP; i < (b->end + GROUP - 1) / GROUP * GROUP; i++) {
        if (i >= b->begin && i < b->end) continue;
        b->slots[i] = b->slots[b->begin];
        b->columns[i] = b->columns[b->begin];
    }
    return true;
}

/* The places of a block that a row sees; empty: begin >= end. */
typedef struct places {
    int begin;
    int end;
} places;

static places row_places(const attention_job *j, const block *b, int32_t row) {
    if (b->is_full) return (places){0, BLOCK};
    int64_t begin = j->scratch.begin[row] - b->first, end = j->scratch.end[row] - b->first;
    return (places){(int)(begin > 0 ? begin : 0), (int)(end < BLOCK ? end : BLOCK)};
}

/* From a slot's address to the keys of a head. */
static size_t head_offset(const attention_job *j, int32_t head) {
    return (size_t)(j->item->head + head) * j->pages.head_bytes + j->pages.key_offset;
}

/* Where the values of a block are: in panels, as pairs or as they are, or else in the cache. */
typedef struct value_source {
    const uint32_t *pairs;
    const float *panels;
    const uint8_t *const *slots;
    size_t offset;
    octavo_ahead *ahead;
} value_source;

static void add_places(const attention_job *j, const value_source *from, float *acc,
                       const float *rescale, const float *weights, int32_t n, places p) {
    const int d = octavo_attention_value_dim(&j->plan->limits.heads);
    if (from->pairs)
        j->kernels->pair_values(acc, j->width, rescale, weights, n, from->pairs, p.begin, p.end, d);
    else if (from->panels)
        j->kernels->panel_values(acc, j->width, rescale, weights, n, from->panels, p.begin, p.end,
                                 d);
    else
        j->kernels->values[j->op->kv_dtype](acc, j->width, rescale, weights, n, from->slots,
                                            from->offset, p.begin, p.end, d, from->ahead);
}

/* acc = rescale x acc + weights x values for the rows [row, row + n) of a head, each of which sees
 * something. The places that all of them see go together, those that only some see row by row, so
 * that each row adds its own places in ascending order and no others. */
static void add_values(const attention_job *j, const block *b, const value_source *from, float *acc,
                       const float *rescale, const float *weights, int32_t row, int32_t n) {
    const places first = row_places(j, b, row), last = row_places(j, b, row + n - 1);
    places common = {last.begin, first.end}; /* tokens ascend, so both bounds do */
    if (from->pairs) {                       /* a row takes both places of a pair at once */
        common.begin = (common.begin + 1) / 2 * 2;
        common.end = common.end / 2 * 2;
    }
    if (common.begin >= common.end) { /* a window narrower than the tile */
        for (int32_t r = 0; r < n; r++)
            add_places(j, from, acc + r * j->width, rescale + r, weights + r * BLOCK, 1,
                       row_places(j, b, row + r));
        return;
    }
    if (first.begin < common.begin) {
        for (int32_t r = 0; r < n; r++)
            add_places(j, from, acc + r * j->width, rescale + r, weights + r * BLOCK, 1,
                       (places){row_places(j, b, row + r).begin, common.begin});
        rescale = NULL;
    }
    add_places(j, from, acc, rescale, weights, n, common);
    for (int32_t r = 0; common.end < last.end && r < n; r++) {
        const places rest = {common.end, row_places(j, b, row + r).end};
        if (rest.begin < rest.end)
            add_places(j, from, acc + r * j->width, NULL, weights + r * BLOCK, 1, rest);
    }
}

/* How kv head `head` of the item turns its row's dot products into weights. */
static octavo_logit row_logit(const attention_job *j, const block *b, int32_t head, int32_t row) {
    const octavo_attention_op *op = j->op;
    const octavo_attention_heads *heads = &j->plan->limits.heads;
    octavo_logit logit = {.scale = op->scale,
                          .soft_cap = op->soft_cap,
                          .round_weights = op->precision == OCTAVO_ATTENTION_BF16};
    if (op->k_scales) logit.scale *= op->k_scales[j->item->head + head];
    if (op->alibi_slopes) {
        const int64_t own =
            attention_position(&j->plan->batch, j->item->seq, attention_query_token(j, row));
        logit.slope = op->alibi_slopes[attention_query_head(
            heads, j->item->head + head, j->item->group + row % j->item->n_group)];
        logit.first = (float)(b->first - own);
    }
    return logit;
}

/* Of n rows, how many at a time see the same places and turn dot products into the same logits. */
static int32_t rows_alike(const attention_job *j, const block *b, int32_t n) {
    if (j->op->alibi_slopes) return 1;
    return b->is_full ? n : j->item->n_group;
}

/* Rows [begin, end) of each head see something of a block. */
typedef struct row_range {
    int32_t begin;
    int32_t end;
} row_range;

/* They are a run, as tokens ascend. */
static row_range rows_that_see(const attention_job *j, const block *b) {
    row_range rows = {0, j->n_rows};
    while (rows.begin < rows.end && j->scratch.end[rows.begin] <= b->first)
        rows.begin++;
    while (rows.end > rows.begin && j->scratch.begin[rows.end - 1] >= b->first + BLOCK)
        rows.end--;
    return rows;
}

/* A group of words whose places do not begin a group of a page. */
static void collect_words(const attention_job *j, const block *b, size_t offset, int g,
                          uint32_t *words) {
    for (int k = 0; k < GROUP; k++) {
        const uint8_t *column = b->columns[g * GROUP + k] + offset;
        for (size_t w = 0; w < j->pages.key_words; w++)
            memcpy(&words[w * GROUP + (size_t)k], column + w * GROUP * 4, 4);
    }
}

/* The words of a group: in the cache, or made in `words`. */
static const uint32_t *find_words(attention_job *j, const block *b, size_t offset, int g,
                                  uint32_t *words) {
    if (j->pages.group_bytes == 0) {
        j->kernels->gather_keys(words, b->slots + g * GROUP, offset, (int)j->pages.key_words,
                                &j->reader.ahead);
        return words;
    }
    const int first = g * GROUP > b->begin ? g * GROUP : b->begin;
    if (j->pages.page_size % GROUP == 0)
        return (const void *)(b->columns[first] + offset - (size_t)(first % GROUP) * 4);
    collect_words(j, b, offset, g, words);
    return words;
}

/* The dot products of a head's rows and groups [first, last). */
static void score_head(attention_job *j, const block *b, int32_t head, row_range rows, int first,
                       int last) {
    const attention_scratch *s = &j->scratch;
    const octavo_attention_kernels *kernels = j->kernels;
    const int d = j->plan->limits.heads.head_dim, type = j->op->kv_dtype;
    const int n = rows.end - rows.begin;
    const bool is_wide = n > kernels->tile_rows && type != OCTAVO_DTYPE_F32 && !j->pairs_keys;
    const int32_t at = head * j->n_rows + rows.begin;
    const uint32_t *groups[GROUPS];
    for (int g = first; g < last; g++) {
        float *place = s->keys + (size_t)(g - first) * (size_t)d * GROUP;
        groups[g] =
            find_words(j, b, head_offset(j, head), g, is_wide ? (void *)s->values : (void *)place);
        if (!is_wide) continue;
        kernels->widen_keys[type](place, groups[g], d);
        groups[g] = (void *)place;
    }
    float *products = s->weights + (int64_t)at * BLOCK, *queries = s->queries + at * j->q_width;
    if (j->pairs_keys)
        kernels->pair_scores(products, (void *)queries, j->q_width, n, groups, first, last, d,
                             &j->reader.ahead);
    else
        kernels->scores[is_wide ? OCTAVO_DTYPE_F32 : type](products, queries, j->q_width, n, groups,
                                                           first, last, d, &j->reader.ahead);
}

/* Of a block's places; those that no row sees have 0. */
typedef struct place_scales {
    _Alignas(OCTAVO_ALIGN) float key[BLOCK];
    _Alignas(OCTAVO_ALIGN) float value[BLOCK];
} place_scales;

/* What a head's slots keep, page by page. */
static void find_scales(const attention_job *j, const block *b, int32_t head, place_scales *to) {
    const int64_t page_size = j->pages.page_size;
    const size_t offset = (size_t)(j->item->head + head) * j->pages.scale_head_bytes;
    memset(to, 0, sizeof *to);
    for (int i = b->begin, n; i < b->end; i += n) {
        const int64_t left = page_size - (b->first + i) % page_size;
        n = left < b->end - i ? (int)left : b->end - i;
        const uint8_t *from = b->scales[i] + offset;
        memcpy(to->key + i, from, (size_t)n * sizeof(float));
        memcpy(to->value + i, from + j->pages.value_scale_offset, (size_t)n * sizeof(float));
    }
}

/* Dot products to weights, and those times the values, for a head's rows. */
static void weigh_head(attention_job *j, const block *b, int32_t head, row_range rows,
                       const attention_sums *to) {
    const attention_scratch *s = &j->scratch;
    const int32_t n = rows.end - rows.begin, at = head * j->n_rows + rows.begin;
    float *weights = s->weights + (int64_t)at * BLOCK;
    const int32_t alike = rows_alike(j, b, n);
    place_scales scales;
    if (j->op->slot_scales) find_scales(j, b, head, &scales);
    for (int32_t r = 0; r < n; r += alike) {
        const places own = row_places(j, b, rows.begin + r);
        octavo_logit logit = row_logit(j, b, head, rows.begin + r);
        if (j->op->slot_scales) {
            logit.key_scales = scales.key;
            logit.value_scales = scales.value;
        }
        j->kernels->softmax(weights + (int64_t)r * BLOCK, alike, own.begin, own.end, &logit,
                            to->max + at + r, to->sum + at + r, s->rescale + r);
    }
    value_source from = {.slots = b->slots,
                         .offset = head_offset(j, head) + j->pages.value_offset,
                         .ahead = &j->reader.ahead};
    const int32_t tile = j->kernels->tile_rows;
    const int d = octavo_attention_value_dim(&j->plan->limits.heads);
    if (j->pairs_values) {
        uint32_t *pairs = (void *)s->values;
        j->kernels->pair_up(pairs, from.slots, from.offset, b->begin, b->end, d);
        from.pairs = pairs;
    } else if (n > tile) {
        j->kernels->widen_values[j->op->kv_dtype](s->values, from.slots, from.offset, b->begin,
                                                  b->end, d);
        from.panels = s->values;
    }
    for (int32_t r = 0; r < n; r += tile)
        add_values(j, b, &from, to->acc + (at + r) * j->width, s->rescale + r,
                   weights + (int64_t)r * BLOCK, rows.begin + r, n - r < tile ? n - r : tile);
}

/* A few groups of keys at a time for all heads, as a page has them, then the values. */
bool attention_attend_block(attention_job *j, attention_range range, int64_t index, int32_t head,
                            int32_t n_heads, const attention_sums *to) {
    block found, *b = &found;
    if (!resolve(j, range, index, b)) return false;
    const row_range rows = rows_that_see(j, b);
    const int32_t n = rows.end - rows.begin, end = head + n_heads;
    if (n == 0) return true;
    int step = n <= j->kernels->tile_rows ? j->kernels->tile_groups : j->kernels->many_groups;
    /* one row alone waits for its sums; narrow slots leave room for more of them side by side */
    if (n == 1 && octavo_dtype_size(j->op->kv_dtype) == 1) step *= 2;
    const int last = (b->end + GROUP - 1) / GROUP;
    /* of the block's bytes, half with the keys and half with the values, head by head */
    const int64_t group_share = j->position_bytes * GROUP / (2 * j->item->n_heads);
    for (int g = b->begin / GROUP; g < last; g += step) {
        const int stop = g + step < last ? g + step : last;
        for (int32_t h = head; h < end; h++) {
            attention_reader_pace(&j->reader, (stop - g) * group_share);
            score_head(j, b, h, rows, g, stop);
        }
    }
    for (int32_t h = head; h < end; h++) {
        attention_reader_pace(&j->reader, (last - b->begin / GROUP) * group_share);
        weigh_head(j, b, h, rows, to);
    }
    return true;
}
