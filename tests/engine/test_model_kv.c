/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches of 8 bits whose slots keep their scales: close to a cache of f32, the same bits whatever
 * the chunk, the threads, the pages and the company, and as much memory as they say.
 */
#include "kv_models.h"

static const char *const models[] = {
    TEST_DATA "/models/llama-f32.gguf", TEST_DATA "/models/gemma3",
    TEST_DATA "/models/phi3",           TEST_DATA "/models/gpt_oss_mxfp4",
    TEST_DATA "/models/qwen2_moe",      TEST_DATA "/models/llama4_scout",
    TEST_DATA "/models/deepseek_v3", /* values are lanes of their keys */
};

static float want[KV_N_IDS * KV_MAX_VOCABULARY], got[KV_N_IDS * KV_MAX_VOCABULARY];

static void run_in_company(const char *path, const octavo_model_options *options, float *logits) {
    static const int pieces[] = {1, 40, 3, 64, 1, 11};
    int32_t ids[KV_N_IDS];
    octavo_model *model = kv_open(path, options);
    kv_make_ids(ids, octavo_model_describe(model).vocabulary);
    hf_feed_in_company(model, ids, KV_N_IDS, pieces, logits);
    octavo_model_close(&model);
}

static void check_bits(const char *path, octavo_model_options options) {
    static const struct {
        int threads, chunk, page_size;
    } settings[] = {{1, 1, 16}, {2, 7, 5}, {3, 64, 8}, {2, 50, 64}, {1, 33, 1}};
    const int32_t vocabulary = kv_run(path, &options, want);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        options.threads = settings[i].threads;
        options.chunk = settings[i].chunk;
        options.page_size = settings[i].page_size;
        kv_run(path, &options, got);
        if (memcmp(got, want, sizeof *want * KV_N_IDS * (size_t)vocabulary) != 0)
            fail_msg("%s: other bits with %d threads, chunk %d, page size %d", path,
                     options.threads, options.chunk, options.page_size);
    }
    options.chunk = 128;
    run_in_company(path, &options, got);
    if (memcmp(got, want + (KV_N_IDS - 1) * vocabulary, sizeof *want * (size_t)vocabulary) != 0)
        fail_msg("%s: other bits in company", path);
}

static void test_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        for (int t = 0; t < 3; t++) {
            octavo_model_options options = kv_options(kv_dtypes[t]);
            options.precision = t == 1 ? OCTAVO_PRECISION_EXACT : OCTAVO_PRECISION_FAST;
            check_bits(models[i], options);
        }
    }
}

/* Models with random weights feel a rounding much more than others do: see docs/attention.md. */
static void test_close(void **state) {
    static const double most[] = {0.5, 0.8, 0.06};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        octavo_model_options options = kv_options(OCTAVO_DTYPE_F32);
        const int32_t vocabulary = kv_run(models[i], &options, want);
        for (int t = 0; t < 3; t++) {
            options = kv_options(kv_dtypes[t]);
            kv_run(models[i], &options, got);
            const double divergence = kv_divergence(want, got, vocabulary);
            assert_true(divergence > 0.0);
            if (!(divergence < most[t]))
                fail_msg("%s, %s: %g from f32", models[i], octavo_dtype_name(kv_dtypes[t]),
                         divergence);
        }
    }
}

/* Two scales of four bytes for each head of a slot. */
static void test_memory(void **state) {
    octavo_model_options options = kv_options(OCTAVO_DTYPE_F16);
    (void)state;
    for (int i = 0; i < 2; i++) {
        options.kv_dtype = i ? OCTAVO_DTYPE_INT8 : OCTAVO_DTYPE_F16;
        octavo_model *model = kv_open(models[0], &options);
        const octavo_model_facts facts = octavo_model_describe(model);
        const uint64_t heads = (uint64_t)(2 * facts.layers * facts.kv_heads);
        const uint64_t position = heads * ((uint64_t)facts.head_width * (i ? 1 : 2) + (i ? 4 : 0));
        assert_int_equal(facts.kv_dtype, options.kv_dtype);
        assert_int_equal(facts.position_bytes, position);
        assert_int_equal(facts.kv_bytes, position * 16 * (uint64_t)facts.pages);
        assert_int_equal(facts.pages, options.kv_memory / (position * 16));
        octavo_model_close(&model);
    }
}

/* A latent is key and value: one scale for both. */
static void test_latent_memory(void **state) {
    octavo_model_options options = kv_options(OCTAVO_DTYPE_FP8_E4M3);
    octavo_model *model = kv_open(TEST_DATA "/models/deepseek_v3", &options);
    const octavo_model_facts facts = octavo_model_describe(model);
    (void)state;
    assert_int_equal(facts.position_bytes,
                     (uint64_t)facts.layers * (uint64_t)(facts.head_width + 4));
    assert_true(facts.kv_bytes >= facts.position_bytes * 16 * (uint64_t)facts.pages);
    octavo_model_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_latent_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
