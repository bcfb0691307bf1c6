/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiny models with random weights against goldens (tests/data/models, and those of OCTAVO_ORACLE),
 * at every level that the machine has: logits of the last position and 24 greedy ids.
 */
#include "../npy.h"
#include "../unit.h"
#include "base/cpu.h"

#include "octavo/model.h"

#include <jansson.h>
#include <math.h>

/* Goldens are of float32 arithmetic; logits have a standard deviation of about 4. */
static const double tolerance = 2e-3;

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

static int32_t most_likely(const float *logits, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void check_prompt(octavo_model *model, const json_t *golden, const float *want,
                         size_t index) {
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    const json_t *list = json_array_get(json_object_get(golden, "prompt_ids"), index);
    const json_t *greedy = json_array_get(json_object_get(golden, "greedy_24"), index);
    const char *text =
        json_string_value(json_array_get(json_object_get(golden, "prompt_texts"), index));
    size_t n = json_array_size(list), n_encoded;
    int32_t ids[512], encoded[512];
    octavo_sequence *sequence = NULL;
    octavo_error error;
    float *logits = calloc((size_t)vocabulary, sizeof *logits);
    assert_non_null(logits);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    must(octavo_tokenizer_encode(octavo_model_tokenizer(model), text, strlen(text),
                                 OCTAVO_ENCODE_BEGIN_END | OCTAVO_ENCODE_SPECIAL_TEXT, encoded, 512,
                                 &n_encoded, &error),
         &error);
    assert_int_equal(n_encoded, n);
    assert_memory_equal(encoded, ids, n * sizeof *ids);

    must(octavo_sequence_create(model, &sequence, &error), &error);
    must(octavo_sequence_feed(sequence, ids, n, OCTAVO_LOGITS_LAST, logits, NULL, &error), &error);
    for (int32_t i = 0; i < vocabulary; i++) {
        if (fabs((double)logits[i] - (double)want[i]) <= tolerance) continue;
        fail_msg("prompt %zu, id %d: %g, golden %g", index, (int)i, (double)logits[i],
                 (double)want[i]);
    }
    for (size_t i = 0; i < json_array_size(greedy); i++) {
        int32_t id = most_likely(logits, vocabulary);
        assert_int_equal(id, json_integer_value(json_array_get(greedy, i)));
        must(octavo_sequence_feed(sequence, &id, 1, OCTAVO_LOGITS_LAST, logits, NULL, &error),
             &error);
    }
    octavo_sequence_destroy(&sequence);
    free(logits);
}

static void check_model(const char *folder, const char *name, const char *isa) {
    char path[512];
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    json_error_t json_error;
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    json_t *golden = json_load_file(path, 0, &json_error);
    assert_non_null(golden);
    snprintf(path, sizeof path, "%s/%s.logits.npy", folder, name);
    npy want = npy_read(path);
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    octavo_model_options_init(&options);
    options.isa = isa;
    options.precision = OCTAVO_PRECISION_EXACT;
    must(octavo_model_open(path, &options, &model, &error), &error);
    assert_int_equal(want.extents[1], octavo_model_describe(model).vocabulary);
    assert_true(want.extents[0] >= 3);
    for (int64_t i = 0; i < want.extents[0]; i++)
        check_prompt(model, golden, (const float *)want.data + i * want.extents[1], (size_t)i);
    octavo_model_close(&model);
    npy_free(&want);
    json_decref(golden);
}

static void check_levels(const char *folder, const char *name) {
    size_t n_levels;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    octavo_cpu_flags have = octavo_cpu_detect();
    for (size_t i = 0; i < n_levels; i++)
        if ((levels[i].flags & have) == levels[i].flags) check_model(folder, name, levels[i].name);
}

static void test_llama(void **state) {
    (void)state;
    check_levels(TEST_DATA "/models", "llama-f32");
}

static void test_llama3(void **state) {
    (void)state;
    check_levels(TEST_DATA "/models", "llama3-f16");
}

static void test_qwen2(void **state) {
    (void)state;
    check_levels(TEST_DATA "/models", "qwen2-bf16");
}

static void test_gemma3(void **state) {
    (void)state;
    check_levels(TEST_DATA "/models", "gemma3-f32");
}

static void check_oracle(const char *name) {
    char folder[400];
    if (!getenv("OCTAVO_ORACLE")) skip();
    snprintf(folder, sizeof folder, "%s/gguf", getenv("OCTAVO_ORACLE"));
    check_levels(folder, name);
}

static void test_qwen3moe(void **state) {
    (void)state;
    check_oracle("qwen3moe-q8_0");
}

/* Stacks in MXFP4 */
static void test_gpt_oss(void **state) {
    (void)state;
    check_oracle("gptoss-mxfp4");
}

static void test_llama4(void **state) {
    (void)state;
    check_oracle("llama4-f32");
}

/* Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL MXFP4 */
static void test_llama_q32mix(void **state) {
    (void)state;
    check_levels(TEST_DATA "/models", "llama-q32mix");
}

/* Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS; outside of the repository, see docs/testing.md */
static void test_llama_kmix(void **state) {
    (void)state;
    check_oracle("llama-kmix");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),      cmocka_unit_test(test_llama3),
        cmocka_unit_test(test_qwen2),      cmocka_unit_test(test_gemma3),
        cmocka_unit_test(test_qwen3moe),   cmocka_unit_test(test_llama4),
        cmocka_unit_test(test_gpt_oss),    cmocka_unit_test(test_llama_q32mix),
        cmocka_unit_test(test_llama_kmix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
