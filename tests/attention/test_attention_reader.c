/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading ahead: of a page only what the item reads is asked for, however many slots it has.
 */
#include "../unit.h"
#include "attention/reader.h"

#include <stdlib.h>

enum { PAGE = 1 << 20, HEADS = 3, WIDTH = 24 };

static bool follow_none(void *arg, attention_source *source) {
    (void)arg;
    (void)source;
    return false;
}

/* Bytes that the reader has been given and has not asked for yet. */
static int64_t bytes_left(const octavo_ahead *a) {
    if (a->slots_left == 0) return 0;
    return a->left + a->run_bytes * (a->runs_left - 1 + (int64_t)a->runs * (a->slots_left - 1));
}

/* A range of a large page, block by block. Nothing is read, so there need be no page. */
static void check_range(const attention_pages *pages, attention_range range) {
    static const int32_t table[] = {0};
    attention_reader reader = {.pages = pages, .follow = follow_none};
    const attention_source source = {
        .cache = malloc(1), .table = table, .range = range, .n_heads = HEADS};
    assert_non_null(source.cache);
    const int64_t position = attention_position_bytes(pages, HEADS);
    const int64_t most = 2 * position * (range.end - range.begin + 2 * OCTAVO_KEY_GROUP);
    attention_reader_start(&reader, &source);
    for (int64_t i = range.begin; i < range.end + OCTAVO_SOFTMAX_BLOCK; i += OCTAVO_SOFTMAX_BLOCK) {
        assert_true(bytes_left(&reader.ahead) <= most);
        attention_reader_pace(&reader, OCTAVO_SOFTMAX_BLOCK * position);
    }
    assert_int_equal(reader.next, range.end);
    free((void *)(uintptr_t)source.cache);
}

static void part_of_a_page_is_asked_for(void **state) {
    const octavo_attention_heads heads = {HEADS, HEADS, WIDTH, WIDTH, 0, 0};
    (void)state;
    for (int i = 0; i < 6; i++) {
        octavo_attention_op op;
        octavo_attention_op_init(&op, &heads, i % 2 ? OCTAVO_DTYPE_INT8 : OCTAVO_DTYPE_BF16,
                                 i / 2 == 0 ? OCTAVO_KV_ROWS : OCTAVO_KV_COLUMNS, PAGE);
        op.value_in_key = i / 2 == 2;
        const attention_pages pages = octavo_attention_pages(&heads, &op, PAGE);
        check_range(&pages, (attention_range){0, 1});
        check_range(&pages, (attention_range){PAGE - 1, PAGE});
        check_range(&pages, (attention_range){70, 1000});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(part_of_a_page_is_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
