/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter of stop texts: however a text is cut into parts, the same comes out.
 */
#include "../unit.h"
#include "cli/stop.h"

#include <string.h>

/* Feeds `text` in parts of `part` bytes. */
static void check_parts(const octavo_texts *stops, const char *text, size_t part, const char *want,
                        const char *want_stop) {
    octavo_stop_filter filter = {.stops = stops};
    octavo_buffer out = {0};
    size_t length = strlen(text);
    octavo_buffer_puts(&out, "");
    for (size_t done = 0; done < length; done += part)
        octavo_stop_filter_feed(&filter, text + done, length - done < part ? length - done : part,
                                &out);
    octavo_stop_filter_finish(&filter, &out);
    assert_string_equal(out.data, want);
    if (want_stop)
        assert_string_equal(filter.found, want_stop);
    else
        assert_null(filter.found);
    octavo_stop_filter_deinit(&filter);
    octavo_buffer_deinit(&out);
}

static void check(const octavo_texts *stops, const char *text, const char *want,
                  const char *want_stop) {
    for (size_t part = 1; part <= strlen(text); part++)
        check_parts(stops, text, part, want, want_stop);
}

static void test_one_stop(void **state) {
    const char *items[] = {"END"};
    const octavo_texts stops = {items, 1};
    (void)state;
    check(&stops, "before END after", "before ", "END");
    check(&stops, "END", "", "END");
    check(&stops, "EEND", "E", "END");
    check(&stops, "ENENDEND", "EN", "END");
    check(&stops, "no such text, EN", "no such text, EN", NULL);
}

static void test_text_that_repeats_itself(void **state) {
    const char *items[] = {"abab!"};
    const octavo_texts stops = {items, 1};
    (void)state;
    check(&stops, "ababab!x", "ab", "abab!");
    check(&stops, "abababab", "abababab", NULL);
}

static void test_first_to_be_complete_wins(void **state) {
    const char *items[] = {"one two", "two", "wo t", "o"};
    const octavo_texts inner = {items + 1, 2}, outer = {items, 2}, all = {items, 4};
    (void)state;
    check(&inner, "one two three", "one ", "two");
    check(&outer, "one two three", "", "one two"); /* both end there: the longest */
    check(&all, "one two", "", "o");
}

static void test_characters_stay_whole(void **state) {
    const char *items[] = {"\xe2\x82\xac!"}; /* euro sign */
    const octavo_texts stops = {items, 1};
    (void)state;
    check(&stops, "5 \xe2\x82\xac, 6 \xe2\x82\xac!", "5 \xe2\x82\xac, 6 ", "\xe2\x82\xac!");
}

/* Nothing that may yet belong to a stop text is out before that is known. */
static void test_holds_back(void **state) {
    const char *items[] = {"</s>"};
    const octavo_texts stops = {items, 1};
    octavo_stop_filter filter = {.stops = &stops};
    octavo_buffer out = {0};
    (void)state;
    octavo_buffer_puts(&out, "");
    octavo_stop_filter_feed(&filter, "a <", 3, &out);
    assert_string_equal(out.data, "a ");
    octavo_stop_filter_feed(&filter, "/s", 2, &out);
    assert_string_equal(out.data, "a ");
    octavo_stop_filter_feed(&filter, "b", 1, &out);
    assert_string_equal(out.data, "a </sb");
    octavo_stop_filter_deinit(&filter);
    octavo_buffer_deinit(&out);
}

static void test_no_stops(void **state) {
    const octavo_texts none = {0};
    (void)state;
    check(&none, "all of it", "all of it", NULL);
    check(NULL, "all of it", "all of it", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_stop),
        cmocka_unit_test(test_text_that_repeats_itself),
        cmocka_unit_test(test_first_to_be_complete_wins),
        cmocka_unit_test(test_characters_stay_whole),
        cmocka_unit_test(test_holds_back),
        cmocka_unit_test(test_no_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
