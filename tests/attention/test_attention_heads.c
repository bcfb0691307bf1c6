/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank that holds some of the query heads, with the kv heads that these read, comes to the bits
 * of the one that holds all, wherever groups are cut and however many kv heads it holds beside.
 */
#include "../unit.h"
#include "base/memory.h"
#include "share_world.h"

enum { TURNS = 100, MOST_RANKS = 4 };

/* Query heads [q_begin, q_end), and kv heads that have all they read. */
static share_part cut_heads(share_world *w, int32_t q_begin, int32_t q_end) {
    share_part part = share_whole(w, 1 + share_below(w, 2));
    part.q_begin = q_begin;
    part.q_end = q_end;
    const int32_t group = w->heads.group, most = w->heads.n_kv_heads;
    part.kv_begin = q_begin / group;
    part.kv_end = q_end > q_begin ? (q_end + group - 1) / group : part.kv_begin;
    if (share_below(w, 3) == 0) part.kv_begin = share_below(w, part.kv_begin + 1);
    if (share_below(w, 3) == 0) part.kv_end += share_below(w, most - part.kv_end + 1);
    return part;
}

static void cut_heads_keep_bits(void **state) {
    (void)state;
    int uneven = 0, empty = 0, bare = 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        share_world w;
        share_make(&w, turn, 3000);
        const share_part whole = share_whole(&w, 1 + share_below(&w, 2));
        uint8_t *want = share_run(&w, &whole);
        int32_t begin = 0;
        for (int i = 1; i <= MOST_RANKS; i++) {
            const int32_t left = w.heads.n_q_heads - begin;
            const int32_t end = begin + (i < MOST_RANKS ? share_below(&w, left + 1) : left);
            const share_part part = cut_heads(&w, begin, end);
            uint8_t *got = share_run(&w, &part);
            share_compare(&w, want, got, 0, w.n_tokens, begin, end - begin, "some heads");
            uneven += begin % w.heads.group != 0 && end % w.heads.group != 0;
            empty += begin == end && part.kv_begin < part.kv_end;
            bare += part.kv_begin == part.kv_end;
            octavo_free_aligned(got);
            begin = end;
        }
        octavo_free_aligned(want);
        share_free(&w);
    }
    assert_true(uneven > 20 && empty > 5 && bare > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cut_heads_keep_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
