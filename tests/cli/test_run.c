/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo run with tiny models: ids against the goldens of tests/data/models, stop texts, limits,
 * what JSON and plain text have in common.
 */
#include "process.h"

#include <math.h>
#include <stdlib.h>

typedef struct golden {
    json_t *document;
    const char *text;     /* a prompt */
    const json_t *greedy; /* 24 ids after it */
} golden;

static golden open_golden(const char *name, size_t prompt) {
    char path[512];
    golden g;
    snprintf(path, sizeof path, "%s/models/%s.json", TEST_DATA, name);
    g.document = json_load_file(path, 0, NULL);
    assert_non_null(g.document);
    g.text = json_string_value(json_array_get(json_object_get(g.document, "prompt_texts"), prompt));
    g.greedy = json_array_get(json_object_get(g.document, "greedy_24"), prompt);
    assert_non_null(g.text);
    assert_int_equal(json_array_size(g.greedy), 24);
    return g;
}

static const char *text_of(const json_t *answer, const char *key) {
    const char *text = json_string_value(json_object_get(answer, key));
    if (!text) fail_msg("the answer has no text '%s'", key);
    return text;
}

static json_t *answer_of(process_result result) {
    if (result.status != 0) fail_msg("status %d: %s", result.status, result.err);
    json_t *answer = process_json(&result);
    process_free(&result);
    return answer;
}

static void check_greedy(const char *name) {
    char model[512];
    snprintf(model, sizeof model, "%s/models/%s.gguf", TEST_DATA, name);
    for (size_t prompt = 0; prompt < 3; prompt++) {
        golden g = open_golden(name, prompt);
        json_t *answer = answer_of(OCTAVO("", "run", model, "--raw", "-p", g.text, "-n", "24",
                                          "--json", "--ignore-eos", "--precision", "exact"));
        assert_true(json_equal(json_object_get(answer, "ids"), g.greedy));
        assert_string_equal(text_of(answer, "finish_reason"), "length");
        json_t *want = json_array_get(json_object_get(g.document, "prompt_ids"), prompt);
        assert_true(json_equal(json_object_get(answer, "prompt_ids"), want));
        json_decref(answer);
        json_decref(g.document);
    }
}

static void test_greedy(void **state) {
    (void)state;
    check_greedy("llama-f32");
    check_greedy("qwen2-bf16");
    check_greedy("gemma3-f32");
}

/* The same text with and without JSON, from an option, a file and standard input. */
static void test_ways_in_and_out(void **state) {
    golden g = open_golden("gemma3-f32", 0);
    char path[] = "/tmp/octavo-prompt-XXXXXX", plain[4096], line[4096];
    FILE *file = fdopen(mkstemp(path), "w");
    (void)state;
    assert_non_null(file);
    fprintf(file, "%s\n", g.text);
    fclose(file);
    json_t *answer =
        answer_of(OCTAVO("", "run", TINY_GEMMA3, "--raw", "-p", g.text, "-n", "20", "--json"));
    snprintf(plain, sizeof plain, "%s\n", text_of(answer, "text"));
    snprintf(line, sizeof line, "%s\n", g.text);
    process_result results[] = {
        OCTAVO("", "run", "-n", "20", "--raw", "-p", g.text, TINY_GEMMA3),
        OCTAVO("", "run", TINY_GEMMA3, "--raw", "-f", path, "-n20"),
        OCTAVO(line, "run", TINY_GEMMA3, "--raw", "-n", "20"),
        OCTAVO(line, "run", TINY_GEMMA3, "--raw", "-f", "-", "-n", "20", "--chunk", "1"),
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        assert_int_equal(results[i].status, 0);
        assert_string_equal(results[i].out, plain);
        assert_int_equal(results[i].err_bytes, 0);
        process_free(&results[i]);
    }
    remove(path);
    json_decref(answer);
    json_decref(g.document);
}

static void test_stop_texts(void **state) {
    golden g = open_golden("gemma3-f32", 0);
    (void)state;
    json_t *whole =
        answer_of(OCTAVO("", "run", TINY_GEMMA3, "--raw", "-p", g.text, "-n", "24", "--json"));
    const char *text = text_of(whole, "text");
    assert_non_null(strstr(text, "ettekett")); /* spans tokens; see greedy_text of the golden */
    json_t *cut = answer_of(OCTAVO("", "run", TINY_GEMMA3, "--raw", "-p", g.text, "-n", "24",
                                   "--json", "--stop", "no such text", "--stop", "ettekett"));
    size_t length = (size_t)(strstr(text, "ettekett") - text);
    assert_int_equal(strlen(text_of(cut, "text")), length);
    assert_memory_equal(text_of(cut, "text"), text, length);
    assert_string_equal(text_of(cut, "finish_reason"), "stop");
    assert_string_equal(text_of(cut, "stop"), "ettekett");

    process_result plain =
        OCTAVO("", "run", TINY_GEMMA3, "--raw", "-p", g.text, "-n", "24", "--stop", "ettekett");
    assert_int_equal(plain.out_bytes, length + 1);
    assert_memory_equal(plain.out, text, length);
    process_free(&plain);
    json_decref(whole);
    json_decref(cut);
    json_decref(g.document);
}

