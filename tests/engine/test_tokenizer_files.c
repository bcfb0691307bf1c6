/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers from the files that folders have instead of tokenizer.json: SentencePiece's
 * tokenizer.model and tekken.json. Good ones give the ids of their own libraries, damaged ones are
 * refused by name.
 */
#include "../text/token_golden.h"
#include "base/map.h"
#include "text/sentencepiece.h"
#include "text/tekken.h"

#include <unistd.h>

#define DATA TEST_DATA "/tokenizers/"

static octavo_tokenizer *open_tokenizer(const char *path) {
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (octavo_tokenizer_open(path, &t, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    return t;
}

static void test_sentencepiece(void **state) {
    static const char *const names[] = {"spm_bpe_llama2", "spm_bpe_gemma", "spm_unigram", "spm_t5"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, DATA "%s/tokenizer.model", names[i]);
        octavo_tokenizer *t = open_tokenizer(path);
        snprintf(path, sizeof path, DATA "%s/sentencepiece.jsonl", names[i]);
        assert_true(golden_run(t, path, golden_check_plain) > 150);
        octavo_tokenizer_destroy(&t);
    }
}

/* The configuration beside the file names the ends; chunks are those of tokenizer.json's. */
static void test_sentencepiece_whole(void **state) {
    (void)state;
    octavo_tokenizer *t = open_tokenizer(DATA "spm_bpe_llama2/tokenizer.model");
    assert_int_equal(golden_run(t, DATA "spm_bpe_llama2/encode.jsonl", golden_check_line), 150);
    assert_true(golden_run(t, DATA "spm_bpe_llama2/stream.jsonl", golden_check_stream) >= 40);
    octavo_tokenizer_destroy(&t);
    t = open_tokenizer(DATA "spm_t5"); /* a folder; no bos, so a text ends with eos */
    size_t n = 0;
    int32_t *ids = golden_encode(t, "the", 3, OCTAVO_ENCODE_BEGIN_END, &n);
    assert_true(n >= 2 && ids[n - 1] == octavo_tokenizer_eos(t));
    free(ids);
    octavo_tokenizer_destroy(&t);
}

static void test_tekken(void **state) {
    (void)state;
    octavo_tokenizer *t = open_tokenizer(DATA "tekken");
    assert_true(golden_run(t, DATA "tekken/encode.jsonl", golden_check_plain) > 150);
    size_t n = 0;
    static const char text[] = "<s>[INST]<SPECIAL_9>";
    int32_t *ids = golden_encode(t, text, sizeof text - 1, OCTAVO_ENCODE_SPECIAL_TEXT, &n);
    assert_true(n == 3 && ids[0] == 1 && ids[1] == 3 && ids[2] == 9);
    free(ids);
    assert_true(octavo_tokenizer_adds_bos(t) && octavo_tokenizer_is_eog(t, 2));
    octavo_tokenizer_destroy(&t);
}

static json_t *load(const char *path) {
    json_error_t why;
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &why);
    if (json == NULL) fail_msg("%s: %s", path, why.text);
    return json;
}

