/* SPDX-License-Identifier: Apache-2.0
 *
 * Real models against goldens (tests/data/real): token ids, the 50 largest logits, greedy
 * continuations and perplexity. Models are looked for in the folder OCTAVO_MODELS; without any of
 * them the test is skipped. OCTAVO_TEST_QUICK=1 leaves the perplexity out.
 */
#include "../unit.h"
#include "base/compiler.h"

#include "octavo/model.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LICENCE "/usr/share/common-licenses/GPL-3"

static const char *const names[] = {"smollm2-135m-q4_1", "gemma3-270m-q4_k_m",
                                    "qwen25c-0.5b-q4_k_m"};

typedef struct subject {
    json_t *golden;
    octavo_model *model;
    int32_t vocabulary;
    float *logits; /* [vocabulary] */
} subject;

static bool find_model(const char *name, char *path, size_t size) {
    const char *folder = getenv("OCTAVO_MODELS");
    if (!folder) return false;
    snprintf(path, size, "%s/%s.gguf", folder, name);
    return access(path, R_OK) == 0;
}

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

static void open_subject(subject *s, const char *name, const char *path,
                         octavo_precision precision) {
    char golden[512];
    octavo_model_options options;
    octavo_error error;
    json_error_t json_error;
    snprintf(golden, sizeof golden, TEST_DATA "/real/%s.json", name);
    s->golden = json_load_file(golden, 0, &json_error);
    assert_non_null(s->golden);
    octavo_model_options_init(&options);
    options.precision = precision;
    options.context = 2048;
    must(octavo_model_open(path, &options, &s->model, &error), &error);
    s->vocabulary = octavo_model_describe(s->model).vocabulary;
    s->logits = calloc((size_t)s->vocabulary, sizeof *s->logits);
    assert_non_null(s->logits);
}

static void close_subject(subject *s) {
    free(s->logits);
    octavo_model_close(&s->model);
    json_decref(s->golden);
}

static size_t read_ids(const json_t *array, int32_t *ids, size_t capacity) {
    size_t n = json_array_size(array);
    assert_true(n <= capacity);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return n;
}

static void check_ids(const subject *s, const json_t *prompt, const int32_t *want, size_t n_want) {
    const char *text = json_string_value(json_object_get(prompt, "text"));
    int32_t ids[512];
    size_t n_ids;
    octavo_error error;
    must(octavo_tokenizer_encode(octavo_model_tokenizer(s->model), text, strlen(text),
                                 OCTAVO_ENCODE_BEGIN_END | OCTAVO_ENCODE_SPECIAL_TEXT, ids,
                                 OCTAVO_COUNT(ids), &n_ids, &error),
         &error);
    assert_int_equal(n_ids, n_want);
    assert_memory_equal(ids, want, n_want * sizeof *want);
}

/* The largest difference to the golden logits. */
static double top_difference(const subject *s, const json_t *prompt) {
    const json_t *ids = json_object_get(prompt, "top50_ids"),
                 *logits = json_object_get(prompt, "top50_logits");
    double largest = 0.0;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        float got = s->logits[json_integer_value(json_array_get(ids, i))];
        double difference = fabs((double)got - json_number_value(json_array_get(logits, i)));
        assert_true(isfinite(got));
        if (difference > largest) largest = difference;
    }
    return largest;
}

static int32_t most_likely(const subject *s) {
    int32_t best = 0;
    for (int32_t i = 1; i < s->vocabulary; i++)
        if (s->logits[i] > s->logits[best]) best = i;
    return best;
}

/* 48 greedy ids; a step whose gap is under the logits' tolerance may go another way. */
static void check_greedy(const subject *s, octavo_sequence *sequence, const json_t *prompt) {
    const json_t *want = json_object_get(prompt, "greedy_48"),
                 *gaps = json_object_get(prompt, "greedy_gap");
    octavo_error error;
    for (size_t i = 0; i < json_array_size(want); i++) {
        int32_t id = most_likely(s);
        if (id != json_integer_value(json_array_get(want, i))) {
            double gap = json_number_value(json_array_get(gaps, i));
            if (gap > 1e-2) fail_msg("greedy id %zu is %d, gap %g", i, (int)id, gap);
            return;
        }
        must(octavo_sequence_feed(sequence, &id, 1, OCTAVO_LOGITS_LAST, s->logits, NULL, &error),
             &error);
    }
}

