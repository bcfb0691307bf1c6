/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo embed and octavo logits --hidden: what lines may be, and what is said of those that are
 * not. The numbers themselves are the engine's tests' business.
 */
#include "process.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TINY_BERT TEST_DATA "/models/bert"

enum { WIDTH = 48 };

static void expect_error(process_result result, const char *part) {
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, part));
    process_free(&result);
}

/* The n-th line of a result as JSON, or the test fails. */
static json_t *line_of(const process_result *result, int n) {
    const char *at = result->out;
    for (; n > 0 && at; n--)
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    if (!at || !strchr(at, '\n')) fail_msg("no such line; error \"%s\"", result->err);
    json_t *json = json_loadb(at, strcspn(at, "\n"), 0, NULL);
    assert_non_null(json);
    return json;
}

static double number(const json_t *array, size_t i) {
    const json_t *item = json_array_get(array, i);
    assert_true(json_is_number(item));
    return json_number_value(item);
}

static void test_lines(void **state) {
    (void)state;
    process_result r =
        OCTAVO("[5,6,7]\n{\"ids\":[5,6,7],\"types\":[0,1,1]}\n{\"ids\":[5,6,7]}\r\n[5]", "embed",
               TINY_BERT);
    assert_int_equal(r.status, 0);
    json_t *lines[4];
    for (int i = 0; i < 4; i++) {
        lines[i] = line_of(&r, i);
        assert_int_equal(json_array_size(lines[i]), WIDTH);
    }
    assert_true(json_equal(lines[0], lines[2]));
    assert_false(json_equal(lines[0], lines[1]));
    assert_false(json_equal(lines[0], lines[3]));
    process_result alone = OCTAVO("[5,6,7]\n", "embed", TINY_BERT, "--threads", "1");
    json_t *line = line_of(&alone, 0);
    assert_true(json_equal(line, lines[0]));
    json_decref(line);
    process_free(&alone);
    for (int i = 0; i < 4; i++)
        json_decref(lines[i]);
    process_free(&r);
    r = OCTAVO("", "embed", TINY_BERT);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.out_bytes, 0);
    process_free(&r);
}

static void test_poolings(void **state) {
    (void)state;
    process_result all = OCTAVO("[5,6,7]\n", "embed", TINY_BERT, "--pooling", "none");
    process_result first = OCTAVO("[5,6,7]\n", "embed", TINY_BERT, "--pooling", "cls");
    process_result last = OCTAVO("[5,6,7]\n", "embed", TINY_BERT, "--pooling", "last");
    process_result mean = OCTAVO("[5,6,7]\n", "embed", TINY_BERT, "--pooling", "mean");
    process_result usual = OCTAVO("[5,6,7]\n", "embed", TINY_BERT);
    process_result unit = OCTAVO("[5,6,7]\n", "embed", TINY_BERT, "--normalize");
    json_t *rows = line_of(&all, 0), *cls = line_of(&first, 0), *end = line_of(&last, 0);
    json_t *average = line_of(&mean, 0), *normal = line_of(&unit, 0);
    double squares = 0.0;
    assert_int_equal(json_array_size(rows), 3);
    assert_true(json_equal(json_array_get(rows, 0), cls));
    assert_true(json_equal(json_array_get(rows, 2), end));
    for (size_t i = 0; i < WIDTH; i++) {
        double sum = 0.0;
        for (size_t t = 0; t < 3; t++)
            sum += number(json_array_get(rows, t), i);
        assert_true(fabs(sum / 3.0 - number(average, i)) < 1e-6);
        squares += number(normal, i) * number(normal, i);
    }
    assert_true(fabs(squares - 1.0) < 1e-6);
    assert_string_equal(usual.out, mean.out);
    json_decref(rows);
    json_decref(cls);
    json_decref(end);
    json_decref(average);
    json_decref(normal);
    process_free(&all);
    process_free(&first);
    process_free(&last);
    process_free(&mean);
    process_free(&usual);
    process_free(&unit);
}

/* Vectors of the lines before a bad one come out. */
static void test_bad_lines(void **state) {
    (void)state;
    process_result r = OCTAVO("[5]\n[6]\n[256]\n[7]\n", "embed", TINY_BERT);
    assert_int_equal(r.status, 1);
    assert_true(process_says(&r, "line 3, item 0, 256"));
    json_decref(line_of(&r, 1));
    assert_int_equal(strrchr(r.out, '\n') - r.out + 1, r.out_bytes);
    process_free(&r);
    expect_error(OCTAVO("[5]\nnot json\n", "embed", TINY_BERT), "line 2");
    expect_error(OCTAVO("7\n", "embed", TINY_BERT), "line 1");
    expect_error(OCTAVO("\n", "embed", TINY_BERT), "line 1");
    expect_error(OCTAVO("[]\n", "embed", TINY_BERT), "line 1");
    expect_error(OCTAVO("[1, \"x\"]\n", "embed", TINY_BERT), "line 1, item 1");
    expect_error(OCTAVO("{\"types\":[0]}\n", "embed", TINY_BERT), "line 1");
    expect_error(OCTAVO("{\"ids\":[1,2],\"types\":[0]}\n", "embed", TINY_BERT), "1 for 2 ids");
    expect_error(OCTAVO("{\"ids\":[1],\"types\":[2]}\n", "embed", TINY_BERT), "line 1, item 0, 2");
    expect_error(OCTAVO("{\"ids\":[1],\"types\":[-1]}\n", "embed", TINY_BERT), "types, item 0");
    expect_error(OCTAVO("[1,2,3]\n", "embed", TINY_BERT, "--context", "2"), "line 1, 3 ids");
    expect_error(OCTAVO("\"text\"\n", "embed", TINY_BERT), "tokenizer");
    expect_error(OCTAVO("[1]\n", "embed", TINY_LLAMA, "--pooling", "pooler"), "no pooler");
    r = OCTAVO("", "embed", TINY_BERT, "--pooling", "max");
    assert_int_equal(r.status, 2);
    process_free(&r);
}

