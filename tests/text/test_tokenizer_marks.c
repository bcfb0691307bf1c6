/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from users inside a prompt: marked special tokens are text, the others are tokens, and the
 * marks leave no trace.
 */
#include "text/tokenizer_json.h"
#include "token_golden.h"

#define M     OCTAVO_ENCODE_MARK
#define FLAGS (OCTAVO_ENCODE_SPECIAL_TEXT | OCTAVO_ENCODE_MARKED)

/* The tokenizer of 300 tokens; `key`, if any, is true for its special tokens. */
static octavo_tokenizer *open_tokenizer(const char *key) {
    json_error_t why;
    json_t *json = json_load_file(TEST_DATA "/tokenizers/bytes_300/tokenizer.json", 0, &why);
    octavo_tokenizer_json source = {.name = "tokenizer.json", .config_name = "", .tokenizer = json};
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    size_t i;
    json_t *added;
    json_array_foreach(json_object_get(json, "added_tokens"), i, added) {
        if (key != NULL) json_object_set_new(added, key, json_true());
    }
    if (octavo_tokenizer_from_json(&source, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    json_decref(json);
    return t;
}

/* The ids of a marked text are those of `parts`, each by its own flags, one behind the other. */
static void check(const octavo_tokenizer *t, const char *text, const char *const parts[],
                  const unsigned flags[], size_t n_parts) {
    size_t n = 0, at = 0;
    int32_t *ids = golden_encode(t, text, strlen(text), FLAGS, &n);
    for (size_t i = 0; i < n_parts; i++) {
        size_t n_part = 0;
        int32_t *part = golden_encode(t, parts[i], strlen(parts[i]), flags[i], &n_part);
        assert_true(at + n_part <= n);
        assert_memory_equal(ids + at, part, n_part * sizeof *part);
        at += n_part;
        free(part);
    }
    assert_int_equal(at, n);
    free(ids);
}

enum { SPECIAL = OCTAVO_ENCODE_SPECIAL_TEXT };

static void test_marks(void **state) {
    (void)state;
    static const char *const keys[] = {NULL, "lstrip", "single_word"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        octavo_tokenizer *t = open_tokenizer(keys[i]);
        check(t, "<|user|><" M "|end|>a<" M "|end|><|end|>",
              (const char *const[]){"<|user|>", "<|end|>a<|end|>", "<|end|>"},
              (const unsigned[]){SPECIAL, 0, SPECIAL}, 3);
        check(t, "<|end|> <" M "/s>", (const char *const[]){"<|end|>", " </s>"},
              (const unsigned[]){SPECIAL, 0}, 2);
        check(t, "a" M "b" M M, (const char *const[]){"ab"}, (const unsigned[]){0}, 1);
        check(t, M "<s>", (const char *const[]){"<s>"}, (const unsigned[]){SPECIAL}, 1);
        check(t, M, NULL, NULL, 0);
        check(t, "", NULL, NULL, 0);
        octavo_tokenizer_destroy(&t);
    }
}

/* Where special tokens are looked for in normalised text, a mark holds as far as the next other. */
static void test_marks_in_normalized_text(void **state) {
    (void)state;
    octavo_tokenizer *t = open_tokenizer("normalized");
    check(t, "a<" M "|end|>", (const char *const[]){"a<|end|>"}, (const unsigned[]){0}, 1);
    check(t, "a<|end|>", (const char *const[]){"a<|end|>"}, (const unsigned[]){SPECIAL}, 1);
    octavo_tokenizer_destroy(&t);
}

/* Without the flag a mark is text, and ill-formed text is mended before marks are looked for. */
static void test_other_text(void **state) {
    (void)state;
    octavo_tokenizer *t = open_tokenizer(NULL);
    size_t n = 0, n_mended = 0;
    int32_t *ids = golden_encode(t, M, 3, OCTAVO_ENCODE_SPECIAL_TEXT, &n);
    assert_true(n > 0);
    free(ids);
    ids = golden_encode(t, "\xff<" M "s>", 7, FLAGS, &n);
    int32_t *mended = golden_encode(t, "\xef\xbf\xbd<s>", 6, 0, &n_mended);
    assert_int_equal(n, n_mended);
    assert_memory_equal(ids, mended, n * sizeof *ids);
    free(mended);
    free(ids);
    octavo_tokenizer_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marks_in_normalized_text),
        cmocka_unit_test(test_other_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
