/* SPDX-License-Identifier: Apache-2.0
 *
 * Phase 2: an item's rows against its keys, block by block. Per block the page table is resolved
 * once, the next block's rows are prefetched, and each kv head's keys are staged once for all rows.
 *
 * A row visits exactly the positions it sees: scores of others are computed along in a tile, but
 * their weights are 0 and their values are never touched, so what they hold cannot matter.
 */
#include "attention/internal.h"
#include "base/compiler.h"

#include <math.h>
#include <string.h>

enum { BLOCK = OCTAVO_SOFTMAX_BLOCK, BLOCKS_PER_SPLIT = OCTAVO_KV_SPLIT / BLOCK, LINE = 64 };

static_assert(OCTAVO_KV_SPLIT % OCTAVO_SOFTMAX_BLOCK == 0, "a split is whole blocks");
static_assert(OCTAVO_SOFTMAX_BLOCK % OCTAVO_KEY_GROUP == 0, "a block is whole groups");

/* An item while it runs. */
typedef struct job {
    octavo_attention_plan *plan;
    const octavo_attention_kernels *kernels;
    const octavo_attention_op *op;
    void *workspace;
    const octavo_attention_item *item;
    attention_scratch scratch;
    attention_pages pages;
    int32_t n_rows;       /* of one kv head: tokens x group */
    int64_t q_width;      /* floats between query rows */
    int64_t width;        /* floats between accumulator rows */
    attention_range seen; /* by any of its rows */
    attention_range full; /* by all of them */
} job;

/* Where the visible positions of a block lie. */
typedef struct block {
    int64_t first; /* absolute position of place 0 */
    int begin;     /* places [begin, end) are seen by some row */
    int end;
    bool is_full;                /* all rows see all places */
    const uint8_t *slots[BLOCK]; /* of whole key groups; a place that no row sees repeats `begin` */
} block;

static attention_range intersect(attention_range a, int64_t begin, int64_t end) {
    if (a.begin < begin) a.begin = begin;
    if (a.end > end) a.end = end;
    if (a.end < a.begin) a.end = a.begin;
    return a;
}

/* Resolves the page table for the part of `range` in block `index`. False: nothing there. */
static bool resolve(const job *j, attention_range range, int64_t index, block *b) {
    const octavo_attention_batch *batch = &j->plan->batch;
    const int32_t *pages = batch->block_tables + j->item->seq * batch->pages_per_seq;
    const uint8_t *cache = j->op->kv_cache;
    const int64_t page_bytes = j->pages.page_bytes, slot_bytes = j->pages.slot_bytes;
    attention_range part = intersect(range, index * BLOCK, (index + 1) * BLOCK);
    if (part.begin == part.end) return false;
    b->first = index * BLOCK;
    b->begin = (int)(part.begin - b->first);
    b->end = (int)(part.end - b->first);
    b->is_full = j->full.begin <= b->first && j->full.end >= b->first + BLOCK;

    int64_t page = part.begin / batch->page_size, slot = part.begin % batch->page_size;
    const uint8_t *base = cache + pages[page] * page_bytes;
    for (int i = b->begin; i < b->end; i++, slot++) {
        if (slot == batch->page_size) {
            slot = 0;
            base = cache + pages[++page] * page_bytes;
        }
        b->slots[i] = base + slot * slot_bytes;
    }
    const int whole = OCTAVO_KEY_GROUP;
    for (int i = b->begin / whole * whole; i < b->begin; i++)
        b->slots[i] = b->slots[b->begin];
    for (int i = b->end; i < (b->end + whole - 1) / whole * whole; i++)
        b->slots[i] = b->slots[b->begin];
    return true;
}

/* Asks for rows [begin, end) of a block that is needed later. */
static void prefetch(const job *j, const block *b, size_t offset, int begin, int end) {
    const size_t bytes = j->pages.key_words * 4;
    if (begin < b->begin) begin = b->begin;
    if (end > b->end) end = b->end;
    for (int i = begin; i < end; i++) {
        const uint8_t *row = b->slots[i] + offset;
        for (size_t at = 0; at < bytes; at += LINE)
            OCTAVO_PREFETCH(row + at);
    }
}

/* The places of a block that a row sees; empty: begin >= end. */
typedef struct places {
    int begin;
    int end;
} places;

static places row_places(const job *j, const block *b, int32_t row) {
    if (b->is_full) return (places){0, BLOCK};
    int64_t begin = j->scratch.begin[row] - b->first, end = j->scratch.end[row] - b->first;
    return (places){(int)(begin > 0 ? begin : 0), (int)(end < BLOCK ? end : BLOCK)};
}

