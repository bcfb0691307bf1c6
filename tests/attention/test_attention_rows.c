/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank that has the queries of some rows only, and some heads of them, comes to the bits of the
 * one that has all, wherever sequences are cut and whatever they see.
 */
#include "../unit.h"
#include "base/memory.h"
#include "share_world.h"

enum { TURNS = 100, MOST_RANKS = 4 };

static bool cuts_sequence(const share_world *w, int64_t row) {
    for (int i = 0; i < w->n_seqs; i++) {
        if (row > w->starts[i] && row < w->starts[i + 1]) return true;
    }
    return false;
}

static void cut_rows_keep_bits(void **state) {
    (void)state;
    int cut = 0, empty = 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        share_world w;
        share_make(&w, 1000 + turn, 3000);
        const share_part whole = share_whole(&w, 1 + share_below(&w, 2));
        uint8_t *want = share_run(&w, &whole);
        int64_t begin = 0;
        for (int i = 1; i <= MOST_RANKS; i++) {
            const int32_t left = (int32_t)(w.n_tokens - begin);
            const int64_t end = begin + (i < MOST_RANKS ? share_below(&w, left + 1) : left);
            share_part part = share_whole(&w, 1 + share_below(&w, 2));
            part.row_begin = begin;
            part.row_end = end;
            part.q_begin = share_below(&w, part.q_end);
            uint8_t *got = share_run(&w, &part);
            share_compare(&w, want, got, begin, end - begin, part.q_begin,
                          part.q_end - part.q_begin, "some rows");
            cut += cuts_sequence(&w, begin);
            empty += begin == end;
            octavo_free_aligned(got);
            begin = end;
        }
        octavo_free_aligned(want);
        share_free(&w);
    }
    assert_true(cut > 50 && empty > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cut_rows_keep_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
