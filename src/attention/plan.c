/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a batch into work items, largest first. A sequence is cut along query tokens, kv heads and
 * the query heads of a kv head only as far as an item's rows demand, so that a page is visited once
 * for many heads; further, and along kv splits, where there would be too little to share among the
 * threads. The cut never changes a bit of the result.
 */
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/memory.h"

enum {
    ITEMS_PER_THREAD = 4,   /* what balance asks for */
    EXTRA_PER_THREAD = 32,  /* most items beyond those that rows demand */
    PARTS_PER_THREAD = 128, /* most (token, split) pairs that are joined afterwards */
    JOIN_TOKENS = 8,        /* a sequence with more query tokens has enough to share */
    LEAST_ROWS = 8,         /* tokens are not cut finer than this */
    STAGE_ROWS = 8,         /* staging a key costs about as much as so many rows use it */
};

typedef octavo_attention_item item;

/* Into how many pieces a sequence is cut along each axis. */
typedef struct cut {
    int64_t tokens;
    int64_t heads;
    int64_t groups;
    int64_t splits;
} cut;

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t pieces(const cut *c) {
    return c->tokens * c->heads * c->groups * c->splits;
}

/* Query heads of a group that go into one item. */
static int64_t group_part(const octavo_attention_limits *limits, const attention_strip *strip) {
    int64_t parts = ceil_div(strip->n_group, octavo_attention_max_rows(limits));
    return ceil_div(strip->n_group, parts);
}

/* Most query tokens of an item, for all query heads of a part of a group. */
static int64_t item_tokens(const octavo_attention_limits *limits, const attention_strip *strip) {
    const int64_t tokens = octavo_attention_max_rows(limits) / group_part(limits, strip);
    const int64_t wanted = limits->tuning.query_tokens;
    return wanted > 0 && wanted < tokens ? wanted : tokens;
}

/* Query tokens of a tile in the prefill range: a chunk cut evenly, or as many whole chunks as fit.
 * At least half of what fits either way. */
static int64_t chunk_tile(int64_t chunk, int64_t most) {
    if (chunk > most) return ceil_div(chunk, ceil_div(chunk, most));
    return most / chunk * chunk;
}

/* Items that a sequence's tokens are cut into. */
static int64_t token_pieces(const octavo_attention_plan *plan, const attention_strip *strip,
                            int64_t seq, int64_t q_len) {
    const octavo_attention_limits *limits = &plan->limits;
    int64_t tile = item_tokens(limits, strip);
    const bool is_chunk = seq >= plan->batch.prefill_begin && seq < plan->batch.prefill_end;
    if (limits->tuning.chunk > 0 && is_chunk) tile = chunk_tile(limits->tuning.chunk, tile);
    return ceil_div(q_len, tile);
}

/* The coarsest cut whose items have no more rows than scratch has. */
static cut natural_cut(const octavo_attention_plan *plan, const attention_strip *strip, int64_t seq,
                       int64_t q_len) {
    const octavo_attention_limits *limits = &plan->limits;
    const int64_t part = group_part(limits, strip);
    cut c = {.splits = 1, .groups = ceil_div(strip->n_group, part)};
    c.tokens = token_pieces(plan, strip, seq, q_len);
    int64_t tokens = ceil_div(q_len, c.tokens);
    int64_t together = octavo_attention_max_rows(limits) / (tokens * part);
    together = c.groups > 1 ? 1 : min64(together, strip->n_heads);
    c.heads = ceil_div(strip->n_heads, together);
    return c;
}

static int64_t max_items(const octavo_attention_limits *limits) {
    attention_strip strips[ATTENTION_MOST_STRIPS];
    const int n_strips = octavo_attention_strips(&limits->heads, strips);
    int64_t items = (int64_t)EXTRA_PER_THREAD * limits->n_threads;
    for (int i = 0; i < n_strips; i++) {
        const attention_strip *strip = &strips[i];
        /* tiles of a chunk may be as small as half of what fits */
        const int64_t tokens =
            ceil_div(item_tokens(limits, strip), limits->tuning.chunk > 0 ? 2 : 1);
        items += (limits->max_tokens / tokens + limits->max_seqs) * strip->n_heads *
                 ceil_div(strip->n_group, group_part(limits, strip));
    }
    return items;
}

