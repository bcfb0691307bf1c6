/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo tokenize and octavo template.
 */
#include "process.h"

#include <stdlib.h>
#include <unistd.h>

static const char QUOTED[] =
    "\"The count was 1,234; caf\\u00e9 \\ud83d\\ude00\"\n\"\"\n\"a\\u0000b\"\n";

static void expect_error(process_result result, const char *part) {
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, part));
    process_free(&result);
}

static void check_round_trip(const char *model) {
    process_result ids = OCTAVO(QUOTED, "tokenize", model, "--no-bos");
    assert_int_equal(ids.status, 0);
    process_result text =
        process_run((const char *const[]){OCTAVO_COMMAND, "tokenize", model, "--decode", NULL},
                    ids.out, ids.out_bytes);
    assert_int_equal(text.status, 0);
    assert_string_equal(
        text.out, "\"The count was 1,234; caf\xc3\xa9 \xf0\x9f\x98\x80\"\n\"\"\n\"a\\u0000b\"\n");
    process_free(&ids);
    process_free(&text);
}

static void test_round_trip(void **state) {
    (void)state;
    check_round_trip(TINY_LLAMA);
    check_round_trip(TINY_QWEN2);
    check_round_trip(TINY_GEMMA3);
}

static void test_flags(void **state) {
    (void)state;
    process_result with = OCTAVO("\"Hello\"\n", "tokenize", TINY_LLAMA);
    assert_string_equal(with.out, "[1,796,924,797,326,802]\n");
    process_result without = OCTAVO("\"Hello\"\n", "tokenize", TINY_LLAMA, "--no-bos");
    assert_string_equal(without.out, "[796,924,797,326,802]\n");
    process_result special = OCTAVO("\"</s>\"\n", "tokenize", TINY_LLAMA, "--no-bos");
    assert_string_equal(special.out, "[2]\n");
    process_result plain = OCTAVO("\"</s>\"\n", "tokenize", TINY_LLAMA, "--no-bos", "--no-special");
    assert_string_not_equal(plain.out, "[2]\n");
    process_result kept = OCTAVO("[1,2]\n", "tokenize", TINY_LLAMA, "--decode");
    assert_string_equal(kept.out, "\"<s></s>\"\n");
    process_result skipped = OCTAVO("[1,2]\n", "tokenize", TINY_LLAMA, "--decode", "--no-special");
    assert_string_equal(skipped.out, "\"\"\n");
    process_free(&with);
    process_free(&without);
    process_free(&special);
    process_free(&plain);
    process_free(&kept);
    process_free(&skipped);
}

static void test_pieces(void **state) {
    (void)state;
    process_result result = OCTAVO("Hello", "tokenize", TINY_LLAMA, "--text", "--json");
    json_t *pieces = process_json(&result);
    assert_int_equal(json_array_size(pieces), 6);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(pieces, 2), "id")), 924);
    assert_string_equal(json_string_value(json_object_get(json_array_get(pieces, 2), "piece")),
                        "H");
    json_decref(pieces);
    process_free(&result);
    result = OCTAVO("Hello", "tokenize", TINY_LLAMA, "--text", "--no-bos");
    assert_string_equal(result.out,
                        "796\t\" \"\n924\t\"H\"\n797\t\"e\"\n326\t\"ll\"\n802\t\"o\"\n");
    process_free(&result);
}

static void test_bad_lines(void **state) {
    (void)state;
    process_result result = OCTAVO("\"fine\"\nnot json\n", "tokenize", TINY_LLAMA);
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "line 2"));
    assert_int_equal(strchr(result.out, '\n') - result.out + 1, result.out_bytes);
    process_free(&result);
    expect_error(OCTAVO("12\n", "tokenize", TINY_LLAMA), "not a JSON string");
    expect_error(OCTAVO("\"x\"\n", "tokenize", TINY_LLAMA, "--decode"), "not a JSON array");
    expect_error(OCTAVO("[1, \"x\"]\n", "tokenize", TINY_LLAMA, "--decode"), "item 1");
    expect_error(OCTAVO("[-1]\n", "tokenize", TINY_LLAMA, "--decode"), "item 0");
    expect_error(OCTAVO("[1000]\n", "tokenize", TINY_LLAMA, "--decode"), "1000");
    expect_error(OCTAVO("", "tokenize", "/no/model"), "/no/model");
}

/* One line of error however it comes that nothing can be written, and no file takes the place of a
 * closed stream. */
