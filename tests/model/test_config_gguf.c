/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF metadata -> numbers: lists with an entry for each layer where others have one value, and
 * what files of one architecture mean by the keys they have.
 */
#include "../gguf_writer.h"
#include "../unit.h"
#include "model/family.h"

#include <math.h>

enum { N_LAYERS = 4 };

static void key_of(const char *architecture, const char *suffix, char *key) {
    snprintf(key, 96, "%s.%s", architecture, suffix);
}

static void write_u32(gguf_writer *w, const char *architecture, const char *suffix,
                      uint32_t value) {
    char key[96];
    key_of(architecture, suffix, key);
    gguf_writer_u32(w, key, value);
}

static void start(gguf_writer *w, const char *architecture) {
    char key[96];
    const float rows[64 * 2] = {0};
    gguf_writer_init(w, 3, 32);
    gguf_writer_string(w, "general.architecture", architecture);
    write_u32(w, architecture, "block_count", N_LAYERS);
    write_u32(w, architecture, "embedding_length", 64);
    write_u32(w, architecture, "feed_forward_length", 96);
    write_u32(w, architecture, "attention.head_count", 4);
    write_u32(w, architecture, "context_length", 128);
    key_of(architecture, "attention.layer_norm_rms_epsilon", key);
    gguf_writer_f32(w, key, 1e-5f);
    gguf_writer_tensor(w, "token_embd.weight", OCTAVO_GGML_F32, 2, (uint64_t[]){64, 2}, rows,
                       sizeof rows);
}

/* Statuses and messages as octavo_config_load. The writer is done with. */
static octavo_status finish(gguf_writer *w, octavo_model_config *config, octavo_error *error) {
    octavo_checkpoint checkpoint = {0};
    size_t size;
    const uint8_t *data = gguf_writer_finish(w, &size);
    octavo_error parse;
    assert_int_equal(octavo_gguf_parse(data, size, "model.gguf", &checkpoint.gguf, &parse),
                     OCTAVO_OK);
    octavo_status status = octavo_config_load(config, &checkpoint, error);
    octavo_gguf_close(&checkpoint.gguf);
    gguf_writer_deinit(w);
    return status;
}

static void expect_windows(const char *architecture, const int32_t *list, size_t n_list,
                           const int64_t windows[N_LAYERS]) {
    gguf_writer w;
    octavo_model_config config;
    octavo_error error;
    char key[96];
    start(&w, architecture);
    write_u32(&w, architecture, "attention.sliding_window", 9);
    key_of(architecture, "attention.sliding_window_pattern", key);
    if (list) gguf_writer_i32s(&w, key, list, n_list);
    if (finish(&w, &config, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    for (int i = 0; i < N_LAYERS; i++)
        assert_int_equal(config.layers[i].window, windows[i]);
    octavo_config_deinit(&config);
}

static void test_windows(void **state) {
    static const int32_t list[] = {1, 0, 0, 1};
    (void)state;
    expect_windows("gemma2", NULL, 0, (int64_t[]){9, 0, 9, 0});
    expect_windows("gemma2", list, 4, (int64_t[]){9, 0, 0, 9});
    expect_windows("olmo2", NULL, 0, (int64_t[]){9, 9, 9, 0});
    expect_windows("olmo2", list, 4, (int64_t[]){9, 0, 0, 9});
}

/* Layers of OLMo 3 that slide have their rope unscaled. */
static void test_olmo3(void **state) {
    gguf_writer w;
    octavo_model_config config;
    octavo_error error;
    (void)state;
    start(&w, "olmo2");
    write_u32(&w, "olmo2", "attention.sliding_window", 9);
    gguf_writer_string(&w, "olmo2.rope.scaling.type", "linear");
    gguf_writer_f32(&w, "olmo2.rope.scaling.factor", 8.0f);
    if (finish(&w, &config, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    assert_true(config.ropes[config.layers[3].rope].factor == 8.0f);
    assert_true(config.ropes[config.layers[2].rope].factor == 1.0f);
    octavo_config_deinit(&config);
}

/* Queries of Ministral 3 are scaled on every layer; cos and sin by what two logarithms leave. */
static void test_ministral3(void **state) {
    gguf_writer w;
    octavo_model_config config;
    octavo_error error;
    (void)state;
    for (int has_multiplier = 0; has_multiplier < 2; has_multiplier++) {
        start(&w, "mistral3");
        gguf_writer_string(&w, "mistral3.rope.scaling.type", "yarn");
        gguf_writer_f32(&w, "mistral3.rope.scaling.factor", 16.0f);
        write_u32(&w, "mistral3", "rope.scaling.original_context_length", 8);
        gguf_writer_f32(&w, "mistral3.attention.temperature_scale", 0.25f);
        if (has_multiplier) gguf_writer_f32(&w, "mistral3.rope.scaling.yarn_log_multiplier", 1.0f);
        if (finish(&w, &config, &error) != OCTAVO_OK) fail_msg("%s", error.message);
        const float scale = has_multiplier ? 1.0f : 1.2772589f; /* 0.1 ln 16 + 1 */
        assert_true(fabsf(config.ropes[0].scale - scale) < 1e-6f);
        assert_true(config.has_temperature_everywhere && config.temperature.scale == 0.25f);
        assert_true(config.temperature.period == 8.0f && config.temperature.first == 0);
        octavo_config_deinit(&config);
    }
}

static void expect_refused(const char *suffix, const int32_t *list, size_t n_list,
                           octavo_status wanted) {
    gguf_writer w;
    octavo_model_config config;
    octavo_error error;
    char key[96];
    start(&w, "gemma2");
    key_of("gemma2", suffix, key);
    gguf_writer_i32s(&w, key, list, n_list);
    assert_int_equal(finish(&w, &config, &error), wanted);
    if (!strstr(error.message, key) || !strstr(error.message, "model.gguf"))
        fail_msg("%s", error.message);
    octavo_config_deinit(&config);
}

static void test_lists(void **state) {
    static const int32_t same[] = {2, 2, 2, 2}, other[] = {2, 2, 1, 2}, flags[] = {1, 0, 1};
    gguf_writer w;
    octavo_model_config config;
    octavo_error error;
    (void)state;
    start(&w, "gemma2");
    write_u32(&w, "gemma2", "attention.sliding_window", 9);
    gguf_writer_i32s(&w, "gemma2.attention.head_count_kv", same, 4);
    if (finish(&w, &config, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    assert_int_equal(config.n_kv_heads, 2);
    octavo_config_deinit(&config);
    expect_refused("attention.head_count_kv", other, 4, OCTAVO_ERROR_UNSUPPORTED);
    expect_refused("attention.head_count_kv", (int32_t[]){-2}, 1, OCTAVO_ERROR_FORMAT);
    expect_refused("attention.sliding_window", other, 4, OCTAVO_ERROR_UNSUPPORTED);
    start(&w, "gemma2");
    write_u32(&w, "gemma2", "attention.sliding_window", 9);
    gguf_writer_i32s(&w, "gemma2.attention.sliding_window_pattern", flags, 3);
    assert_int_equal(finish(&w, &config, &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "sliding_window_pattern"));
    octavo_config_deinit(&config);
    start(&w, "gemma2");
    write_u32(&w, "gemma2", "attention.sliding_window", 0);
    gguf_writer_i32s(&w, "gemma2.attention.sliding_window_pattern", (int32_t[]){1, 1, 1, 1}, 4);
    assert_int_equal(finish(&w, &config, &error), OCTAVO_ERROR_FORMAT);
    octavo_config_deinit(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_olmo3),
        cmocka_unit_test(test_ministral3),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