/* Of a strip. */
static int64_t max_joins(const octavo_attention_limits *limits) {
    if (attention_is_dealt(limits)) return 0;
    return min64(limits->max_tokens, (int64_t)PARTS_PER_THREAD * limits->n_threads);
}

int64_t octavo_attention_max_parts(const octavo_attention_limits *limits) {
    if (attention_is_dealt(limits)) return 0;
    return (int64_t)PARTS_PER_THREAD * limits->n_threads * limits->heads.n_q_heads;
}

int octavo_attention_strips(const octavo_attention_heads *heads,
                            attention_strip strips[ATTENTION_MOST_STRIPS]) {
    const int32_t group = octavo_attention_group(heads), end = heads->first + heads->n_q_heads;
    int n = 0;
    for (int32_t at = heads->first; at < end;) {
        attention_strip strip = {.head = at / group, .n_heads = 1, .group = at % group};
        if (strip.group == 0 && end - at >= group) strip.n_heads = (end - at) / group;
        strip.n_group = (int32_t)min64(group - strip.group, end - at);
        at += strip.n_heads * strip.n_group;
        strips[n++] = strip;
    }
    octavo_assert(n == 0 || end <= heads->n_kv_heads * group);
    return n;
}

size_t octavo_attention_plan_bytes(const octavo_attention_limits *limits) {
    const size_t n_parts = attention_is_dealt(limits) ? (size_t)limits->splits.n_parts : 0;
    size_t items, joins, deals, sum;
    if (!octavo_size_mul((size_t)max_items(limits), sizeof(item), &items) ||
        !octavo_size_mul((size_t)max_joins(limits) * ATTENTION_MOST_STRIPS,
                         sizeof(octavo_attention_join), &joins) ||
        !octavo_size_mul(n_parts, ((size_t)limits->max_seqs + 1) * sizeof(octavo_attention_deal),
                         &deals) ||
        !octavo_size_add(items, joins, &sum) || !octavo_size_add(sum, deals, &sum))
        return 0;
    return sum;
}

/* --- cost --- */

/* Keys that query tokens [token, token + n) visit, together and summed over the tokens. */
static int64_t keys_spanned(const octavo_attention_batch *batch, int64_t seq, int64_t token,
                            int64_t n, const octavo_attention_mask *mask) {
    return attention_visible(batch, seq, token + n - 1, mask).end -
           attention_visible(batch, seq, token, mask).begin;
}

static int64_t keys_seen(const octavo_attention_batch *batch, int64_t seq, int64_t token, int64_t n,
                         const octavo_attention_mask *mask) {
    attention_range first = attention_visible(batch, seq, token, mask);
    attention_range last = attention_visible(batch, seq, token + n - 1, mask);
    return n * ((first.end - first.begin) + (last.end - last.begin)) / 2;
}

static int64_t cost_of(const octavo_attention_batch *batch, const item *it,
                       const octavo_attention_mask *mask) {
    int64_t seen = keys_seen(batch, it->seq, it->token, it->n_tokens, mask);
    int64_t spanned = keys_spanned(batch, it->seq, it->token, it->n_tokens, mask);
    return it->n_heads * (seen * it->n_group + spanned * STAGE_ROWS);
}

static int64_t sequence_cost(const octavo_attention_plan *plan, const attention_strip *strip,
                             int64_t seq, const octavo_attention_mask *mask) {
    int64_t q_len = attention_query_length(&plan->batch, seq);
    if (q_len == 0) return 0;
    item whole = {.seq = (int32_t)seq,
                  .n_tokens = (int32_t)q_len,
                  .n_heads = strip->n_heads,
                  .n_group = strip->n_group};
    const attention_range seen = attention_seen_splits(plan, seq);
    const attention_range own = attention_own_splits(&plan->limits.splits, seen);
    const int64_t cost = cost_of(&plan->batch, &whole, mask), all = seen.end - seen.begin;
    return all > 0 ? cost * (own.end - own.begin) / all : cost;
}

