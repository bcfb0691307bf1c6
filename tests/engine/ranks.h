/* SPDX-License-Identifier: Apache-2.0
 *
 * A model over ranks against the same model on one: sequences that come and go in steps of all
 * kinds, and what is handed out of each.
 */
#ifndef OCTAVO_TESTS_ENGINE_RANKS_H
#define OCTAVO_TESTS_ENGINE_RANKS_H

#include "../unit.h"
#include "base/compiler.h"

#include "octavo/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_SEQUENCES = 5, RANKS_CHUNK = 64, RANKS_GREEDY = 8, RANKS_LONG = 112 };

typedef struct ranks_setting {
    const char *mesh;                     /* NULL: the model is not split */
    const char *file;                     /* of rules, or NULL */
    const char *all, *prefill, *generate; /* overrides, or NULL */
    octavo_precision precision;
    int threads;
} ranks_setting;

/* Rows that were handed out, one behind the other, and where each begins. */
typedef struct ranks_rows {
    float *values;
    size_t *begin; /* [n + 1] */
    size_t n, capacity;
    int32_t greedy[RANKS_GREEDY];
} ranks_rows;

enum { RANKS_MAX_ROWS = 1024 };

static inline octavo_status ranks_open(const char *path, const ranks_setting *s,
                                       octavo_model **model, octavo_error *error) {
    octavo_model_options options;
    octavo_sharding_options split;
    octavo_sharding *sharding = NULL;
    octavo_model_options_init(&options);
    options.precision = s->precision;
    options.threads = s->threads ? s->threads : 1;
    options.chunk = RANKS_CHUNK;
    options.page_size = 8;
    options.kv_memory = 32u << 20;
    options.context = 192;
    options.pin = false;
    octavo_sharding_options_init(&split);
    split.mesh = s->mesh;
    split.rules = s->file;
    split.all = s->all;
    split.prefill = s->prefill;
    split.generate = s->generate;
    octavo_status status = s->mesh ? octavo_sharding_create(&split, &sharding, error) : OCTAVO_OK;
    options.sharding = sharding;
    if (!status) status = octavo_model_open(path, &options, model, error);
    octavo_sharding_destroy(&sharding);
    return status;
}

static inline void ranks_must(octavo_status status, const octavo_error *error, const char *where) {
    if (status != OCTAVO_OK) fail_msg("%s: %s", where, error->message);
}

static inline int32_t ranks_id(const octavo_model *model, int sequence, int64_t position) {
    const uint32_t x = (uint32_t)(sequence * 977 + position * 131 + 7) * 2654435761u;
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    return (int32_t)((x >> 8) % (uint32_t)(vocabulary < 200 ? vocabulary : 200));
}

static inline void ranks_rows_init(ranks_rows *rows, const octavo_model *model) {
    const octavo_model_facts facts = octavo_model_describe(model);
    const size_t widest = (size_t)(facts.vocabulary > facts.width ? facts.vocabulary : facts.width);
    *rows = (ranks_rows){.capacity = RANKS_MAX_ROWS / 2 * widest};
    rows->values = calloc(rows->capacity, sizeof *rows->values);
    rows->begin = calloc(RANKS_MAX_ROWS + 1, sizeof *rows->begin);
    assert_true(rows->values && rows->begin);
}

static inline void ranks_rows_deinit(ranks_rows *rows) {
    free(rows->values);
    free(rows->begin);
    *rows = (ranks_rows){0};
}

/* Room for n rows of so many values. */
static inline float *ranks_rows_add(ranks_rows *rows, size_t n, int64_t width) {
    float *at = rows->values + rows->begin[rows->n];
    assert_true(rows->n + n <= RANKS_MAX_ROWS);
    for (size_t i = 0; i < n; i++, rows->n++)
        rows->begin[rows->n + 1] = rows->begin[rows->n] + (size_t)width;
    assert_true(rows->begin[rows->n] <= rows->capacity);
    return at;
}

/* One step: so many ids to each sequence, none where 0. What is wanted takes turns. */
static inline void ranks_step(octavo_model *model, octavo_sequence *const *sequences, const int *n,
                              int turn, ranks_rows *rows, const char *where) {
    const octavo_model_facts facts = octavo_model_describe(model);
    int32_t ids[RANKS_SEQUENCES][RANKS_CHUNK], types[RANKS_CHUNK];
    octavo_step_input inputs[RANKS_SEQUENCES];
    octavo_error error;
    int n_inputs = 0;
    for (int i = 0; i < RANKS_CHUNK; i++)
        types[i] = i % 3 == 1;
    for (int s = 0; s < RANKS_SEQUENCES; s++) {
        if (n[s] == 0) continue;
        const bool wants_all = (s + turn) % 2 == 0;
        const size_t n_rows = wants_all ? (size_t)n[s] : 1;
        for (int i = 0; i < n[s]; i++)
            ids[s][i] = ranks_id(model, s, octavo_sequence_length(sequences[s]) + i);
        octavo_step_input *input = &inputs[n_inputs++];
        *input = (octavo_step_input){.sequence = sequences[s],
                                     .ids = ids[s],
                                     .n_ids = n[s],
                                     .want = wants_all ? OCTAVO_LOGITS_ALL : OCTAVO_LOGITS_LAST};
        if (facts.token_types > 1) input->types = types;
        if (!facts.is_encoder) input->logits = ranks_rows_add(rows, n_rows, facts.vocabulary);
        if (facts.is_encoder || s % 2 == 0)
            input->hidden = ranks_rows_add(rows, n_rows, facts.width);
        if (facts.has_pooler && s % 2 == 1)
            input->pooled = ranks_rows_add(rows, n_rows, facts.width);
        if ((s + turn) % 3 == 0)
            input->trace = ranks_rows_add(rows, (size_t)facts.layers + 1, facts.width);
    }
    ranks_must(octavo_model_step(model, inputs, n_inputs, &error), &error, where);
}

