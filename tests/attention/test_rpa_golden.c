/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden cases of tests/data/rpa: outputs within tolerance, caches bit for bit, bad arguments
 * refused; at every level and with 1, 2 and 3 threads.
 */
#include "../unit.h"
#include "rpa_case.h"
#include "rpa_context.h"

#include <dirent.h>
#include <math.h>

/* Calls `check` for every folder in a folder; returns how many. */
static int each_case(const char *folder,
                     void (*check)(const char *path, octavo_attention_context *),
                     octavo_attention_context *context) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[4096], file[4200];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        snprintf(file, sizeof file, "%s/case.txt", path);
        FILE *text = fopen(file, "r");
        if (text == NULL) continue;
        fclose(text);
        check(path, context);
        n++;
    }
    closedir(dir);
    return n;
}

static bool is_live(const octavo_attention_args *args, int64_t token) {
    const int32_t *starts = args->query_start_loc.data, *kinds = args->distribution.data;
    return kinds[2] > 0 && token >= starts[0] && token < starts[kinds[2]];
}

static void check_output(const char *path, const rpa_case *c) {
    const octavo_array *out = &c->args.output;
    const int64_t row = out->extents[1] * out->extents[2];
    assert_int_equal(c->expect_out.n_elements, out->extents[0] * row);
    for (int64_t i = 0; i < c->expect_out.n_elements; i++) {
        const double got = rpa_value(out->data, out->dtype, i);
        if (!is_live(&c->args, i / row)) {
            if (got != 0.0) fail_msg("%s: padded row %lld is %g", path, (long long)(i / row), got);
            continue;
        }
        const double want = rpa_value(c->expect_out.data, out->dtype, i);
        const bool is_same = got == want || (isnan(got) && isnan(want));
        if (!is_same && !(fabs(got - want) <= c->atol + c->rtol * fabs(want)))
            fail_msg("%s: value %lld of row %lld is %.9g, want %.9g", path, (long long)(i % row),
                     (long long)(i / row), got, want);
    }
}

/* `before` is the cache as it was: the expected slots are put into it, the rest must be equal. */
static void check_cache(const char *path, const rpa_case *c, uint8_t *before) {
    const octavo_array *cache = &c->args.kv_cache;
    const size_t slot = (size_t)(cache->extents[2] * cache->extents[3] * cache->extents[4]) *
                        octavo_dtype_size(cache->dtype);
    const int64_t n_slots = cache->extents[0] * cache->extents[1];
    const int32_t *slots = c->expect_slots.data;
    for (int64_t i = 0; i < c->expect_slots.n_elements; i++)
        memcpy(before + (size_t)slots[i] * slot,
               (const uint8_t *)c->expect_rows.data + (size_t)i * slot, slot);
    for (int64_t i = 0; i < n_slots; i++) {
        if (memcmp(before + (size_t)i * slot, (uint8_t *)cache->data + (size_t)i * slot, slot) != 0)
            fail_msg("%s: slot %lld of the cache is not as expected", path, (long long)i);
    }
}

static void check_case(const char *path, octavo_attention_context *context) {
    rpa_case c;
    rpa_case_load(&c, path);
    assert_true(c.has_expectation && c.rtol > 0.0 && c.atol > 0.0);
    const octavo_array *cache = &c.args.kv_cache;
    size_t bytes = octavo_dtype_size(cache->dtype);
    for (int32_t i = 0; i < cache->n_axes; i++)
        bytes *= (size_t)cache->extents[i];
    uint8_t *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, cache->data, bytes);
    octavo_error error;
    if (octavo_ragged_paged_attention(context, &c.args, &error) != OCTAVO_OK)
        fail_msg("%s: %s", path, error.message);
    check_output(path, &c);
    check_cache(path, &c, before);
    free(before);
    rpa_case_free(&c);
}

static void check_refusal(const char *path, octavo_attention_context *context) {
    rpa_case c;
    rpa_case_load(&c, path);
    octavo_error error = {.message = ""};
    octavo_status status = octavo_ragged_paged_attention(context, &c.args, &error);
    if (status != OCTAVO_ERROR_INVALID) fail_msg("%s: accepted", path);
    assert_int_equal(error.status, status);
    assert_true(strstr(error.message, "ragged paged attention (") == error.message);
    rpa_case_free(&c);
}

static void golden_cases_hold(void **state) {
    (void)state;
    for (int i = 0; rpa_level(i) != NULL; i++) {
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            octavo_attention_context *context = rpa_context(rpa_level(i), n_threads);
            assert_int_equal(each_case(TEST_DATA "/rpa", check_case, context), 46);
            octavo_attention_context_destroy(&context);
        }
    }
}

static void golden_errors_are_refused(void **state) {
    (void)state;
    octavo_attention_context *context = rpa_context(NULL, 1);
    assert_int_equal(each_case(TEST_DATA "/rpa/errors", check_refusal, context), 15);
    octavo_attention_context_destroy(&context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_cases_hold),
        cmocka_unit_test(golden_errors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