/* --- cutting --- */

/* What plan_make has left to give out, and what an item should cost. */
typedef struct budget {
    int64_t target;
    int64_t items; /* beyond those that rows demand */
    int64_t parts; /* (token, split) pairs of a strip */
    const octavo_attention_mask *mask;
    const attention_strip *strip;
} budget;

/* Raises *axis towards `most` until there are `wanted` pieces. */
static void cut_finer(cut *c, int64_t *axis, int64_t most, int64_t wanted) {
    int64_t others = pieces(c) / *axis;
    int64_t n = min64(ceil_div(wanted, others), most);
    if (n > *axis) *axis = n;
}

static cut cut_sequence(const octavo_attention_plan *plan, budget *left, int64_t seq,
                        int64_t n_splits) {
    const attention_strip *strip = left->strip;
    const int64_t q_len = attention_query_length(&plan->batch, seq);
    const int64_t n_threads = plan->limits.n_threads;
    const cut coarse = natural_cut(plan, strip, seq, q_len);
    cut fine = coarse;
    int64_t wanted = ceil_div(sequence_cost(plan, strip, seq, left->mask), left->target);
    if (n_threads == 1 || wanted <= pieces(&coarse)) return coarse;
    const bool may_join = attention_is_dealt(&plan->limits) || q_len * n_splits <= left->parts;
    if (q_len <= JOIN_TOKENS && may_join) cut_finer(&fine, &fine.splits, n_splits, wanted);
    cut_finer(&fine, &fine.heads, strip->n_heads, wanted);
    int64_t tokens = ceil_div(LEAST_ROWS, ceil_div(strip->n_group, fine.groups));
    cut_finer(&fine, &fine.tokens, ceil_div(q_len, tokens), wanted);
    /* pieces of a group stage the same keys, so only to give each thread something */
    if (fine.heads == strip->n_heads)
        cut_finer(&fine, &fine.groups, strip->n_group, min64(wanted, n_threads));
    int64_t more = pieces(&fine) - pieces(&coarse);
    if (more > left->items) return coarse;
    left->items -= more;
    return fine;
}

/* Piece i of n: [*begin, *begin + *count). */
static void piece(int64_t extent, int64_t n, int64_t i, int32_t *begin, int32_t *count) {
    int64_t from = extent * i / n, to = extent * (i + 1) / n;
    *begin = (int32_t)from;
    *count = (int32_t)(to - from);
}

static int32_t add_joins(octavo_attention_plan *plan, budget *left, int64_t seq, int64_t split,
                         int64_t n_splits) {
    const octavo_attention_limits *limits = &plan->limits;
    const attention_strip *strip = left->strip;
    const int32_t head = attention_query_head(&limits->heads, strip->head, strip->group);
    const int32_t n_heads = strip->n_heads * strip->n_group;
    const int64_t all = (int64_t)PARTS_PER_THREAD * limits->n_threads;
    const int64_t q_len = attention_query_length(&plan->batch, seq);
    const int32_t first = (int32_t)plan->n_joins;
    for (int64_t t = 0; t < q_len; t++) {
        plan->joins[plan->n_joins++] =
            (octavo_attention_join){.seq = (int32_t)seq,
                                    .token = (int32_t)t,
                                    .head = head,
                                    .n_heads = n_heads,
                                    .split = (int32_t)split,
                                    .n_splits = (int32_t)n_splits,
                                    .part = all * head + (all - left->parts) * n_heads};
        left->parts -= n_splits;
    }
    octavo_assert(left->parts >= 0 && plan->n_joins <= max_joins(limits) * ATTENTION_MOST_STRIPS);
    return first;
}

