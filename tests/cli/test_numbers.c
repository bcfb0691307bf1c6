/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands whose result is numbers: logits, perplexity, inspect, bench.
 */
#include "../npy.h"
#include "process.h"

#include <math.h>
#include <unistd.h>

static char folder[] = "/tmp/octavo-numbers-XXXXXX";
static char ids_path[64], npy_path[64], text_path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(ids_path, sizeof ids_path, "%s/ids.json", folder);
    snprintf(npy_path, sizeof npy_path, "%s/logits.npy", folder);
    snprintf(text_path, sizeof text_path, "%s/text", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    (void)unlink(ids_path);
    (void)unlink(npy_path);
    (void)unlink(text_path);
    return rmdir(folder);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* The ids of a golden's prompt, as a file. Returns how many. */
static size_t write_prompt_ids(const char *name, size_t prompt) {
    char path[512];
    snprintf(path, sizeof path, "%s/models/%s.json", TEST_DATA, name);
    json_t *golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    const json_t *ids = json_array_get(json_object_get(golden, "prompt_ids"), prompt);
    size_t n = json_array_size(ids);
    assert_int_equal(json_dump_file(ids, ids_path, 0), 0);
    json_decref(golden);
    return n;
}

static npy open_golden(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/models/%s.logits.npy", TEST_DATA, name);
    return npy_read(path);
}

static void check_logits(const char *name) {
    char model[512];
    npy golden = open_golden(name);
    const int64_t vocabulary = golden.extents[1];
    snprintf(model, sizeof model, "%s/models/%s.gguf", TEST_DATA, name);
    for (size_t prompt = 0; prompt < 3; prompt++) {
        size_t n = write_prompt_ids(name, prompt);
        const float *want = (const float *)golden.data + (int64_t)prompt * vocabulary;
        process_result result = OCTAVO("", "logits", model, "--ids", ids_path, "--out", npy_path,
                                       "--precision", "exact", "--chunk", "5");
        if (result.status != 0) fail_msg("%s", result.err);
        process_free(&result);
        npy all = npy_read(npy_path);
        assert_int_equal(all.n_axes, 2);
        assert_int_equal(all.extents[0], n);
        assert_int_equal(all.extents[1], vocabulary);
        const float *last = (const float *)all.data + (int64_t)(n - 1) * vocabulary;
        for (int64_t i = 0; i < vocabulary; i++)
            assert_true(fabs((double)last[i] - (double)want[i]) < 2e-3);

        result = OCTAVO("", "logits", model, "--last", "--ids", ids_path, "--out", npy_path,
                        "--precision", "exact");
        assert_int_equal(result.status, 0);
        process_free(&result);
        npy row = npy_read(npy_path);
        assert_int_equal(row.extents[0], 1);
        assert_memory_equal(row.data, last, (size_t)vocabulary * sizeof(float));
        npy_free(&row);
        npy_free(&all);
    }
    npy_free(&golden);
}

static void test_logits(void **state) {
    (void)state;
    check_logits("llama-f32");
    check_logits("qwen2-bf16");
    check_logits("gemma3-f32");
}

static void test_logits_errors(void **state) {
    static const struct {
        const char *ids, *says;
    } wrong[] = {
        {"[]", "empty"},     {"[1, 2", "JSON"},     {"{}", "not a JSON array"},
        {"[1.5]", "item 0"}, {"[1, 1000]", "1000"}, {"[4294967297]", "item 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)unlink(npy_path);
        process_result result =
            OCTAVO(wrong[i].ids, "logits", TINY_LLAMA, "--ids", "-", "--out", npy_path);
        assert_int_equal(result.status, 1);
        assert_true(process_says(&result, wrong[i].says));
        assert_int_not_equal(access(npy_path, F_OK), 0); /* and no file is left */
        process_free(&result);
    }
    process_result result =
        OCTAVO("[1]", "logits", TINY_LLAMA, "--ids", "-", "--out", "/no/folder/x.npy");
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "/no/folder/x.npy"));
    process_free(&result);
    if (access("/dev/full", W_OK) == 0) {
        result = OCTAVO("[1]", "logits", TINY_LLAMA, "--ids", "-", "--out", "/dev/full");
        assert_int_equal(result.status, 1);
        assert_true(process_says(&result, "/dev/full"));
        process_free(&result);
    }
}

static double number_of(const json_t *object, const char *key) {
    const json_t *number = json_object_get(object, key);
    if (!json_is_number(number)) fail_msg("no number '%s'", key);
    return json_number_value(number);
}

