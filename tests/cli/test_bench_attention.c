/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo bench attention: what it counts, that what it reports fits together, and what it refuses.
 * How fast anything is, no test says.
 */
#include "process.h"

#include <math.h>
#include <stdbool.h>

static double number_of(const json_t *object, const char *key) {
    const json_t *number = json_object_get(object, key);
    if (!json_is_number(number)) fail_msg("no number '%s'", key);
    return json_number_value(number);
}

static bool is_close(double a, double b) {
    return fabs(a - b) <= 1e-4 * fabs(b);
}

/* Time, and what follows from it and the counts. */
static void check_speeds(const json_t *report) {
    const json_t *seconds = json_object_get(report, "seconds");
    const double best = number_of(seconds, "best");
    assert_true(best > 0.0);
    assert_true(best <= number_of(seconds, "median"));
    assert_true(is_close(number_of(report, "gbps"), number_of(report, "bytes") / best * 1e-9));
    assert_true(is_close(number_of(report, "gflops"), number_of(report, "flops") / best * 1e-9));
}

/* Against the definition, key by key: causal, and with a window only the last `window` ones. */
static void count(int q_len, int kv_len, int window, double *visible, double *pairs) {
    for (int j = 0; j < kv_len; j++) {
        int seen = 0;
        for (int p = kv_len - q_len; p < kv_len; p++)
            seen += j <= p && (window == 0 || j > p - window);
        *pairs += seen;
        *visible += seen > 0;
    }
}

static void test_counts(void **state) {
    static const int windows[] = {0, 1, 7, 16, 30, 31, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        char window[16];
        double visible = 0.0, pairs = 0.0;
        count(3, 10, windows[i], &visible, &pairs);
        count(1, 40, windows[i], &visible, &pairs);
        count(1, 40, windows[i], &visible, &pairs);
        count(20, 30, windows[i], &visible, &pairs);
        count(30, 30, windows[i], &visible, &pairs);
        snprintf(window, sizeof window, "%d", windows[i]);
        process_result result =
            OCTAVO("", "bench", "attention", "--heads", "4", "--kv-heads", "2", "--head-dim", "40",
                   "--batch", "3:10,2x1:40,20:30,30:30", "--window", window, "--q-dtype", "f32",
                   "--kv-dtype", "f16", "--page-size", "5", "--repeat", "2", "--threads", "1",
                   "--no-limits", "--json");
        if (result.status != 0) fail_msg("%s", result.err);
        json_t *report = process_json(&result);
        const double cache = 2.0 * 2 * 40 * 2 * visible, queries = 2.0 * 4 * 40 * 4 * 55;
        assert_true(number_of(report, "bytes") == cache + queries);
        assert_true(number_of(report, "flops") == 4.0 * 4 * 40 * pairs);
        assert_true(number_of(report, "sequences") == 5);
        assert_true(number_of(report, "queries") == 55);
        assert_true(number_of(report, "positions") == 150);
        assert_true(number_of(report, "runs") == 2);
        assert_null(json_object_get(report, "bandwidth_share"));
        check_speeds(report);
        json_decref(report);
        process_free(&result);
    }
}

static void test_limits(void **state) {
    (void)state;
    process_result result = OCTAVO("", "bench", "attention", "--batch", "1:100", "--threads", "1",
                                   "--repeat", "3", "--json", "--pages", "runs");
    if (result.status != 0) fail_msg("%s", result.err);
    json_t *report = process_json(&result);
    const json_t *machine = json_object_get(report, "machine");
    const double before = number_of(json_object_get(machine, "before"), "read_gbps");
    const double after = number_of(json_object_get(machine, "after"), "read_gbps");
    const double read = number_of(report, "read_gbps"), peak = number_of(report, "peak_gflops");
    assert_true(is_close(read, (before + after) / 2.0));
    assert_true(is_close(number_of(report, "bandwidth_share"), number_of(report, "gbps") / read));
    assert_true(is_close(number_of(report, "peak_share"), number_of(report, "gflops") / peak));
    assert_string_equal(json_string_value(json_object_get(report, "pages")), "runs");
    check_speeds(report);
    json_decref(report);
    process_free(&result);
}

/* Without options: the case that everything is compared in. */
static void test_defaults(void **state) {
    (void)state;
    process_result result =
        OCTAVO("", "bench", "attention", "--repeat", "1", "--no-limits", "--json");
    if (result.status != 0) fail_msg("%s", result.err);
    json_t *report = process_json(&result);
    assert_true(number_of(report, "bytes") == 16 * (4096 * 8 * 2 * 128 * 2.0 + 2 * 32 * 128 * 2.0));
    assert_true(number_of(report, "flops") == 4.0 * 32 * 128 * 16 * 4096);
    assert_true(number_of(report, "page_size") == 16);
    assert_string_equal(json_string_value(json_object_get(report, "kv_dtype")), "bf16");
    assert_string_equal(json_string_value(json_object_get(report, "q_dtype")), "bf16");
    assert_string_equal(json_string_value(json_object_get(report, "layout")), "rows");
    assert_string_equal(json_string_value(json_object_get(report, "pages")), "random");
    assert_string_equal(json_string_value(json_object_get(report, "precision")), "strict");
    json_decref(report);
    process_free(&result);
}