static int32_t query_head(const job *j, int32_t row) {
    const octavo_attention_heads *heads = &j->plan->limits.heads;
    int32_t head = j->item->head + row / j->n_rows;
    return head * (heads->n_q_heads / heads->n_kv_heads) + j->item->group +
           row % j->n_rows % j->item->n_group;
}

static int32_t query_token(const job *j, int32_t row) {
    return j->item->token + row % j->n_rows / j->item->n_group;
}

/* From a slot's address to the keys of a head. */
static size_t head_offset(const job *j, int32_t head) {
    return (size_t)(j->item->head + head) * j->pages.head_bytes + j->pages.key_offset;
}

/* Where the values of a block are, as what type. */
typedef struct value_source {
    octavo_dtype type;
    const uint8_t *const *slots;
    size_t offset;
} value_source;

static void add_places(const job *j, const value_source *from, float *acc, const float *rescale,
                       const float *weights, int32_t n, places p) {
    j->kernels->values[from->type](acc, j->width, rescale, weights, n, from->slots, from->offset,
                                   p.begin, p.end,
                                   octavo_attention_value_dim(&j->plan->limits.heads));
}

/* acc = rescale x acc + weights x values for the rows [row, row + n) of a head, each of which sees
 * something. The places that all of them see go together, those that only some see row by row, so
 * that each row adds its own places in ascending order and no others. */
