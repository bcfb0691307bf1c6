/* SPDX-License-Identifier: Apache-2.0
 *
 * Phase 2: items, whoever takes them. An item's rows go through what they see split by split, block
 * by block (block.h); splits of one item are joined here, those of several items by phase 3.
 */
#include "attention/block.h"
#include "base/compiler.h"

#include <math.h>
#include <string.h>

enum { BLOCK = OCTAVO_SOFTMAX_BLOCK };

static_assert(OCTAVO_KV_SPLIT % OCTAVO_SOFTMAX_BLOCK == 0, "a split is whole blocks");

static int32_t query_head(const attention_job *j, int32_t row) {
    const octavo_attention_heads *heads = &j->plan->limits.heads;
    return attention_query_head(heads, j->item->head + row / j->n_rows,
                                j->item->group + row % j->n_rows % j->item->n_group);
}

/* All blocks of a split for all rows, from a clean start. */
static void attend_split(attention_job *j, attention_range range, const attention_sums *to) {
    const int32_t rows = j->n_rows * j->item->n_heads;
    memset(to->acc, 0, (size_t)(rows * j->width) * sizeof *to->acc);
    for (int32_t r = 0; r < rows; r++) {
        to->max[r] = -INFINITY;
        to->sum[r] = 0.0f;
    }
    /* by default all heads see a block before the next block is looked at */
    const int64_t positions = j->plan->limits.tuning.kv_positions;
    const int64_t visit = positions > 0 ? (positions + BLOCK - 1) / BLOCK : 1;
    const int32_t together = positions > 0 ? 1 : j->item->n_heads;
    for (int64_t first = range.begin / BLOCK; first * BLOCK < range.end; first += visit) {
        for (int32_t h = 0; h < j->item->n_heads; h += together) {
            for (int64_t i = 0; i < visit; i++) {
                if (!attention_attend_block(j, range, first + i, h, together, to)) break;
            }
        }
    }
}

