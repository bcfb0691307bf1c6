/* SPDX-License-Identifier: Apache-2.0
 *
 * The same-bits promise, through the API: the logits of a sequence are bitwise equal for any
 * chunking, number of threads, page size, and whether it runs alone or among others. Fast and
 * exact, every level that the machine has, every weight type.
 */
#include "../unit.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "tiny_model.h"

#include "octavo/model.h"

enum { N_IDS = 150 };

typedef struct setting {
    const char *isa;
    octavo_precision precision;
    int threads, chunk, page_size;
    int kv_dtype;
} setting;

static char paths[3][64];

static octavo_model *open_model(const char *path, const setting *s) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    octavo_model_options_init(&options);
    options.isa = s->isa;
    options.precision = s->precision;
    options.threads = s->threads;
    options.chunk = s->chunk;
    options.page_size = s->page_size;
    options.kv_dtype = s->kv_dtype;
    options.kv_memory = 64u << 20;
    if (octavo_model_open(path, &options, &model, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    return model;
}

static void make_ids(int32_t *ids, int n, uint32_t seed) {
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (int32_t)(seed >> 8) % TINY_VOCAB;
    }
}

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

/* All logits [N_IDS, vocabulary] of the ids under a setting, the sequence alone. */
static float *logits_alone(const char *path, const setting *s) {
    int32_t ids[N_IDS];
    octavo_error error;
    octavo_sequence *sequence = NULL;
    octavo_model *model = open_model(path, s);
    float *logits = octavo_alloc_zero(N_IDS * TINY_VOCAB, sizeof *logits);
    assert_non_null(logits);
    make_ids(ids, N_IDS, 7);
    must(octavo_sequence_create(model, &sequence, &error), &error);
    must(octavo_sequence_feed(sequence, ids, N_IDS, OCTAVO_LOGITS_ALL, logits, NULL, &error),
         &error);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
    return logits;
}

static void assert_same(const float *a, const float *b, const char *what, const setting *s) {
    if (memcmp(a, b, sizeof(float) * N_IDS * TINY_VOCAB) == 0) return;
    int i = 0;
    while (memcmp(&a[i], &b[i], sizeof *a) == 0)
        i++;
    fail_msg("%s: isa %s, %s, threads %d, chunk %d, page %d: row %d, id %d: %.9g and %.9g", what,
             s->isa ? s->isa : "best", s->precision ? "exact" : "fast", s->threads, s->chunk,
             s->page_size, i / TINY_VOCAB, i % TINY_VOCAB, (double)a[i], (double)b[i]);
}

static void check_settings(const char *path, const char *isa, octavo_precision precision) {
    static const setting others[] = {
        {.threads = 1, .chunk = 1, .page_size = 16}, {.threads = 1, .chunk = 7, .page_size = 16},
        {.threads = 2, .chunk = 64, .page_size = 8}, {.threads = 2, .chunk = 512, .page_size = 64},
        {.threads = 3, .chunk = 7, .page_size = 5},
    };
    setting base = {.isa = isa,
                    .precision = precision,
                    .threads = 1,
                    .chunk = 512,
                    .page_size = 16,
                    .kv_dtype = OCTAVO_KV_DTYPE_AUTO};
    float *want = logits_alone(path, &base);
    for (int i = 0; i < TINY_VOCAB; i++)
        assert_true(isfinite(want[(N_IDS - 1) * TINY_VOCAB + i]));
    for (size_t i = 0; i < OCTAVO_COUNT(others); i++) {
        setting s = others[i];
        s.isa = isa;
        s.precision = precision;
        s.kv_dtype = OCTAVO_KV_DTYPE_AUTO;
        float *got = logits_alone(path, &s);
        assert_same(want, got, path, &s);
        octavo_free(got);
    }
    octavo_free(want);
}

static void for_levels(void (*check)(const char *path, const char *isa,
                                     octavo_precision precision)) {
    size_t n_levels;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    octavo_cpu_flags have = octavo_cpu_detect();
    for (size_t i = 0; i < n_levels; i++) {
        if ((levels[i].flags & have) != levels[i].flags) continue;
        /* the reference is slow: one architecture will do for it */
        for (int p = 0; p < (levels[i].flags ? 3 : 1); p++) {
            check(paths[p], levels[i].name, OCTAVO_PRECISION_FAST);
            check(paths[p], levels[i].name, OCTAVO_PRECISION_EXACT);
        }
    }
}

static void test_settings(void **state) {
    (void)state;
    for_levels(check_settings);
}

