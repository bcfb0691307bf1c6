/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: whatever the batch, every query token, head and visible kv split is in exactly one
 * item, items fit their scratch and come largest first, and long decodes are shared among threads.
 */
#include "../unit.h"
#include "attention/internal.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static uint32_t random_state = 1;

static int random_below(int n) {
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((uint64_t)random_state * (uint32_t)n >> 32);
}

enum { MOST_SEQS = 12, MOST_TOKENS = 700 };

typedef struct world {
    octavo_attention_limits limits;
    octavo_attention_batch batch;
    octavo_attention_plan plan;
    int64_t window;
    int32_t lens[MOST_SEQS], starts[MOST_SEQS + 1];
    void *memory;
} world;

static void make(world *w) {
    const size_t bytes = octavo_attention_plan_bytes(&w->limits);
    w->batch.kv_lens = w->lens;
    w->batch.query_start_loc = w->starts;
    w->batch.page_size = 16;
    w->batch.n_tokens = w->starts[w->batch.n_seqs];
    w->memory = octavo_alloc_aligned(bytes);
    assert_non_null(w->memory);
    octavo_attention_plan_make(&w->plan, &w->limits, &w->batch,
                               (octavo_attention_mask){.window = w->window}, w->memory);
    assert_true((uint8_t *)(w->plan.joins + w->plan.n_joins) <= (uint8_t *)w->memory + bytes);
    assert_true((void *)(w->plan.items + w->plan.n_items) <= (void *)w->plan.joins);
}

static void check_items(const world *w) {
    const octavo_attention_plan *plan = &w->plan;
    const octavo_attention_heads *heads = &w->limits.heads;
    const int32_t group = octavo_attention_group(heads);
    for (int64_t i = 0; i < plan->n_items; i++) {
        const octavo_attention_item *it = &plan->items[i];
        const int32_t last = it->head + it->n_heads - 1, end = it->group + it->n_group;
        assert_true(attention_query_head(heads, it->head, it->group) >= 0);
        assert_true(attention_query_head(heads, last, end - 1) < heads->n_q_heads);
        assert_true(it->n_tokens >= 1 && it->n_heads >= 1 && it->n_group >= 1 && it->n_splits >= 1);
        assert_true(it->head + it->n_heads <= w->limits.heads.n_kv_heads);
        assert_true(it->group + it->n_group <= group);
        assert_true(it->n_tokens * it->n_heads * it->n_group <=
                    octavo_attention_max_rows(&w->limits));
        assert_true(i == 0 || it->cost <= plan->items[i - 1].cost);
    }
}

/* How many items have this token, query head and split; all or none of a token's are joined. */
static int count_items(const world *w, int64_t seq, int64_t token, int32_t head, int64_t split) {
    const octavo_attention_heads *heads = &w->limits.heads;
    const int32_t group = octavo_attention_group(heads);
    int n = 0;
    for (int64_t i = 0; i < w->plan.n_items; i++) {
        const octavo_attention_item *it = &w->plan.items[i];
        const int32_t kv = (head + heads->first) / group, in_group = (head + heads->first) % group;
        if (it->seq != seq || token < it->token || token >= it->token + it->n_tokens) continue;
        if (kv < it->head || kv >= it->head + it->n_heads) continue;
        if (in_group < it->group || in_group >= it->group + it->n_group) continue;
        if (split < it->split || split >= it->split + it->n_splits) continue;
        if (it->join >= 0) {
            const octavo_attention_join *join = &w->plan.joins[it->join + token];
            assert_true(join->seq == seq && join->token == token);
            assert_true(split >= join->split && split < join->split + join->n_splits);
            assert_true(head >= join->head && head < join->head + join->n_heads);
        }
        n++;
    }
    return n;
}

static void check_coverage(const world *w) {
    if (w->limits.heads.n_q_heads == 0) {
        assert_int_equal(w->plan.n_items, 0);
        return;
    }
    for (int64_t seq = 0; seq < w->batch.n_seqs; seq++) {
        for (int64_t t = 0; t < attention_query_length(&w->batch, seq); t++) {
            attention_range seen = attention_visible(&w->batch, seq, t, &w->plan.mask);
            const int64_t last = (seen.end - 1) / OCTAVO_KV_SPLIT;
            for (int64_t split = seen.begin / OCTAVO_KV_SPLIT; split <= last; split++) {
                int32_t head = random_below(w->limits.heads.n_q_heads);
                assert_int_equal(count_items(w, seq, t, head, split), 1);
            }
        }
    }
}

/* Records of joins do not overlap and are within the workspace. */
static void check_joins(const world *w) {
    for (int64_t i = 0; i < w->plan.n_joins; i++) {
        const octavo_attention_join *a = &w->plan.joins[i];
        assert_true(a->part + (int64_t)a->n_splits * a->n_heads <=
                    octavo_attention_max_parts(&w->limits));
        if (i > 0) {
            const octavo_attention_join *b = &w->plan.joins[i - 1];
            assert_true(a->part >= b->part + (int64_t)b->n_splits * b->n_heads);
        }
    }
}

