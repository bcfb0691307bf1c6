/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/embed.h: an encoder against its goldens, the same bits in any company, and models that
 * write text, whose vectors follow from the hidden states of their steps.
 */
#include "embed_golden.h"
#include "hf_maker.h"

static const char BERT[] = TEST_DATA "/models/bert";
static const char NOMIC[] = TEST_DATA "/models/nomic_bert";
static const char MODERN[] = TEST_DATA "/models/modernbert";

static void test_golden(void **state) {
    (void)state;
    embed_check_folder(BERT);
    embed_check_folder(NOMIC);
    embed_check_folder(MODERN);
}

static void test_same_bits(void **state) {
    static const octavo_precision precisions[] = {OCTAVO_PRECISION_FAST, OCTAVO_PRECISION_EXACT};
    static const octavo_pooling poolings[] = {OCTAVO_POOLING_MEAN, OCTAVO_POOLING_CLS,
                                              OCTAVO_POOLING_LAST, OCTAVO_POOLING_POOLER};
    (void)state;
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < 4; i++)
            embed_check_bits(BERT, precisions[p], poolings[i]);
    embed_check_bits(NOMIC, OCTAVO_PRECISION_FAST, OCTAVO_POOLING_MEAN);
    embed_check_bits(MODERN, OCTAVO_PRECISION_FAST, OCTAVO_POOLING_MEAN);
}

/* ---- models that write text ---- */

enum { N_IDS = 150, MAX_WIDTH = 128 };

static octavo_model *open_chunked(const char *path, int chunk) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    octavo_model_options_init(&options);
    options.precision = OCTAVO_PRECISION_EXACT;
    options.chunk = chunk;
    options.kv_memory = 8u << 20;
    hf_must(octavo_model_open(path, &options, &model, &error), &error);
    assert_in_range(octavo_model_describe(model).width, 1, MAX_WIDTH);
    return model;
}

/* All states of a text that goes through in one step. */
static void hidden_of(octavo_model *model, const int32_t *ids, int n, float *hidden) {
    octavo_sequence *sequence = NULL;
    octavo_error error;
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    const octavo_step_input input = {
        .sequence = sequence, .ids = ids, .n_ids = n, .want = OCTAVO_LOGITS_ALL, .hidden = hidden};
    hf_must(octavo_model_step(model, &input, 1, &error), &error);
    octavo_sequence_destroy(&sequence);
}

/* Pooled as octavo/embed.h says, whatever the chunk; phi3 changes its rope on the way. */
static void check_decoder(const char *path) {
    static float hidden[N_IDS * MAX_WIDTH], all[N_IDS * MAX_WIDTH];
    float mean[MAX_WIDTH], got[2 * MAX_WIDTH];
    int32_t ids[N_IDS];
    octavo_model *model = open_chunked(path, 512);
    const octavo_model_facts facts = octavo_model_describe(model);
    const size_t width = (size_t)facts.width, bytes = width * sizeof(float);
    assert_false(facts.is_encoder || facts.has_pooler);
    assert_int_equal(facts.pooling, OCTAVO_POOLING_LAST);
    for (int i = 0; i < N_IDS; i++)
        ids[i] = (i * 37 + 11) % facts.vocabulary;
    hidden_of(model, ids, N_IDS, hidden);
    octavo_model_close(&model);
    for (size_t i = 0; i < width; i++) {
        double sum = 0.0;
        for (size_t t = 0; t < N_IDS; t++)
            sum += (double)hidden[t * width + i];
        mean[i] = (float)(sum / N_IDS);
    }
    const octavo_embed_text texts[] = {{.ids = ids, .n_ids = N_IDS}, {.ids = ids, .n_ids = 3}};
    static const int chunks[] = {512, 64, 7};
    for (size_t i = 0; i < 3; i++) {
        model = open_chunked(path, chunks[i]);
        embed_run(model, OCTAVO_POOLING_AUTO, texts, 2, got);
        assert_memory_equal(got, hidden + (N_IDS - 1) * width, bytes);
        embed_run(model, OCTAVO_POOLING_CLS, texts, 2, got);
        assert_memory_equal(got, hidden, bytes);
        embed_run(model, OCTAVO_POOLING_MEAN, texts, 1, got);
        assert_memory_equal(got, mean, bytes);
        embed_run(model, OCTAVO_POOLING_NONE, texts, 1, all);
        assert_memory_equal(all, hidden, N_IDS * bytes);
        octavo_model_close(&model);
    }
}

static void test_decoders(void **state) {
    (void)state;
    check_decoder(TEST_DATA "/models/llama_tied");
    check_decoder(TEST_DATA "/models/gemma3");
    check_decoder(TEST_DATA "/models/phi3");
    check_decoder(TEST_DATA "/models/qwen2_moe");
}

/* The same weights as an encoder: every position sees the whole text, windows reach to both sides.
 */