/* Mean negative log likelihood of ids 1..n-1 of a window, and of its second half, from logits. */
static void expected_nll(const int32_t *ids, size_t n, double *sum, double *half) {
    npy logits = npy_read(npy_path);
    const int64_t vocabulary = logits.extents[1];
    for (size_t t = 1; t < n; t++) {
        const float *row = (const float *)logits.data + (int64_t)(t - 1) * vocabulary;
        double total = 0.0;
        for (int64_t i = 0; i < vocabulary; i++)
            total += exp((double)row[i]);
        double nll = log(total) - (double)row[ids[t]];
        *sum += nll;
        if (t >= n / 2) *half += nll;
    }
    npy_free(&logits);
}

/* Against the definition, worked out from octavo logits: two windows of 16, begin of text first. */
static void test_perplexity(void **state) {
    enum { CONTEXT = 16, WINDOWS = 2 };
    static const char text[] = "The scheduler admits a request when enough free pages remain for "
                               "its prompt. She said that they would be late.";
    char quoted[256];
    double sum = 0.0, half = 0.0;
    (void)state;
    write_file(text_path, text);
    snprintf(quoted, sizeof quoted, "\"%s\"\n", text);
    process_result result = OCTAVO(quoted, "tokenize", TINY_LLAMA, "--no-bos");
    json_t *list = process_json(&result);
    process_free(&result);
    assert_true(json_array_size(list) >= CONTEXT * WINDOWS);
    for (size_t w = 0; w < WINDOWS; w++) {
        int32_t ids[CONTEXT] = {1}; /* begin of text instead of the first */
        json_t *window = json_array();
        for (size_t i = 0; i < CONTEXT; i++) {
            if (i > 0) ids[i] = (int32_t)json_integer_value(json_array_get(list, w * CONTEXT + i));
            json_array_append_new(window, json_integer(ids[i]));
        }
        assert_int_equal(json_dump_file(window, ids_path, 0), 0);
        json_decref(window);
        result = OCTAVO("", "logits", TINY_LLAMA, "--ids", ids_path, "--out", npy_path,
                        "--precision", "exact");
        assert_int_equal(result.status, 0);
        process_free(&result);
        expected_nll(ids, CONTEXT, &sum, &half);
    }
    result = OCTAVO("", "perplexity", TINY_LLAMA, text_path, "--context", "16", "--windows", "2",
                    "--json", "--precision", "exact");
    json_t *got = process_json(&result);
    double n = WINDOWS * (CONTEXT - 1), n_half = WINDOWS * (CONTEXT / 2);
    assert_true(fabs(number_of(got, "perplexity") / exp(sum / n) - 1.0) < 1e-4);
    assert_true(number_of(got, "error") > 0.0);
    assert_true(number_of(got, "predicted") == n);
    const json_t *second = json_object_get(got, "second_half");
    assert_true(fabs(number_of(second, "perplexity") / exp(half / n_half) - 1.0) < 1e-4);
    assert_true(number_of(second, "predicted") == n_half);
    json_decref(got);
    json_decref(list);
    process_free(&result);

    result = OCTAVO("", "perplexity", TINY_LLAMA, text_path, "--context", "256");
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "shorter than one window"));
    process_free(&result);
}

static void test_inspect(void **state) {
    (void)state;
    process_result result = OCTAVO("", "inspect", TINY_GEMMA3, "--json", "--program");
    json_t *document = process_json(&result);
    assert_string_equal(json_string_value(json_object_get(document, "architecture")), "gemma3");
    size_t n_tensors = json_array_size(json_object_get(document, "tensors"));
    assert_int_equal(n_tensors, 80);
    const json_t *program = json_object_get(document, "program");
    assert_true(json_array_size(json_object_get(program, "ops")) > 0);
    process_result text = OCTAVO("", "inspect", TINY_GEMMA3, "--program");
    assert_int_equal(text.status, 0);
    for (size_t i = 0; i < n_tensors; i++) {
        const json_t *tensor = json_array_get(json_object_get(document, "tensors"), i);
        assert_non_null(strstr(text.out, json_string_value(json_object_get(tensor, "name"))));
    }
    assert_non_null(strstr(text.out, "Operations\n"));
    process_free(&text);
    text = OCTAVO("", "inspect", TINY_GEMMA3);
    assert_null(strstr(text.out, "Operations\n"));
    process_free(&text);
    json_decref(document);
    process_free(&result);
}

/* Weights that are not numbers give no perplexity, least of all a "nan" that JSON does not know,
 * and no answer of the first id again and again. */