static void every_row_is_planned_once(void **state) {
    (void)state;
    static const octavo_attention_heads heads[] = {
        {9, 3, 64, 0, 0, 0},    {1, 1, 1, 0, 0, 0},     {32, 8, 128, 0, 0, 0}, {71, 1, 64, 0, 0, 0},
        {300, 2, 512, 0, 0, 0}, {4, 4, 256, 0, 0, 0},   {14, 2, 64, 0, 0, 0},  {4, 2, 64, 0, 3, 0},
        {5, 2, 64, 0, 3, 1},    {200, 4, 64, 0, 90, 7}, {7, 5, 32, 0, 2, 3},   {3, 1, 64, 0, 8, 4},
        {2, 3, 64, 0, 2, 1},    {0, 3, 64, 0, 2, 1},    {0, 0, 64, 0, 2, 1},
    };
    int joins = 0;
    for (int turn = 0; turn < 600; turn++) {
        world w = {.limits = {.heads = heads[turn % 15],
                              .max_tokens = MOST_TOKENS,
                              .max_seqs = MOST_SEQS,
                              .n_threads = 1 + random_below(turn % 2 ? 4 : 40)}};
        static const int64_t chunks[] = {0, 1, 3, 16, 63, 500, INT32_MAX};
        w.limits.tuning.chunk = chunks[random_below(7)];
        w.limits.tuning.query_tokens = random_below(3) ? 0 : random_below(20);
        w.limits.tuning.scratch_bytes =
            random_below(2)
                ? 0
                : (int64_t)octavo_attention_least_scratch(&w.limits.heads) * (1 + random_below(8));
        w.batch.prefill_end = random_below(MOST_SEQS + 1);
        w.window = random_below(2) ? 0 : 1 + random_below(3000);
        w.batch.n_seqs = random_below(MOST_SEQS + 1);
        w.starts[0] = random_below(4);
        for (int i = 0; i < w.batch.n_seqs; i++) {
            const int left = MOST_TOKENS - w.starts[i], kind = random_below(4);
            int q_len = kind == 0 ? 0 : kind == 1 ? 1 : random_below(kind == 2 ? 9 : 200);
            if (q_len > left) q_len = left;
            w.starts[i + 1] = w.starts[i] + q_len;
            w.lens[i] = q_len + random_below(2) * random_below(9000);
        }
        make(&w);
        check_items(&w);
        check_coverage(&w);
        check_joins(&w);
        joins += (int)w.plan.n_joins;
        octavo_free_aligned(w.memory);
    }
    assert_true(joins > 100);
}

static void a_long_decode_is_shared(void **state) {
    (void)state;
    world w = {
        .limits = {.heads = {9, 3, 64, 0, 0, 0}, .max_tokens = 1, .max_seqs = 1, .n_threads = 2}};
    w.batch.n_seqs = 1;
    w.starts[1] = 1;
    w.lens[0] = 8 * OCTAVO_KV_SPLIT;
    make(&w);
    assert_int_equal(w.plan.n_joins, 1);
    assert_true(w.plan.n_items >= 8);
    for (int64_t i = 0; i < w.plan.n_items; i++) /* a page is visited once for all heads */
        assert_int_equal(w.plan.items[i].n_heads, 3);
    octavo_free_aligned(w.memory);
}

static void one_head_is_shared(void **state) {
    (void)state;
    world w = {
        .limits = {.heads = {4, 1, 256, 0, 0, 0}, .max_tokens = 1, .max_seqs = 1, .n_threads = 2}};
    w.batch.n_seqs = 1;
    w.starts[1] = 1;
    w.lens[0] = 500;
    make(&w);
    assert_int_equal(w.plan.n_items, 2);
    octavo_free_aligned(w.memory);
}

static void many_decodes_are_left_whole(void **state) {
    (void)state;
    world w = {
        .limits = {
            .heads = {8, 2, 128, 0, 0, 0}, .max_tokens = 12, .max_seqs = 12, .n_threads = 2}};
    w.batch.n_seqs = MOST_SEQS;
    for (int i = 0; i < MOST_SEQS; i++) {
        w.starts[i + 1] = i + 1;
        w.lens[i] = 4000;
    }
    make(&w);
    assert_int_equal(w.plan.n_items, MOST_SEQS);
    assert_int_equal(w.plan.n_joins, 0);
    octavo_free_aligned(w.memory);
}

static int64_t scratch_bytes(const octavo_attention_limits *limits) {
    const int64_t part = OCTAVO_ATTENTION_PART_HEAD + octavo_attention_width(&limits->heads);
    return (int64_t)octavo_attention_workspace_bytes(limits) -
           octavo_attention_max_parts(limits) * part * (int64_t)sizeof(float);
}

/* As many rows as fit what scratch may take: one more would not. */
static void rows_fit_their_scratch(void **state) {
    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        octavo_attention_limits limits = {
            .heads = {1, 1, 1 + random_below(OCTAVO_ATTENTION_MAX_KEY_DIM), 0, 0, 0},
            .max_tokens = 1,
            .max_seqs = 1,
            .n_threads = 1};
        limits.heads.value_dim = 1 + random_below(OCTAVO_ATTENTION_MAX_DIM);
        const int64_t least = (int64_t)octavo_attention_least_scratch(&limits.heads);
        limits.tuning.scratch_bytes = least + random_below(turn % 2 ? 3 << 20 : 20000);
        const int32_t rows = octavo_attention_max_rows(&limits);
        const int64_t bytes = scratch_bytes(&limits);
        assert_true(rows >= 1 && bytes <= limits.tuning.scratch_bytes);
        /* what a row adds: its lanes, and by sixteens a line of each of seven small arrays */
        int64_t more = (octavo_attention_query_width(&limits.heads) +
                        2 * octavo_attention_width(&limits.heads) + OCTAVO_SOFTMAX_BLOCK) *
                       (int64_t)sizeof(float);
        if (rows % 16 == 0) more += 7 * OCTAVO_ALIGN;
        if (rows < 512) assert_true(bytes + more > limits.tuning.scratch_bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_fit_their_scratch),      cmocka_unit_test(every_row_is_planned_once),
        cmocka_unit_test(a_long_decode_is_shared),     cmocka_unit_test(one_head_is_shared),
        cmocka_unit_test(many_decodes_are_left_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