static void check_both_ways(const char *from, const char *key, const char *value) {
    char path[300], file[400];
    int32_t ids[EMBED_PROMPTS][HF_MAX_IDS];
    octavo_embed_text texts[EMBED_PROMPTS] = {0};
    float got[EMBED_PROMPTS * MAX_WIDTH];
    hf_maker maker;
    snprintf(path, sizeof path, TEST_DATA "/models/%s", from);
    snprintf(file, sizeof file, "%s/golden/golden.json", path);
    json_t *golden = hf_load_json(file);
    for (size_t i = 0; i < EMBED_PROMPTS; i++) {
        texts[i].ids = ids[i];
        texts[i].n_ids = hf_ids(json_array_get(json_object_get(golden, "prompts"), i), ids[i]);
    }
    json_decref(golden);
    hf_maker_start(&maker, from);
    hf_maker_set(&maker, key, value);
    hf_maker_write(&maker);
    octavo_model *model =
        embed_open(maker.path, (embed_setting){.precision = OCTAVO_PRECISION_EXACT});
    const octavo_model_facts facts = octavo_model_describe(model);
    assert_true(facts.is_encoder && facts.pooling == OCTAVO_POOLING_MEAN);
    embed_run(model, OCTAVO_POOLING_AUTO, texts, EMBED_PROMPTS, got);
    octavo_model_close(&model);
    hf_maker_end(&maker);
    embed_compare(path, "both_ways_mean.npy", got, EMBED_PROMPTS * (size_t)facts.width);
}

static void test_both_ways(void **state) {
    (void)state;
    check_both_ways("llama_tied", "model_type", "\"eurobert\"");
    check_both_ways("gemma3", "use_bidirectional_attention", "true");
}

/* ---- the rest ---- */

static void test_normalize(void **state) {
    static embed_texts texts;
    float plain[MAX_WIDTH], got[MAX_WIDTH];
    octavo_embedder_options options;
    octavo_embedder *embedder = NULL;
    octavo_error error;
    (void)state;
    octavo_model *model = embed_open(BERT, (embed_setting){0});
    const size_t width = (size_t)octavo_model_describe(model).width;
    embed_read(BERT, &texts);
    embed_run(model, OCTAVO_POOLING_MEAN, &texts.texts[1], 1, plain);
    octavo_embedder_options_init(&options);
    options.normalize = true;
    hf_must(octavo_embedder_create(model, &options, &embedder, &error), &error);
    octavo_embed_text text = texts.texts[1];
    text.out = got;
    hf_must(octavo_embedder_run(embedder, &text, 1, &error), &error);
    double length = 0.0, squares = 0.0;
    for (size_t i = 0; i < width; i++) {
        length += (double)plain[i] * (double)plain[i];
        squares += (double)got[i] * (double)got[i];
    }
    assert_true(fabs(squares - 1.0) < 1e-6);
    for (size_t i = 0; i < width; i++)
        assert_true(fabs((double)got[i] * sqrt(length) - (double)plain[i]) < 1e-6);
    octavo_embedder_destroy(&embedder);
    octavo_model_close(&model);
}

/* Token types make a difference, and no types are the types 0. */
static void test_types(void **state) {
    static const int32_t zeros[HF_MAX_IDS];
    static embed_texts texts;
    float with[MAX_WIDTH], without[MAX_WIDTH], zero[MAX_WIDTH];
    (void)state;
    octavo_model *model = embed_open(BERT, (embed_setting){0});
    const size_t bytes = (size_t)octavo_model_describe(model).width * sizeof(float);
    assert_int_equal(octavo_model_describe(model).token_types, 2);
    embed_read(BERT, &texts);
    octavo_embed_text text = texts.texts[1];
    embed_run(model, OCTAVO_POOLING_MEAN, &text, 1, with);
    text.types = NULL;
    embed_run(model, OCTAVO_POOLING_MEAN, &text, 1, without);
    text.types = zeros;
    embed_run(model, OCTAVO_POOLING_MEAN, &text, 1, zero);
    assert_memory_equal(without, zero, bytes);
    assert_memory_not_equal(without, with, bytes);
    octavo_model_close(&model);
}

/* The trace of an encoder: the last row is the state of the last id. */
static void test_trace(void **state) {
    static embed_texts texts;
    static float trace[8 * MAX_WIDTH];
    float last[MAX_WIDTH], first[MAX_WIDTH];
    octavo_sequence *sequence = NULL;
    octavo_error error;
    (void)state;
    octavo_model *model = embed_open(BERT, (embed_setting){.threads = 2});
    const octavo_model_facts facts = octavo_model_describe(model);
    assert_true(facts.is_encoder && facts.has_pooler && facts.chunk >= facts.context);
    assert_in_range(facts.layers, 1, 7);
    embed_read(BERT, &texts);
    const octavo_embed_text *text = &texts.texts[2];
    embed_run(model, OCTAVO_POOLING_LAST, text, 1, last);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    const octavo_step_input input = {.sequence = sequence,
                                     .ids = text->ids,
                                     .types = text->types,
                                     .n_ids = (int)text->n_ids,
                                     .want = OCTAVO_LOGITS_FIRST,
                                     .hidden = first,
                                     .trace = trace};
    hf_must(octavo_model_step(model, &input, 1, &error), &error);
    assert_memory_equal(trace + facts.layers * facts.width, last,
                        sizeof(float) * (size_t)facts.width);
    embed_run(model, OCTAVO_POOLING_CLS, text, 1, last);
    assert_memory_equal(first, last, sizeof(float) * (size_t)facts.width);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),    cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_decoders),  cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_types),     cmocka_unit_test(test_trace),
        cmocka_unit_test(test_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
