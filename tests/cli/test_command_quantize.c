/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo quantize: its lines and JSON, exit statuses, and a model that answers afterwards.
 */
#include "process.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/octavo-quantize-cli-XXXXXX";
static char out[64];

static int setup(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    (void)unlink(out);
    return rmdir(folder); /* fails if anything is left */
}

static void test_lines(void **state) {
    (void)state;
    process_result result =
        OCTAVO("", "quantize", TINY_LLAMA, out, "--type", "q8_0", "--keep", "^output=F16");
    if (result.status != 0) fail_msg("%s", result.err);
    assert_string_equal(result.err, "");
    assert_non_null(strstr(result.out, "blk.0.attn_q.weight"));
    assert_non_null(strstr(result.out, "F32    -> Q8_0"));
    assert_non_null(strstr(result.out, "F32    -> F16"));
    assert_non_null(strstr(result.out, "21 tensors, 16 converted"));
    process_free(&result);
    result = OCTAVO("", "run", out, "--raw", "-p", "Hello", "-n", "4", "--json");
    assert_int_equal(result.status, 0);
    process_free(&result);
}

static void test_json(void **state) {
    (void)state;
    process_result result =
        OCTAVO("", "quantize", TINY_LLAMA, out, "--type", "Q4_0", "--json", "--threads", "2");
    if (result.status != 0) fail_msg("%s", result.err);
    json_t *document = process_json(&result), *first, *total;
    first = json_array_get(json_object_get(document, "tensors"), 0);
    total = json_object_get(document, "total");
    assert_int_equal(json_array_size(json_object_get(document, "tensors")), 21);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "token_embd.weight");
    assert_string_equal(json_string_value(json_object_get(first, "to")), "Q4_0");
    assert_false(json_boolean_value(json_object_get(first, "copied")));
    double error = json_number_value(json_object_get(first, "rms_error"));
    assert_true(error > 0.01 && error < 0.2);
    error = json_number_value(json_object_get(total, "rms_error"));
    assert_true(error > 0.01 && error < 0.2);
    assert_int_equal(json_integer_value(json_object_get(total, "converted")), 16);
    struct stat facts;
    assert_int_equal(stat(out, &facts), 0);
    assert_int_equal(json_integer_value(json_object_get(total, "file_bytes")), facts.st_size);
    json_decref(document);
    process_free(&result);
}

static void test_quantised_before(void **state) {
    (void)state;
    process_result result =
        OCTAVO("", "quantize", TEST_DATA "/models/llama-q32mix.gguf", out, "--type", "q8_0");
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.err, "were quantised before"));
    assert_non_null(strstr(result.out, "(was quantised before)"));
    process_free(&result);
}

/* The exit status and what is said. */
static void check_refused(process_result result, int status, const char *part) {
    if (result.status != status)
        fail_msg("status %d, wanted %d: %s", result.status, status, result.err);
    assert_true(process_says(&result, part));
    assert_string_equal(result.out, "");
    process_free(&result);
}

static void test_refused(void **state) {
    (void)state;
    check_refused(OCTAVO("", "quantize", TINY_LLAMA, out), 2, "--type TYPE is missing");
    check_refused(OCTAVO("", "quantize", TINY_LLAMA, "--type", "q8_0"), 2, "OUT");
    check_refused(OCTAVO("", "quantize", TINY_LLAMA, out, "--type", "q9"), 2, "one of F32 F16");
    check_refused(OCTAVO("", "quantize", TINY_LLAMA, out, "--type", "q8_0", "--keep", "a["), 2,
                  "regular expression");
    check_refused(OCTAVO("", "quantize", TINY_LLAMA, TINY_LLAMA, "--type", "q8_0"), 2,
                  "is the model that is read");
    check_refused(OCTAVO("", "quantize", "/no/model.gguf", out, "--type", "q8_0"), 1,
                  "/no/model.gguf");
    check_refused(OCTAVO("", "quantize", TINY_LLAMA, "/no/folder/x.gguf", "--type", "q8_0"), 1,
                  "/no/folder/x.gguf");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_quantised_before),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("command_quantize", tests, setup, teardown);
}
