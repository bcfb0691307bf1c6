/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that each attend some of the kv splits, from a whole cache or one with their positions
 * alone, leave records of which the bits of the whole call come, whoever merges which piece of them
 * and whether they were copied on the way.
 */
#include "../unit.h"
#include "base/memory.h"
#include "share_world.h"

#include <stdlib.h>
#include <string.h>

enum { TURNS = 60, MOST_PARTS = 4, LONGEST = 5500 };

/* What was met on the way. */
static int dealt_caches, many_splits, copied, empty_parts;

typedef struct group {
    share_world world;
    int32_t n_parts;
    share_part share; /* of each, but for the part */
    share_rank ranks[MOST_PARTS];
    void *records[MOST_PARTS];
    octavo_attention_piece all;
} group;

static bool may_deal_cache(const share_world *w) {
    return OCTAVO_KV_SPLIT % w->page_size == 0;
}

static int32_t longest(const share_world *w) {
    int32_t most = 0;
    for (int i = 0; i < w->n_seqs; i++)
        most = w->kv_lens[i] > most ? w->kv_lens[i] : most;
    return most;
}

static void attend_part(group *g, int32_t part) {
    share_rank *rank = &g->ranks[part];
    share_part share = g->share;
    share.splits.part = part;
    share.threads = 1 + share_below(&g->world, 2);
    share_begin(&g->world, &share, rank);
    const size_t most = octavo_attention_records_bytes(&rank->limits, longest(&g->world));
    const size_t bytes = (size_t)octavo_attention_piece_records(&rank->plan, part, &g->all) *
                         octavo_attention_record_bytes(&rank->limits.heads);
    assert_true(bytes <= most);
    empty_parts += bytes == 0 && rank->batch.n_tokens > 0;
    rank->op.records = g->records[part] = share_alloc(bytes);
    rank->op.output = NULL; /* nobody writes there */
    share_step(rank);
}

/* Some heads, and rows of the world of which every rank has all keys. */
static void make_group(group *g, uint32_t seed) {
    share_world *w = &g->world;
    share_make(w, seed, LONGEST);
    g->n_parts = 2 + share_below(w, MOST_PARTS - 1);
    g->share = share_whole(w, 1);
    g->share.splits.n_parts = g->n_parts;
    g->share.splits.is_cache_dealt = may_deal_cache(w) && share_below(w, 3) > 0;
    if (share_below(w, 2)) {
        g->share.q_begin = share_below(w, g->share.q_end);
        g->share.row_begin = share_below(w, (int32_t)w->n_tokens + 1);
        g->share.row_end -= share_below(w, (int32_t)(w->n_tokens - g->share.row_begin) + 1);
    }
    g->all = (octavo_attention_piece){0, g->share.row_end - g->share.row_begin, 0,
                                      g->share.q_end - g->share.q_begin};
    dealt_caches += g->share.splits.is_cache_dealt;
    many_splits += longest(w) > g->n_parts * OCTAVO_KV_SPLIT;
    for (int32_t i = 0; i < g->n_parts; i++)
        attend_part(g, i);
}

static void free_group(group *g) {
    for (int32_t i = 0; i < g->n_parts; i++) {
        share_end(&g->ranks[i]);
        octavo_free_aligned(g->records[i]);
    }
    share_free(&g->world);
}

/* Every row, head and split that is seen has a record of its own, and there are no others. */
static void check_records(const group *g) {
    const octavo_attention_plan *plan = &g->ranks[0].plan;
    const octavo_attention_batch *batch = &plan->batch;
    uint8_t *met[MOST_PARTS];
    int64_t n[MOST_PARTS], left = 0;
    for (int32_t i = 0; i < g->n_parts; i++) {
        n[i] = octavo_attention_piece_records(plan, i, &g->all);
        met[i] = calloc((size_t)n[i] + 1, 1);
        assert_non_null(met[i]);
        left += n[i];
    }
    for (int64_t seq = 0; seq < batch->n_seqs; seq++) {
        const int64_t begin = batch->query_start_loc[seq], end = batch->query_start_loc[seq + 1];
        if (begin == end) continue;
        const int64_t splits = (batch->kv_lens[seq] + OCTAVO_KV_SPLIT - 1) / OCTAVO_KV_SPLIT;
        const bool is_masked =
            plan->mask.window > 0 || plan->mask.chunk > 0 || batch->query_positions != NULL;
        for (int64_t i = 0; i < (end - begin) * g->all.head_end * splits && !is_masked; i++) {
            const int64_t split = i % splits, head = i / splits % g->all.head_end;
            const int32_t part = (int32_t)(split % g->n_parts);
            const int64_t at = octavo_attention_record(
                plan, part, &g->all, begin + i / splits / g->all.head_end, (int32_t)head, split);
            assert_true(at >= 0 && at < n[part] && !met[part][at]);
            met[part][at] = 1;
            left--;
        }
        if (is_masked) left = 0;
    }
    assert_int_equal(left, 0);
    for (int32_t i = 0; i < g->n_parts; i++)
        free(met[i]);
}

