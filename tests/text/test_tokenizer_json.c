/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.json: what a file may not say is refused with the file's name and what is wrong; and
 * steps that the small trained tokenizers do not have do what they should.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "text/tokenizer_json.h"

#include "octavo/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BPE(vocab, merges) "\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}"
#define ABC                "{\"a\":0,\"b\":1,\"ab\":2,\" \":3}"
#define GOOD               BPE(ABC, "[\"a b\"]")

static octavo_status build(const char *text, const char *config, octavo_tokenizer **t,
                           octavo_error *error) {
    json_error_t problem;
    octavo_tokenizer_json source = {.name = "x/tokenizer.json", .config_name = "x/c.json"};
    source.tokenizer = json_loads(text, JSON_ALLOW_NUL, &problem);
    if (source.tokenizer == NULL) fail_msg("%s: %s", text, problem.text);
    if (config != NULL) source.config = json_loads(config, 0, &problem);
    octavo_status status = octavo_tokenizer_from_json(&source, t, error);
    json_decref(source.tokenizer);
    json_decref(source.config);
    return status;
}

/* Eight steps that make 16777216 bytes of one. */
#define TWICE_OF(x) x "," x
#define EIGHTFOLD                                                                                  \
    TWICE_OF(TWICE_OF(TWICE_OF("{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"             \
                               "\"content\":\"aaaaaaaa\"}")))

typedef struct bad_file {
    const char *text;
    octavo_status status;
    const char *says;
} bad_file;

