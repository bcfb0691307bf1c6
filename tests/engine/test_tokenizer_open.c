/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers straight from GGUF files: those of the small models in tests/data/models give the ids
 * of the reference, and files without a good vocabulary are refused by name.
 */
#include "../text/token_golden.h"
#include "engine/vocab_gguf.h"

static void test_small_models(void **state) {
    (void)state;
    static const char *const names[] = {"gemma3-f32", "llama-f32", "llama3-f16", "qwen2-bf16"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[600];
        octavo_tokenizer *t = NULL;
        octavo_error error = {0};
        snprintf(path, sizeof(path), "%s/models/%s.gguf", TEST_DATA, names[i]);
        if (octavo_tokenizer_open(path, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
        snprintf(path, sizeof(path), "%s/models/%s.json", TEST_DATA, names[i]);
        golden_check_prompts(t, path);
        octavo_tokenizer_destroy(&t);
    }
}

/* A GGUF file in the making: metadata only. */
typedef struct gguf_draft {
    octavo_buffer entries;
    uint64_t n_entries;
} gguf_draft;

static void put(octavo_buffer *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        octavo_buffer_putc(out, (char)(value >> (8 * i)));
}

static void put_text(octavo_buffer *out, const char *text) {
    put(out, strlen(text), 8);
    octavo_buffer_puts(out, text);
}

static void put_key(gguf_draft *draft, const char *key, octavo_gguf_type type) {
    put_text(&draft->entries, key);
    put(&draft->entries, (uint64_t)type, 4);
    draft->n_entries++;
}

static void put_string(gguf_draft *draft, const char *key, const char *value) {
    put_key(draft, key, OCTAVO_GGUF_STRING);
    put_text(&draft->entries, value);
}

static void put_u32(gguf_draft *draft, const char *key, uint32_t value) {
    put_key(draft, key, OCTAVO_GGUF_U32);
    put(&draft->entries, value, 4);
}

static void put_array(gguf_draft *draft, const char *key, octavo_gguf_type type, uint64_t count) {
    put_key(draft, key, OCTAVO_GGUF_ARRAY);
    put(&draft->entries, (uint64_t)type, 4);
    put(&draft->entries, count, 8);
}

static void put_strings(gguf_draft *draft, const char *key, const char *const *texts, size_t n) {
    put_array(draft, key, OCTAVO_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        put_text(&draft->entries, texts[i]);
}

/* Parses the draft, which is emptied, and makes a tokenizer of it. */
static octavo_status open_draft(gguf_draft *draft, octavo_tokenizer **t, octavo_error *error) {
    octavo_buffer file = {0};
    octavo_buffer_puts(&file, "GGUF");
    put(&file, 3, 4);
    put(&file, 0, 8);
    put(&file, draft->n_entries, 8);
    octavo_buffer_append(&file, draft->entries.data, draft->entries.size);
    while (file.size % 32 != 0)
        octavo_buffer_putc(&file, 0);
    assert_false(file.failed);

    octavo_gguf *gguf = NULL;
    octavo_arena arena = {0};
    octavo_vocab vocab = OCTAVO_VOCAB_INIT;
    octavo_status status = octavo_gguf_parse(file.data, file.size, "draft", &gguf, error);
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
    status = octavo_vocab_from_gguf(gguf, &arena, &vocab, error);
    if (status == OCTAVO_OK) status = octavo_tokenizer_create(&vocab, t, error);
    octavo_arena_deinit(&arena);
    octavo_gguf_close(&gguf);
    octavo_buffer_deinit(&file);
    octavo_buffer_deinit(&draft->entries);
    *draft = (gguf_draft){0};
    return status;
}

static void expect_refusal(gguf_draft *draft, octavo_status status, const char *culprit) {
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    octavo_status got = open_draft(draft, &t, &error);
    if (got != status || strstr(error.message, culprit) == NULL)
        fail_msg("%s: \"%s\", expected %s naming %s", octavo_status_name(got), error.message,
                 octavo_status_name(status), culprit);
    assert_null(t);
}

static const char *const letters[] = {"a", "b", "ab", "<e>"};
static const char *const merges[] = {"a b"};

/* A good vocabulary of four tokens, as far as the types. */
static void put_good(gguf_draft *draft) {
    put_string(draft, "tokenizer.ggml.model", "gpt2");
    put_strings(draft, "tokenizer.ggml.tokens", letters, 4);
    put_strings(draft, "tokenizer.ggml.merges", merges, 1);
}

static void test_entries(void **state) {
    (void)state;
    gguf_draft draft = {0};
    put_good(&draft);
    put_string(&draft, "tokenizer.ggml.pre", "llama-bpe");
    put_array(&draft, "tokenizer.ggml.token_type", OCTAVO_GGUF_I32, 4);
    for (int i = 0; i < 4; i++)
        put(&draft.entries, i < 3 ? OCTAVO_TOKEN_NORMAL : OCTAVO_TOKEN_CONTROL, 4);
    put_u32(&draft, "tokenizer.ggml.bos_token_id", 3);
    put_u32(&draft, "tokenizer.ggml.eos_token_id", UINT32_MAX); /* none */
    put_u32(&draft, "tokenizer.ggml.eot_token_id", 2);
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (open_draft(&draft, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    assert_int_equal(octavo_tokenizer_bos(t), 3);
    assert_int_equal(octavo_tokenizer_eos(t), -1);
    assert_true(octavo_tokenizer_adds_bos(t)); /* the family does, where nothing is said */
    assert_true(octavo_tokenizer_is_special(t, 3) && octavo_tokenizer_is_eog(t, 2));
    size_t n = 0;
    int32_t *ids = golden_encode(t, "ab", 2, OCTAVO_ENCODE_BEGIN_END, &n);
    assert_int_equal(n, 2);
    assert_true(ids[0] == 3 && ids[1] == 2);
    free(ids);
    octavo_tokenizer_destroy(&t);
}

/* WordPiece: texts stand between tokens that have names of their own in the file. */
static void test_bert_entries(void **state) {
    static const char *const words[] = {"[UNK]", "[CLS]", "[SEP]", "\xe2\x96\x81y", "b"};
    (void)state;
    gguf_draft draft = {0};
    put_string(&draft, "tokenizer.ggml.model", "bert");
    put_strings(&draft, "tokenizer.ggml.tokens", words, 5);
    put_u32(&draft, "tokenizer.ggml.unknown_token_id", 0);
    put_u32(&draft, "tokenizer.ggml.cls_token_id", 1);
    put_u32(&draft, "tokenizer.ggml.seperator_token_id", 2);
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (open_draft(&draft, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    size_t n = 0;
    int32_t *ids = golden_encode(t, "YB c", 4, OCTAVO_ENCODE_BEGIN_END, &n);
    static const int32_t expected[] = {1, 3, 4, 0, 2};
    assert_int_equal(n, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    free(ids);
    octavo_tokenizer_destroy(&t);
    put_string(&draft, "tokenizer.ggml.model", "bert");
    put_strings(&draft, "tokenizer.ggml.tokens", words, 5);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "unknown words");
}

/* Unigram: scores, and a table that must be whole. */
static void test_unigram_entries(void **state) {
    (void)state;
    gguf_draft draft = {0};
    put_string(&draft, "tokenizer.ggml.model", "t5");
    put_strings(&draft, "tokenizer.ggml.tokens", letters, 4);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "no scores");
    put_string(&draft, "tokenizer.ggml.model", "t5");
    put_strings(&draft, "tokenizer.ggml.tokens", letters, 4);
    put_array(&draft, "tokenizer.ggml.scores", OCTAVO_GGUF_F32, 4);
    for (int i = 0; i < 4; i++)
        put(&draft.entries, 0xbf800000u, 4); /* -1 */
    put_array(&draft, "tokenizer.ggml.precompiled_charsmap", OCTAVO_GGUF_U8, 3);
    put(&draft.entries, 0, 3);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "precompiled_charsmap");
    put_string(&draft, "tokenizer.ggml.model", "t5");
    put_strings(&draft, "tokenizer.ggml.tokens", letters, 4);
    put_array(&draft, "tokenizer.ggml.precompiled_charsmap", OCTAVO_GGUF_U32, 1);
    put(&draft.entries, 0, 4);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "precompiled_charsmap");
}

static void test_refusals(void **state) {
    (void)state;
    gguf_draft draft = {0};
    put_string(&draft, "general.architecture", "llama");
    expect_refusal(&draft, OCTAVO_ERROR_NOT_FOUND, "tokenizer.ggml.model");
    put_string(&draft, "tokenizer.ggml.model", "gpt2");
    expect_refusal(&draft, OCTAVO_ERROR_NOT_FOUND, "tokenizer.ggml.tokens");
    put_u32(&draft, "tokenizer.ggml.model", 1);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "tokenizer.ggml.model");
    put_good(&draft);
    put_array(&draft, "tokenizer.ggml.token_type", OCTAVO_GGUF_I32, 1);
    put(&draft.entries, 1, 4);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "tokenizer.ggml.token_type");
    put_good(&draft);
    put_array(&draft, "tokenizer.ggml.scores", OCTAVO_GGUF_F32, 1);
    put(&draft.entries, 0, 4);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "tokenizer.ggml.scores");
    put_good(&draft);
    put_u32(&draft, "tokenizer.ggml.eos_token_id", 4);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "tokenizer.ggml.eos_token_id");
    put_good(&draft);
    put_string(&draft, "tokenizer.ggml.add_bos_token", "yes");
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "tokenizer.ggml.add_bos_token");
    put_string(&draft, "tokenizer.ggml.model", "llama");
    put_strings(&draft, "tokenizer.ggml.tokens", letters, 4);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "no scores");
    put_string(&draft, "tokenizer.ggml.model", "gpt2");
    put_strings(&draft, "tokenizer.ggml.tokens", NULL, 0);
    expect_refusal(&draft, OCTAVO_ERROR_FORMAT, "no tokens");
}

static void test_files(void **state) {
    (void)state;
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_tokenizer_open(TEST_DATA "/models/no-such.gguf", &t, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "no-such.gguf"));
    assert_int_equal(octavo_tokenizer_open(TEST_DATA "/models", &t, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_int_equal(octavo_tokenizer_open(TEST_DATA "/models/README.md", &t, &error),
                     OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_tokenizer_open(NULL, &t, &error), OCTAVO_ERROR_INVALID);
    assert_null(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_models), cmocka_unit_test(test_entries),
        cmocka_unit_test(test_bert_entries), cmocka_unit_test(test_unigram_entries),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
