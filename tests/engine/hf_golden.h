/* SPDX-License-Identifier: Apache-2.0
 *
 * A tiny Hugging Face folder against its goldens (golden/golden.json, golden/logits_last.npy):
 * logits after each prompt, at all of its positions where there are such goldens
 * (golden/logits_full_N.npy), what each layer takes at the last position
 * (golden/hidden_last_N.npy), and 24 ids decoded greedily, at every level that the machine has.
 */
#ifndef OCTAVO_TESTS_ENGINE_HF_GOLDEN_H
#define OCTAVO_TESTS_ENGINE_HF_GOLDEN_H

#include "../npy.h"
#include "../unit.h"
#include "base/cpu.h"

#include "octavo/model.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

enum { HF_MAX_IDS = 256 };

static inline void hf_must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

static inline json_t *hf_load_json(const char *path) {
    json_error_t why;
    json_t *json = json_load_file(path, 0, &why);
    if (!json) fail_msg("%s: %s", path, why.text);
    return json;
}

static inline size_t hf_ids(const json_t *list, int32_t *ids) {
    size_t n = json_array_size(list);
    assert_in_range(n, 1, HF_MAX_IDS);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return n;
}

static inline int32_t hf_most_likely(const float *logits, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Goldens are of float32 arithmetic; logits have a standard deviation of about 4. */
static inline void hf_compare(const char *path, size_t prompt, const float *logits,
                              const float *want, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (!(fabs((double)logits[i] - (double)want[i]) <= 2e-3))
            fail_msg("%s, prompt %zu, id %d: %g, golden %g", path, prompt, (int)i,
                     (double)logits[i], (double)want[i]);
}

static inline void hf_check_prompt(octavo_model *model, const char *path, size_t prompt,
                                   const json_t *golden, const float *want) {
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    int32_t ids[HF_MAX_IDS], greedy[HF_MAX_IDS];
    const size_t n = hf_ids(json_array_get(json_object_get(golden, "prompts"), prompt), ids);
    const size_t n_greedy =
        hf_ids(json_array_get(json_object_get(golden, "greedy_24"), prompt), greedy);
    octavo_sequence *sequence = NULL;
    octavo_error error;
    float *logits = calloc((size_t)vocabulary, sizeof *logits);
    assert_non_null(logits);
    assert_int_equal(n_greedy, 24);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, n, OCTAVO_LOGITS_LAST, logits, NULL, &error),
            &error);
    hf_compare(path, prompt, logits, want, vocabulary);
    for (size_t i = 0; i < n_greedy; i++) {
        int32_t id = hf_most_likely(logits, vocabulary);
        assert_int_equal(id, greedy[i]);
        hf_must(octavo_sequence_feed(sequence, &id, 1, OCTAVO_LOGITS_LAST, logits, NULL, &error),
                &error);
    }
    octavo_sequence_destroy(&sequence);
    free(logits);
}

/* Logits [position, vocabulary] of a prompt. */
static inline void hf_check_full(octavo_model *model, const char *path, size_t prompt,
                                 const json_t *golden) {
    char file[512];
    int32_t ids[HF_MAX_IDS];
    octavo_sequence *sequence = NULL;
    octavo_error error;
    snprintf(file, sizeof file, "%s/golden/logits_full_%zu.npy", path, prompt);
    if (access(file, R_OK) != 0) return;
    npy want = npy_read(file);
    const size_t n = hf_ids(json_array_get(json_object_get(golden, "prompts"), prompt), ids);
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    assert_int_equal(want.extents[0], n);
    assert_int_equal(want.extents[1], vocabulary);
    float *logits = calloc(n * (size_t)vocabulary, sizeof *logits);
    assert_non_null(logits);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, n, OCTAVO_LOGITS_ALL, logits, NULL, &error),
            &error);
    hf_compare(path, prompt, logits, (const float *)want.data, (int32_t)n * vocabulary);
    octavo_sequence_destroy(&sequence);
    free(logits);
    npy_free(&want);
}

/* What each layer takes and the last norm gives [layers + 1, width] at the end of a prompt, most of
 * which was fed before. That it is asked for changes nothing else. */
