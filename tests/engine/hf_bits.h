/* SPDX-License-Identifier: Apache-2.0
 *
 * The same-bits promise for a Hugging Face folder: logits do not change with the chunk, the
 * threads, the page size or the company.
 */
#ifndef OCTAVO_TESTS_ENGINE_HF_BITS_H
#define OCTAVO_TESTS_ENGINE_HF_BITS_H

#include "hf_golden.h"

enum { HF_N_IDS = 150, HF_MAX_VOCABULARY = 320 };

typedef struct hf_setting {
    octavo_precision precision;
    int threads, chunk, page_size;
} hf_setting;

static inline octavo_model *hf_open(const char *path, hf_setting s) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    octavo_model_options_init(&options);
    options.precision = s.precision;
    options.threads = s.threads;
    options.chunk = s.chunk;
    options.page_size = s.page_size;
    options.kv_memory = 16u << 20;
    hf_must(octavo_model_open(path, &options, &model, &error), &error);
    assert_in_range(octavo_model_describe(model).vocabulary, 1, HF_MAX_VOCABULARY);
    return model;
}

static inline void hf_make_ids(int32_t *ids, int32_t vocabulary) {
    for (int i = 0; i < HF_N_IDS; i++)
        ids[i] = (i * 37 + 11) % vocabulary;
}

/* All logits [HF_N_IDS, vocabulary] of a prompt; returns the vocabulary. */
static inline int32_t hf_run(const char *path, hf_setting s, float *logits) {
    octavo_sequence *sequence = NULL;
    octavo_error error;
    int32_t ids[HF_N_IDS];
    octavo_model *model = hf_open(path, s);
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    hf_make_ids(ids, vocabulary);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, HF_N_IDS, OCTAVO_LOGITS_ALL, logits, NULL, &error),
            &error);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
    return vocabulary;
}

static inline void hf_run_in_company(const char *path, hf_setting s, float *logits) {
    static const int pieces[] = {1, 40, 3, 64, 1, 41};
    int32_t ids[HF_N_IDS];
    octavo_model *model = hf_open(path, s);
    hf_make_ids(ids, octavo_model_describe(model).vocabulary);
    hf_feed_in_company(model, ids, HF_N_IDS, pieces, logits);
    octavo_model_close(&model);
}

static inline void hf_check_bits(const char *path) {
    static const hf_setting settings[] = {
        {0, 1, 1, 16}, {0, 1, 7, 16}, {0, 2, 64, 8}, {0, 3, 7, 5}};
    static float want[HF_N_IDS * HF_MAX_VOCABULARY], got[HF_N_IDS * HF_MAX_VOCABULARY];
    static const octavo_precision precisions[] = {OCTAVO_PRECISION_FAST, OCTAVO_PRECISION_EXACT};
    for (int p = 0; p < 2; p++) {
        hf_setting s = {precisions[p], 1, 512, 16};
        const int32_t vocabulary = hf_run(path, s, want);
        for (int32_t i = 0; i < HF_N_IDS * vocabulary; i++)
            assert_true(isfinite(want[i]));
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            s = settings[i];
            s.precision = precisions[p];
            hf_run(path, s, got);
            if (memcmp(got, want, sizeof *want * HF_N_IDS * (size_t)vocabulary) != 0)
                fail_msg("%s: other bits with %d threads, chunk %d, page size %d", path, s.threads,
                         s.chunk, s.page_size);
        }
        hf_run_in_company(path, (hf_setting){precisions[p], 2, 128, 16}, got);
        if (memcmp(got, want + (HF_N_IDS - 1) * vocabulary, sizeof *want * (size_t)vocabulary) != 0)
            fail_msg("%s: other bits in company", path);
    }
}

#endif