static void test_no_output(void **state) {
    (void)state;
    static const char *const scripts[] = {
        "exec \"$0\" tokenize \"$1\" >&-",
        "exec \"$0\" tokenize \"$1\" >/dev/full",
        "exec \"$0\" logits \"$1\" --ids - --out - >&-",
        "exec \"$0\" inspect \"$1\" >&-",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        if (strstr(scripts[i], "/dev/full") && access("/dev/full", W_OK) != 0) continue;
        const char *input = strstr(scripts[i], "logits") ? "[1]\n" : "\"x\"\n";
        process_result result = process_run(
            (const char *const[]){"/bin/sh", "-c", scripts[i], OCTAVO_COMMAND, TINY_LLAMA, NULL},
            input, strlen(input));
        if (result.status != 1) fail_msg("%s: status %d", scripts[i], result.status);
        assert_true(process_says(&result, "cannot be written"));
        process_free(&result);
    }
}

/* ---- templates ---- */

static char template_path[] = "/tmp/octavo-template-XXXXXX";

static int write_template(void **state) {
    static const char text[] =
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
        "{% if wrong %}{{ raise_exception('not \"so\"') }}{% endif %}"
        "{% if clock %}{{ strftime_now('%d %b %Y %H:%M:%S') }}{% endif %}";
    FILE *file = fdopen(mkstemp(template_path), "w");
    (void)state;
    if (!file) return -1;
    fputs(text, file);
    return fclose(file);
}

static int remove_template(void **state) {
    (void)state;
    return remove(template_path);
}

static void test_template(void **state) {
    (void)state;
    process_result result = OCTAVO(
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\\nb\"}], \"bos_token\": \"<s>\"}\n"
        "{\"messages\": [], \"bos_token\": \"\", \"wrong\": true}\n"
        "{\"messages\": [], \"bos_token\": \"\", \"clock\": true}\n",
        "template", "-", "--template", template_path, "--now", "2026-01-15T12:34:56");
    assert_string_equal(result.out, "\"<s>[user]a\\nb\"\n"
                                    "{\"error\": \"not \\\"so\\\"\"}\n"
                                    "\"15 Jan 2026 12:34:56\"\n");
    assert_int_equal(result.status, 1); /* one was refused */
    process_free(&result);
}

/* With a model, its own tokens are the default. */
static void test_template_tokens(void **state) {
    (void)state;
    process_result result = OCTAVO("{\"messages\": []}\n{}\n{\"bos_token\": \"mine\"}\n",
                                   "template", TINY_LLAMA, "--template", template_path);
    assert_string_equal(result.out, "\"<s>\"\n\"<s>\"\n\"mine\"\n");
    assert_int_equal(result.status, 0);
    process_free(&result);
    /* A line that is no object is refused where it stands; the rest goes on. */
    result = OCTAVO("[]\n{}\n", "template", TINY_LLAMA, "--template", template_path);
    assert_int_equal(strncmp(result.out, "{\"error\": ", 10), 0);
    assert_non_null(strstr(result.out, "}\n\"<s>\"\n"));
    assert_int_equal(result.status, 1);
    process_free(&result);
}

static void test_template_zero_bytes(void **state) {
    (void)state;
    process_result result = OCTAVO(
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\\u0000b\"}], \"bos_token\": \"\"}\n",
        "template", "-", "--template", template_path);
    assert_string_equal(result.out, "\"[user]a\\u0000b\"\n");
    assert_int_equal(result.status, 0);
    process_free(&result);
    /* A zero byte in the line itself is no JSON, nor does it hide what stands behind it. */
    static const char line[] = "{\"bos_token\": \"\"}\0{\n{\"bos_token\": \"x\"}\n";
    result = process_run(
        (const char *const[]){OCTAVO_COMMAND, "template", "-", "--template", template_path, NULL},
        line, sizeof line - 1);
    assert_int_equal(strncmp(result.out, "{\"error\": ", 10), 0);
    assert_non_null(strstr(result.out, "}\n\"x\"\n"));
    assert_int_equal(result.status, 1);
    process_free(&result);
}

static void test_template_errors(void **state) {
    (void)state;
    expect_error(OCTAVO("", "template", TINY_LLAMA), "no chat template");
    expect_error(OCTAVO("", "template", "-", "--template", "/no/file"), "/no/file");
    process_result result = OCTAVO("", "template", "-");
    assert_int_equal(result.status, 2);
    process_free(&result);
    static const char *const times[] = {"2026-13-01T00:00:00", "2026-01-15", "2026-01-15T12:00:00Z",
                                        "2026-1-15T12:00:00",  "noon",       "2025-02-29T00:00:00"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        result = OCTAVO("", "template", "-", "--template", template_path, "--now", times[i]);
        assert_int_equal(result.status, 2);
        assert_true(process_says(&result, times[i]));
        process_free(&result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_flags),
        cmocka_unit_test(test_pieces),          cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_no_output),       cmocka_unit_test(test_template),
        cmocka_unit_test(test_template_tokens), cmocka_unit_test(test_template_zero_bytes),
        cmocka_unit_test(test_template_errors),
    };
    return cmocka_run_group_tests(tests, write_template, remove_template);
}