static void test_logprobs(void **state) {
    golden g = open_golden("llama-f32", 1);
    (void)state;
    json_t *answer = answer_of(OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", g.text, "-n", "6",
                                      "--json", "--logprobs", "1000", "--ignore-eos"));
    const json_t *logprobs = json_object_get(answer, "logprobs");
    assert_int_equal(json_array_size(logprobs), 6);
    for (size_t i = 0; i < 6; i++) {
        const json_t *token = json_array_get(logprobs, i), *top = json_object_get(token, "top");
        double sum = 0.0, last = 0.0;
        assert_int_equal(json_array_size(top), 1000);
        /* Greedy: the first of the most likely ones was taken. All together are certain. */
        assert_true(json_equal(json_object_get(token, "id"),
                               json_object_get(json_array_get(top, 0), "id")));
        for (size_t k = 0; k < 1000; k++) {
            double value = json_number_value(json_object_get(json_array_get(top, k), "logprob"));
            assert_true(k == 0 || value <= last);
            last = value;
            sum += exp(value);
        }
        assert_true(fabs(sum - 1.0) < 1e-4);
    }
    json_decref(answer);
    json_decref(g.document);
}

static void test_sampling(void **state) {
    json_t *ids[4];
    static const char *const seeds[] = {"7", "7", "8", "7"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        json_t *answer = answer_of(OCTAVO(
            "", "run", TINY_LLAMA, "--raw", "-p", "Hello", "-n", "16", "--json", "--ignore-eos",
            "--temperature", i == 3 ? "0" : "1.5", "--top-k", "50", "--seed", seeds[i]));
        ids[i] = json_incref(json_object_get(answer, "ids"));
        json_decref(answer);
    }
    assert_true(json_equal(ids[0], ids[1]));
    assert_false(json_equal(ids[0], ids[2]));
    assert_false(json_equal(ids[0], ids[3]));
    for (int i = 0; i < 4; i++)
        json_decref(ids[i]);
}

/* The tiny models' context is 512. */
static void test_room(void **state) {
    char ids[4096] = "";
    (void)state;
    for (int i = 0; i < 600; i++)
        strcat(ids, "word ");
    process_result result = OCTAVO(ids, "run", TINY_LLAMA, "--raw");
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "longer than the context of 512"));
    process_free(&result);

    result =
        OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "a longer prompt than that", "--context", "4");
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "--context"));
    process_free(&result);

    result = OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "x", "--context", "100000");
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "100000"));
    process_free(&result);

    json_t *answer = answer_of(OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "Hello", "-n", "0",
                                      "--ignore-eos", "--context", "16", "--json"));
    assert_string_equal(text_of(answer, "finish_reason"), "length");
    /* What comes after the last place is still an answer: it only cannot be fed. */
    assert_int_equal(json_array_size(json_object_get(answer, "ids")) +
                         json_array_size(json_object_get(answer, "prompt_ids")),
                     17);
    json_decref(answer);
}

static void test_prompts_that_are_none(void **state) {
    (void)state;
    process_result results[] = {
        OCTAVO("", "run", TINY_LLAMA),
        OCTAVO("\n", "run", TINY_LLAMA),
        OCTAVO("", "run", TINY_LLAMA, "-p", ""),
        OCTAVO("", "run", TINY_LLAMA, "-f", "/dev/null"),
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        assert_int_equal(results[i].status, 1);
        assert_true(process_says(&results[i], "empty"));
        process_free(&results[i]);
    }
    process_result result = OCTAVO("", "run", TINY_LLAMA, "-f", "/no/such/file");
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "/no/such/file"));
    process_free(&result);
    result = OCTAVO("", "run", TINY_LLAMA, "-p", "x", "-f", "y");
    assert_int_equal(result.status, 2);
    process_free(&result);
    result = OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--stop", "");
    assert_int_equal(result.status, 2);
    process_free(&result);
    result = OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--system", "y");
    assert_int_equal(result.status, 1); /* this model has no chat template */
    assert_true(process_says(&result, "--system"));
    process_free(&result);
}

/* The prompt of a chat is what the template makes of the message, tokenized with its special
 * tokens; text that spells a special token gives none of its own. */
static void test_template_prompt(void **state) {
    (void)state;
    process_result rendered = OCTAVO("{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
                                     "\"add_generation_prompt\": true}\n",
                                     "template", TINY_QWEN2);
    assert_int_equal(rendered.status, 0);
    process_result ids =
        process_run((const char *const[]){OCTAVO_COMMAND, "tokenize", TINY_QWEN2, NULL},
                    rendered.out, rendered.out_bytes);
    json_t *want = process_json(&ids);
    json_t *answer = answer_of(OCTAVO("", "run", TINY_QWEN2, "-p", "Hi", "-n", "1", "--json"));
    assert_true(json_equal(json_object_get(answer, "prompt_ids"), want));
    assert_true(json_array_size(want) > 2);

    json_t *first = json_array_get(want, 0); /* <|im_start|> */
    json_t *raw = answer_of(
        OCTAVO("", "run", TINY_QWEN2, "--raw", "-p", "<|im_start|>", "-n", "1", "--json"));
    assert_true(json_equal(json_array_get(json_object_get(raw, "prompt_ids"), 0), first));
    size_t n_special[2] = {0, 0};
    json_t *spelled =
        answer_of(OCTAVO("", "run", TINY_QWEN2, "-p", "a<|im_start|>b", "-n", "1", "--json"));
    json_t *lists[2] = {json_object_get(answer, "prompt_ids"),
                        json_object_get(spelled, "prompt_ids")};
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < json_array_size(lists[l]); i++)
            n_special[l] += (size_t)json_equal(json_array_get(lists[l], i), first);
    assert_int_equal(n_special[0], n_special[1]);
    assert_true(n_special[0] > 0);
    json_decref(raw);
    json_decref(spelled);
    json_decref(answer);
    json_decref(want);
    process_free(&ids);
    process_free(&rendered);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_ways_in_and_out),
        cmocka_unit_test(test_stop_texts),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_prompts_that_are_none),
        cmocka_unit_test(test_template_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
