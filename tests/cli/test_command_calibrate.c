/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo calibrate, and its file in the commands that run a model with a cache of 8 bits.
 */
#include "process.h"

#include <math.h>
#include <unistd.h>

static char out[] = "/tmp/octavo-calibrate-cli-XXXXXX";

static const char text[] =
    "Keys and values of this text are measured. It is short, and so are they.";

static int setup(void **state) {
    const int file = mkstemp(out);
    (void)state;
    return file < 0 ? -1 : close(file);
}

static int teardown(void **state) {
    (void)state;
    return unlink(out);
}

static void expect(process_result result, int status, const char *part) {
    if (result.status != status) fail_msg("status %d: %s", result.status, result.err);
    if (part && !process_says(&result, part)) fail_msg("%s", result.err);
    process_free(&result);
}

static void test_file(void **state) {
    (void)state;
    process_result result =
        OCTAVO(text, "calibrate", TINY_LLAMA, "-", "--out", out, "--context", "16");
    if (result.status != 0) fail_msg("%s", result.err);
    assert_string_equal(result.err, "");
    assert_non_null(strstr(result.out, "2 layers"));
    process_free(&result);
    json_t *file = json_load_file(out, 0, NULL);
    assert_non_null(file);
    assert_int_equal(json_integer_value(json_object_get(file, "layers")), 2);
    json_decref(file);
}

static double perplexity_with(const char *dtype, const char *scales) {
    process_result result = scales ? OCTAVO(text, "perplexity", TINY_LLAMA, "-", "--context", "16",
                                            "--json", "--kv-dtype", dtype, "--kv-scales", scales)
                                   : OCTAVO(text, "perplexity", TINY_LLAMA, "-", "--context", "16",
                                            "--json", "--kv-dtype", dtype);
    if (result.status != 0) fail_msg("%s", result.err);
    json_t *report = process_json(&result);
    const double perplexity = json_number_value(json_object_get(report, "perplexity"));
    json_decref(report);
    process_free(&result);
    return perplexity;
}

static void test_use(void **state) {
    static const char *const dtypes[] = {"fp8_e4m3", "fp8_e5m2", "int8"};
    const double wide = perplexity_with("f32", NULL);
    (void)state;
    for (int i = 0; i < 3; i++) {
        const double own = perplexity_with(dtypes[i], NULL), file = perplexity_with(dtypes[i], out);
        assert_true(own != wide && file != wide && own != file);
        assert_true(fabs(log(own / wide)) < 0.2 && fabs(log(file / wide)) < 0.2);
    }
}

/* TINY_LLAMA as a model of so many positions, in /tmp; the caller unlinks. */
static void write_short(char *path, uint32_t context) {
    static const char key[] = "llama.context_length";
    static uint8_t bytes[1 << 20];
    FILE *in = fopen(TINY_LLAMA, "rb"), *file = fdopen(mkstemp(path), "wb");
    assert_true(in && file);
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    size_t at = 0;
    while (at + sizeof key + 8 < size && memcmp(bytes + at, key, sizeof key - 1) != 0)
        at++;
    memcpy(bytes + at + sizeof key - 1 + 4, &context, sizeof context); /* behind the type */
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(in);
    fclose(file);
}

/* Windows are of 512, or of what the model has. */
static void test_short_model(void **state) {
    char path[] = "/tmp/octavo-short-cli-XXXXXX";
    (void)state;
    write_short(path, 20);
    expect(OCTAVO(text, "calibrate", path, "-", "--out", out), 0, NULL);
    process_result result = OCTAVO(text, "perplexity", path, "-", "--json");
    if (result.status != 0) fail_msg("%s", result.err);
    json_t *report = process_json(&result);
    assert_int_equal(json_integer_value(json_object_get(report, "context")), 20);
    json_decref(report);
    process_free(&result);
    expect(OCTAVO(text, "perplexity", path, "-", "--context", "21"), 1, "made for 20");
    unlink(path);
}

static void test_errors(void **state) {
    (void)state;
    expect(OCTAVO("", "calibrate", TINY_LLAMA, "-", "--out", out), 1, "empty");
    expect(OCTAVO(text, "calibrate", TINY_LLAMA, "/no/text", "--out", out), 1, "/no/text");
    expect(OCTAVO(text, "calibrate", TINY_LLAMA, "-", "--out", "/no/folder/x"), 1, "/no/folder/x");
    expect(OCTAVO(text, "calibrate", TINY_LLAMA, "-", "--out", "/dev/full"), 1, "/dev/full");
    expect(OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "x", "-n", "2", "--kv-scales", out), 1,
           "kv-dtype");
    expect(OCTAVO("", "run", TINY_QWEN2, "--raw", "-p", "x", "-n", "2", "--kv-dtype", "int8",
                  "--kv-scales", out),
           1, "another model");
    expect(OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "x", "-n", "2", "--kv-dtype", "int8",
                  "--kv-scales", out),
           0, NULL);
    assert_int_equal(access("/dev/full", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_use),
        cmocka_unit_test(test_short_model),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
