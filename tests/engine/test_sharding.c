/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/sharding.h: where the degrees come from, what wins, messages, dumps, and memory that runs
 * out at any point.
 */
#include "../unit.h"

#include "octavo/machine.h"
#include "octavo/sharding.h"
#include "octavo/template.h"

#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long n_calls;
static long fails_at; /* this call, from 1; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

static bool fails(void) {
    return atomic_fetch_add(&n_calls, 1) + 1 == fails_at;
}

void *__wrap_malloc(size_t bytes) {
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes) {
    return fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes) {
    return fails() ? NULL : __real_realloc(p, bytes);
}

static char path[] = "/tmp/octavo-sharding-XXXXXX";

static int write_rules(void **unused) {
    (void)unused;
    static const char text[] =
        "{\"sharding\": {\"sharding_strategy\": {\"tensor_parallelism\": 2, \"data_parallelism\": "
        "-1}, \"logical_rules\": {\"all\": {\"logits_tv\": [\"seq\", null]}, \"parts\": "
        "[{\"layers\": \"0-3\", \"generate\": {\"query_tnh\": null}}]}}}";
    const int file = mkstemp(path);
    if (file < 0) return -1;
    const bool is_written = write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1;
    close(file);
    return is_written ? 0 : -1;
}

static int remove_rules(void **unused) {
    (void)unused;
    return unlink(path);
}

static octavo_sharding_options defaults(void) {
    octavo_sharding_options options;
    octavo_sharding_options_init(&options);
    return options;
}

static octavo_sharding *created(const octavo_sharding_options *options) {
    octavo_sharding *sharding = NULL;
    octavo_error error = {0};
    if (octavo_sharding_create(options, &sharding, &error)) fail_msg("%s", error.message);
    return sharding;
}

static void assert_degrees(const octavo_sharding_options *options, int data, int expert, int seq,
                           int model) {
    octavo_sharding *sharding = created(options);
    assert_int_equal(octavo_sharding_degree(sharding, OCTAVO_SHARDING_DATA), data);
    assert_int_equal(octavo_sharding_degree(sharding, OCTAVO_SHARDING_EXPERT), expert);
    assert_int_equal(octavo_sharding_degree(sharding, OCTAVO_SHARDING_SEQ), seq);
    assert_int_equal(octavo_sharding_degree(sharding, OCTAVO_SHARDING_MODEL), model);
    assert_int_equal(octavo_sharding_degree(sharding, (octavo_sharding_axis)4), 0);
    assert_int_equal(octavo_sharding_ranks(sharding), data * expert * seq * model);
    octavo_sharding_destroy(&sharding);
    assert_null(sharding);
    octavo_sharding_destroy(&sharding);
}

static void test_degrees(void **unused) {
    (void)unused;
    octavo_sharding_options options = defaults();
    assert_degrees(&options, 1, 1, 1, 1);
    options.mesh = "model=2,expert=3";
    assert_degrees(&options, 1, 3, 1, 2);
    options.mesh = "model=2,seq=-1";
    options.devices = 6;
    assert_degrees(&options, 1, 1, 3, 2);
    options.mesh = NULL;
    options.rules = path;
    assert_degrees(&options, 3, 1, 1, 2);
    options.mesh = "model=6"; /* wins over the strategy, whole */
    assert_degrees(&options, 1, 1, 1, 6);
    options.mesh = NULL;
    options.rules = NULL;
    options.devices = 1;
    assert_degrees(&options, 1, 1, 1, 1);
}

/* Without devices a -1 is as many as there are NUMA nodes: at least one, no more than cores. */
static void test_nodes(void **unused) {
    (void)unused;
    octavo_sharding_options options = defaults();
    options.mesh = "model=-1";
    octavo_sharding *sharding = created(&options);
    assert_in_range(octavo_sharding_ranks(sharding), 1, octavo_machine_cores());
    octavo_sharding_destroy(&sharding);
}

static void assert_refused(const octavo_sharding_options *options, octavo_status status,
                           const char *message) {
    octavo_sharding *sharding = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_sharding_create(options, &sharding, &error), status);
    assert_null(sharding);
    if (!strstr(error.message, message)) fail_msg("%s: not %s", error.message, message);
}