static inline void ranks_decode(octavo_model *model, octavo_sequence *sequence, ranks_rows *rows,
                                const char *where) {
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    octavo_error error;
    int32_t id = ranks_id(model, 3, octavo_sequence_length(sequence));
    for (int i = 0; i < RANKS_GREEDY; i++) {
        float *logits = ranks_rows_add(rows, 1, vocabulary);
        ranks_must(octavo_sequence_feed(sequence, &id, 1, OCTAVO_LOGITS_LAST, logits, NULL, &error),
                   &error, where);
        id = 0;
        for (int32_t v = 1; v < vocabulary; v++)
            if (logits[v] > logits[id]) id = v;
        rows->greedy[i] = id;
    }
}

/* More ids than a step takes. */
static inline void ranks_feed_long(octavo_model *model, octavo_sequence *sequence, ranks_rows *rows,
                                   const char *where) {
    int32_t ids[RANKS_LONG];
    octavo_error error;
    for (int i = 0; i < RANKS_LONG; i++)
        ids[i] = ranks_id(model, 4, octavo_sequence_length(sequence) + i);
    ranks_must(octavo_sequence_feed(
                   sequence, ids, RANKS_LONG, OCTAVO_LOGITS_LAST,
                   ranks_rows_add(rows, 1, octavo_model_describe(model).vocabulary), NULL, &error),
               &error, where);
}

/* Several prompts at once, prompts beside decodes, decodes alone, of all sequences and of one,
 * chunks; of an encoder texts. */
static inline void ranks_run(octavo_model *model, bool is_short, ranks_rows *rows,
                             const char *where) {
    static const int steps[][RANKS_SEQUENCES] = {
        {13, 7, 1, 0, 0}, {1, 5, 0, 9, 0}, {1, 1, 1, 1, 0}, {0, 0, 1, 0, 0},
        {0, 0, 0, 0, 20}, {1, 1, 1, 1, 1}, {3, 1, 1, 0, 4},
    };
    static const int texts[][RANKS_SEQUENCES] = {{13, 7, 1, 9, 4}, {0, 20, 0, 0, 0}};
    const bool is_encoder = octavo_model_describe(model).is_encoder;
    const size_t n = is_encoder ? OCTAVO_COUNT(texts) : is_short ? 4 : OCTAVO_COUNT(steps);
    octavo_sequence *sequences[RANKS_SEQUENCES] = {0};
    octavo_error error;
    ranks_rows_init(rows, model);
    for (int s = 0; s < RANKS_SEQUENCES; s++)
        ranks_must(octavo_sequence_create(model, &sequences[s], &error), &error, where);
    for (size_t i = 0; i < n; i++) {
        ranks_step(model, sequences, is_encoder ? texts[i] : steps[i], (int)i, rows, where);
        for (int s = 0; s < RANKS_SEQUENCES && is_encoder; s++)
            octavo_sequence_truncate(sequences[s], 0);
    }
    if (!is_encoder && !is_short) {
        ranks_decode(model, sequences[3], rows, where);
        ranks_feed_long(model, sequences[4], rows, where);
    }
    for (int s = 0; s < RANKS_SEQUENCES; s++)
        octavo_sequence_destroy(&sequences[s]);
}

/* What one rank says; the caller frees it. */
static inline ranks_rows ranks_run_whole(const char *path, octavo_precision precision,
                                         bool is_short) {
    ranks_rows rows;
    octavo_model *model = NULL;
    octavo_error error;
    ranks_must(ranks_open(path, &(ranks_setting){.precision = precision}, &model, &error), &error,
               path);
    ranks_run(model, is_short, &rows, path);
    octavo_model_close(&model);
    for (size_t i = 0; i < rows.begin[rows.n]; i++)
        assert_true(isfinite(rows.values[i]));
    return rows;
}

/* The largest difference, of the largest value in its row. */
static inline double ranks_difference(const ranks_rows *want, const ranks_rows *got) {
    double largest = 0.0;
    assert_int_equal(want->n, got->n);
    for (size_t r = 0; r < want->n; r++) {
        double size = 0.0, difference = 0.0;
        for (size_t i = want->begin[r]; i < want->begin[r + 1]; i++) {
            const double d = fabs((double)got->values[i] - (double)want->values[i]);
            size = fmax(size, fabs((double)want->values[i]));
            if (!(d <= difference)) difference = d;
        }
        if (!(difference <= largest * size)) largest = difference / size;
    }
    return largest;
}

#endif