/* Every kind of cache is made as the library wants it. */
static void test_caches(void **state) {
    static const char *const layouts[] = {"rows", "columns"};
    static const char *const precisions[] = {"strict", "bf16"};
    static const struct {
        const char *name;
        double bytes;
    } dtypes[] = {{"f32", 4},      {"f16", 2},      {"bf16", 2},
                  {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"int8", 1}};
    (void)state;
    for (size_t i = 0; i < 24; i++) {
        const char *layout = layouts[i % 2], *precision = precisions[i / 2 % 2];
        const char *dtype = dtypes[i / 4].name;
        process_result result =
            OCTAVO("", "bench", "attention", "--heads", "6", "--kv-heads", "3", "--head-dim", "72",
                   "--batch", "1:100,9:20", "--layout", layout, "--precision", precision,
                   "--kv-dtype", dtype, "--repeat", "1", "--no-limits", "--json");
        if (result.status != 0) fail_msg("%s", result.err);
        json_t *report = process_json(&result);
        const double cache = 2.0 * 3 * 72 * dtypes[i / 4].bytes * 120;
        assert_true(number_of(report, "bytes") == cache + 2.0 * 6 * 72 * 2 * 10);
        assert_string_equal(json_string_value(json_object_get(report, "kv_dtype")), dtype);
        assert_string_equal(json_string_value(json_object_get(report, "layout")), layout);
        assert_string_equal(json_string_value(json_object_get(report, "precision")), precision);
        json_decref(report);
        process_free(&result);
    }
}

static void test_text(void **state) {
    (void)state;
    process_result result =
        OCTAVO("", "bench", "attention", "--batch", "1:5", "--repeat", "1", "--no-limits");
    assert_int_equal(result.status, 0);
    assert_int_equal(result.err_bytes, 0);
    assert_non_null(strstr(result.out, "1 sequence, 1 new token, context 5\n"));
    assert_non_null(strstr(result.out, " GB/s\n"));
    assert_non_null(strstr(result.out, " GFLOP/s\n"));
    process_free(&result);
}

static void test_refusals(void **state) {
    static const struct {
        const char *option, *value;
        int status;
        const char *says;
    } wrong[] = {
        {"--batch", "", 2, "not Q:KV"},
        {"--batch", "1", 2, "--batch (1): not Q:KV"},
        {"--batch", "1:", 2, "not Q:KV"},
        {"--batch", ":1", 2, "not Q:KV"},
        {"--batch", "0:1", 2, "not Q:KV"},
        {"--batch", "1:0", 2, "not Q:KV"},
        {"--batch", "1:1,", 2, "--batch ()"},
        {"--batch", "1:1 ", 2, "not Q:KV"},
        {"--batch", "1:1:1", 2, "not Q:KV"},
        {"--batch", "-1:1", 2, "not Q:KV"},
        {"--batch", "0x1:1", 2, "not Q:KV"},
        {"--batch", "2x2x1:1", 2, "not Q:KV"},
        {"--batch", "1:2147483648", 2, "not Q:KV"},
        {"--batch", "1:99999999999999999999999", 2, "not Q:KV"},
        {"--batch", "1:4,5:4", 2, "--batch (5:4): a context shorter"},
        {"--batch", "65537x1:1", 2, "more than 65536 sequences"},
        {"--batch", "65536x1:1,1:1", 2, "--batch (1:1): more than 65536 sequences"},
        {"--batch", "65536x1:2147483647", 1, "8796093022208 pages"},
        {"--batch", "2147483647:2147483647,1:1", 1, "2147483648 new tokens"},
        {"--batch", "512x1:1048576", 1, "more memory than the machine's"},
        {"--kv-heads", "5", 2, "--kv-heads (5): 32 query heads"},
        {"--heads", "0", 2, "1 to 1024"},
        {"--head-dim", "1000", 2, "1 to 512"},
        {"--page-size", "1025", 2, "1 to 1024"},
        {"--window", "-1", 2, "0 to 2147483647"},
        {"--kv-dtype", "i32", 2, "fp8_e4m3"},
        {"--q-dtype", "int8", 2, "f32|f16|bf16"},
        {"--pages", "sorted", 2, "random|runs"},
        {"--layout", "row", 2, "rows|columns"},
        {"--precision", "exact", 2, "strict|bf16"},
        {"--repeat", "0", 2, "1 to 10000"},
        {"--threads", "0", 2, "1 to 1024"},
        {"--isa", "mmx", 2, "avx2"},
        {"--no-limit", "1", 2, "did you mean --no-limits?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        process_result result = OCTAVO("", "bench", "attention", "--no-limits", "--repeat", "1",
                                       wrong[i].option, wrong[i].value);
        if (result.status != wrong[i].status)
            fail_msg("%s %s: status %d, %s", wrong[i].option, wrong[i].value, result.status,
                     result.err);
        assert_true(process_says(&result, wrong[i].says));
        assert_int_equal(result.out_bytes, 0);
        process_free(&result);
    }
    process_result result = OCTAVO("", "bench", "attention", "model.gguf");
    assert_int_equal(result.status, 2);
    assert_true(process_says(&result, "too many; usage: octavo bench attention [options]"));
    process_free(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_text),
        cmocka_unit_test(test_caches),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
