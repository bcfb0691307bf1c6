/* SPDX-License-Identifier: Apache-2.0
 *
 * The template interpreter against the reference implementation: tests/data/templates/cases.json
 * holds templates of our own with what Jinja made of them. Beyond it: error positions, limits,
 * options and threads.
 */
#include "base/memory.h"

#include "octavo/template.h"

#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const octavo_template_time noon = {2026, 1, 15, 12, 0, 0};
static const octavo_template_options at_noon = {sizeof(octavo_template_options), &noon};

/* Creates and renders; *text is to be freed. *parsed tells which of the two failed. */
static octavo_status render(const char *source, size_t size, const char *variables, char **text,
                            bool *parsed, octavo_error *error) {
    octavo_template *tmpl = NULL;
    octavo_status status = octavo_template_create(source, size, &tmpl, error);
    *parsed = status == OCTAVO_OK;
    if (status == OCTAVO_OK)
        status = octavo_template_render(tmpl, variables, &at_noon, text, NULL, error);
    octavo_template_destroy(&tmpl);
    assert_null(tmpl);
    return status;
}

/* --- the golden cases --- */

static bool check_text(const char *text, json_t *expected) {
    size_t size = json_string_length(expected);
    if (text == NULL) return false;
    /* a rendered text may hold a zero byte: compare what stands before and up to it */
    return strncmp(text, json_string_value(expected), size + 1) == 0;
}

static bool check_case(json_t *item, octavo_error *error, char **text) {
    json_t *source = json_object_get(item, "template");
    char *variables = json_dumps(json_object_get(item, "variables"), 0);
    bool parsed = false;
    octavo_status status = render(json_string_value(source), json_string_length(source), variables,
                                  text, &parsed, error);
    free(variables);
    json_t *expected = json_object_get(item, "expected"), *raises = json_object_get(item, "raises");
    if (expected != NULL) return status == OCTAVO_OK && check_text(*text, expected);
    if (*text != NULL) return false;
    if (raises != NULL)
        return status == OCTAVO_ERROR_INVALID && octavo_template_raised(error) != NULL &&
               strcmp(octavo_template_raised(error), json_string_value(raises)) == 0;
    if (json_is_true(json_object_get(item, "rejects")))
        return !parsed && status == OCTAVO_ERROR_FORMAT && error->offset >= 0;
    return parsed && (status == OCTAVO_ERROR_FORMAT || status == OCTAVO_ERROR_LIMIT) &&
           octavo_template_raised(error) == NULL;
}

static void test_cases(void **state) {
    (void)state;
    json_error_t wrong;
    size_t failures = 0, i;
    json_t *cases = json_load_file(TEST_DATA "/templates/cases.json", JSON_ALLOW_NUL, &wrong),
           *item;
    assert_non_null(cases);
    assert_true(json_array_size(cases) > 300);
    json_array_foreach(cases, i, item) {
        octavo_error error = {0};
        char *text = NULL;
        if (!check_case(item, &error, &text)) {
            char *want = json_dumps(json_object_get(item, "expected"), JSON_ENCODE_ANY);
            print_error("%s\n  want %s\n  got  %s\n  %s\n",
                        json_string_value(json_object_get(item, "name")),
                        want != NULL ? want : "an error", text != NULL ? text : "an error",
                        error.message);
            free(want);
            failures++;
        }
        octavo_text_free(text);
    }
    json_decref(cases);
    assert_int_equal(failures, 0);
}

/* A text is whole however many zero bytes it holds. */
static void test_zero_bytes(void **state) {
    (void)state;
    static const char source[] = "a\0b{{ m }}c";
    octavo_template *tmpl = NULL;
    char *text = NULL;
    size_t length = 0;
    assert_int_equal(octavo_template_create(source, sizeof source - 1, &tmpl, NULL), OCTAVO_OK);
    assert_int_equal(
        octavo_template_render(tmpl, "{\"m\": \"x\\u0000y\"}", NULL, &text, &length, NULL),
        OCTAVO_OK);
    assert_int_equal(length, 7);
    assert_memory_equal(text, "a\0bx\0yc", 8);
    octavo_text_free(text);
    octavo_template_destroy(&tmpl);
}

/* --- errors --- */

static void expect_failure(const char *source, octavo_status status, int64_t offset,
                           const char *message) {
    octavo_error error = {0};
    char *text = NULL;
    bool parsed;
    assert_int_equal(render(source, strlen(source), "{}", &text, &parsed, &error), status);
    assert_null(text);
    assert_int_equal(error.offset, offset);
    if (strstr(error.message, message) == NULL) fail_msg("%s: %s", source, error.message);
}

static void test_error_positions(void **state) {
    (void)state;
    expect_failure("ab\n{% foo %}", OCTAVO_ERROR_FORMAT, 6, "line 2");
    expect_failure("a\r\nb\r\n{{ 1 + }}", OCTAVO_ERROR_FORMAT, 13, "line 3");
    expect_failure("{% include 'x' %}", OCTAVO_ERROR_UNSUPPORTED, 3, "include");
    expect_failure("a\xff", OCTAVO_ERROR_FORMAT, 1, "UTF-8");
    expect_failure("a\n\n{{ x.y }}", OCTAVO_ERROR_FORMAT, -1,
                   "(line 3, column 5): 'x' is undefined");
    expect_failure("{{ 99999999999999999999 }}", OCTAVO_ERROR_UNSUPPORTED, 3, "64 bits");
}

