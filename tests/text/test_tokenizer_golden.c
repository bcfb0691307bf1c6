/* SPDX-License-Identifier: Apache-2.0
 *
 * The trained tokenizers of tests/data/tokenizers give the ids, texts and chunks of the reference.
 */
#include "base/base64.h"
#include "text/vocab.h"
#include "token_golden.h"

/* A vocabulary read from vocab.json; its texts belong to the JSON. */
typedef struct fixture {
    json_t *json;
    octavo_text *tokens, *merges;
    int32_t *types;
    float *scores;
    uint8_t *added_flags;
    octavo_buffer charsmap;
    octavo_vocab vocab;
} fixture;

static octavo_text *read_texts(const json_t *array) {
    size_t n = json_array_size(array);
    octavo_text *texts = calloc(n + 1, sizeof(*texts));
    assert_non_null(texts);
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_array_get(array, i);
        texts[i] = (octavo_text){json_string_value(text), json_string_length(text)};
    }
    return texts;
}

static int32_t read_id(const json_t *json, const char *key) {
    const json_t *id = json_object_get(json, key);
    return id != NULL ? (int32_t)json_integer_value(id) : -1;
}

static void fixture_open(fixture *f, const char *name) {
    char path[300];
    snprintf(path, sizeof(path), "%s/tokenizers/%s/vocab.json", TEST_DATA, name);
    json_error_t problem;
    json_t *json = f->json = json_load_file(path, JSON_ALLOW_NUL, &problem);
    if (json == NULL) fail_msg("%s: %s", path, problem.text);
    const json_t *merges = json_object_get(json, "merges");
    size_t n = json_array_size(json_object_get(json, "tokens"));
    f->tokens = read_texts(json_object_get(json, "tokens"));
    f->merges = read_texts(merges);
    f->types = calloc(n, sizeof(*f->types));
    f->scores = calloc(n, sizeof(*f->scores));
    f->added_flags = calloc(n, 1);
    assert_true(f->types != NULL && f->scores != NULL && f->added_flags != NULL);
    for (size_t i = 0; i < n; i++) {
        f->types[i] =
            (int32_t)json_integer_value(json_array_get(json_object_get(json, "types"), i));
        f->scores[i] = (float)json_number_value(json_array_get(json_object_get(json, "scores"), i));
    }
    const char *key;
    json_t *flags;
    json_object_foreach(json_object_get(json, "added_flags"), key, flags) {
        f->added_flags[strtoul(key, NULL, 10)] = (uint8_t)json_integer_value(flags);
    }
    const json_t *charsmap = json_object_get(json, "charsmap");
    assert_true(charsmap == NULL ||
                octavo_base64_decode(json_string_value(charsmap), json_string_length(charsmap),
                                     &f->charsmap));
    f->vocab = (octavo_vocab){
        .model = json_string_value(json_object_get(json, "model")),
        .pre = json_string_value(json_object_get(json, "pre")),
        .n_tokens = n,
        .tokens = f->tokens,
        .types = f->types,
        .scores = json_object_get(json, "scores") != NULL ? f->scores : NULL,
        .added_flags = f->added_flags,
        .n_merges = json_array_size(merges),
        .merges = merges != NULL ? f->merges : NULL,
        .bos = read_id(json, "bos"),
        .eos = read_id(json, "eos"),
        .unk = read_id(json, "unk"),
        .pad = -1,
        .eot = -1,
        .eom = -1,
        .lowers = -1,
        .charsmap = {f->charsmap.data, f->charsmap.size},
        .merges_spaces = json_is_true(json_object_get(json, "merges_spaces")),
        .add_bos = json_is_true(json_object_get(json, "add_bos")),
        .add_eos = json_is_true(json_object_get(json, "add_eos")),
        .add_space_prefix = json_is_true(json_object_get(json, "add_space_prefix")),
    };
}

static void fixture_close(fixture *f) {
    free(f->tokens);
    free(f->merges);
    free(f->types);
    free(f->scores);
    free(f->added_flags);
    octavo_buffer_deinit(&f->charsmap);
    json_decref(f->json);
}

static octavo_tokenizer *open_fixture(const char *name) {
    fixture f = {0};
    fixture_open(&f, name);
    octavo_error error = {0};
    octavo_tokenizer *t = NULL;
    if (octavo_tokenizer_create(&f.vocab, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    fixture_close(&f); /* the tokenizer has copied what it needs */
    return t;
}

static void run_folder(const char *name) {
    char path[300];
    octavo_tokenizer *t = open_fixture(name);
    snprintf(path, sizeof(path), "%s/tokenizers/%s/encode.jsonl", TEST_DATA, name);
    assert_int_equal(golden_run(t, path, golden_check_line), 150);
    snprintf(path, sizeof(path), "%s/tokenizers/%s/stream.jsonl", TEST_DATA, name);
    assert_true(golden_run(t, path, golden_check_stream) >= 40);
    octavo_tokenizer_destroy(&t);
    assert_null(t);
}

static void test_gpt2(void **state) {
    (void)state;
    run_folder("bpe_gpt2");
}

static void test_llama3(void **state) {
    (void)state;
    run_folder("bpe_llama3");
}

static void test_qwen2(void **state) {
    (void)state;
    run_folder("bpe_qwen2");
}

static void test_llama2(void **state) {
    (void)state;
    run_folder("spm_bpe_llama2");
}

static void test_gemma(void **state) {
    (void)state;
    run_folder("spm_bpe_gemma");
}

/* WordPiece as GGUF files have it: the words are marked, not what goes on in them. */
static void test_bert(void **state) {
    (void)state;
    octavo_tokenizer *t = open_fixture("wordpiece_bert");
    assert_int_equal(
        golden_run(t, TEST_DATA "/tokenizers/wordpiece_bert/encode.jsonl", golden_check_line), 150);
    octavo_tokenizer_destroy(&t);
}

static void test_t5(void **state) {
    (void)state;
    octavo_tokenizer *t = open_fixture("spm_t5");
    assert_true(golden_run(t, TEST_DATA "/tokenizers/spm_t5/sentencepiece.jsonl",
                           golden_check_plain) > 150);
    octavo_tokenizer_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),   cmocka_unit_test(test_llama3), cmocka_unit_test(test_qwen2),
        cmocka_unit_test(test_llama2), cmocka_unit_test(test_gemma),  cmocka_unit_test(test_bert),
        cmocka_unit_test(test_t5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
