/* SPDX-License-Identifier: Apache-2.0
 *
 * Every way of cutting that GGUF files name, against the pieces of the reference library
 * (tests/data/tokenizers/pretokenize.json).
 */
#include "text/pretokenize.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What must come, and how much of it has. */
typedef struct expected {
    const json_t *pieces;
    size_t n, n_wrong;
} expected;

static octavo_status take(void *cookie, const char *piece, size_t length, octavo_error *error) {
    expected *e = cookie;
    const json_t *want = json_array_get(e->pieces, e->n++);
    (void)error;
    if (want == NULL || json_string_length(want) != length ||
        memcmp(json_string_value(want), piece, length) != 0)
        e->n_wrong++;
    return OCTAVO_OK;
}

static bool cuts_as_expected(const octavo_pretokenizer *pretokenizer, const json_t *one) {
    const json_t *text = json_array_get(one, 0);
    expected e = {.pieces = json_array_get(one, 1)};
    octavo_error error;
    assert_int_equal(octavo_pretokenizer_run(pretokenizer, json_string_value(text),
                                             json_string_length(text), take, &e, &error),
                     OCTAVO_OK);
    return e.n_wrong == 0 && e.n == json_array_size(e.pieces);
}

static void cuts_like_the_reference(void **state) {
    json_error_t why;
    size_t n_wrong = 0;
    (void)state;
    json_t *ways = json_load_file(TEST_DATA "/tokenizers/pretokenize.json", JSON_ALLOW_NUL, &why);
    assert_true(json_array_size(ways) >= 20);
    for (size_t i = 0; i < json_array_size(ways); i++) {
        const json_t *way = json_array_get(ways, i);
        const char *name = json_string_value(json_object_get(way, "name"));
        const json_t *cases = json_object_get(way, "cases");
        octavo_pretokenizer *pretokenizer = NULL;
        octavo_pretokenizer_traits traits;
        octavo_error error;
        assert_int_equal(octavo_pretokenizer_create(name, &pretokenizer, &traits, &error),
                         OCTAVO_OK);
        assert_true(json_array_size(cases) > 0);
        for (size_t k = 0; k < json_array_size(cases); k++) {
            if (cuts_as_expected(pretokenizer, json_array_get(cases, k))) continue;
            print_error("%s: case %zu differs\n", name, k);
            n_wrong++;
        }
        octavo_pretokenizer_destroy(&pretokenizer);
    }
    json_decref(ways);
    assert_int_equal(n_wrong, 0);
}

static void unknown_names_are_told(void **state) {
    static const char *const names[] = {"", "gpt", "gpt-2 phi-2", "nosuch"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        octavo_pretokenizer_traits traits;
        octavo_error error;
        assert_int_equal(octavo_pretokenizer_find(names[i], &traits, &error),
                         OCTAVO_ERROR_UNSUPPORTED);
        assert_non_null(strstr(error.message, "tokenizer.ggml.pre"));
        assert_non_null(strstr(error.message, "give"));
    }
}

static void names_say_more(void **state) {
    octavo_pretokenizer_traits traits;
    octavo_error error;
    (void)state;
    assert_int_equal(octavo_pretokenizer_find("llama-bpe", &traits, &error), OCTAVO_OK);
    assert_true(traits.ignore_merges && traits.adds_bos && !traits.nfc);
    assert_int_equal(octavo_pretokenizer_find("qwen2", &traits, &error), OCTAVO_OK);
    assert_true(traits.nfc && !traits.adds_bos);
    assert_int_equal(octavo_pretokenizer_find("kimi-k2", &traits, &error), OCTAVO_OK);
    assert_true(traits.ranked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_like_the_reference),
        cmocka_unit_test(unknown_names_are_told),
        cmocka_unit_test(names_say_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