static void test_raise(void **state) {
    (void)state;
    octavo_error error = {0};
    char *text = NULL, source[800];
    bool parsed;
    assert_null(octavo_template_raised(&error));
    assert_null(octavo_template_raised(NULL));
    expect_failure("{{ raise_exception('my text') }}", OCTAVO_ERROR_INVALID, -1, "my text");
    /* a long text is cut, at a whole character */
    size_t n = (size_t)snprintf(source, sizeof source, "{{ raise_exception('x");
    while (n < 700)
        n += (size_t)snprintf(source + n, sizeof source - n, "\xe4\xb8\x96");
    snprintf(source + n, sizeof source - n, "') }}");
    assert_int_equal(render(source, strlen(source), "{}", &text, &parsed, &error),
                     OCTAVO_ERROR_INVALID);
    size_t length = strlen(octavo_template_raised(&error));
    assert_true(length > 300 && length % 3 == 1);
    /* without an error to fill, the status tells */
    assert_int_equal(render(source, strlen(source), "{}", &text, &parsed, NULL),
                     OCTAVO_ERROR_INVALID);
}

static void test_bad_variables(void **state) {
    (void)state;
    octavo_error error = {0};
    char *text = NULL;
    bool parsed;
    assert_int_equal(render("x", 1, "{\"a\": }", &text, &parsed, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(error.offset, 7);
    assert_int_equal(render("x", 1, "[1]", &text, &parsed, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(render("x", 1, "", &text, &parsed, &error), OCTAVO_ERROR_FORMAT);
    assert_null(text);
}

/* --- limits --- */

static void expect_limit(const char *source) {
    octavo_error error = {0};
    char *text = NULL;
    bool parsed;
    octavo_status status = render(source, strlen(source), "{}", &text, &parsed, &error);
    if (status != OCTAVO_ERROR_LIMIT) fail_msg("%.80s: %d %s", source, status, error.message);
    assert_null(text);
}

static void test_limits(void **state) {
    (void)state;
    expect_limit("{{ 'x' * 1000000000 }}");
    expect_limit("{{ 'x' * 9223372036854775807 }}");
    expect_limit("{{ ('x' * 1000000) * 1000000 }}");
    expect_limit("{{ [1] * 1000000000 }}");
    expect_limit("{{ [1, 2] * 9223372036854775807 }}");
    expect_limit(
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}");
    expect_limit("{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}");
    expect_limit("{{ range(100001) }}");
    expect_limit("{{ range(-9223372036854775807, 9223372036854775807) }}");
    expect_limit("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
    expect_limit("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}");
    expect_limit("{% set n = namespace(l=[]) %}{% for i in range(5000) %}{% set n.l = [n.l] %}"
                 "{% endfor %}{{ n.l }}");
    expect_limit("{% set n = namespace(l=[]) %}{% for i in range(5000) %}{% set n.l = [n.l] %}"
                 "{% endfor %}{{ n.l | tojson }}");
    expect_limit("{% set n = namespace(a=[], b=[]) %}{% for i in range(5000) %}"
                 "{% set n.a = [n.a] %}{% set n.b = [n.b] %}{% endfor %}{{ n.a == n.b }}");
    expect_limit("{% set n = namespace() %}{% set n.n = n %}{{ n }}");
    expect_limit("{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}"
                 "{% endfor %}");
    expect_limit("{% set n = namespace(s='x' * 100000) %}{% for i in range(100000) %}"
                 "{% set n.s = n.s[1:] ~ 'y' %}{% endfor %}");
    expect_limit("{{ '%1000000000d' % 1 }}");
    expect_limit("{{ 'a'.ljust(1000000000) }}");
    expect_limit("{{ 1 | tojson(indent=1000000000) }}");
}

static void test_integers_do_not_wrap(void **state) {
    (void)state;
    static const char *const sources[] = {
        "{{ 9223372036854775807 + 1 }}",
        "{{ -9223372036854775807 - 2 }}",
        "{{ 4611686018427387904 * 2 }}",
        "{{ 4611686018427387904 * -4 }}",
        "{{ -4611686018427387905 * 2 }}",
        "{{ 2 ** 63 }}",
        "{{ 10 ** 400 }}",
        "{{ -(-9223372036854775807 - 1) }}",
        "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ -1 - (-9223372036854775807 - 1) + 1 }}",
        "{{ 1e30 | int }}",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        octavo_error error = {0};
        char *text = NULL;
        bool parsed;
        octavo_status status = render(sources[i], strlen(sources[i]), "{}", &text, &parsed, &error);
        if (status != OCTAVO_ERROR_FORMAT) fail_msg("%s: %d %s", sources[i], status, text);
    }
}

/* Repeats `piece` n times between head and tail. */
static char *repeated(const char *head, const char *piece, size_t n, const char *tail) {
    char *text = octavo_alloc(strlen(head) + n * strlen(piece) + strlen(tail) + 1), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s", head);
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "%s", piece);
    sprintf(at, "%s", tail);
    return text;
}

static void test_nesting_of_the_text(void **state) {
    (void)state;
    static const char *const pieces[][3] = {
        {"{{ ", "(", "1"},
        {"{{ ", "[", "1"},
        {"{{ ", "{1:", "1"},
        {"{{ ", "not ", "1 }}"},
        {"{{ ", "-", "1 }}"},
        {"{{ 1", " + 1", " }}"},
        {"{{ x", ".x", " }}"},
        {"{{ x", "|list", " }}"},
        {"{{ x", " is defined and x", " }}"},
        {"{{ x", "[0]", " }}"},
        {"{{ 1 if ", "1 if ", "1"},
        {"", "{% if 1 %}", ""},
        {"", "{% for x in y %}", ""},
        {"{% if 1 %}", "{% elif 1 %}", "{% endif %}"},
        {"", "{% macro f() %}", ""},
        {"{% set ", "(", "x"},
        {"{% for ", "(", "x"},
        {"{{ x", "()", " }}"},
        {"{{ f(", "f(", ""},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        char *source = repeated(pieces[i][0], pieces[i][1], 50000, pieces[i][2]);
        expect_limit(source);
        octavo_free(source);
    }
    /* wide is not deep */
    char *wide = repeated("{% set l = [", "1, ", 50000, "] %}{{ l | length }}");
    octavo_error error = {0};
    char *text = NULL;
    bool parsed;
    assert_int_equal(render(wide, strlen(wide), "{}", &text, &parsed, &error), OCTAVO_OK);
    assert_string_equal(text, "50000");
    octavo_text_free(text);
    octavo_free(wide);
}

static void test_text_limit(void **state) {
    (void)state;
    size_t size = OCTAVO_TEMPLATE_MAX_TEXT + 1;
    char *source = octavo_alloc(size), *text = NULL;
    octavo_error error = {0};
    bool parsed;
    assert_non_null(source);
    memset(source, 'x', size);
    assert_int_equal(render(source, size, "{}", &text, &parsed, &error), OCTAVO_ERROR_LIMIT);
    assert_int_equal(render(source, size - 1, "{}", &text, &parsed, &error), OCTAVO_OK);
    assert_int_equal(strlen(text), size - 1);
    octavo_text_free(text);
    octavo_free(source);
}

/* --- options and threads --- */

static void test_clock(void **state) {
    (void)state;
    static const char source[] = "{{ strftime_now('%Y') | int >= 2020 }}";
    octavo_template *tmpl = NULL;
    octavo_error error = {0};
    char *text = NULL;
    assert_int_equal(octavo_template_create(source, sizeof source - 1, &tmpl, &error), OCTAVO_OK);
    assert_int_equal(octavo_template_render(tmpl, "{}", NULL, &text, NULL, &error), OCTAVO_OK);
    assert_string_equal(text, "True");
    octavo_text_free(text);
    const octavo_template_time leap = {2024, 2, 30, 0, 0, 0}, month = {2024, 13, 1, 0, 0, 0};
    octavo_template_options options = {sizeof options, &month};
    assert_int_equal(octavo_template_render(tmpl, "{}", &options, &text, NULL, &error),
                     OCTAVO_ERROR_FORMAT);
    options.now = &leap;
    assert_int_equal(octavo_template_render(tmpl, "{}", &options, &text, NULL, &error),
                     OCTAVO_ERROR_FORMAT);
    octavo_template_destroy(&tmpl);
    octavo_template_destroy(&tmpl);
}

static void *render_many(void *argument) {
    const octavo_template *tmpl = argument;
    for (int i = 0; i < 50; i++) {
        char *text = NULL;
        if (octavo_template_render(tmpl, "{\"xs\": [1, 2, 3]}", NULL, &text, NULL, NULL) !=
            OCTAVO_OK)
            return NULL;
        bool same = strcmp(text, "[1][2][3]6") == 0;
        octavo_text_free(text);
        if (!same) return NULL;
    }
    return argument;
}

static void test_threads_share_a_template(void **state) {
    (void)state;
    static const char source[] =
        "{% macro f(x) %}[{{ x }}]{% endmacro %}{% set n = namespace(s=0) %}"
        "{% for x in xs %}{% set n.s = n.s + x %}{{ f(x) }}{% endfor %}"
        "{{ n.s }}";
    octavo_template *tmpl = NULL;
    pthread_t threads[4];
    assert_int_equal(octavo_template_create(source, sizeof source - 1, &tmpl, NULL), OCTAVO_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, render_many, tmpl), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, tmpl);
    }
    octavo_template_destroy(&tmpl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_zero_bytes),
        cmocka_unit_test(test_error_positions),
        cmocka_unit_test(test_raise),
        cmocka_unit_test(test_bad_variables),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_integers_do_not_wrap),
        cmocka_unit_test(test_nesting_of_the_text),
        cmocka_unit_test(test_text_limit),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_threads_share_a_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