/* One prompt in several pieces, while other sequences come, go and decode beside it. */
static void check_company(const char *path, const char *isa, octavo_precision precision) {
    setting s = {.isa = isa,
                 .precision = precision,
                 .threads = 2,
                 .chunk = 128,
                 .page_size = 16,
                 .kv_dtype = OCTAVO_KV_DTYPE_AUTO};
    float *want = logits_alone(path, &s);
    float *got = octavo_alloc_zero(N_IDS * TINY_VOCAB, sizeof *got);
    octavo_model *model = open_model(path, &s);
    octavo_sequence *sequence = NULL, *others[5] = {0};
    octavo_error error;
    int32_t ids[N_IDS], noise[64];
    float last[TINY_VOCAB];
    assert_non_null(got);
    make_ids(ids, N_IDS, 7);
    make_ids(noise, 64, 99);
    must(octavo_sequence_create(model, &sequence, &error), &error);
    for (int i = 0; i < 5; i++)
        must(octavo_sequence_create(model, &others[i], &error), &error);

    static const int pieces[] = {1, 40, 1, 1, 3, 64, 1, 39};
    for (int i = 0, done = 0; done < N_IDS; done += pieces[i++]) {
        octavo_step_input inputs[4] = {
            {.sequence = others[i % 5], .ids = noise, .n_ids = 1 + i * 5 % 20},
            {.sequence = others[(i + 2) % 5],
             .ids = noise + 3,
             .n_ids = 1,
             .want = OCTAVO_LOGITS_LAST,
             .logits = last},
            {.sequence = sequence,
             .ids = ids + done,
             .n_ids = pieces[i],
             .want = OCTAVO_LOGITS_ALL,
             .logits = got + done * TINY_VOCAB},
            {.sequence = others[(i + 4) % 5], .ids = noise + 9, .n_ids = 17},
        };
        must(octavo_model_step(model, inputs, 4, &error), &error);
        if (i == 3) octavo_sequence_truncate(others[0], 0);
        if (i == 5) octavo_sequence_destroy(&others[1]);
        if (i == 5) must(octavo_sequence_create(model, &others[1], &error), &error);
    }
    assert_same(want, got, "in company", &s);

    /* Taken back and fed again: the cache's old contents do not show. */
    memset(got + 50 * TINY_VOCAB, 0, sizeof(float) * 100 * TINY_VOCAB);
    octavo_sequence_truncate(sequence, 50);
    assert_int_equal(octavo_sequence_length(sequence), 50);
    must(octavo_sequence_feed(sequence, ids + 50, 100, OCTAVO_LOGITS_ALL, got + 50 * TINY_VOCAB,
                              NULL, &error),
         &error);
    assert_same(want, got, "fed again", &s);
    for (int i = 0; i < 5; i++)
        octavo_sequence_destroy(&others[i]);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
    octavo_free(want);
    octavo_free(got);
}

static void test_company(void **state) {
    (void)state;
    for_levels(check_company);
}

static void test_cache_types(void **state) {
    (void)state;
    for (int dtype = OCTAVO_DTYPE_F32; dtype <= OCTAVO_DTYPE_INT8; dtype++) {
        setting a = {.precision = OCTAVO_PRECISION_FAST,
                     .threads = 1,
                     .chunk = 512,
                     .page_size = 16,
                     .kv_dtype = dtype};
        setting b = {.precision = OCTAVO_PRECISION_FAST,
                     .threads = 2,
                     .chunk = 3,
                     .page_size = 64,
                     .kv_dtype = dtype};
        float *want = logits_alone(paths[0], &a), *got = logits_alone(paths[0], &b);
        assert_same(want, got, octavo_dtype_name((octavo_dtype)dtype), &b);
        octavo_free(want);
        octavo_free(got);
    }
}

/* Long enough for several kv splits, which threads share in a decode: the last logits of 1,100 ids.
 */
static void check_long_context(octavo_dtype dtype) {
    enum { LONG = 1100, DECODED = 5 };
    const setting settings[] = {
        {.threads = 1, .chunk = 512, .page_size = 16, .kv_dtype = (int)dtype},
        {.threads = 2, .chunk = 300, .page_size = 64, .kv_dtype = (int)dtype},
        {.threads = 3, .chunk = 37, .page_size = 1, .kv_dtype = (int)dtype},
    };
    static int32_t ids[LONG];
    static float want[TINY_VOCAB], got[TINY_VOCAB];
    char path[64];
    octavo_error error;
    make_ids(ids, LONG, 11);
    tiny_model_write(&(tiny_options){.architecture = "llama",
                                     .n_layers = 2,
                                     .context = 2048,
                                     .types = tiny_all_types,
                                     .n_types = OCTAVO_COUNT(tiny_all_types)},
                     path);
    for (size_t i = 0; i < OCTAVO_COUNT(settings); i++) {
        octavo_model *model = open_model(path, &settings[i]);
        octavo_sequence *sequence = NULL;
        int n_decoded = i == 0 ? 0 : DECODED;
        must(octavo_sequence_create(model, &sequence, &error), &error);
        must(octavo_sequence_feed(sequence, ids, (size_t)(LONG - n_decoded), OCTAVO_LOGITS_LAST,
                                  got, NULL, &error),
             &error);
        for (int j = LONG - n_decoded; j < LONG; j++)
            must(octavo_sequence_feed(sequence, &ids[j], 1, OCTAVO_LOGITS_LAST, got, NULL, &error),
                 &error);
        if (i == 0) memcpy(want, got, sizeof want);
        assert_memory_equal(want, got, sizeof want);
        octavo_sequence_destroy(&sequence);
        octavo_model_close(&model);
    }
    unlink(path);
}

static void test_long_context(void **state) {
    (void)state;
    check_long_context(OCTAVO_DTYPE_F16);
    check_long_context(OCTAVO_DTYPE_INT8);
}

static int write_models(void **state) {
    static const char *const architectures[] = {"llama", "qwen2", "gemma3"};
    (void)state;
    /* a model has 14 matrices: each starts with other types, so that all come to use */
    for (int i = 0; i < 3; i++)
        tiny_model_write(&(tiny_options){.architecture = architectures[i],
                                         .n_layers = 2,
                                         .context = 256,
                                         .types = tiny_all_types + 9 * i,
                                         .n_types = (int)OCTAVO_COUNT(tiny_all_types) - 9 * i},
                         paths[i]);
    return 0;
}

static int remove_models(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        unlink(paths[i]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_company),
        cmocka_unit_test(test_cache_types),
        cmocka_unit_test(test_long_context),
    };
    return cmocka_run_group_tests(tests, write_models, remove_models);
}
