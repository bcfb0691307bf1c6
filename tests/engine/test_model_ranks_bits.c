/* SPDX-License-Identifier: Apache-2.0
 *
 * The same bits on any number of ranks, as long as no sum is cut finer than its slices: the logits
 * at every position of a text, alone and in company, fed in chunks and id by id, in either
 * precision. Models with several slices on every axis; and SmolLM2, where it is found.
 */
#include "ranks.h"
#include "tiny_model.h"

enum { N_IDS = 50 };

/* Dense: 4 slices of the width and of the heads, 8 of the feed-forward width. */
static const ranks_setting dense[] = {
    {.mesh = "model=2"},
    {.mesh = "data=2"},
    {.mesh = "expert=2"},
    {.mesh = "seq=2"},
    {.mesh = "model=4"},
    {.mesh = "expert=2,model=2"},
    {.mesh = "data=2,seq=2"},
    {.mesh = "expert=2,model=4"},
    {.mesh = "data=2,seq=2,model=2"},
    {.mesh = "expert=8"},
    {.mesh = "data=8"},
    {.mesh = "seq=8"},
    {.mesh = "model=2", .all = "{\"activation_td\": [[\"data\"], \"model\"]}"},
    {.mesh = "model=4", .all = "{\"activation_td\": [[\"data\"], \"model\"]}"},
    {.mesh = "data=2,model=2", .all = "{\"activation_td\": [[\"data\", \"model\"], null]}"},
    {.mesh = "model=4", .all = "{\"attn_o_weight_nhd\": [null, null, \"model\"]}"},
    {.mesh = "seq=2,model=2", .all = "{\"ffw_weight_df\": [\"seq\", \"model\"]}"},
    {.mesh = "model=4", .all = "{\"emb_weight_vd\": [null, \"model\"]}"},
    {.mesh = "seq=2,model=2", .all = "{\"vocab_dv\": [\"model\", \"seq\"]}"},
    {.mesh = "model=8", .all = "{\"attn_o_weight_nhd\": null, \"ffw_weight_df\": null}"},
    {.mesh = "seq=4", .prefill = "{\"activation_td\": [[\"data\", \"seq\"], null]}"},
    {.mesh = "data=2,model=2", .generate = "{\"keyvalue_skh\": [null, \"model\", null]}"},
};

/* Eight experts; the width of one has a single slice. */
static const ranks_setting experts[] = {
    {.mesh = "expert=2"},
    {.mesh = "expert=4"},
    {.mesh = "expert=8"},
    {.mesh = "data=2,expert=2"},
    {.mesh = "expert=4,seq=2"},
    {.mesh = "data=2,expert=2,seq=2"},
    {.mesh = "expert=2",
     .all = "{\"moe_weights_edf\": [null, \"expert\", null], \"moe_weights_efd\": null}"},
    {.mesh = "expert=4",
     .all = "{\"moe_weights_efd\": [\"expert\", null, null], "
            "\"router_logits_te\": null}"},
};

static void describe(const char *path, const ranks_setting *s, char *to, size_t size) {
    const char *rules = s->all ? s->all : s->prefill ? s->prefill : s->generate;
    snprintf(to, size, "%s, %s, %s, %s", path, s->precision ? "exact" : "fast", s->mesh,
             rules ? rules : "default rules");
}

static octavo_model *open_model(const char *path, const ranks_setting *s, const char *where) {
    octavo_model *model = NULL;
    octavo_error error;
    ranks_must(ranks_open(path, s, &model, &error), &error, where);
    return model;
}

/* Logits of the ids of sequence 0, fed in such pieces; behind the last piece one by one. */
static void feed_alone(octavo_model *model, const int *pieces, float *logits, const char *where) {
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    octavo_sequence *sequence = NULL;
    octavo_error error;
    ranks_must(octavo_sequence_create(model, &sequence, &error), &error, where);
    for (int done = 0, n; done < N_IDS; done += n) {
        int32_t ids[N_IDS];
        n = *pieces ? *pieces++ : 1;
        for (int i = 0; i < n; i++)
            ids[i] = ranks_id(model, 0, done + i);
        ranks_must(octavo_sequence_feed(sequence, ids, (size_t)n, OCTAVO_LOGITS_ALL,
                                        logits + (int64_t)done * vocabulary, NULL, &error),
                   &error, where);
    }
    octavo_sequence_destroy(&sequence);
}

/* The same among others, in steps of all kinds. */
static void feed_in_company(octavo_model *model, float *logits, const char *where) {
    static const int pieces[] = {1, 20, 1, 1, 2, 24, 1};
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    octavo_sequence *sequence = NULL, *others[4] = {0};
    octavo_error error;
    for (int i = 0; i < 4; i++) {
        ranks_must(octavo_sequence_create(model, &others[i], &error), &error, where);
        if (i == 1) ranks_must(octavo_sequence_create(model, &sequence, &error), &error, where);
    }
    for (int k = 0, done = 0; done < N_IDS; done += pieces[k++]) {
        int32_t ids[N_IDS], noise[16];
        octavo_step_input inputs[4];
        int n = 0;
        for (int i = 0; i < 16; i++)
            noise[i] = ranks_id(model, 7 + k, i);
        for (int i = 0; i < pieces[k]; i++)
            ids[i] = ranks_id(model, 0, done + i);
        for (int i = 0; i < 3; i++)
            inputs[n++] = (octavo_step_input){.sequence = others[(i + k) % 4],
                                              .ids = noise,
                                              .n_ids = k % 3 == 2 ? 1 : 1 + (i * 7 + k * 5) % 11};
        inputs[n++] = (octavo_step_input){.sequence = sequence,
                                          .ids = ids,
                                          .n_ids = pieces[k],
                                          .want = OCTAVO_LOGITS_ALL,
                                          .logits = logits + (int64_t)done * vocabulary};
        ranks_must(octavo_model_step(model, inputs, n, &error), &error, where);
    }
    for (int i = 0; i < 4; i++)
        octavo_sequence_destroy(&others[i]);
    octavo_sequence_destroy(&sequence);
}

