/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiny models run with caches of 8 bits.
 */
#ifndef OCTAVO_TESTS_ENGINE_KV_MODELS_H
#define OCTAVO_TESTS_ENGINE_KV_MODELS_H

#include "hf_golden.h"

enum { KV_N_IDS = 120, KV_MAX_VOCABULARY = 1000 };

static const octavo_dtype kv_dtypes[] = {OCTAVO_DTYPE_FP8_E4M3, OCTAVO_DTYPE_FP8_E5M2,
                                         OCTAVO_DTYPE_INT8};

/* Options of a model with a small cache of a type. */
static inline octavo_model_options kv_options(octavo_dtype dtype) {
    octavo_model_options options;
    octavo_model_options_init(&options);
    options.precision = OCTAVO_PRECISION_EXACT;
    options.threads = 1;
    options.kv_dtype = (int)dtype;
    options.kv_memory = 16u << 20;
    return options;
}

static inline octavo_model *kv_open(const char *path, const octavo_model_options *options) {
    octavo_model *model = NULL;
    octavo_error error;
    hf_must(octavo_model_open(path, options, &model, &error), &error);
    assert_in_range(octavo_model_describe(model).vocabulary, 1, KV_MAX_VOCABULARY);
    return model;
}

static inline void kv_make_ids(int32_t *ids, int32_t vocabulary) {
    for (int i = 0; i < KV_N_IDS; i++)
        ids[i] = (i * 37 + 11) % vocabulary;
}

/* All logits [KV_N_IDS, vocabulary] of a prompt; returns the vocabulary. */
static inline int32_t kv_run(const char *path, const octavo_model_options *options, float *logits) {
    octavo_sequence *sequence = NULL;
    octavo_error error;
    int32_t ids[KV_N_IDS];
    octavo_model *model = kv_open(path, options);
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    kv_make_ids(ids, vocabulary);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, KV_N_IDS, OCTAVO_LOGITS_ALL, logits, NULL, &error),
            &error);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
    return vocabulary;
}

/* The mean of KL(want, got) over the rows. */
static inline double kv_divergence(const float *want, const float *got, int32_t vocabulary) {
    double sum = 0.0;
    for (int r = 0; r < KV_N_IDS; r++, want += vocabulary, got += vocabulary) {
        double p_sum = 0.0, q_sum = 0.0, row = 0.0;
        for (int32_t i = 0; i < vocabulary; i++) {
            p_sum += exp((double)want[i]);
            q_sum += exp((double)got[i]);
        }
        for (int32_t i = 0; i < vocabulary; i++)
            row += exp((double)want[i]) / p_sum *
                   ((double)want[i] - log(p_sum) - (double)got[i] + log(q_sum));
        sum += row;
    }
    return sum / KV_N_IDS;
}

#endif
