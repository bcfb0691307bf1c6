/* SPDX-License-Identifier: Apache-2.0
 *
 * config.json -> numbers, where the goldens of whole models would not tell a slip apart: which
 * layers slide, what rotates how fast, what is taken where a key is absent.
 */
#include "../unit.h"
#include "model/family.h"

#include <math.h>

#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 4, "                   \
    "\"num_attention_heads\": 4, \"vocab_size\": 100, \"max_position_embeddings\": 128"

/* The configuration that a config.json of this text gives. */
static octavo_model_config load(const char *text) {
    octavo_checkpoint checkpoint = {.folder = {.config = (char[]){"config.json"}}};
    octavo_model_config config = {0};
    octavo_error error;
    checkpoint.config = json_loads(text, 0, NULL);
    assert_non_null(checkpoint.config);
    if (octavo_config_load(&config, &checkpoint, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    json_decref(checkpoint.config);
    return config;
}

static void expect_windows(const char *text, const int64_t windows[4]) {
    octavo_model_config config = load(text);
    assert_int_equal(config.n_layers, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(config.layers[i].window, windows[i]);
    octavo_config_deinit(&config);
}

static void test_windows(void **state) {
    (void)state;
    expect_windows("{\"model_type\": \"llama\", \"sliding_window\": 9, " SIZES "}",
                   (int64_t[4]){0, 0, 0, 0});
    expect_windows("{\"model_type\": \"mistral\", \"sliding_window\": 9, " SIZES "}",
                   (int64_t[4]){9, 9, 9, 9});
    expect_windows("{\"model_type\": \"mistral\", \"sliding_window\": null, " SIZES "}",
                   (int64_t[4]){0, 0, 0, 0});
    expect_windows("{\"model_type\": \"mistral\", " SIZES "}",
                   (int64_t[4]){4096, 4096, 4096, 4096});
    expect_windows(
        "{\"model_type\": \"qwen2\", \"sliding_window\": 9, \"max_window_layers\": 2, " SIZES "}",
        (int64_t[4]){0, 0, 0, 0});
    expect_windows(
        "{\"model_type\": \"qwen2\", \"use_sliding_window\": true, \"sliding_window\": 9, "
        "\"max_window_layers\": 2, " SIZES "}",
        (int64_t[4]){0, 0, 9, 9});
    expect_windows("{\"model_type\": \"gemma3_text\", \"sliding_window\": 9, "
                   "\"sliding_window_pattern\": 2, " SIZES "}",
                   (int64_t[4]){9, 0, 9, 0});
    expect_windows("{\"model_type\": \"gemma3_text\", \"sliding_window\": 9, \"layer_types\": "
                   "[\"full_attention\", \"sliding_attention\", \"sliding_attention\", "
                   "\"full_attention\"], " SIZES "}",
                   (int64_t[4]){0, 9, 9, 0});
}

static void test_absent_keys(void **state) {
    (void)state;
    octavo_model_config config = load("{\"model_type\": \"llama\", " SIZES "}");
    assert_int_equal(config.head_dim, 16);
    assert_int_equal(config.n_kv_heads, 4);
    assert_int_equal(config.pairing, OCTAVO_ROPE_HALF);
    assert_false(config.is_tied);
    assert_int_equal(config.qkv_bias, OCTAVO_BIAS_NONE);
    assert_true(config.ropes[0].base == 1e4f && config.norm_eps == 1e-6f);
    octavo_config_deinit(&config);

    config = load("{\"model_type\": \"qwen2\", \"num_key_value_heads\": 2, " SIZES "}");
    assert_int_equal(config.n_kv_heads, 2);
    assert_int_equal(config.qkv_bias, OCTAVO_BIAS_NEEDED);
    assert_int_equal(config.attn_o_bias, OCTAVO_BIAS_NONE);
    octavo_config_deinit(&config);

    /* As in the multimodal models' files, where the text part says next to nothing. */
    config = load("{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": \"gemma3_text\", "
                  "\"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34, "
                  "\"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}, "
                  "\"sliding_window\": 1024}}");
    assert_int_equal(config.n_heads, 8);
    assert_int_equal(config.n_kv_heads, 4);
    assert_int_equal(config.head_dim, 256);
    assert_int_equal(config.vocab, 262208);
    assert_int_equal(config.context, 131072);
    assert_true(config.is_tied);
    assert_true(config.attention_scale == 0.0625f);
    assert_int_equal(config.layers[4].window, 1024);
    assert_int_equal(config.layers[5].window, 0);
    assert_true(config.ropes[config.layers[5].rope].base == 1e6f);
    assert_true(config.ropes[config.layers[5].rope].factor == 8.0f);
    assert_true(config.ropes[config.layers[4].rope].base == 1e4f);
    assert_true(config.ropes[config.layers[4].rope].factor == 1.0f);
    octavo_config_deinit(&config);
}

/* Values of an independent implementation in f64. */
static void test_llama3_frequencies(void **state) {
    static const double want[] = {1.0,           0.459863298,   0.0976166327,  0.0121561559,
                                  0.00559016994, 0.00257071399, 0.00118217701, 0.000543639819};
    (void)state;
    octavo_model_config config =
        load("{\"model_type\": \"llama\", \"rope_theta\": 500.0, \"rope_scaling\": {\"rope_type\": "
             "\"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
             "\"original_max_position_embeddings\": 64}, " SIZES "}");
    assert_int_equal(config.rope_dim, 16);
    for (int i = 0; i < 8; i++)
        assert_true(fabs((double)config.ropes[0].frequencies[i] / want[i] - 1.0) < 1e-6);
    octavo_config_deinit(&config);
}

/* Values of an independent implementation in f64: whole pairs as bounds, and fractions. */
static void test_yarn(void **state) {
    static const double want[2][8] = {{1, 0.459863298, 0.211474253, 0.0729369354, 0.0223606798,
                                       0.00514142797, 0.00236435402, 0.00108727964},
                                      {1, 0.459863298, 0.211474253, 0.072604702, 0.0208581732,
                                       0.00514142797, 0.00236435402, 0.00108727964}};
    static const char *const texts[] = {
        "{\"model_type\": \"llama\", \"rope_theta\": 500.0, \"rope_scaling\": {\"rope_type\": "
        "\"yarn\", \"factor\": 4.0, \"beta_fast\": 8, "
        "\"original_max_position_embeddings\": 256}, " SIZES "}",
        "{\"model_type\": \"llama\", \"rope_theta\": 500.0, \"rope_scaling\": {\"rope_type\": "
        "\"yarn\", \"factor\": 4.0, \"beta_fast\": 8, \"beta_slow\": 1.0, \"truncate\": false, "
        "\"mscale\": 1.0, \"mscale_all_dim\": 0.5, "
        "\"original_max_position_embeddings\": 256}, " SIZES "}"};
    static const double scales[] = {1.13862944, 1.13862944 / 1.06931472};
    (void)state;
    for (int t = 0; t < 2; t++) {
        octavo_model_config config = load(texts[t]);
        for (int i = 0; i < 8; i++)
            assert_true(fabs((double)config.ropes[0].frequencies[i] / want[t][i] - 1.0) < 1e-6);
        assert_true(fabs((double)config.ropes[0].scale - scales[t]) < 1e-6);
        octavo_config_deinit(&config);
    }
}

static void test_longrope(void **state) {
    (void)state;
    octavo_model_config config = load(
        "{\"model_type\": \"phi3\", \"original_max_position_embeddings\": 32, \"rope_scaling\": "
        "{\"type\": \"longrope\", \"short_factor\": [1, 1, 1, 1, 1, 1, 1, 2], \"long_factor\": "
        "[1, 1, 1, 1, 1, 1, 1, 5]}, " SIZES "}");
    const octavo_rope_config *rope = &config.ropes[0];
    assert_true(fabs((double)rope->scale - 1.18321596) < 1e-6); /* sqrt(1 + ln 4 / ln 32) */
    assert_true(rope->frequencies[6] == rope->long_frequencies[6]);
    assert_true(fabs((double)rope->frequencies[7] / (double)rope->long_frequencies[7] - 2.5) <
                1e-6);
    assert_int_equal(octavo_config_short_length(&config), 32);
    octavo_config_deinit(&config);
}

static void expect_ropes(const char *text, const int ropes[4]) {
    octavo_model_config config = load(text);
    for (int i = 0; i < 4; i++)
        assert_int_equal(config.layers[i].rope, ropes[i]);
    octavo_config_deinit(&config);
}

static void test_layers_without_rope(void **state) {
    enum { NO = OCTAVO_NO_ROPE };
    (void)state;
    expect_ropes("{\"model_type\": \"smollm3\", " SIZES "}", (int[4]){0, 0, 0, NO});
    expect_ropes("{\"model_type\": \"smollm3\", \"no_rope_layer_interval\": 2, " SIZES "}",
                 (int[4]){0, NO, 0, NO});
    expect_ropes("{\"model_type\": \"smollm3\", \"no_rope_layers\": [0, 1, 1, 0], " SIZES "}",
                 (int[4]){NO, 0, 0, NO});
    expect_ropes("{\"model_type\": \"cohere2\", \"sliding_window_pattern\": 2, " SIZES "}",
                 (int[4]){0, NO, 0, NO});
    expect_ropes("{\"model_type\": \"llama\", " SIZES "}", (int[4]){0, 0, 0, 0});
}

/* What families say once, in numbers of their own or in keys of their own. */
static void test_numbers(void **state) {
    (void)state;
    octavo_model_config config = load(
        "{\"model_type\": \"granite\", \"embedding_multiplier\": 12.0, \"logits_scaling\": 8.0, "
        "\"residual_multiplier\": 0.25, \"attention_multiplier\": 0.5, " SIZES "}");
    assert_true(config.embed_scale == 12.0f && config.logit_scale == 0.125f);
    assert_true(config.residual_scale == 0.25f && config.attention_scale == 0.5f);
    octavo_config_deinit(&config);

    config = load("{\"model_type\": \"gemma2\", " SIZES "}");
    assert_true(config.attention_soft_cap == 50.0f && config.logit_soft_cap == 30.0f);
    assert_int_equal(config.layers[0].window, 4096);
    assert_int_equal(config.layers[1].window, 0);
    octavo_config_deinit(&config);

    config = load("{\"model_type\": \"gemma2\", \"attn_logit_softcapping\": null, "
                  "\"final_logit_softcapping\": null, " SIZES "}");
    assert_true(config.attention_soft_cap == 0.0f && config.logit_soft_cap == 0.0f);
    octavo_config_deinit(&config);

    /* The first files of Gemma call the activation something else than it was. */
    config = load("{\"model_type\": \"gemma\", \"hidden_act\": \"gelu\", \"hidden_activation\": "
                  "null, " SIZES "}");
    assert_int_equal(config.activation, OCTAVO_ACTIVATION_GELU_TANH);
    assert_true(config.norm_offset == 1.0f && config.embed_scale == 8.0f);
    octavo_config_deinit(&config);

    config =
        load("{\"model_type\": \"glm4\", \"head_dim\": 32, \"attention_bias\": true, " SIZES "}");
    assert_int_equal(config.rope_dim, 16);
    assert_int_equal(config.qkv_bias, OCTAVO_BIAS_NEEDED);
    assert_int_equal(config.attn_o_bias, OCTAVO_BIAS_NONE);
    octavo_config_deinit(&config);
}

/* A role's name in each place, and that a family's own goes before the common one. */
/* Encoders: tables, no rope but where there is no table, and keys under names of their own. */
static void test_encoders(void **state) {
    (void)state;
    octavo_model_config config = load("{\"model_type\": \"bert\", " SIZES "}");
    const int64_t context = config.context;
    assert_true(config.is_encoder && config.has_sum_norms && config.has_embed_norm);
    assert_false(config.has_attn_norm || config.has_ffw_norm || config.has_output_norm ||
                 config.has_gate || config.has_pooler);
    assert_int_equal(config.n_types, 2);
    assert_int_equal(config.n_positions, context);
    assert_int_equal(config.layers[0].rope, OCTAVO_NO_ROPE);
    assert_int_equal(config.pooling, OCTAVO_POOLING_MEAN);
    octavo_config_deinit(&config);

    config = load("{\"model_type\": \"xlm-roberta\", \"pad_token_id\": 4, " SIZES "}");
    assert_int_equal(config.n_positions, context);
    assert_int_equal(config.first_position, 5);
    assert_int_equal(config.context, context - 5);
    octavo_config_deinit(&config);

    config =
        load("{\"model_type\": \"distilbert\", \"dim\": 64, \"hidden_dim\": 80, \"n_layers\": 3, "
             "\"n_heads\": 4, \"activation\": \"gelu_new\", \"vocab_size\": 9, "
             "\"max_position_embeddings\": 12}");
    assert_int_equal(config.ffw, 80);
    assert_int_equal(config.n_layers, 3);
    assert_int_equal(config.n_types, 0);
    assert_int_equal(config.activation, OCTAVO_ACTIVATION_GELU_TANH);
    octavo_config_deinit(&config);

    config =
        load("{\"model_type\": \"nomic_bert\", \"n_embd\": 64, \"n_inner\": 80, \"n_layer\": 2, "
             "\"n_head\": 4, \"n_positions\": 8192, \"vocab_size\": 9}");
    assert_int_equal(config.context, 2048);
    assert_int_equal(config.n_positions, 0);
    assert_int_equal(config.layers[0].rope, 0);
    assert_true(config.has_gate && config.ropes[0].base == 1000.0f);
    octavo_config_deinit(&config);
}

static void test_names(void **state) {
    const octavo_checkpoint folder = {.body_prefix = "language_model.model.",
                                      .head_prefix = "language_model."};
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    (void)state;
    assert_string_equal(octavo_weight_name_make(&folder, NULL, OCTAVO_ROLE_FFW_NORM, 11, 0, name),
                        "language_model.model.layers.11.post_attention_layernorm.weight");
    assert_string_equal(octavo_weight_name_make(&folder, octavo_family_gemma3_names,
                                                OCTAVO_ROLE_FFW_NORM, 4095, 0, name),
                        "language_model.model.layers.4095.pre_feedforward_layernorm.weight");
    assert_string_equal(octavo_weight_name_make(&folder, NULL, OCTAVO_ROLE_OUTPUT, 0, 0, name),
                        "language_model.lm_head.weight");
    assert_string_equal(octavo_weight_name_make(&folder, NULL, OCTAVO_ROLE_OUTPUT_NORM, 0, 0, name),
                        "language_model.model.norm.weight");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_absent_keys),
        cmocka_unit_test(test_llama3_frequencies),
        cmocka_unit_test(test_yarn),
        cmocka_unit_test(test_longrope),
        cmocka_unit_test(test_layers_without_rope),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_encoders),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