/* The first files name no special tokens. */
static void test_tekken_first_version(void **state) {
    (void)state;
    json_t *tekken = load(DATA "tekken/tekken.json");
    json_object_del(tekken, "special_tokens");
    octavo_vocab_source source = {.name = "tekken.json", .config_name = ""};
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (octavo_tokenizer_from_tekken(&source, tekken, &t, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    assert_int_equal(octavo_tokenizer_find(t, "[AVAILABLE_TOOLS]", 17), 5);
    octavo_tokenizer_destroy(&t);
    json_decref(tekken);
}

/* Special tokens in no order, as many as there may be: each gets its name, and in no time. */
static void test_tekken_order(void **state) {
    enum { N = 1 << 16 };
    (void)state;
    json_t *tekken = load(DATA "tekken/tekken.json");
    json_t *list = json_array(), *config = json_object_get(tekken, "config");
    for (int i = N - 1; i >= 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "<s%d>", i);
        json_array_append_new(list, json_pack("{s:i, s:s}", "rank", i, "token_str", name));
    }
    json_object_set_new(tekken, "special_tokens", list);
    json_object_set_new(config, "default_num_special_tokens", json_integer(N));
    json_object_set_new(config, "default_vocab_size", json_integer(N + 256));
    octavo_vocab_source source = {.name = "tekken.json", .config_name = ""};
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (octavo_tokenizer_from_tekken(&source, tekken, &t, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    assert_int_equal(octavo_tokenizer_find(t, "<s7>", 4), 7);
    assert_int_equal(octavo_tokenizer_find(t, "<s65535>", 8), N - 1);
    octavo_tokenizer_destroy(&t);
    json_decref(tekken);
}

/* Where the refused changes are made. */
typedef struct change {
    const char *where, *key; /* an object by its key, or "" for the top; then the key in it */
    const char *value;       /* JSON; NULL: the key goes */
    const char *culprit;
} change;

static void test_tekken_refusals(void **state) {
    static const change changes[] = {
        {"", "config", NULL, "pattern"},
        {"config", "pattern", "\"\"", "pattern"},
        {"config", "pattern", "\"(\"", "regular expression"},
        {"config", "default_vocab_size", "-1", "default_vocab_size"},
        {"config", "default_vocab_size", "5", "special"},
        {"config", "default_vocab_size", "100000", "incomplete"},
        {"config", "default_num_special_tokens", "\"x\"", "default_num_special_tokens"},
        {"config", "default_num_special_tokens", "2", "special_tokens"},
        {"config", "default_num_special_tokens", "16777216", "special tokens"},
        {"", "special_tokens", "{}", "special_tokens"},
        {"", "special_tokens", "[{\"rank\":0,\"token_str\":\"\"}]", "special token 0"},
        {"", "vocab", "[]", "vocab"},
    };
    (void)state;
    octavo_vocab_source source = {.name = "the-file", .config_name = ""};
    for (size_t i = 0; i <= sizeof changes / sizeof *changes; i++) {
        json_t *tekken = load(DATA "tekken/tekken.json");
        const char *culprit = "entry 7";
        if (i == sizeof changes / sizeof *changes) {
            json_t *entry = json_array_get(json_object_get(tekken, "vocab"), 7);
            json_object_set_new(entry, "token_bytes", json_string("*"));
        } else {
            const change *c = &changes[i];
            json_t *object = c->where[0] != '\0' ? json_object_get(tekken, c->where) : tekken;
            json_object_del(object, c->key);
            if (c->value != NULL)
                json_object_set_new(object, c->key, json_loads(c->value, JSON_DECODE_ANY, NULL));
            culprit = c->culprit;
        }
        octavo_tokenizer *t = NULL;
        octavo_error error = {0};
        octavo_status status = octavo_tokenizer_from_tekken(&source, tekken, &t, &error);
        if (status != OCTAVO_ERROR_FORMAT && status != OCTAVO_ERROR_UNSUPPORTED)
            fail_msg("change %zu: status %s", i, octavo_status_name(status));
        assert_null(t);
        if (strstr(error.message, culprit) == NULL || strstr(error.message, "the-file") == NULL)
            fail_msg("change %zu: \"%s\" does not name %s", i, error.message, culprit);
        json_decref(tekken);
    }
}

/* Every beginning of a file is refused or makes a tokenizer, and so does every byte changed. */
static void test_sentencepiece_damage(void **state) {
    (void)state;
    octavo_map map = {0};
    octavo_error error = {0};
    assert_int_equal(octavo_map_open(&map, DATA "spm_t5/tokenizer.model", &error), OCTAVO_OK);
    unsigned char *bytes = malloc(map.size);
    assert_non_null(bytes);
    octavo_vocab_source source = {.name = "the-file", .config_name = ""};
    size_t n_refused = 0;
    for (size_t i = 0; i < map.size; i += 37) {
        for (int cut = 0; cut < 2; cut++) {
            octavo_tokenizer *t = NULL;
            memcpy(bytes, map.data, map.size);
            if (!cut) bytes[i] ^= 0xff;
            octavo_status status =
                octavo_tokenizer_from_sentencepiece(&source, bytes, cut ? i : map.size, &t, &error);
            assert_true((status == OCTAVO_OK) == (t != NULL));
            if (status != OCTAVO_OK) assert_non_null(strstr(error.message, "the-file"));
            n_refused += status != OCTAVO_OK;
            octavo_tokenizer_destroy(&t);
        }
    }
    assert_true(n_refused > 100);
    free(bytes);
    octavo_map_close(&map);
}

/* What Meta and Moonshot call tokenizer.model too. */
static void test_tiktoken_lists(void **state) {
    char folder[] = "/tmp/octavo-tiktoken-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/tokenizer.model", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("IQ== 0\nIg== 1\n", file);
    fclose(file);
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_tokenizer_open(folder, &t, &error), OCTAVO_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "tokenizer.model"));
    assert_non_null(strstr(error.message, "fetch the model's tokenizer.json"));
    unlink(path);
    rmdir(folder);
}

static void test_configuration(void **state) {
    static const struct {
        const char *config, *culprit;
    } rows[] = {
        {"{\"eos_token\":\"<nosuch>\"}", "eos_token"},
        {"{\"add_bos_token\":1}", "add_bos_token"},
        {"{\"added_tokens_decoder\":{\"9999\":{\"content\":\"<x>\"}}}", "gap"},
        {"{\"added_tokens_decoder\":{\"0\":{\"content\":\"<x>\"}}}", "token 0"},
        {"{\"added_tokens_decoder\":{\"0\":{}}}", "content"},
    };
    (void)state;
    octavo_map map = {0};
    octavo_error error = {0};
    octavo_tokenizer *t = NULL;
    assert_int_equal(octavo_map_open(&map, DATA "spm_t5/tokenizer.model", &error), OCTAVO_OK);
    octavo_vocab_source source = {.name = "the-file", .config_name = "the-config"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        source.config = json_loads(rows[i].config, 0, NULL);
        assert_int_equal(
            octavo_tokenizer_from_sentencepiece(&source, map.data, map.size, &t, &error),
            OCTAVO_ERROR_FORMAT);
        if (strstr(error.message, rows[i].culprit) == NULL ||
            strstr(error.message, "the-config") == NULL)
            fail_msg("\"%s\" does not name %s", error.message, rows[i].culprit);
        json_decref(source.config);
    }
    source.config = json_loads("{\"added_tokens_decoder\":{\"600\":{\"content\":\"<|im_end|>\","
                               "\"special\":true}},\"eos_token\":\"<|im_end|>\"}",
                               0, NULL);
    if (octavo_tokenizer_from_sentencepiece(&source, map.data, map.size, &t, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    assert_int_equal(octavo_tokenizer_eos(t), 600);
    assert_true(octavo_tokenizer_is_special(t, 600));
    octavo_tokenizer_destroy(&t);
    json_decref(source.config);
    octavo_map_close(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentencepiece),
        cmocka_unit_test(test_sentencepiece_whole),
        cmocka_unit_test(test_tekken),
        cmocka_unit_test(test_tekken_first_version),
        cmocka_unit_test(test_tekken_order),
        cmocka_unit_test(test_tekken_refusals),
        cmocka_unit_test(test_sentencepiece_damage),
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_tiktoken_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