static void add_items(octavo_attention_plan *plan, budget *left, int64_t seq) {
    const octavo_attention_batch *batch = &plan->batch;
    const attention_strip *strip = left->strip;
    const int64_t q_len = attention_query_length(batch, seq);
    if (q_len == 0) return;
    const attention_range seen = attention_seen_splits(plan, seq);
    const attention_range own = attention_own_splits(&plan->limits.splits, seen);
    int64_t n_splits = own.end - own.begin, all = seen.end - seen.begin;
    if (n_splits == 0 && attention_is_dealt(&plan->limits)) return;
    if (all == 0) n_splits = all = 1; /* rows that see nothing are an item, too */
    const cut c = cut_sequence(plan, left, seq, n_splits);
    const bool is_joined = c.splits > 1 && !attention_is_dealt(&plan->limits);
    const int32_t join = is_joined ? add_joins(plan, left, seq, own.begin, n_splits) : -1;
    for (int64_t i = 0; i < pieces(&c); i++) {
        item it = {.seq = (int32_t)seq, .join = join};
        int64_t rest = i;
        piece(n_splits, c.splits, rest % c.splits, &it.split, &it.n_splits);
        it.split += (int32_t)own.begin;
        rest /= c.splits;
        piece(strip->n_group, c.groups, rest % c.groups, &it.group, &it.n_group);
        it.group += strip->group;
        rest /= c.groups;
        piece(strip->n_heads, c.heads, rest % c.heads, &it.head, &it.n_heads);
        it.head += strip->head;
        piece(q_len, c.tokens, rest / c.heads, &it.token, &it.n_tokens);
        it.cost = cost_of(batch, &it, left->mask) * it.n_splits / all;
        plan->items[plan->n_items++] = it;
    }
    octavo_assert(plan->n_items <= max_items(&plan->limits));
}

/* --- sorting, in place and without recursion --- */

static void sift_down(item *items, int64_t root, int64_t n) {
    const item moved = items[root];
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && items[child + 1].cost < items[child].cost) child++;
        if (moved.cost <= items[child].cost) break;
        items[root] = items[child];
    }
    items[root] = moved;
}

static void sort_descending(item *items, int64_t n) {
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(items, i, n);
    for (int64_t i = n - 1; i > 0; i--) {
        const item least = items[0];
        items[0] = items[i];
        items[i] = least;
        sift_down(items, 0, i);
    }
}

void octavo_attention_plan_make(octavo_attention_plan *plan, const octavo_attention_limits *limits,
                                const octavo_attention_batch *batch, octavo_attention_mask mask,
                                void *memory) {
    octavo_assert(batch->n_seqs <= limits->max_seqs && batch->n_tokens <= limits->max_tokens);
    octavo_assert(!attention_is_dealt(limits) || !limits->splits.is_cache_dealt ||
                  OCTAVO_KV_SPLIT % batch->page_size == 0);
    plan->limits = *limits;
    plan->batch = *batch;
    plan->mask = mask;
    plan->items = memory;
    plan->n_items = 0;
    plan->joins = (void *)(plan->items + max_items(limits));
    plan->n_joins = 0;
    plan->deals = (void *)(plan->joins + max_joins(limits) * ATTENTION_MOST_STRIPS);
    if (attention_is_dealt(limits)) octavo_attention_deal_splits(plan);
    atomic_init(&plan->next_item, 0);

    attention_strip strips[ATTENTION_MOST_STRIPS];
    const int n_strips = octavo_attention_strips(&limits->heads, strips);
    int64_t total = 0;
    for (int64_t i = 0; i < batch->n_seqs * n_strips; i++)
        total += sequence_cost(plan, &strips[i % n_strips], i / n_strips, &plan->mask);
    budget left = {.target = total / ((int64_t)ITEMS_PER_THREAD * limits->n_threads) + 1,
                   .items = (int64_t)EXTRA_PER_THREAD * limits->n_threads,
                   .mask = &plan->mask};
    for (int s = 0; s < n_strips; s++) {
        left.strip = &strips[s];
        left.parts = (int64_t)PARTS_PER_THREAD * limits->n_threads;
        for (int64_t i = 0; i < batch->n_seqs; i++)
            add_items(plan, &left, i);
    }
    sort_descending(plan->items, plan->n_items);
}