/* Joins the running split to those before it. */
static void fold_split(const attention_job *j, int64_t split) {
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

/* Where a row of the running split is kept. */
static float *kept_row(const attention_job *j, int32_t row, int64_t split) {
    const octavo_attention_plan *plan = j->plan;
    const int32_t token = attention_query_token(j, row), head = query_head(j, row);
    if (attention_is_dealt(&plan->limits))
        return octavo_attention_own_record(plan, j->op->records, j->item->seq, token, head, split);
    return octavo_attention_part(&plan->limits, j->workspace, plan->joins + j->item->join + token,
                                 split, head);
}

/* Leaves the running split's rows to phase 3, or to whoever merges records. */
static void keep_split(const attention_job *j, int64_t split) {
    const attention_scratch *s = &j->scratch;
    for (int32_t r = 0; r < j->n_rows * j->item->n_heads; r++) {
        float *part = kept_row(j, r, split);
        part[0] = s->max[r];
        part[1] = s->sum[r];
        memcpy(part + OCTAVO_ATTENTION_PART_HEAD, s->acc + r * j->width,
               (size_t)j->width * sizeof *part);
    }
}

static bool keeps_splits(const attention_job *j) {
    return j->item->join >= 0 || attention_is_dealt(&j->plan->limits);
}

/* The item's splits, one after another. */
static void attend_splits(attention_job *j) {
    const attention_scratch *s = &j->scratch;
    for (int64_t i = 0; i < j->item->n_splits; i++) {
        const int64_t split = attention_split(&j->plan->limits.splits, j->item->split + i);
        attention_range range =
            attention_intersect(j->seen, split * OCTAVO_KV_SPLIT, (split + 1) * OCTAVO_KV_SPLIT);
        if (range.begin == range.end) continue;
        attend_split(j, range, &(attention_sums){s->acc, s->max, s->sum});
        if (keeps_splits(j))
            keep_split(j, split);
        else
            fold_split(j, split);
    }
}

/* What the rows of an item see, alone and together. */
static void find_ranges(attention_job *j) {
    const attention_scratch *s = &j->scratch;
    for (int32_t r = 0; r < j->n_rows; r++) {
        attention_range seen = attention_visible(&j->plan->batch, j->item->seq,
                                                 attention_query_token(j, r), &j->op->mask);
        s->begin[r] = (int32_t)seen.begin;
        s->end[r] = (int32_t)seen.end;
    }
    j->seen = (attention_range){s->begin[0], s->end[j->n_rows - 1]};
    j->full = (attention_range){s->begin[j->n_rows - 1], s->end[0]};
}

/* The totals of rows that see nothing (keys of an empty sequence): 0, whatever the sink. */
static void attend_nothing(const attention_job *j, int32_t rows) {
    const attention_scratch *s = &j->scratch;
    memset(s->total, 0, (size_t)(rows * j->width) * sizeof *s->total);
    for (int32_t r = 0; r < rows; r++) {
        s->total_max[r] = 0.0f;
        s->total_sum[r] = 1.0f;
    }
}

/* What an item reads: its splits' share of what its rows see. */
static attention_source item_source(const attention_job *j, const octavo_attention_item *item) {
    const octavo_attention_batch *batch = &j->plan->batch;
    const octavo_attention_splits *splits = &j->plan->limits.splits;
    const int64_t last = item->token + item->n_tokens - 1;
    const int64_t begin = attention_visible(batch, item->seq, item->token, &j->op->mask).begin;
    const int64_t end = attention_visible(batch, item->seq, last, &j->op->mask).end;
    const attention_range seen = {octavo_attention_local_position(splits, begin),
                                  octavo_attention_local_position(splits, end)};
    return (attention_source){
        .cache = (const uint8_t *)j->op->kv_cache + (size_t)item->head * j->pages.head_bytes,
        .table = batch->block_tables + item->seq * batch->pages_per_seq,
        .range = attention_intersect(seen, item->split * (int64_t)OCTAVO_KV_SPLIT,
                                     ((int64_t)item->split + item->n_splits) * OCTAVO_KV_SPLIT),
        .n_heads = item->n_heads,
    };
}

static int64_t take_item(octavo_attention_plan *plan) {
    return atomic_fetch_add_explicit(&plan->next_item, 1, memory_order_relaxed);
}

/* The reader has asked for all of this item: takes the next one, which then is this thread's. So
 * late that no other thread will wait for it in vain. */
static bool take_next_source(void *arg, attention_source *source) {
    attention_job *j = arg;
    if (j->taken >= 0) return false;
    j->taken = take_item(j->plan);
    if (j->taken >= j->plan->n_items) return false;
    *source = item_source(j, &j->plan->items[j->taken]);
    return true;
}

/* Row r of the item, as its dot products want it. */
static void load_query(const attention_job *j, int32_t r, int64_t row) {
    const int32_t d = j->plan->limits.heads.head_dim;
    float *to = j->scratch.queries + r * j->q_width;
    if (!j->pairs_keys) {
        octavo_attention_load_query(to, j->kernels, j->op, row, query_head(j, r), d);
        return;
    }
    float *wide = j->scratch.values;
    octavo_attention_load_query(wide, j->kernels, j->op, row, query_head(j, r), d);
    memset(to, 0, (size_t)j->q_width * sizeof *to);
    j->kernels->store[OCTAVO_DTYPE_BF16](to, wide, 1.0f, d);
}

static void attend_item(attention_job *j) {
    const octavo_attention_batch *batch = &j->plan->batch;
    const octavo_attention_heads *heads = &j->plan->limits.heads;
    const octavo_attention_item *item = j->item;
    const attention_scratch *s = &j->scratch;
    const int64_t first_row = batch->query_start_loc[item->seq];
    j->n_rows = item->n_tokens * item->n_group;
    find_ranges(j);

    const int32_t rows = j->n_rows * item->n_heads;
    j->position_bytes = attention_position_bytes(&j->pages, item->n_heads);
    for (int32_t r = 0; r < rows; r++)
        load_query(j, r, first_row + attention_query_token(j, r));
    if (j->seen.begin == j->seen.end) {
        attend_nothing(j, rows);
    } else if (!keeps_splits(j) &&
               j->seen.begin / OCTAVO_KV_SPLIT == (j->seen.end - 1) / OCTAVO_KV_SPLIT) {
        /* nothing to fold */
        attend_split(j, j->seen, &(attention_sums){s->total, s->total_max, s->total_sum});
    } else {
        attend_splits(j);
    }
    if (keeps_splits(j)) return;
    for (int32_t r = 0; r < rows; r++) {
        const int32_t head = query_head(j, r);
        uint8_t *to = attention_output(j->op, first_row + attention_query_token(j, r), head);
        octavo_attention_store_output(j->kernels, j->op, heads, head, to, s->total + r * j->width,
                                      s->total_max[r], s->total_sum[r]);
    }
}

/* A plan may be wider than the layer, never narrower. */
static bool serves(const octavo_attention_mask *plan, const octavo_attention_mask *layer) {
    return plan->type == layer->type &&
           (plan->window == 0 || (layer->window > 0 && layer->window <= plan->window)) &&
           (plan->chunk == 0 || plan->chunk == layer->chunk);
}

void octavo_attention_attend(octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                             const octavo_attention_op *op, void *workspace, int thread) {
    const bool is_served = serves(&plan->mask, &op->mask);
    octavo_assert(is_served);
    (void)is_served; /* without assertions */
    const octavo_attention_heads *heads = &plan->limits.heads;
    attention_job j = {
        .plan = plan,
        .kernels = kernels,
        .op = op,
        .workspace = workspace,
        .scratch = octavo_attention_scratch(&plan->limits, workspace, thread),
        .pages = octavo_attention_pages(heads, op, plan->batch.page_size),
        .q_width = octavo_attention_query_width(heads),
        .width = octavo_attention_width(heads),
    };
    if (!plan->limits.splits.is_cache_dealt) j.pages.splits = plan->limits.splits;
    /* whoever computes along: only the types and the level decide how a sum is added up */
    const bool is_bf16 = op->kv_dtype == OCTAVO_DTYPE_BF16;
    j.pairs_keys =
        kernels->pair_scores && is_bf16 && (op->q_dtype == OCTAVO_DTYPE_BF16 || op->has_q_scale);
    j.pairs_values = kernels->pair_values && is_bf16 && op->precision == OCTAVO_ATTENTION_BF16;
    j.reader = (attention_reader){.pages = &j.pages, .follow = take_next_source, .arg = &j};
    j.taken = -1;
    for (;;) {
        const bool is_taken = j.taken >= 0;
        const int64_t i = is_taken ? j.taken : take_item(plan);
        if (i >= plan->n_items) return;
        j.item = &plan->items[i];
        j.taken = -1;
        if (is_taken) {
            attention_reader_arrive(&j.reader);
        } else {
            const attention_source source = item_source(&j, j.item);
            attention_reader_start(&j.reader, &source);
        }
        attend_item(&j);
    }
}