static void check_prompts(const subject *s) {
    const json_t *prompts = json_object_get(s->golden, "prompts"), *prompt;
    size_t index;
    json_array_foreach(prompts, index, prompt) {
        int32_t ids[512];
        octavo_sequence *sequence = NULL;
        octavo_error error;
        size_t n = read_ids(json_object_get(prompt, "ids"), ids, OCTAVO_COUNT(ids));
        check_ids(s, prompt, ids, n);
        must(octavo_sequence_create(s->model, &sequence, &error), &error);
        must(octavo_sequence_feed(sequence, ids, n, OCTAVO_LOGITS_LAST, s->logits, NULL, &error),
             &error);
        double difference = top_difference(s, prompt);
        print_message("  prompt %zu: top 50 within %.2g\n", index, difference);
        assert_true(difference < 5e-3);
        check_greedy(s, sequence, prompt);
        octavo_sequence_destroy(&sequence);
    }
}

static int32_t *licence_ids(const subject *s, size_t n) {
    const octavo_tokenizer *tokenizer = octavo_model_tokenizer(s->model);
    FILE *file = fopen(LICENCE, "rb");
    static char text[65536];
    octavo_error error;
    size_t n_ids;
    if (!file) return NULL;
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    int32_t *ids = calloc(length, sizeof *ids);
    assert_non_null(ids);
    must(octavo_tokenizer_encode(tokenizer, text, length, OCTAVO_ENCODE_SPECIAL_TEXT, ids, length,
                                 &n_ids, &error),
         &error);
    assert_true(n_ids >= n);
    return ids;
}

/* exp of the mean negative log probability over positions 1.. of windows of 512. */
static double perplexity(const subject *s, int32_t *ids, int n_windows) {
    enum { WINDOW = 512 };
    const octavo_tokenizer *tokenizer = octavo_model_tokenizer(s->model);
    double sum = 0.0;
    octavo_error error;
    float *logits = calloc((size_t)64 * (size_t)s->vocabulary, sizeof *logits);
    assert_non_null(logits);
    for (int w = 0; w < n_windows; w++) {
        int32_t *window = ids + (size_t)w * WINDOW;
        octavo_sequence *sequence = NULL;
        must(octavo_sequence_create(s->model, &sequence, &error), &error);
        if (octavo_tokenizer_adds_bos(tokenizer)) window[0] = octavo_tokenizer_bos(tokenizer);
        for (int at = 0; at < WINDOW; at += 64) {
            must(octavo_sequence_feed(sequence, window + at, 64, OCTAVO_LOGITS_ALL, logits, NULL,
                                      &error),
                 &error);
            for (int i = 0; i < 64 && at + i + 1 < WINDOW; i++) {
                const float *row = logits + (size_t)i * (size_t)s->vocabulary;
                double total = 0.0;
                for (int32_t v = 0; v < s->vocabulary; v++)
                    total += exp((double)row[v]);
                sum += log(total) - (double)row[window[at + i + 1]];
            }
        }
        octavo_sequence_destroy(&sequence);
    }
    free(logits);
    return exp(sum / (n_windows * (WINDOW - 1)));
}

static void check_perplexity(const subject *s, double tolerance) {
    double want =
        json_number_value(json_object_get(json_object_get(s->golden, "perplexity"), "ppl_all"));
    int32_t *ids = getenv("OCTAVO_TEST_QUICK") ? NULL : licence_ids(s, 2048);
    if (!ids) {
        print_message("  perplexity left out\n");
        return;
    }
    double got = perplexity(s, ids, 4);
    free(ids);
    print_message("  perplexity %.5f, golden %.5f: %+.4f%%\n", got, want,
                  (got / want - 1.0) * 100.0);
    assert_true(fabs(got / want - 1.0) < tolerance);
}

static int n_found;

static void check_model(const char *name) {
    char path[512];
    subject s = {0};
    if (!find_model(name, path, sizeof path)) skip();
    n_found++;
    print_message("%s, exact\n", name);
    open_subject(&s, name, path, OCTAVO_PRECISION_EXACT);
    check_prompts(&s);
    check_perplexity(&s, 1e-3);
    close_subject(&s);
    print_message("%s, fast\n", name);
    open_subject(&s, name, path, OCTAVO_PRECISION_FAST);
    check_perplexity(&s, 5e-3);
    close_subject(&s);
}

static void test_smollm2(void **state) {
    (void)state;
    check_model(names[0]);
}

static void test_gemma3(void **state) {
    (void)state;
    check_model(names[1]);
}

static void test_qwen2(void **state) {
    (void)state;
    check_model(names[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smollm2),
        cmocka_unit_test(test_gemma3),
        cmocka_unit_test(test_qwen2),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : n_found ? 0 : 77;
}