static void test_bad_files(void **state) {
    (void)state;
    static const bad_file files[] = {
        {"{}", OCTAVO_ERROR_FORMAT, "\"model\" is missing"},
        {"{\"model\":{\"type\":\"BPE\"}}", OCTAVO_ERROR_FORMAT, "no vocabulary"},
        {"{" BPE(ABC, "[]") "}", OCTAVO_ERROR_FORMAT, "no \"merges\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", OCTAVO_ERROR_FORMAT,
         "no \"merges\""},
        {"{" BPE(ABC, "[\"ab\"]") "}", OCTAVO_ERROR_FORMAT, "merge 0 (\"ab\"): it has no space"},
        {"{" BPE(ABC, "[\"a b\",[\"a\",\"z\"]]") "}", OCTAVO_ERROR_FORMAT,
         "merge 1 (\"z\"): this half is no token"},
        {"{" BPE(ABC, "[\"z b\"]") "}", OCTAVO_ERROR_FORMAT, "this half is no token"},
        {"{" BPE(ABC, "[\"b a\"]") "}", OCTAVO_ERROR_FORMAT, "(\"ba\"): the whole is no token"},
        {"{" BPE(ABC, "[7]") "}", OCTAVO_ERROR_FORMAT, "no pair of texts"},
        {"{" BPE("{\"a\":0,\"b\":0}", "[\"a b\"]") "}", OCTAVO_ERROR_FORMAT, "the same id 0"},
        {"{" BPE("{\"a\":0,\"b\":2}", "[\"a b\"]") "}", OCTAVO_ERROR_FORMAT,
         "has the id 2, but there are only 2"},
        {"{" BPE("{\"a\":0,\"b\":2147483648}", "[\"a b\"]") "}", OCTAVO_ERROR_FORMAT,
         "has the id 2147483648"},
        {"{" BPE("{\"a\":0,\"b\":-1}", "[\"a b\"]") "}", OCTAVO_ERROR_FORMAT, "has the id -1"},
        {"{" BPE("{\"a\":0,\"b\":1.5}", "[\"a b\"]") "}", OCTAVO_ERROR_FORMAT, "no whole number"},
        {"{" BPE("{\"a\":0,\"b\":2}",
                 "[\"a b\"]") ",\"added_tokens\":[{\"id\":2,\"content\":\"b\"}]}",
         OCTAVO_ERROR_FORMAT, "no token has the id 1"},
        {"{" GOOD ",\"added_tokens\":[{\"id\":2,\"content\":\"<s>\"}]}", OCTAVO_ERROR_FORMAT,
         "the same id 2"},
        {"{" GOOD ",\"added_tokens\":[{\"id\":4,\"content\":\"ab\"}]}", OCTAVO_ERROR_FORMAT,
         "has the id 4 among \"added_tokens\" and 2"},
        {"{" GOOD ",\"added_tokens\":[{\"id\":4}]}", OCTAVO_ERROR_FORMAT, "\"content\""},
        {"{" GOOD ",\"added_tokens\":[{\"id\":4,\"content\":\"x\",\"lstrip\":1}]}",
         OCTAVO_ERROR_FORMAT, "\"lstrip\""},
        {"{\"model\":{\"type\":\"Magic\",\"vocab\":{\"a\":0}}}", OCTAVO_ERROR_UNSUPPORTED,
         "the model \"Magic\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"],"
         "\"end_of_word_suffix\":\"</w>\"}}",
         OCTAVO_ERROR_UNSUPPORTED, "\"end_of_word_suffix\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"],"
         "\"unk_token\":\"?\"}}",
         OCTAVO_ERROR_FORMAT, "\"unk_token\" (?)"},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",-1]]}}",
         OCTAVO_ERROR_FORMAT, "\"unk_id\""},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", OCTAVO_ERROR_FORMAT,
         "no text and score"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},"
         "\"continuing_subword_prefix\":\"##\"}}",
         OCTAVO_ERROR_FORMAT, "unknown words"},
        {"{" GOOD ",\"normalizer\":{\"type\":\"Nmt\"}}", OCTAVO_ERROR_UNSUPPORTED,
         "the normalizer \"Nmt\""},
        {"{" GOOD ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}}",
         OCTAVO_ERROR_FORMAT, "precompiled_charsmap"},
        {"{" GOOD ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", OCTAVO_ERROR_UNSUPPORTED,
         "the pre-tokenizer \"UnicodeScripts\""},
        {"{" GOOD ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Odd\","
         "\"pattern\":{\"String\":\"a\"}}}",
         OCTAVO_ERROR_FORMAT, "\"Odd\""},
        {"{" GOOD ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Removed\","
         "\"pattern\":{\"Regex\":\"(a\"}}}",
         OCTAVO_ERROR_FORMAT, "regular expression \"(a\""},
        {"{" GOOD ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Removed\","
         "\"pattern\":{\"Regex\":\"[a&&b]\"}}}",
         OCTAVO_ERROR_UNSUPPORTED, "intersection"},
        {"{" GOOD ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Removed\","
         "\"pattern\":{\"Regex\":\"(*LIMIT_MATCH=1)a\"}}}",
         OCTAVO_ERROR_UNSUPPORTED, "a verb"},
        {"{" GOOD ",\"decoder\":{\"type\":\"CTC\"}}", OCTAVO_ERROR_UNSUPPORTED,
         "the decoder \"CTC\""},
        {"{" GOOD ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" EIGHTFOLD "]}}",
         OCTAVO_ERROR_FORMAT, "decoder: it makes a text of token 0"},
        {"{" GOOD ",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"a\",0],"
         "\"cls\":[\"b\",9]}}",
         OCTAVO_ERROR_FORMAT, "token 9, which does not exist"},
        {"{" GOOD ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":"
         "[{\"SpecialToken\":{\"id\":\"<s>\"}}],\"special_tokens\":{}}}",
         OCTAVO_ERROR_FORMAT, "\"<s>\" without an id"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(files); i++) {
        octavo_tokenizer *t = NULL;
        octavo_error error = {0};
        octavo_status status = build(files[i].text, NULL, &t, &error);
        if (status != files[i].status || strstr(error.message, files[i].says) == NULL ||
            strstr(error.message, "x/tokenizer.json") == NULL || t != NULL)
            fail_msg("%s: %s (%d)", files[i].text, error.message, (int)status);
    }
}

/* A text that normalizers blow up is refused before it fills the memory. */
static void test_exploding_normalizers(void **state) {
    (void)state;
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    size_t n = 0;
    const octavo_status status = build("{" GOOD ",\"normalizer\":{\"type\":\"Sequence\","
                                       "\"normalizers\":[" EIGHTFOLD "]}}",
                                       NULL, &t, &error);
    assert_int_equal(status, OCTAVO_OK);
    assert_int_equal(octavo_tokenizer_encode(t, "a", 1, 0, NULL, 0, &n, &error),
                     OCTAVO_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "normalizers make more than"));
    octavo_tokenizer_destroy(&t);
}

static void test_config(void **state) {
    (void)state;
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    assert_int_equal(build("{" GOOD "}", "{\"eos_token\":\"no\"}", &t, &error),
                     OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "\"eos_token\" is \"no\""));
    assert_int_equal(build("{" GOOD "}",
                           "{\"tokenizer_class\":\"LlamaTokenizer\",\"add_bos_token\":true,"
                           "\"bos_token\":{\"content\":\"b\"},\"eos_token\":\"ab\"}",
                           &t, &error),
                     OCTAVO_OK);
    assert_int_equal(octavo_tokenizer_bos(t), 1);
    assert_int_equal(octavo_tokenizer_eos(t), 2);
    assert_true(octavo_tokenizer_adds_bos(t));
    octavo_tokenizer_destroy(&t);
}