static void test_errors(void **unused) {
    (void)unused;
    octavo_sharding_options options = defaults();
    assert_refused(NULL, OCTAVO_ERROR_INVALID, "octavo_sharding_options_init");
    options.size--;
    assert_refused(&options, OCTAVO_ERROR_INVALID, "octavo_sharding_options_init");
    options = defaults();
    options.devices = 4;
    assert_refused(&options, OCTAVO_ERROR_INVALID,
                   "mesh (default): the product of the degrees is 1, but the devices are 4; "
                   "data=1,expert=1,seq=1,model=4 would fit");
    options.rules = path;
    options.devices = 5;
    assert_refused(&options, OCTAVO_ERROR_INVALID,
                   ": sharding.sharding_strategy: data cannot be inferred, since the product of "
                   "the others, 2, does not divide the devices, 5");
    options = defaults();
    options.mesh = "model=2,data=3";
    options.devices = 4;
    assert_refused(&options, OCTAVO_ERROR_INVALID, "the product of the degrees is 6");
    options = defaults();
    options.rules = "/nowhere/rules.json";
    assert_refused(&options, OCTAVO_ERROR_NOT_FOUND, "/nowhere/rules.json");
    options = defaults();
    options.generate = "{\"logits\": null}";
    assert_refused(&options, OCTAVO_ERROR_INVALID,
                   "rules (of the program): generate.logits: there is no tensor \"logits\"");
    options.generate = NULL;
    options.all = "{\"norm_scale\": [\"data\"]}";
    options.mesh = "data=2";
    assert_refused(&options, OCTAVO_ERROR_INVALID, "leave it whole (null)");
}

static void test_dump(void **unused) {
    (void)unused;
    octavo_sharding_options options = defaults();
    char *text = NULL;
    options.rules = path;
    options.devices = 2;
    options.prefill = "{\"activation_td\": [\"seq\", null]}";
    octavo_sharding *sharding = created(&options);
    assert_int_equal(octavo_sharding_dump(sharding, OCTAVO_SHARDING_OVERRIDES, &text, NULL),
                     OCTAVO_OK);
    assert_string_equal(
        text, "phase     tensor                       override                 from\ngenerate  "
              "logits_tv                    (seq, -)                 file\ngenerate  query_tnh     "
              "               (-, -, -)                file: layers 0-3\nprefill   activation_td   "
              "             (seq, -)                 program\n");
    octavo_text_free(text);
    assert_int_equal(octavo_sharding_dump(sharding, OCTAVO_SHARDING_TABLE, &text, NULL), OCTAVO_OK);
    assert_non_null(strstr(
        text, "activation_td                activation (seq, -) *               (data, -)\n"));
    octavo_text_free(text);
    assert_int_equal(octavo_sharding_dump(sharding, OCTAVO_SHARDING_FILE, &text, NULL), OCTAVO_OK);
    assert_string_equal(
        text,
        "{\"sharding\": {\"logical_rules\": {\"prefill\": {\"activation_td\": [\"seq\", null]}, "
        "\"generate\": {\"logits_tv\": [\"seq\", null]}, \"parts\": [{\"layers\": \"0-3\", "
        "\"generate\": {\"query_tnh\": [null, null, null]}}]}}}\n");
    octavo_text_free(text);
    octavo_error error = {0};
    assert_int_equal(octavo_sharding_dump(sharding, (octavo_sharding_text)7, &text, &error),
                     OCTAVO_ERROR_INVALID);
    assert_non_null(strstr(error.message, "which 7"));
    octavo_sharding_destroy(&sharding);
}

/* The dump in *text, which the caller frees. */
static octavo_status make_text(char **text, octavo_error *error) {
    octavo_sharding_options options = defaults();
    octavo_sharding *sharding = NULL;
    options.rules = path;
    options.devices = 2;
    options.prefill = "{\"activation_td\": [\"seq\", null]}";
    octavo_status status = octavo_sharding_create(&options, &sharding, error);
    if (!status) status = octavo_sharding_dump(sharding, OCTAVO_SHARDING_TABLE, text, error);
    octavo_sharding_destroy(&sharding);
    return status;
}

/* The parser of JSON, too, has its memory from here. Where that runs out it may say that the text
 * is wrong: any error will do, but nothing may be lost without one. */
static void test_memory(void **unused) {
    (void)unused;
    octavo_error error = {0};
    char *expected = NULL;
    json_set_alloc_funcs(__wrap_malloc, free);
    n_calls = 0;
    assert_int_equal(make_text(&expected, &error), OCTAVO_OK);
    const long calls = n_calls;
    assert_true(calls > 20);
    for (long i = 1; i <= calls; i++) {
        char *text = NULL;
        error = (octavo_error){0};
        n_calls = 0;
        fails_at = i;
        octavo_status status = make_text(&text, &error);
        fails_at = 0;
        assert_int_equal(status == OCTAVO_OK, error.message[0] == 0);
        assert_int_equal(status == OCTAVO_OK, text != NULL);
        if (text) assert_string_equal(text, expected);
        octavo_text_free(text);
    }
    octavo_text_free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_degrees), cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_errors),  cmocka_unit_test(test_dump),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, write_rules, remove_rules);
}
