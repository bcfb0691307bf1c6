/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of Oniguruma's dialect cut text as the reference library does
 * (tests/data/tokenizers/patterns.json), and what cannot be said otherwise is refused.
 */
#include "../unit.h"
#include "text/tokenizer_pattern.h"

#include <jansson.h>
#include <string.h>

/* What must come, and how much of it has. */
typedef struct expected {
    const json_t *pieces;
    size_t n, n_wrong;
} expected;

static octavo_status take(void *cookie, const char *text, size_t begin, size_t end, bool is_match,
                          octavo_error *error) {
    expected *e = cookie;
    (void)is_match, (void)error;
    if (begin == end) return OCTAVO_OK;
    const json_t *want = json_array_get(e->pieces, e->n++);
    if (want == NULL || json_string_length(want) != end - begin ||
        memcmp(json_string_value(want), text + begin, end - begin) != 0)
        e->n_wrong++;
    return OCTAVO_OK;
}

static size_t count_wrong(const octavo_pattern *pattern, const json_t *cases) {
    size_t n_wrong = 0, i;
    json_t *one;
    json_array_foreach(cases, i, one) {
        const json_t *text = json_array_get(one, 0);
        expected e = {.pieces = json_array_get(one, 1)};
        octavo_error error;
        assert_int_equal(octavo_pattern_run(pattern, json_string_value(text),
                                            json_string_length(text), take, &e, &error),
                         OCTAVO_OK);
        n_wrong += e.n_wrong > 0 || e.n != json_array_size(e.pieces);
    }
    return n_wrong;
}

static void test_patterns(void **state) {
    json_error_t why;
    size_t n_wrong = 0, i;
    json_t *entry;
    (void)state;
    json_t *patterns = json_load_file(TEST_DATA "/tokenizers/patterns.json", JSON_ALLOW_NUL, &why);
    assert_true(json_array_size(patterns) > 30);
    json_array_foreach(patterns, i, entry) {
        const json_t *source = json_object_get(entry, "pattern");
        octavo_text text = {json_string_value(source), json_string_length(source)};
        octavo_pattern pattern = {0};
        octavo_error error;
        if (octavo_pattern_regex(&pattern, text, &error) != OCTAVO_OK)
            fail_msg("%s: %s", text.data, error.message);
        size_t n = count_wrong(&pattern, json_object_get(entry, "cases"));
        if (n > 0) print_error("%s: %zu cases differ\n", text.data, n);
        n_wrong += n;
        octavo_pattern_deinit(&pattern);
    }
    json_decref(patterns);
    assert_int_equal(n_wrong, 0);
}

static void test_refusals(void **state) {
    static const struct {
        const char *pattern, *culprit;
        octavo_status status;
    } rows[] = {
        {"[a&&b]", "intersection", OCTAVO_ERROR_UNSUPPORTED},
        {"[^a&&[b]]", "intersection", OCTAVO_ERROR_UNSUPPORTED},
        {"[a&&[b]c]", "intersection", OCTAVO_ERROR_UNSUPPORTED},
        {"[a&&[b]&&[c]]", "intersection", OCTAVO_ERROR_UNSUPPORTED},
        {"[a[^b]]", "negated class", OCTAVO_ERROR_UNSUPPORTED},
        {"[[[[[[[[[[a]]]]]]]]]]", "so many", OCTAVO_ERROR_UNSUPPORTED},
        {"[a&&[b", "no end", OCTAVO_ERROR_FORMAT},
        {"[a", "no end", OCTAVO_ERROR_FORMAT},
        {"(*UTF)a", "verb", OCTAVO_ERROR_UNSUPPORTED},
        {"(?R)", "group", OCTAVO_ERROR_UNSUPPORTED},
        {"a\\K", "escape", OCTAVO_ERROR_UNSUPPORTED},
        {"(a", "regular expression", OCTAVO_ERROR_FORMAT},
        {"a{2}+)", "regular expression", OCTAVO_ERROR_FORMAT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        octavo_pattern pattern = {0};
        octavo_error error;
        octavo_text text = {rows[i].pattern, strlen(rows[i].pattern)};
        octavo_status status = octavo_pattern_regex(&pattern, text, &error);
        octavo_pattern_deinit(&pattern);
        if (status != rows[i].status || strstr(error.message, rows[i].culprit) == NULL)
            fail_msg("%s: %s: %s", rows[i].pattern, octavo_status_name(status), error.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
