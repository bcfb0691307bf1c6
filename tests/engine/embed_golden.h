/* SPDX-License-Identifier: Apache-2.0
 *
 * A tiny encoder's folder against its goldens (golden/golden.json with prompts and token types;
 * cls.npy, mean.npy, and pooler.npy where it has one; hidden_full_N.npy, the states of all
 * positions of a prompt), at every level that the machine has, and for the same-bits promise.
 */
#ifndef OCTAVO_TESTS_ENGINE_EMBED_GOLDEN_H
#define OCTAVO_TESTS_ENGINE_EMBED_GOLDEN_H

#include "hf_golden.h"

#include "octavo/embed.h"

enum { EMBED_PROMPTS = 4 };

typedef struct embed_texts {
    int32_t ids[EMBED_PROMPTS][HF_MAX_IDS], types[EMBED_PROMPTS][HF_MAX_IDS];
    octavo_embed_text texts[EMBED_PROMPTS]; /* without a place */
    size_t n_ids;                           /* of all together */
} embed_texts;

static inline void embed_read(const char *path, embed_texts *to) {
    char file[512];
    snprintf(file, sizeof file, "%s/golden/golden.json", path);
    json_t *golden = hf_load_json(file);
    const json_t *prompts = json_object_get(golden, "prompts");
    const json_t *types = json_object_get(golden, "token_type_ids");
    assert_int_equal(json_array_size(prompts), EMBED_PROMPTS);
    to->n_ids = 0;
    for (size_t i = 0; i < EMBED_PROMPTS; i++) {
        const size_t n = hf_ids(json_array_get(prompts, i), to->ids[i]);
        assert_int_equal(hf_ids(json_array_get(types, i), to->types[i]), n);
        to->texts[i] = (octavo_embed_text){.ids = to->ids[i], .types = to->types[i], .n_ids = n};
        to->n_ids += n;
    }
    json_decref(golden);
}

typedef struct embed_setting {
    const char *isa;
    octavo_precision precision;
    int threads, page_size, max_sequences;
} embed_setting;

static inline octavo_model *embed_open(const char *path, embed_setting s) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    octavo_model_options_init(&options);
    options.isa = s.isa;
    options.precision = s.precision;
    options.threads = s.threads;
    if (s.page_size) options.page_size = s.page_size;
    if (s.max_sequences) options.max_sequences = s.max_sequences;
    hf_must(octavo_model_open(path, &options, &model, &error), &error);
    return model;
}

/* Vectors of texts [n], one behind the other, in `out`. */
static inline void embed_run(octavo_model *model, octavo_pooling pooling,
                             const octavo_embed_text *texts, size_t n, float *out) {
    const size_t width = (size_t)octavo_model_describe(model).width;
    octavo_embed_text placed[16];
    octavo_embedder_options options;
    octavo_embedder *embedder = NULL;
    octavo_error error;
    octavo_embedder_options_init(&options);
    options.pooling = pooling;
    assert_in_range(n, 1, 16);
    for (size_t i = 0; i < n; i++) {
        placed[i] = texts[i];
        placed[i].out = out;
        out += width * (pooling == OCTAVO_POOLING_NONE ? texts[i].n_ids : 1);
    }
    hf_must(octavo_embedder_create(model, &options, &embedder, &error), &error);
    hf_must(octavo_embedder_run(embedder, placed, n, &error), &error);
    octavo_embedder_destroy(&embedder);
}

static inline void embed_compare(const char *path, const char *name, const float *got, size_t n) {
    char file[512];
    snprintf(file, sizeof file, "%s/golden/%s", path, name);
    npy want = npy_read(file);
    assert_int_equal(want.n_elements, n);
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)((const float *)want.data)[i]) <= 1e-4))
            fail_msg("%s, element %zu: %g, golden %g", file, i, (double)got[i],
                     (double)((const float *)want.data)[i]);
    npy_free(&want);
}

static inline void embed_check_level(const char *path, const char *isa) {
    static embed_texts texts;
    octavo_model *model =
        embed_open(path, (embed_setting){.isa = isa, .precision = OCTAVO_PRECISION_EXACT});
    const size_t width = (size_t)octavo_model_describe(model).width;
    embed_read(path, &texts);
    float *out = calloc(texts.n_ids * width, sizeof *out), *at = out;
    assert_non_null(out);
    embed_run(model, OCTAVO_POOLING_CLS, texts.texts, EMBED_PROMPTS, out);
    embed_compare(path, "cls.npy", out, EMBED_PROMPTS * width);
    embed_run(model, OCTAVO_POOLING_AUTO, texts.texts, EMBED_PROMPTS, out);
    embed_compare(path, "mean.npy", out, EMBED_PROMPTS * width);
    if (octavo_model_describe(model).has_pooler) {
        embed_run(model, OCTAVO_POOLING_POOLER, texts.texts, EMBED_PROMPTS, out);
        embed_compare(path, "pooler.npy", out, EMBED_PROMPTS * width);
    }
    embed_run(model, OCTAVO_POOLING_NONE, texts.texts, EMBED_PROMPTS, out);
    for (size_t i = 0; i < EMBED_PROMPTS; at += texts.texts[i++].n_ids * width) {
        char name[32];
        snprintf(name, sizeof name, "hidden_full_%zu.npy", i);
        if (i < 3) embed_compare(path, name, at, texts.texts[i].n_ids * width);
    }
    free(out);
    octavo_model_close(&model);
}

static inline void embed_check_folder(const char *path) {
    size_t n_levels;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    octavo_cpu_flags have = octavo_cpu_detect();
    for (size_t i = 0; i < n_levels; i++)
        if ((levels[i].flags & have) == levels[i].flags) embed_check_level(path, levels[i].name);
}

/* Alone and in any company, on any number of threads, over pages of any size. */
static inline void embed_check_bits(const char *path, octavo_precision precision,
                                    octavo_pooling pooling) {
    static const embed_setting settings[] = {{.threads = 1, .page_size = 5},
                                             {.threads = 2, .max_sequences = 3},
                                             {.threads = 3, .page_size = 64}};
    static const size_t order[] = {3, 0, 2, 0, 1, 2};
    enum { N = sizeof order / sizeof *order };
    static embed_texts texts;
    embed_read(path, &texts);
    octavo_model *model = embed_open(path, (embed_setting){.precision = precision, .threads = 1});
    const size_t width = (size_t)octavo_model_describe(model).width;
    float *want = calloc(EMBED_PROMPTS * width, sizeof *want);
    float *got = calloc(N * width, sizeof *got);
    octavo_embed_text together[N];
    assert_true(want && got);
    for (size_t i = 0; i < EMBED_PROMPTS; i++)
        embed_run(model, pooling, &texts.texts[i], 1, want + i * width);
    octavo_model_close(&model);
    for (size_t i = 0; i < N; i++)
        together[i] = texts.texts[order[i]];
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        embed_setting setting = settings[s];
        setting.precision = precision;
        model = embed_open(path, setting);
        embed_run(model, pooling, together, N, got);
        for (size_t i = 0; i < N; i++)
            if (memcmp(got + i * width, want + order[i] * width, width * sizeof *got) != 0)
                fail_msg("%s: other bits of text %zu in company, setting %zu", path, order[i], s);
        octavo_model_close(&model);
    }
    free(want);
    free(got);
}

#endif