static inline void hf_check_hidden(octavo_model *model, const char *path, size_t prompt,
                                   const json_t *golden) {
    const octavo_model_facts facts = octavo_model_describe(model);
    const size_t width = (size_t)facts.width, vocabulary = (size_t)facts.vocabulary;
    char file[512];
    int32_t ids[HF_MAX_IDS];
    octavo_sequence *sequence = NULL;
    octavo_error error;
    snprintf(file, sizeof file, "%s/golden/hidden_last_%zu.npy", path, prompt);
    if (access(file, R_OK) != 0) return;
    npy want = npy_read(file);
    assert_int_equal(want.extents[0], facts.layers + 1);
    assert_int_equal(want.extents[1], facts.width);
    const int n = (int)hf_ids(json_array_get(json_object_get(golden, "prompts"), prompt), ids);
    float *trace = calloc((size_t)want.n_elements, sizeof *trace);
    float *hidden = calloc(width, sizeof *hidden), *logits = calloc(2 * vocabulary, sizeof *logits);
    assert_true(trace && hidden && logits);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    octavo_step_input inputs[] = {{.sequence = sequence, .ids = ids, .n_ids = n - 3},
                                  {.sequence = sequence,
                                   .ids = ids + n - 3,
                                   .n_ids = 3,
                                   .want = OCTAVO_LOGITS_LAST,
                                   .logits = logits,
                                   .hidden = hidden,
                                   .trace = trace}};
    hf_must(octavo_model_step(model, &inputs[0], 1, &error), &error);
    hf_must(octavo_model_step(model, &inputs[1], 1, &error), &error);
    for (int64_t i = 0; i < want.n_elements; i++)
        if (!(fabs((double)trace[i] - (double)((const float *)want.data)[i]) <= 5e-4))
            fail_msg("%s, prompt %zu, layer %ld, lane %ld: %g, golden %g", path, prompt,
                     (long)(i / facts.width), (long)(i % facts.width), (double)trace[i],
                     (double)((const float *)want.data)[i]);
    assert_memory_equal(hidden, trace + (size_t)facts.layers * width, width * sizeof *hidden);
    octavo_sequence_truncate(sequence, n - 3);
    inputs[1].hidden = inputs[1].trace = NULL;
    inputs[1].logits = logits + vocabulary;
    hf_must(octavo_model_step(model, &inputs[1], 1, &error), &error);
    assert_memory_equal(logits, logits + vocabulary, vocabulary * sizeof *logits);
    octavo_sequence_destroy(&sequence);
    free(trace);
    free(hidden);
    free(logits);
    npy_free(&want);
}

static inline void hf_check_level(const char *path, const char *isa) {
    char file[512];
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    snprintf(file, sizeof file, "%s/golden/golden.json", path);
    json_t *golden = hf_load_json(file);
    snprintf(file, sizeof file, "%s/golden/logits_last.npy", path);
    npy want = npy_read(file);
    octavo_model_options_init(&options);
    options.isa = isa;
    options.precision = OCTAVO_PRECISION_EXACT;
    hf_must(octavo_model_open(path, &options, &model, &error), &error);
    assert_int_equal(want.n_axes, 2);
    assert_int_equal(want.extents[1], octavo_model_describe(model).vocabulary);
    assert_int_equal(want.extents[0], 4);
    for (size_t i = 0; i < (size_t)want.extents[0]; i++)
        hf_check_full(model, path, i, golden);
    for (size_t i = 0; i < (size_t)want.extents[0]; i++)
        hf_check_hidden(model, path, i, golden);
    for (int64_t i = 0; i < want.extents[0]; i++)
        hf_check_prompt(model, path, (size_t)i, golden,
                        (const float *)want.data + i * want.extents[1]);
    octavo_model_close(&model);
    npy_free(&want);
    json_decref(golden);
}

static inline void hf_check_folder(const char *path) {
    size_t n_levels;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    octavo_cpu_flags have = octavo_cpu_detect();
    for (size_t i = 0; i < n_levels; i++)
        if ((levels[i].flags & have) == levels[i].flags) hf_check_level(path, levels[i].name);
}

/* Logits after the prompt, which comes in pieces of so many ids while two other sequences decode
 * beside it. */
static inline void hf_feed_in_company(octavo_model *model, const int32_t *ids, int n_ids,
                                      const int *pieces, float *logits) {
    octavo_sequence *sequence = NULL, *others[2] = {0};
    octavo_error error;
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    for (int i = 0; i < 2; i++)
        hf_must(octavo_sequence_create(model, &others[i], &error), &error);
    for (int i = 0, done = 0; done < n_ids; done += pieces[i++]) {
        const octavo_step_input inputs[] = {
            {.sequence = others[0], .ids = ids + 5, .n_ids = 1 + 7 * i},
            {.sequence = sequence,
             .ids = ids + done,
             .n_ids = pieces[i],
             .want = OCTAVO_LOGITS_LAST,
             .logits = logits},
            {.sequence = others[1], .ids = ids + i, .n_ids = 1},
        };
        hf_must(octavo_model_step(model, inputs, 3, &error), &error);
    }
    octavo_sequence_destroy(&sequence);
    for (int i = 0; i < 2; i++)
        octavo_sequence_destroy(&others[i]);
}

#endif