static void test_garbage(void **state) {
    (void)state;
    char path[] = "/tmp/octavo-garbage-XXXXXX";
    FILE *from = fopen(TINY_LLAMA, "rb"), *to = fdopen(mkstemp(path), "wb");
    assert_true(from && to);
    for (long i = 0, c; (c = getc(from)) != EOF; i++)
        putc(i < 64 << 10 ? (int)c : 0xff, to);
    assert_int_equal(fclose(from), 0);
    assert_int_equal(fclose(to), 0);
    process_result result = OCTAVO("some text, enough of it for one window", "perplexity", path,
                                   "-", "--context", "8", "--json");
    assert_int_equal(result.status, 1);
    assert_int_equal(result.out_bytes, 0);
    assert_true(process_says(&result, "not all numbers"));
    process_free(&result);
    for (int i = 0; i < 2; i++) {
        result = OCTAVO("", "run", path, "--raw", "-p", "some text", "-n", "4", "--temperature",
                        i ? "1" : "0", "--json");
        assert_int_equal(result.status, 1);
        assert_int_equal(result.out_bytes, 0);
        assert_true(process_says(&result, "not all numbers"));
        process_free(&result);
    }
    assert_int_equal(remove(path), 0);
}

static void check_spread(const json_t *phase) {
    const json_t *speed = json_object_get(phase, "tokens_per_s");
    assert_true(number_of(speed, "min") > 0.0);
    assert_true(number_of(speed, "min") <= number_of(speed, "median"));
    assert_true(number_of(speed, "median") <= number_of(speed, "best"));
}

static void test_bench(void **state) {
    (void)state;
    process_result refused = OCTAVO("", "bench", TINY_QWEN2, "--streams", "65", "--chunk", "64");
    assert_int_equal(refused.status, 2);
    assert_true(process_says(&refused, "65 streams"));
    process_free(&refused);
    /* 20 streams need more than the cache of one full context. */
    process_result result = OCTAVO("", "bench", TINY_QWEN2, "--prompt", "40", "--generate", "8",
                                   "--depth", "10", "--streams", "20", "--shared-prefix", "4",
                                   "--repeat", "3", "--no-limits", "--json", "--chunk", "64");
    if (result.status != 0) fail_msg("%s", result.err);
    json_t *report = process_json(&result);
    check_spread(json_object_get(report, "prefill"));
    check_spread(json_object_get(report, "decode"));
    assert_true(number_of(json_object_get(report, "decode"), "cache_bytes_per_token") > 0.0);
    assert_true(number_of(report, "load_s") > 0.0);
    assert_true(number_of(report, "peak_rss_bytes") > 1e5);
    assert_null(json_object_get(json_object_get(report, "decode"), "bandwidth_share"));
    json_decref(report);
    process_free(&result);

    result = OCTAVO("", "bench", TINY_QWEN2, "--prompt", "0", "--generate", "4", "--repeat", "1",
                    "--json", "--threads", "1");
    if (result.status != 0) fail_msg("%s", result.err);
    report = process_json(&result);
    assert_true(json_is_null(json_object_get(report, "prefill")));
    assert_true(number_of(json_object_get(report, "decode"), "bandwidth_share") > 0.0);
    json_decref(report);
    process_free(&result);

    result = OCTAVO("", "bench", TINY_QWEN2, "--prompt", "600");
    assert_int_equal(result.status, 1);
    assert_true(process_says(&result, "longer than the context of 512"));
    process_free(&result);
}

static void test_bench_machine(void **state) {
    (void)state;
    process_result result = OCTAVO("", "bench", "machine", "--threads", "1", "--json");
    json_t *report = process_json(&result);
    const json_t *rows = json_object_get(report, "machine");
    assert_int_equal(json_array_size(rows), 1);
    assert_true(number_of(json_array_get(rows, 0), "read_gbps") > 0.0);
    assert_true(number_of(json_array_get(rows, 0), "f32_gflops") > 0.0);
    json_decref(report);
    process_free(&result);

    /* powers of two, then what was asked for */
    result = OCTAVO("", "bench", "machine", "--threads", "3", "--json");
    report = process_json(&result);
    rows = json_object_get(report, "machine");
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(number_of(json_array_get(rows, i), "threads"), i + 1);
    json_decref(report);
    process_free(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),        cmocka_unit_test(test_logits_errors),
        cmocka_unit_test(test_perplexity),    cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_garbage),       cmocka_unit_test(test_bench),
        cmocka_unit_test(test_bench_machine),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
