/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers of Hugging Face folders give the ids, texts and chunks of the reference: those of
 * tests/data/tokenizers, and all of $OCTAVO_ORACLE where that is set.
 */
#include "../text/token_golden.h"

#include <dirent.h>

/* Runs the golden lines of a folder that holds the tokenizer too. `n_streams` is the least number
 * of runs of ids; WordPiece has none. */
static void run_folder(const char *folder, size_t n_streams) {
    char path[600];
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (octavo_tokenizer_open(folder, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    snprintf(path, sizeof(path), "%s/encode.jsonl", folder);
    assert_int_equal(golden_run(t, path, golden_check_line), 150);
    snprintf(path, sizeof(path), "%s/stream.jsonl", folder);
    assert_true(golden_run(t, path, golden_check_stream) >= n_streams);
    octavo_tokenizer_destroy(&t);
}

static void run_own(const char *name, size_t n_streams) {
    char path[600];
    snprintf(path, sizeof(path), "%s/tokenizers/%s", TEST_DATA, name);
    run_folder(path, n_streams);
}

static void test_gpt2(void **state) {
    (void)state;
    run_own("bpe_gpt2", 40);
}

static void test_llama3(void **state) {
    (void)state;
    run_own("bpe_llama3", 40);
}

static void test_qwen2(void **state) {
    (void)state;
    run_own("bpe_qwen2", 40);
}

static void test_llama2(void **state) {
    (void)state;
    run_own("spm_bpe_llama2", 40);
}

static void test_gemma(void **state) {
    (void)state;
    run_own("spm_bpe_gemma", 40);
}

static void test_unigram(void **state) {
    (void)state;
    run_own("spm_unigram", 40);
}

static void test_wordpiece(void **state) {
    (void)state;
    run_own("wordpiece_bert", 0);
}

/* Every folder of the reference data, new ones included. */
static void test_oracle(void **state) {
    (void)state;
    const char *oracle = getenv("OCTAVO_ORACLE");
    if (oracle == NULL) skip();
    char path[600];
    snprintf(path, sizeof(path), "%s/tokenizers", oracle);
    DIR *folder = opendir(path);
    if (folder == NULL) skip();
    size_t ran = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        snprintf(path, sizeof(path), "%s/tokenizers/%.200s/tokenizer.json", oracle, entry->d_name);
        FILE *file = fopen(path, "rb");
        if (file == NULL) continue;
        fclose(file);
        snprintf(path, sizeof(path), "%s/tokenizers/%.200s", oracle, entry->d_name);
        run_folder(path, strncmp(entry->d_name, "wordpiece", 9) == 0 ? 0 : 40);
        ran++;
    }
    closedir(folder);
    assert_true(ran >= 7);
}

/* Where answers end, and what is special, as the folder says. */
static void test_names(void **state) {
    (void)state;
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_tokenizer_open(TEST_DATA "/tokenizers/bpe_llama3", &t, &error),
                     OCTAVO_OK);
    assert_int_equal(octavo_tokenizer_size(t), 1206);
    assert_int_equal(octavo_tokenizer_bos(t), 1200);
    assert_int_equal(octavo_tokenizer_eos(t), 1204);
    assert_true(octavo_tokenizer_adds_bos(t));
    assert_true(octavo_tokenizer_is_eog(t, 1204) && octavo_tokenizer_is_eog(t, 1201));
    assert_false(octavo_tokenizer_is_eog(t, 1200));
    assert_true(octavo_tokenizer_is_special(t, 1205));
    assert_int_equal(octavo_tokenizer_find(t, "<|eot_id|>", 10), 1204);
    assert_true(octavo_tokenizer_find(t, " t", 2) >= 0);
    octavo_tokenizer_destroy(&t);
}

static void test_missing(void **state) {
    (void)state;
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_tokenizer_open(TEST_DATA "/models", &t, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "tokenizer.json"));
    assert_null(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),      cmocka_unit_test(test_llama3),
        cmocka_unit_test(test_qwen2),     cmocka_unit_test(test_llama2),
        cmocka_unit_test(test_gemma),     cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_wordpiece), cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