static void assert_same(const float *want, const float *got, int32_t vocabulary, const char *how,
                        const char *where) {
    const int64_t n = (int64_t)N_IDS * vocabulary;
    int64_t i = 0;
    if (memcmp(want, got, (size_t)n * sizeof *got) == 0) return;
    while (memcmp(&want[i], &got[i], sizeof *got) == 0)
        i++;
    fail_msg("%s, %s: position %d, id %d: %.9g and on one rank %.9g", where, how,
             (int)(i / vocabulary), (int)(i % vocabulary), (double)got[i], (double)want[i]);
}

/* The model is split as each of the settings says. */
static void check_settings(const char *path, octavo_precision precision,
                           const ranks_setting *settings, size_t n) {
    static const int whole[] = {N_IDS, 0}, chunks[] = {17, 1, 3, 19, 0};
    octavo_model *model = open_model(path, &(ranks_setting){.precision = precision}, path);
    const int32_t vocabulary = octavo_model_describe(model).vocabulary;
    float *want = calloc((size_t)N_IDS * (size_t)vocabulary, sizeof *want);
    float *got = calloc((size_t)N_IDS * (size_t)vocabulary, sizeof *got);
    assert_true(want && got);
    feed_alone(model, whole, want, path);
    for (int i = 0; i < vocabulary; i++)
        assert_true(isfinite(want[(int64_t)(N_IDS - 1) * vocabulary + i]));
    octavo_model_close(&model);
    for (size_t k = 0; k < n; k += UNIT_STRIDE) {
        char where[500];
        ranks_setting s = settings[k];
        s.precision = precision;
        s.threads = k % 5 == 0 ? 2 : 1;
        describe(path, &s, where, sizeof where);
        model = open_model(path, &s, where);
        memset(got, 0, (size_t)N_IDS * (size_t)vocabulary * sizeof *got);
        feed_alone(model, chunks, got, where);
        assert_same(want, got, vocabulary, "alone", where);
        memset(got, 0, (size_t)N_IDS * (size_t)vocabulary * sizeof *got);
        feed_in_company(model, got, where);
        assert_same(want, got, vocabulary, "in company", where);
        octavo_model_close(&model);
    }
    free(want);
    free(got);
}

static void check_tiny(const tiny_options *options, const ranks_setting *settings, size_t n) {
    char path[64];
    tiny_model_write(options, path);
    check_settings(path, OCTAVO_PRECISION_FAST, settings, n);
    check_settings(path, OCTAVO_PRECISION_EXACT, settings, n);
    unlink(path);
}

static void test_dense(void **state) {
    static const octavo_ggml_type floats[] = {OCTAVO_GGML_F32, OCTAVO_GGML_BF16, OCTAVO_GGML_F16};
    static const octavo_ggml_type blocks[] = {OCTAVO_GGML_Q8_0, OCTAVO_GGML_Q4_0, OCTAVO_GGML_Q5_1};
    (void)state;
    check_tiny(&(tiny_options){.architecture = "llama",
                               .n_layers = 2,
                               .context = 256,
                               .types = floats,
                               .n_types = OCTAVO_COUNT(floats)},
               dense, OCTAVO_COUNT(dense));
    check_tiny(&(tiny_options){.architecture = "qwen2",
                               .n_layers = 1,
                               .context = 256,
                               .types = blocks,
                               .n_types = OCTAVO_COUNT(blocks)},
               dense, OCTAVO_COUNT(dense));
}

static void test_experts(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_Q8_0, OCTAVO_GGML_BF16};
    (void)state;
    check_tiny(&(tiny_options){.architecture = "qwen3moe",
                               .n_layers = 2,
                               .context = 256,
                               .types = types,
                               .n_types = OCTAVO_COUNT(types),
                               .n_experts = 8},
               experts, OCTAVO_COUNT(experts));
}

static void test_smollm2(void **state) {
    static const ranks_setting settings[] = {
        {.mesh = "model=2"},
        {.mesh = "data=2,model=2"},
        {.mesh = "expert=2,seq=2,model=2"},
    };
    const char *folder = getenv("OCTAVO_MODELS");
    char path[512];
    (void)state;
    if (!folder) skip();
    snprintf(path, sizeof path, "%s/smollm2-135m-q4_1.gguf", folder);
    if (access(path, R_OK) != 0) skip();
    check_settings(path, OCTAVO_PRECISION_FAST, settings, OCTAVO_COUNT(settings));
    check_settings(path, OCTAVO_PRECISION_EXACT, settings, OCTAVO_COUNT(settings));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_smollm2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