/* A regular expression that never comes to an end on a text is given up, in bounded time. */
static void test_endless_regex(void **state) {
    (void)state;
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    size_t n = 0;
    char text[41];
    memset(text, 'a', 40);
    text[40] = '!';
    assert_int_equal(build("{" GOOD ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":"
                           "\"Removed\",\"pattern\":{\"Regex\":\"((a+)+)+$\"}}}",
                           NULL, &t, &error),
                     OCTAVO_OK);
    assert_int_equal(octavo_tokenizer_encode(t, text, sizeof(text), 0, NULL, 0, &n, &error),
                     OCTAVO_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "finds no end"));
    octavo_tokenizer_destroy(&t);
}

/* Words that are tokens: what the steps before make of a text can be read off the ids. */
#define WORDS(steps)                                                                               \
    "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"b\":2,"   \
    "\"-\":3,\"a-\":4,\"-b\":5,\"--\":6,\"e\":7,\"12\":8,\"1\":9,\"2\":10,\"\\u2581a\":11,"        \
    "\"fi\":12}}," steps "}"
#define SPLIT(behavior)                                                                            \
    WORDS("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"-\"},\"behavior\":"     \
          "\"" behavior "\"}")

static void check_ids(const char *json, const char *text, const char *expected) {
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    int32_t ids[32];
    char said[200] = "";
    size_t n = 0;
    if (build(json, NULL, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    assert_int_equal(octavo_tokenizer_encode(t, text, strlen(text), 0, ids, 32, &n, &error),
                     OCTAVO_OK);
    assert_true(n <= 32);
    for (size_t i = 0; i < n; i++)
        snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%d", i > 0 ? " " : "",
                 (int)ids[i]);
    if (strcmp(said, expected) != 0)
        fail_msg("\"%s\": %s, expected %s (%s)", text, said, expected, json);
    octavo_tokenizer_destroy(&t);
}

static void test_steps(void **state) {
    (void)state;
    check_ids(SPLIT("Removed"), "a-b", "1 2");
    check_ids(SPLIT("Isolated"), "a--b", "1 3 3 2");
    check_ids(SPLIT("MergedWithPrevious"), "a--b", "4 3 2");
    check_ids(SPLIT("MergedWithNext"), "a--b", "1 3 5");
    check_ids(SPLIT("Contiguous"), "a--b", "1 6 2");
    check_ids(WORDS("\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true}"), "a12",
              "1 9 10");
    check_ids(WORDS("\"pre_tokenizer\":{\"type\":\"Digits\"}"), "a12", "1 8");
    check_ids(WORDS("\"pre_tokenizer\":{\"type\":\"Whitespace\"}"), " a--  12 ", "1 6 8");
    check_ids(WORDS("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\","
                    "\"prepend_scheme\":\"first\"}"),
              "a a", "11 11");
    check_ids(WORDS("\"normalizer\":{\"type\":\"NFKC\"}"), "\xef\xac\x81", "12");
    check_ids(WORDS("\"normalizer\":{\"type\":\"BertNormalizer\"}"), "\xc3\x89", "7");
    check_ids(WORDS("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},"
                    "{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"},{\"type\":\"Strip\"}]}"),
              " \xc3\x89\n", "7");
}

#define ADDED(fields)                                                                              \
    WORDS("\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"added_tokens\":[{\"id\":13,"         \
          "\"content\":\" <m> \"," fields "}]")

/* White space that one token has taken may be part of the next. */
static void test_added_side_by_side(void **state) {
    (void)state;
    check_ids(ADDED("\"rstrip\":true"), "a <m>  <m> b", "1 13 13 2");
    check_ids(ADDED("\"rstrip\":true"), "a <m>   <m>  b", "1 13 13 2");
    check_ids(ADDED("\"lstrip\":true,\"rstrip\":true"), "a  <m>  <m>   b", "1 13 13 2");
    check_ids(ADDED("\"rstrip\":false"), "a <m>  <m> b", "1 13 13 2");
    check_ids(ADDED("\"rstrip\":true"), "a <m> <m> b", "1 13 0 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_files),          cmocka_unit_test(test_config),
        cmocka_unit_test(test_endless_regex),      cmocka_unit_test(test_steps),
        cmocka_unit_test(test_added_side_by_side), cmocka_unit_test(test_exploding_normalizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
