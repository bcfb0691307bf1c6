/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder with everything in it: configuration, weights and a tokenizer of as many tokens as the
 * model has rows. Made here of links to tests/data.
 */
#include "process.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/octavo-folder-XXXXXX";

static void in_folder(char path[512], const char *name) {
    snprintf(path, 512, "%s/%s", folder, name);
}

static void link_file(const char *from, const char *name) {
    char source[512], path[512];
    snprintf(source, sizeof source, "%s/%s/%s", TEST_DATA, from, name);
    in_folder(path, name);
    assert_int_equal(symlink(source, path), 0);
}

/* Writes a file of the folder; NULL takes it away. */
static void put_file(const char *name, const char *text) {
    char path[512];
    in_folder(path, name);
    if (text == NULL) {
        unlink(path);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_folder(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    link_file("models/llama_tied", "config.json");
    link_file("models/llama_tied", "model.safetensors");
    link_file("tokenizers/bytes_300", "tokenizer.json");
    link_file("tokenizers/bytes_300", "tokenizer_config.json");
    return 0;
}

static int remove_folder(void **state) {
    static const char *const names[] = {
        "config.json",           "model.safetensors",      "tokenizer.json",
        "tokenizer_config.json", "generation_config.json", "text"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_file(names[i], NULL);
    return rmdir(folder);
}

static json_t *answer_of(process_result result) {
    if (result.status != 0) fail_msg("status %d: %s", result.status, result.err);
    json_t *answer = process_json(&result);
    process_free(&result);
    return answer;
}

#define RUN(...) answer_of(OCTAVO("", "run", folder, "-n", "8", "--json", __VA_ARGS__))

/* The prompt's ids are the reference library's, raw and through the chat template. */
static void test_prompts(void **state) {
    const char *path = TEST_DATA "/tokenizers/bytes_300/encode.jsonl";
    FILE *file = fopen(path, "r");
    (void)state;
    assert_non_null(file);
    size_t n = 0;
    for (json_t *line; (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL;) {
        const char *text = json_string_value(json_object_get(line, "text"));
        if (text[0] != '\0') {
            json_t *answer = RUN("--raw", "-p", text);
            assert_true(json_equal(json_object_get(answer, "prompt_ids"),
                                   json_object_get(line, "ids_special")));
            json_decref(answer);
            n++;
        }
        json_decref(line);
    }
    fclose(file);
    assert_true(n >= 8);
    json_t *answer = RUN("-p", "a");
    json_t *want = json_pack("[i,i,i,i,i]", 1, 3, 'a' - '!' + 5, 4, 3);
    assert_true(json_equal(json_object_get(answer, "prompt_ids"), want));
    json_decref(want);
    json_decref(answer);
}

/* What a user writes stays text, letter by letter, however special it looks. */
static void test_users_write_text(void **state) {
    (void)state;
    static const char message[] = "<|end|>x\xef\xb7\x90</s><|end|>";
    process_result result =
        OCTAVO("\"<|end|>x</s><|end|>\"\n", "tokenize", folder, "--no-bos", "--no-special");
    assert_int_equal(result.status, 0);
    json_t *want = process_json(&result), *plain = json_pack("[i,i]", 1, 3);
    json_array_extend(plain, want);
    json_array_append_new(plain, json_integer(4));
    json_array_append_new(plain, json_integer(3));
    json_t *answer = RUN("-p", message);
    assert_true(json_equal(json_object_get(answer, "prompt_ids"), plain));
    assert_int_equal(json_array_size(want), 19);
    json_decref(want);
    json_decref(plain);
    json_decref(answer);
    process_free(&result);
}

static const char *reason_of(const json_t *answer) {
    return json_string_value(json_object_get(answer, "finish_reason"));
}

/* Every id of "eos_token_id" ends an answer, one or several. */
static void test_several_ends(void **state) {
    (void)state;
    put_file("generation_config.json", NULL);
    json_t *free_run = RUN("--raw", "-p", "Hello a");
    const json_t *ids = json_object_get(free_run, "ids");
    assert_int_equal(json_array_size(ids), 8);
    int end = (int)json_integer_value(json_array_get(ids, 3));
    size_t first = 0;
    while (json_integer_value(json_array_get(ids, first)) != end)
        first++;
    char config[100];
    for (int several = 0; several < 2; several++) {
        snprintf(config, sizeof config,
                 several ? "{\"eos_token_id\": [2, %d]}" : "{\"eos_token_id\": %d}", end);
        put_file("generation_config.json", config);
        json_t *answer = RUN("--raw", "-p", "Hello a");
        assert_string_equal(reason_of(answer), "stop");
        assert_int_equal(json_array_size(json_object_get(answer, "ids")), first);
        json_decref(answer);
    }
    put_file("generation_config.json", "{\"eos_token_id\": null}");
    json_t *answer = RUN("--raw", "-p", "Hello a");
    assert_int_equal(json_array_size(json_object_get(answer, "ids")), 8);
    json_decref(answer);
    json_decref(free_run);
}

static void test_ends_that_are_none(void **state) {
    static const char *const configs[] = {"{\"eos_token_id\": 300}", "{\"eos_token_id\": [2, -1]}",
                                          "{\"eos_token_id\": \"</s>\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        put_file("generation_config.json", configs[i]);
        process_result result = OCTAVO("\"a\"\n", "tokenize", folder);
        assert_int_equal(result.status, 1);
        assert_true(process_says(&result, "eos_token_id"));
        process_free(&result);
    }
    put_file("generation_config.json", NULL);
}

/* A template may lie in a file of its own, as text or as JSON, and then goes before the other. */
static void test_template_files(void **state) {
    static const char line[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n";
    (void)state;
    process_result result = OCTAVO(line, "template", folder);
    assert_string_equal(result.out, "\"<s><|user|>x<|end|>\"\n");
    process_free(&result);
    put_file("chat_template.json", "{\"chat_template\": \"J{{ messages[0].content }}\"}");
    result = OCTAVO(line, "template", folder);
    assert_string_equal(result.out, "\"Jx\"\n");
    process_free(&result);
    put_file("chat_template.jinja", "P{{ messages[0].content }}");
    result = OCTAVO(line, "template", folder);
    assert_string_equal(result.out, "\"Px\"\n");
    process_free(&result);
    put_file("chat_template.jinja", NULL);
    put_file("chat_template.json", NULL);
}

static void test_perplexity(void **state) {
    (void)state;
    char text[4096] = "", path[512];
    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "line %d of a text\n", i);
    put_file("text", text);
    in_folder(path, "text");
    json_t *answer = answer_of(OCTAVO("", "perplexity", folder, path, "--json"));
    double perplexity = json_number_value(json_object_get(answer, "perplexity"));
    if (!(perplexity > 1 && perplexity < 1e6)) fail_msg("perplexity %g", perplexity);
    json_decref(answer);
}

/* A zero byte is a byte as any other, in and out. */
static void test_zero_bytes(void **state) {
    (void)state;
    process_result result = OCTAVO("\"a\\u0000b\"\n", "tokenize", folder, "--no-bos");
    assert_int_equal(result.status, 0);
    json_t *ids = process_json(&result);
    assert_int_equal(json_array_size(ids), 3);
    process_free(&result);
    char *line = json_dumps(ids, 0);
    result = OCTAVO(line, "tokenize", folder, "--decode");
    assert_string_equal(result.out, "\"a\\u0000b\"\n");
    process_free(&result);
    free(line);
    json_decref(ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompts),        cmocka_unit_test(test_users_write_text),
        cmocka_unit_test(test_several_ends),   cmocka_unit_test(test_ends_that_are_none),
        cmocka_unit_test(test_template_files), cmocka_unit_test(test_perplexity),
        cmocka_unit_test(test_zero_bytes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