static void add_values(const job *j, const block *b, const value_source *from, float *acc,
                       const float *rescale, const float *weights, int32_t row, int32_t n) {
    const places first = row_places(j, b, row), last = row_places(j, b, row + n - 1);
    const places common = {last.begin, first.end}; /* tokens ascend, so both bounds do */
    if (common.begin >= common.end) {              /* a window narrower than the tile */
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
static octavo_logit row_logit(const job *j, const block *b, int32_t head, int32_t row) {
    const octavo_attention_op *op = j->op;
    const octavo_attention_heads *heads = &j->plan->limits.heads;
    octavo_logit logit = {.scale = op->scale,
                          .soft_cap = op->soft_cap,
                          .round_weights = op->precision == OCTAVO_ATTENTION_BF16};
    if (op->k_scales) logit.scale *= op->k_scales[j->item->head + head];
    if (op->alibi_slopes) {
        const int64_t q_len = attention_query_length(&j->plan->batch, j->item->seq);
        const int64_t own = j->plan->batch.kv_lens[j->item->seq] - q_len + query_token(j, row);
        const int32_t group = heads->n_q_heads / heads->n_kv_heads;
        logit.slope = op->alibi_slopes[(j->item->head + head) * group + j->item->group +
                                       row % j->item->n_group];
        logit.first = (float)(b->first - own);
    }
    return logit;
}

/* One token's rows: all see the same places, and memory is what takes time. Goes through the block
 * in small steps and asks for as much of the next block's memory at each, so that loads and
 * arithmetic overlap. */
static void attend_token(const job *j, const block *b, const block *next, int32_t head, float *acc,
                         float *max, float *sum) {
    enum { STEP = OCTAVO_KEY_GROUP };
    const attention_scratch *s = &j->scratch;
    const int d = j->plan->limits.heads.head_dim;
    const int32_t n = j->n_rows, at = head * n;
    const size_t offset = head_offset(j, head), value_offset = offset + j->pages.value_offset;
    float *weights = s->weights + (int64_t)at * BLOCK;
    const value_source from = {j->op->kv_dtype, b->slots, value_offset};
    for (int i = 0; i < BLOCK; i += STEP) {
        if (next) prefetch(j, next, offset, i, i + STEP);
        const int begin = b->begin > i ? b->begin : i, end = b->end < i + STEP ? b->end : i + STEP;
        if (begin < end)
            j->kernels->stage_keys[from.type](s->keys, b->slots, offset, begin, end, d);
    }
    j->kernels->scores(weights, s->queries + at * j->q_width, j->q_width, n, s->keys, b->begin,
                       b->end, d);
    for (int32_t r = 0; r < n; r++) {
        const octavo_logit logit = row_logit(j, b, head, r);
        s->rescale[r] = j->kernels->softmax(weights + (int64_t)r * BLOCK, b->begin, b->end, &logit,
                                            max + at + r, sum + at + r);
    }
    const float *rescale = s->rescale;
    for (int i = 0; i < BLOCK; i += STEP) {
        if (next) prefetch(j, next, value_offset, i, i + STEP);
        const places p = {b->begin > i ? b->begin : i, b->end < i + STEP ? b->end : i + STEP};
        if (p.begin >= p.end) continue;
        add_places(j, &from, acc + at * j->width, rescale, weights, n, p);
        rescale = NULL;
    }
}

/* One head's rows against one block; `next` is the block after it, or NULL. */
static void attend_block(const job *j, const block *b, const block *next, int32_t head, float *acc,
                         float *max, float *sum) {
    const attention_scratch *s = &j->scratch;
    const int d = j->plan->limits.heads.head_dim;
    const size_t offset = head_offset(j, head), value_offset = offset + j->pages.value_offset;

    if (j->item->n_tokens == 1 && j->n_rows <= j->kernels->tile_rows) {
        attend_token(j, b, next, head, acc, max, sum);
        return;
    }
    /* the rows that see anything here are a run, as tokens ascend */
    int32_t begin = 0, end = j->n_rows;
    while (begin < end && j->scratch.end[begin] <= b->first)
        begin++;
    while (end > begin && j->scratch.begin[end - 1] >= b->first + BLOCK)
        end--;
    const int32_t n = end - begin;
    if (n == 0) return;
    const int32_t at = head * j->n_rows + begin;
    float *weights = s->weights + (int64_t)at * BLOCK;

    if (next) {
        prefetch(j, next, offset, 0, BLOCK);
        prefetch(j, next, value_offset, 0, BLOCK);
    }
    j->kernels->stage_keys[j->op->kv_dtype](s->keys, b->slots, offset, b->begin, b->end, d);
    j->kernels->scores(weights, s->queries + at * j->q_width, j->q_width, n, s->keys, b->begin,
                       b->end, d);
    for (int32_t r = 0; r < n; r++) {
        const places own = row_places(j, b, begin + r);
        const octavo_logit logit = row_logit(j, b, head, begin + r);
        s->rescale[r] = j->kernels->softmax(weights + (int64_t)r * BLOCK, own.begin, own.end,
                                            &logit, max + at + r, sum + at + r);
    }

    value_source from = {j->op->kv_dtype, b->slots, value_offset};
    const uint8_t *staged[BLOCK];
    const int32_t tile = j->kernels->tile_rows;
    if (n > tile && from.type != OCTAVO_DTYPE_F32) { /* converted once for many rows */
        for (int i = b->begin; i < b->end; i++) {
            float *row = s->values + i * j->width;
            j->kernels->load[from.type](row, b->slots[i] + from.offset, j->width);
            staged[i] = (const uint8_t *)row;
        }
        from = (value_source){OCTAVO_DTYPE_F32, staged, 0};
    }
    for (int32_t r = 0; r < n; r += tile) {
        const int32_t rows = n - r < tile ? n - r : tile;
        add_values(j, b, &from, acc + (at + r) * j->width, s->rescale + r,
                   weights + (int64_t)r * BLOCK, begin + r, rows);
    }
}

/* All blocks of a split for all rows, from a clean start. */
static void attend_split(const job *j, attention_range range, float *acc, float *max, float *sum) {
    const int32_t rows = j->n_rows * j->item->n_heads;
    memset(acc, 0, (size_t)(rows * j->width) * sizeof *acc);
    for (int32_t r = 0; r < rows; r++) {
        max[r] = -INFINITY;
        sum[r] = 0.0f;
    }
    block blocks[2];
    int64_t index = range.begin / BLOCK;
    bool more = resolve(j, range, index, &blocks[0]);
    for (int turn = 0; more; turn ^= 1) {
        more = resolve(j, j->seen, ++index, &blocks[turn ^ 1]);
        const block *next = more ? &blocks[turn ^ 1] : NULL;
        for (int32_t h = 0; h < j->item->n_heads; h++)
            attend_block(j, &blocks[turn], next, h, acc, max, sum);
        more = more && index * BLOCK < range.end;
    }
}

/* Joins the running split to those before it. */
static void fold_split(const job *j, int64_t split) {
    const attention_scratch *s = &j->scratch;
    for (int32_t r = 0; r < j->n_rows * j->item->n_heads; r++) {
        const int64_t begin = s->begin[r % j->n_rows], end = s->end[r % j->n_rows];
        if (end <= split * OCTAVO_KV_SPLIT || begin >= (split + 1) * OCTAVO_KV_SPLIT) continue;
        float *total = s->total + r * j->width, *acc = s->acc + r * j->width;
        if (begin / OCTAVO_KV_SPLIT == split) {
            memcpy(total, acc, (size_t)j->width * sizeof *total);
            s->total_max[r] = s->max[r];
            s->total_sum[r] = s->sum[r];
        } else {
            j->kernels->merge(total, &s->total_max[r], &s->total_sum[r], acc, s->max[r], s->sum[r],
                              j->width);
        }
    }
}

/* Leaves the running split's rows to phase 3. */
static void keep_split(const job *j, int64_t split) {
    const attention_scratch *s = &j->scratch;
    const octavo_attention_limits *limits = &j->plan->limits;
    for (int32_t r = 0; r < j->n_rows * j->item->n_heads; r++) {
        const octavo_attention_join *join = j->plan->joins + j->item->join + query_token(j, r);
        float *part = octavo_attention_part(
            limits, j->workspace,
            join->part + (split - join->split) * limits->heads.n_q_heads + query_head(j, r));
        part[0] = s->max[r];
        part[1] = s->sum[r];
        memcpy(part + OCTAVO_ATTENTION_PART_HEAD, s->acc + r * j->width,
               (size_t)j->width * sizeof *part);
    }
}

/* The item's splits, one after another. */
static void attend_splits(const job *j) {
    const attention_scratch *s = &j->scratch;
    for (int64_t i = 0; i < j->item->n_splits; i++) {
        const int64_t split = j->item->split + i;
        attention_range range =
            intersect(j->seen, split * OCTAVO_KV_SPLIT, (split + 1) * OCTAVO_KV_SPLIT);
        if (range.begin == range.end) continue;
        attend_split(j, range, s->acc, s->max, s->sum);
        if (j->item->join >= 0)
            keep_split(j, split);
        else
            fold_split(j, split);
    }
}

/* What the rows of an item see, alone and together. */
static void find_ranges(job *j) {
    const attention_scratch *s = &j->scratch;
    for (int32_t r = 0; r < j->n_rows; r++) {
        attention_range seen =
            attention_visible(&j->plan->batch, j->item->seq, query_token(j, r), &j->op->mask);
        s->begin[r] = (int32_t)seen.begin;
        s->end[r] = (int32_t)seen.end;
    }
    j->seen = (attention_range){s->begin[0], s->end[j->n_rows - 1]};
    j->full = (attention_range){s->begin[j->n_rows - 1], s->end[0]};
}

/* The totals of rows that see nothing (keys of an empty sequence): 0. */
static void attend_nothing(const job *j, int32_t rows) {
    const attention_scratch *s = &j->scratch;
    memset(s->total, 0, (size_t)(rows * j->width) * sizeof *s->total);
    for (int32_t r = 0; r < rows; r++) {
        s->total_max[r] = -INFINITY;
        s->total_sum[r] = j->op->sink ? 0.0f : 1.0f;
    }
}

static void attend_item(job *j) {
    const octavo_attention_batch *batch = &j->plan->batch;
    const octavo_attention_heads *heads = &j->plan->limits.heads;
    const octavo_attention_item *item = j->item;
    const attention_scratch *s = &j->scratch;
    const int64_t first_row = batch->query_start_loc[item->seq];
    j->n_rows = item->n_tokens * item->n_group;
    find_ranges(j);

    const int32_t rows = j->n_rows * item->n_heads;
    for (int32_t r = 0; r < rows; r++)
        octavo_attention_load_query(s->queries + r * j->q_width, j->kernels, j->op,
                                    first_row + query_token(j, r), query_head(j, r),
                                    heads->head_dim);
    if (j->seen.begin == j->seen.end) {
        attend_nothing(j, rows);
    } else if (item->join < 0 &&
               j->seen.begin / OCTAVO_KV_SPLIT == (j->seen.end - 1) / OCTAVO_KV_SPLIT) {
        attend_split(j, j->seen, s->total, s->total_max, s->total_sum); /* nothing to fold */
    } else {
        attend_splits(j);
    }
    if (item->join >= 0) return;
    for (int32_t r = 0; r < rows; r++)
        octavo_attention_store_output(j->kernels, j->op, heads, first_row + query_token(j, r),
                                      query_head(j, r), s->total + r * j->width, s->total_max[r],
                                      s->total_sum[r]);
}

/* A plan may be wider than the layer, never narrower. */
static inline bool serves(const octavo_attention_mask *plan, const octavo_attention_mask *layer) {
    return plan->type == layer->type &&
           (plan->window == 0 || (layer->window > 0 && layer->window <= plan->window)) &&
           (plan->chunk == 0 || plan->chunk == layer->chunk);
}

void octavo_attention_attend(octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                             const octavo_attention_op *op, void *workspace, int thread) {
    octavo_assert(serves(&plan->mask, &op->mask));
    const octavo_attention_heads *heads = &plan->limits.heads;
    job j = {
        .plan = plan,
        .kernels = kernels,
        .op = op,
        .workspace = workspace,
        .scratch = octavo_attention_scratch(&plan->limits, workspace, thread),
        .pages = octavo_attention_pages(heads, op, plan->batch.page_size),
        .q_width = octavo_attention_query_width(heads),
        .width = octavo_attention_width(heads),
    };
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&plan->next_item, 1, memory_order_relaxed);
        if (i >= plan->n_items) return;
        j.item = &plan->items[i];
        attend_item(&j);
    }
}