/* What writes text says what an encoder is for. */
static void test_refusals(void **state) {
    (void)state;
    expect_error(OCTAVO("", "run", TINY_BERT, "-p", "x"), "octavo embed");
    expect_error(OCTAVO("", "perplexity", TINY_BERT, TINY_BERT "/config.json", "--context", "64"),
                 "octavo embed");
    expect_error(OCTAVO("", "bench", TINY_BERT), "octavo embed");
    expect_error(OCTAVO("[1]", "logits", TINY_BERT, "--ids", "-", "--out", "-"), "octavo embed");
}

static void test_hidden(void **state) {
    static const char *const models[] = {TINY_BERT, TINY_LLAMA};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        process_result r = OCTAVO("[1,2,3]", "logits", models[i], "--ids", "-", "--hidden", "-");
        assert_int_equal(r.status, 0);
        assert_true(r.out_bytes > 128 && memcmp(r.out, "\x93NUMPY", 6) == 0);
        if (i == 0) {
            assert_non_null(strstr(r.out + 10, "(4, 48)"));
            assert_int_equal(r.out_bytes, 128 + 4 * WIDTH * 4);
        }
        process_free(&r);
    }
    process_result r = OCTAVO("[1]", "logits", TINY_LLAMA, "--ids", "-");
    assert_int_equal(r.status, 2);
    process_free(&r);
    r = OCTAVO("[1]", "logits", TINY_LLAMA, "--ids", "-", "--hidden", "-", "--out", "-");
    assert_int_equal(r.status, 2);
    assert_true(process_says(&r, "two names"));
    process_free(&r);
}

/* ---- text ---- */

static const char TOKENIZER[] =
    "{\"added_tokens\": [{\"id\": 0, \"content\": \"[UNK]\", \"special\": true}, {\"id\": 1, "
    "\"content\": \"[CLS]\", \"special\": true}, {\"id\": 2, \"content\": \"[SEP]\", \"special\": "
    "true}], \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
    "\"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": true}, "
    "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"post_processor\": {\"type\": "
    "\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 0}}, "
    "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"[SEP]\", "
    "\"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"[CLS]\": {\"id\": \"[CLS]\", \"ids\": "
    "[1], \"tokens\": [\"[CLS]\"]}, \"[SEP]\": {\"id\": \"[SEP]\", \"ids\": [2], \"tokens\": "
    "[\"[SEP]\"]}}}, \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": "
    "true}, "
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": "
    "\"##\", \"max_input_chars_per_word\": 100, \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"[SEP]\": "
    "2, \"leaf\": 3, \"##let\": 4, \"eight\": 5, \"cafe\": 6, \"!\": 7}}}";

/* A folder with a tokenizer takes text: [CLS] in front, [SEP] behind. */
static void test_text(void **state) {
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char folder[] = "/tmp/octavo-embed-XXXXXX", path[2][300];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 2; i++) {
        snprintf(path[0], sizeof path[0], "%s/%s", TINY_BERT, files[i]);
        snprintf(path[1], sizeof path[1], "%s/%s", folder, files[i]);
        assert_int_equal(symlink(path[0], path[1]), 0);
    }
    snprintf(path[1], sizeof path[1], "%s/tokenizer.json", folder);
    FILE *file = fopen(path[1], "wb");
    assert_non_null(file);
    assert_true(fputs(TOKENIZER, file) >= 0);
    fclose(file);
    process_result text = OCTAVO("\"Eight leaflet, CAF\\u00c9!\"\n\"\"\n", "embed", folder);
    process_result ids = OCTAVO("[1,5,3,4,0,6,7,2]\n[1,2]\n", "embed", folder);
    assert_int_equal(text.status, 0);
    assert_string_equal(text.out, ids.out);
    process_free(&text);
    process_free(&ids);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path[1], sizeof path[1], "%s/%s", folder, files[i]);
        unlink(path[1]);
    }
    rmdir(folder);
}

/* Models that write text embed too, with their tokenizer from the file. */
static void test_decoder(void **state) {
    (void)state;
    process_result text = OCTAVO("\"Hello\"\n", "embed", TINY_LLAMA);
    process_result ids = OCTAVO("[1,796,924,797,326,802]\n", "embed", TINY_LLAMA);
    process_result last =
        OCTAVO("[1,796,924,797,326,802]\n", "embed", TINY_LLAMA, "--pooling", "last");
    assert_int_equal(text.status, 0);
    assert_true(text.out_bytes > 100);
    assert_string_equal(text.out, ids.out);
    assert_string_equal(text.out, last.out);
    process_free(&text);
    process_free(&ids);
    process_free(&last);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),     cmocka_unit_test(test_poolings),
        cmocka_unit_test(test_bad_lines), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hidden),    cmocka_unit_test(test_text),
        cmocka_unit_test(test_decoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