typedef struct merge {
    const share_rank *rank;
    octavo_attention_op op;
    const void *parts[MOST_PARTS];
    octavo_attention_piece held[MOST_PARTS], piece;
} merge;

static void run_merge(void *arg, int thread, int n_threads) {
    merge *m = arg;
    octavo_attention_merge_records(&m->rank->plan, &m->rank->kernels, &m->op, m->parts, m->held,
                                   &m->piece, thread, n_threads);
}

/* As a message brings them, all or those of every second one; each rank packs its own. */
static void copy_parts(group *g, merge *m, bool is_second_kept) {
    for (int32_t i = 0; i < g->n_parts; i++) {
        if (is_second_kept && i % 2 == 1) continue;
        m->held[i] = m->piece;
        const octavo_attention_plan *plan = &g->ranks[i].plan;
        const int64_t n = octavo_attention_piece_records(plan, i, &m->piece);
        void *to = share_alloc((size_t)n * octavo_attention_record_bytes(&plan->limits.heads));
        octavo_attention_copy_records(plan, i, g->records[i], &m->piece, to);
        m->parts[i] = to;
    }
}

static void check_piece(group *g, const uint8_t *want, octavo_attention_piece piece) {
    share_world *w = &g->world;
    const share_rank *rank = &g->ranks[share_below(w, g->n_parts)];
    const int64_t rows = piece.row_end - piece.row_begin;
    const int32_t heads = piece.head_end - piece.head_begin;
    merge m = {.rank = rank, .op = rank->op, .piece = piece};
    const bool is_copied = share_below(w, 2), is_second_kept = share_below(w, 2);
    for (int i = 0; i < MOST_PARTS; i++)
        m.held[i] = g->all;
    memcpy(m.parts, g->records, sizeof g->records);
    if (is_copied) copy_parts(g, &m, is_second_kept);
    uint8_t *got = share_alloc((size_t)(rows * heads) * share_head_bytes(w));
    memset(got, 0xa5, (size_t)(rows * heads) * share_head_bytes(w));
    m.op.output = got;
    m.op.out_token_stride = heads * (int64_t)w->heads.value_dim;
    octavo_pool_run(rank->pool, run_merge, &m);
    share_compare(w, want, got, g->share.row_begin + piece.row_begin, rows,
                  g->share.q_begin + piece.head_begin, heads, "some splits");
    copied += is_copied;
    octavo_free_aligned(got);
    for (int32_t i = 0; is_copied && i < g->n_parts; i++) {
        void *part;
        if (m.parts[i] == g->records[i]) continue;
        memcpy(&part, &m.parts[i], sizeof part);
        octavo_free_aligned(part);
    }
}

static void dealt_splits_keep_bits(void **state) {
    (void)state;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        group g = {.n_parts = 0};
        make_group(&g, 5000 + turn);
        const share_part whole = share_whole(&g.world, 2);
        uint8_t *want = share_run(&g.world, &whole);
        check_records(&g);
        check_piece(&g, want, g.all);
        for (int i = 0; i < 3; i++) {
            octavo_attention_piece piece = g.all;
            piece.row_begin = share_below(&g.world, (int32_t)g.all.row_end + 1);
            piece.row_end -= share_below(&g.world, (int32_t)(g.all.row_end - piece.row_begin) + 1);
            piece.head_begin = share_below(&g.world, g.all.head_end);
            piece.head_end -= share_below(&g.world, g.all.head_end - piece.head_begin);
            check_piece(&g, want, piece);
        }
        octavo_free_aligned(want);
        free_group(&g);
    }
    assert_true(dealt_caches > 20 && many_splits > 20 && copied > 50 && empty_parts > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dealt_splits_keep_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
