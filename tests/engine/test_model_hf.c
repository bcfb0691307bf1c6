/* SPDX-License-Identifier: Apache-2.0
 *
 * Hugging Face folders as models: goldens, the many ways in which one thing is written, the same
 * bits whatever the chunk and the threads, and what else a folder has.
 */
#include "hf_bits.h"
#include "hf_maker.h"

#include "octavo/inspect.h"
#include "octavo/template.h"

static const char *const models[] = {"llama_tied",    "gemma3",     "olmo2",       "phi3",
                                     "cohere2",       "gpt_neox",   "qwen2_moe",   "llama4_scout",
                                     "gpt_oss_mxfp4", "ministral3", "deepseek_v2", "deepseek_v3",
                                     "nemotron"};

enum {
    N_NAMES = sizeof models / sizeof *models,
    N_IDS = HF_N_IDS,
    MAX_VOCABULARY = HF_MAX_VOCABULARY
};

static void test_golden(void **state) {
    char path[256];
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) {
        snprintf(path, sizeof path, TEST_DATA "/models/%s", models[i]);
        hf_check_folder(path);
    }
}

static void test_same_bits(void **state) {
    char path[256];
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) {
        snprintf(path, sizeof path, TEST_DATA "/models/%s", models[i]);
        hf_check_bits(path);
    }
}

static const hf_setting plain = {OCTAVO_PRECISION_EXACT, 1, 512, 16};

/* A sequence that has been longer than the limit of its rope and is cut back below it, or grows
 * past it id by id, is as one that never was. */
static void test_lengths(void **state) {
    static float all[N_IDS * MAX_VOCABULARY], want[MAX_VOCABULARY], got[MAX_VOCABULARY];
    octavo_model *model = hf_open(TEST_DATA "/models/phi3", plain);
    octavo_sequence *sequence = NULL, *other = NULL;
    octavo_error error;
    int32_t ids[N_IDS];
    (void)state;
    hf_make_ids(ids, octavo_model_describe(model).vocabulary);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, 60, OCTAVO_LOGITS_LAST, want, NULL, &error),
            &error);
    octavo_sequence_truncate(sequence, 0);
    hf_must(octavo_sequence_feed(sequence, ids, N_IDS, OCTAVO_LOGITS_ALL, all, NULL, &error),
            &error);
    octavo_sequence_truncate(sequence, 50);
    hf_must(octavo_sequence_feed(sequence, ids + 50, 10, OCTAVO_LOGITS_LAST, got, NULL, &error),
            &error);
    assert_memory_equal(got, want, sizeof *want * 256);

    hf_must(octavo_sequence_create(model, &other, &error), &error);
    hf_must(octavo_sequence_feed(other, ids, 103, OCTAVO_LOGITS_LAST, want, NULL, &error), &error);
    for (int i = 60; i < 103; i++)
        hf_must(octavo_sequence_feed(sequence, ids + i, 1, OCTAVO_LOGITS_LAST, got, NULL, &error),
                &error);
    assert_memory_equal(got, want, sizeof *want * 256);
    octavo_sequence_destroy(&sequence);
    octavo_sequence_destroy(&other);
    octavo_model_close(&model);
}

/* ---- ways of writing ---- */

typedef struct edit {
    const char *key, *json; /* "": left out */
} edit;

typedef struct variant {
    const char *from;
    edit edits[8];
    bool is_other; /* the model must come out as another: the keys are not just accepted */
} variant;

#define GLOBAL_ROPE "\"rope_type\": \"linear\", \"factor\": 8.0, \"rope_theta\": 1000000.0"

#define SHORT "[1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0]"
#define LONG  "[1.0, 1.4, 2.0, 3.0, 4.5, 6.0, 9.0, 14.0]"

#define MINISTRAL(more)                                                                            \
    "{\"type\": \"yarn\", \"rope_theta\": 10000.0, \"factor\": 8.0, "                              \
    "\"original_max_position_embeddings\": 32, \"mscale\": 1, \"mscale_all_dim\": 1" more "}"

static const variant variants[] = {
    {"llama_tied", {{"rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 2}"}}, false},
    {"llama_tied",
     {{"rope_scaling", "{\"rope_type\": \"linear\", \"type\": \"linear\", \"factor\": 2.0}"}},
     false},
    {"llama_tied",
     {{"rope_scaling", ""},
      {"rope_theta", ""},
      {"rope_parameters", "{\"rope_type\": \"linear\", \"factor\": 2.0, \"rope_theta\": 10000.0}"}},
     false},
    {"llama_tied",
     {{"rope_theta", ""}, {"hidden_act", "\"swish\""}, {"rms_norm_eps", ""}, {"head_dim", "16"}},
     false},
    {"llama_tied", {{"rope_scaling", "null"}}, true},
    {"llama_tied", {{"rope_scaling", ""}, {"rope_parameters", "{\"rope_theta\": 10000.0}"}}, true},
    {"llama_tied",
     {{"rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
                       "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64}"}},
     true},
    {"llama_tied", {{"model_type", "\"mistral\""}, {"sliding_window", "24"}}, true},
    {"llama_tied", {{"model_type", "\"ministral\""}, {"sliding_window", "24"}}, true},
    {"ministral3", {{"rope_parameters", MINISTRAL("")}}, true},
    {"ministral3", {{"rope_parameters", MINISTRAL(", \"llama_4_scaling_beta\": 0.3")}}, false},
    {"ministral3",
     {{"rope_parameters", ""},
      {"rope_theta", "10000.0"},
      {"rope_scaling", MINISTRAL(", \"llama_4_scaling_beta\": 0.3")}},
     false},
    {"ministral3", {{"sliding_window", "24"}}, true},
    {"gemma3",
     {{"rope_theta", ""},
      {"rope_local_base_freq", ""},
      {"rope_scaling", ""},
      {"rope_parameters", "{\"full_attention\": {" GLOBAL_ROPE "}, \"sliding_attention\": "
                          "{\"rope_type\": \"default\", \"rope_theta\": 10000.0}}"}},
     false},
    {"gemma3",
     {{"rope_theta", ""}, {"rope_scaling", ""}, {"rope_parameters", "{" GLOBAL_ROPE "}"}},
     false},
    {"gemma3",
     {{"rope_theta", ""},
      {"rope_local_base_freq", ""},
      {"tie_word_embeddings", ""},
      {"sliding_window_pattern", ""},
      {"hidden_activation", ""},
      {"max_position_embeddings", ""}},
     false},
    {"gemma3",
     {{"sliding_window_pattern", "3"},
      {"layer_types", "[\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "
                      "\"sliding_attention\", \"sliding_attention\", \"full_attention\"]"}},
     false},
    {"gemma3", {{"sliding_window_pattern", "3"}}, true},
    {"gemma3", {{"query_pre_attn_scalar", ""}}, true},
    {"gemma3", {{"sliding_window", "null"}}, true},
    {"gemma3", {{"final_logit_softcapping", "5.0"}}, true},
    {"gemma3", {{"attn_logit_softcapping", "5.0"}}, true},
    {"llama_tied", {{"rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 4.0}"}}, true},
    {"phi3", {{"rms_norm_eps", ""}, {"hidden_act", ""}, {"sliding_window", ""}}, false},
    {"phi3",
     {{"rope_scaling",
       "{\"type\": \"su\", \"short_factor\": " SHORT ", \"long_factor\": " LONG "}"}},
     false},
    {"phi3",
     {{"rope_scaling", ""},
      {"rope_theta", ""},
      {"original_max_position_embeddings", ""},
      {"rope_parameters", "{\"rope_type\": \"longrope\", \"rope_theta\": 10000.0, "
                          "\"original_max_position_embeddings\": 100, \"short_factor\": " SHORT
                          ", \"long_factor\": " LONG "}"}},
     false},
    {"phi3", {{"original_max_position_embeddings", "200"}}, true},
    {"phi3", {{"sliding_window", "24"}}, true},
    {"phi3", {{"rope_scaling", "null"}, {"partial_rotary_factor", "0.5"}}, true},
    {"cohere2",
     {{"layer_norm_eps", ""}, {"sliding_window_pattern", ""}, {"head_dim", "16"}},
     false},
    {"cohere2",
     {{"layer_types", "[\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "
                      "\"full_attention\"]"}},
     false},
    {"cohere2", {{"sliding_window_pattern", "2"}}, true},
    {"cohere2", {{"logit_scale", ""}}, true},
    {"gpt_neox",
     {{"rotary_pct", ""},
      {"rotary_emb_base", ""},
      {"hidden_act", ""},
      {"use_parallel_residual", ""},
      {"attention_bias", ""},
      {"layer_norm_eps", ""},
      {"num_key_value_heads", "3"}},
     false},
    {"gpt_neox",
     {{"rotary_pct", ""},
      {"rotary_emb_base", ""},
      {"rope_parameters",
       "{\"rope_type\": \"default\", \"rope_theta\": 10000.0, \"partial_rotary_factor\": 0.25}"}},
     false},
    {"gpt_neox", {{"rotary_pct", "0.5"}}, true},
    {"gpt_neox", {{"use_parallel_residual", "false"}}, true},
    {"gpt_neox", {{"hidden_act", "\"gelu_new\""}}, true},
    {"olmo2", {{"rms_norm_eps", ""}}, true},
    {"olmo2", {{"model_type", "\"olmo3\""}}, false},
    {"olmo2", {{"model_type", "\"olmo3\""}, {"sliding_window", "9"}}, true},
    {"qwen2_moe",
     {{"norm_topk_prob", ""}, {"mlp_only_layers", "[0, 2]"}, {"sliding_window", "9"}},
     false},
    {"qwen2_moe", {{"decoder_sparse_step", ""}, {"mlp_only_layers", "[0, 2]"}}, false},
    {"llama4_scout", {{"no_rope_layers", "[]"}, {"interleave_moe_layer_step", ""}}, false},
    {"llama4_scout", {{"attention_chunk_size", "null"}}, true},
    {"llama4_scout", {{"attn_temperature_tuning", "false"}}, true},
    {"llama4_scout", {{"use_qk_norm", "false"}}, true},
    {"llama4_scout", {{"num_experts_per_tok", "2"}}, true},
    {"qwen2_moe", {{"norm_topk_prob", "true"}}, true},
    {"deepseek_v3",
     {{"scoring_func", ""},
      {"topk_method", ""},
      {"norm_topk_prob", ""},
      {"routed_scaling_factor", ""},
      {"rms_norm_eps", ""},
      {"num_key_value_heads", ""},
      {"moe_layer_freq", ""}},
     false},
    {"deepseek_v3", {{"model_type", "\"kimi_k2\""}}, false},
    {"deepseek_v3", {{"rope_interleave", ""}}, true},
    {"deepseek_v3", {{"n_group", "1"}, {"topk_group", "1"}}, true},
    {"deepseek_v3", {{"topk_method", "\"group_limited_greedy\""}}, true},
    {"deepseek_v3", {{"scoring_func", "\"softmax\""}}, true},
    {"deepseek_v3", {{"norm_topk_prob", "false"}}, true},
    {"deepseek_v2",
     {{"rope_scaling", ""},
      {"rope_theta", ""},
      {"n_shared_experts", ""},
      {"scoring_func", ""},
      {"rope_parameters", "{\"rope_type\": \"yarn\", \"factor\": 8, \"mscale\": 0.707, "
                          "\"mscale_all_dim\": 0.707, \"original_max_position_embeddings\": 64, "
                          "\"rope_theta\": 10000}"}},
     false},
    {"deepseek_v2", {{"topk_method", "\"greedy\""}}, true},
    {"deepseek_v2", {{"norm_topk_prob", "true"}}, true},
    {"deepseek_v2", {{"attention_bias", "false"}}, true},
    {"nemotron",
     {{"hidden_act", ""}, {"partial_rotary_factor", ""}, {"norm_eps", ""}, {"mlp_bias", ""}},
     false},
    {"nemotron", {{"partial_rotary_factor", "1"}}, true},
    {"nemotron", {{"hidden_act", "\"gelu\""}}, true},
    {"qwen2_moe", {{"num_experts_per_tok", "2"}}, true},
    {"gpt_oss_mxfp4",
     {{"quantization_config", ""},
      {"swiglu_limit", ""},
      {"layer_types", ""},
      {"rope_theta", ""},
      {"rms_norm_eps", ""}},
     false},
    {"gpt_oss_mxfp4", {{"sliding_window", ""}}, true},
    {"gpt_oss_mxfp4", {{"num_experts_per_tok", ""}}, true},
    {"gpt_oss_mxfp4", {{"swiglu_limit", "0.5"}}, true},
    {"gpt_oss_mxfp4",
     {{"rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 8.0, "
                       "\"original_max_position_embeddings\": 64}"}},
     true},
};

static void test_variants(void **state) {
    static float want[N_IDS * MAX_VOCABULARY], got[N_IDS * MAX_VOCABULARY];
    char path[256];
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        hf_maker maker;
        hf_maker_start(&maker, variants[v].from);
        for (const edit *e = variants[v].edits; e->key; e++)
            hf_maker_set(&maker, e->key, e->json);
        hf_maker_write(&maker);
        snprintf(path, sizeof path, TEST_DATA "/models/%s", variants[v].from);
        const int32_t vocabulary = hf_run(path, plain, want);
        hf_run(maker.path, plain, got);
        const size_t bytes = sizeof *want * N_IDS * (size_t)vocabulary;
        if ((memcmp(got, want, bytes) != 0) != variants[v].is_other)
            fail_msg("variant %zu: logits %s", v, variants[v].is_other ? "equal" : "differ");
        hf_maker_end(&maker);
    }
}

/* Its part of config.json says that the output is a tensor of its own, the whole that it is not. */
static void test_tied_outside(void **state) {
    static float want[N_IDS * MAX_VOCABULARY], got[N_IDS * MAX_VOCABULARY];
    hf_maker maker;
    (void)state;
    const int32_t vocabulary = hf_run(TEST_DATA "/models/gemma3", plain, want);
    hf_maker_start(&maker, "gemma3");
    hf_maker_set(&maker, "tie_word_embeddings", "false");
    maker.config = json_pack("{s:b, s:o}", "tie_word_embeddings", 1, "text_config", maker.config);
    hf_maker_write(&maker);
    hf_run(maker.path, plain, got);
    assert_memory_equal(got, want, sizeof *want * N_IDS * (size_t)vocabulary);
    hf_maker_end(&maker);
}

/* The text model inside a multimodal one: its part of config.json, its tensors among others. */
static void test_nested(void **state) {
    static const char *const prefixes[][2] = {
        {"language_model.model.", "language_model."}, {"model.language_model.", ""}, {"", ""}};
    static float want[N_IDS * MAX_VOCABULARY], got[N_IDS * MAX_VOCABULARY];
    (void)state;
    const int32_t vocabulary = hf_run(TEST_DATA "/models/gemma3", plain, want);
    for (size_t p = 0; p < 3; p++) {
        hf_maker maker;
        hf_maker_start(&maker, "gemma3");
        json_t *text = maker.config, *names = json_deep_copy(maker.header), *entry;
        const char *name;
        char moved[200];
        json_object_foreach(names, name, entry) {
            if (strncmp(name, "model.", 6) != 0) continue;
            snprintf(moved, sizeof moved, "%s%s", prefixes[p][0], name + 6);
            hf_maker_rename(&maker, name, moved);
        }
        json_decref(names);
        (void)json_object_del(text, "tie_word_embeddings");
        maker.config =
            json_pack("{s:s, s:b, s:o, s:{s:i}}", "model_type", "gemma3", "tie_word_embeddings", 1,
                      "text_config", text, "vision_config", "hidden_size", 7);
        hf_maker_write(&maker);
        hf_run(maker.path, plain, got);
        assert_memory_equal(got, want, sizeof *want * N_IDS * (size_t)vocabulary);
        hf_maker_end(&maker);
    }
}

/* Two files of the same tensors, and an index that takes every other from either. */
static void test_sharded(void **state) {
    static float want[N_IDS * MAX_VOCABULARY], got[N_IDS * MAX_VOCABULARY];
    hf_maker maker;
    const char *name;
    json_t *entry;
    int i = 0;
    (void)state;
    hf_maker_start(&maker, "gemma3");
    json_t *map = json_object();
    json_object_foreach(maker.header, name, entry) {
        if (strcmp(name, "__metadata__") != 0)
            (void)json_object_set_new(map, name,
                                      json_string(i++ % 2 ? "a.safetensors" : "b.safetensors"));
    }
    json_t *index = json_pack("{s:o}", "weight_map", map);
    hf_maker_put_json(&maker, "config.json", maker.config);
    hf_maker_put_json(&maker, "model.safetensors.index.json", index);
    hf_maker_put_weights(&maker, "a.safetensors");
    hf_maker_put_weights(&maker, "b.safetensors");
    const int32_t vocabulary = hf_run(TEST_DATA "/models/gemma3", plain, want);
    hf_run(maker.path, plain, got);
    assert_memory_equal(got, want, sizeof *want * N_IDS * (size_t)vocabulary);
    json_decref(index);
    hf_maker_end(&maker);
}

/* Biases that config.json does not speak of are not the model's. */
static void test_biases(void **state) {
    static float with[N_IDS * MAX_VOCABULARY], without[N_IDS * MAX_VOCABULARY];
    static const char *const keys[] = {"attention_bias", "mlp_bias"};
    (void)state;
    const int32_t vocabulary = hf_run(TEST_DATA "/models/llama_tied", plain, with);
    for (size_t i = 0; i < 2; i++) {
        hf_maker maker;
        hf_maker_start(&maker, "llama_tied");
        hf_maker_set(&maker, keys[i], "false");
        hf_maker_write(&maker);
        hf_run(maker.path, plain, without);
        assert_memory_not_equal(with, without, sizeof *with * N_IDS * (size_t)vocabulary);
        hf_maker_end(&maker);
    }
}

/* ---- what else a folder has ---- */

static void check_template(const hf_maker *maker, const char *want) {
    char *text = NULL;
    octavo_error error;
    octavo_model *model = NULL;
    hf_must(octavo_chat_template_open(maker->path, &text, &error), &error);
    hf_must(octavo_model_open(maker->path, NULL, &model, &error), &error);
    if (want) {
        assert_string_equal(text, want);
        assert_string_equal(octavo_model_chat_template(model), want);
    } else {
        assert_null(text);
        assert_null(octavo_model_chat_template(model));
    }
    octavo_text_free(text);
    octavo_model_close(&model);
}

static void test_chat_template(void **state) {
    hf_maker maker;
    char *text = NULL;
    octavo_error error;
    (void)state;
    hf_maker_start(&maker, "llama_tied");
    hf_maker_write(&maker);
    check_template(&maker, NULL);
    hf_maker_put_text(&maker, "tokenizer_config.json", "{\"chat_template\": null}");
    check_template(&maker, NULL);
    hf_maker_put_text(&maker, "tokenizer_config.json", "{\"chat_template\": \"{{ one }}\"}");
    check_template(&maker, "{{ one }}");
    hf_maker_put_text(&maker, "tokenizer_config.json",
                      "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"no\"}, "
                      "{\"name\": \"default\", \"template\": \"{{ two }}\"}]}");
    check_template(&maker, "{{ two }}");
    hf_maker_put_text(&maker, "chat_template.jinja", "{{ three }}\n");
    check_template(&maker, "{{ three }}\n");
    hf_maker_put_text(&maker, "chat_template.jinja", "");
    check_template(&maker, "");
    hf_maker_end(&maker);

    hf_maker_start(&maker, "llama_tied");
    hf_maker_write(&maker);
    hf_maker_put_text(&maker, "tokenizer_config.json", "{\"chat_template\": 7}");
    assert_int_equal(octavo_chat_template_open(maker.path, &text, &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "chat_template"));
    assert_non_null(strstr(error.message, "tokenizer_config.json"));
    hf_maker_end(&maker);
}

static void count_lines(void *cookie, octavo_log_level level, const char *line) {
    if (level == OCTAVO_LOG_WARN && strstr(line, "ids only")) ++*(int *)cookie;
}

/* A tokenizer that cannot be read does not keep the model from running on ids. */
static void test_no_tokenizer(void **state) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    hf_maker maker;
    int n_warnings = 0;
    (void)state;
    octavo_model_options_init(&options);
    options.log = (octavo_log){OCTAVO_LOG_WARN, count_lines, &n_warnings};
    hf_maker_start(&maker, "llama_tied");
    hf_maker_write(&maker);
    hf_must(octavo_model_open(maker.path, &options, &model, &error), &error);
    assert_null(octavo_model_tokenizer(model));
    octavo_model_close(&model);
    assert_int_equal(n_warnings, 0);
    hf_maker_put_text(&maker, "tokenizer.json", "{\"model\": {\"type\": \"NoSuchKind\"}}");
    hf_must(octavo_model_open(maker.path, &options, &model, &error), &error);
    assert_null(octavo_model_tokenizer(model));
    octavo_model_close(&model);
    assert_int_equal(n_warnings, 1);
    hf_maker_end(&maker);
}

static void test_inspect(void **state) {
    octavo_inspect_options options;
    octavo_error error;
    char *text = NULL;
    (void)state;
    octavo_inspect_options_init(&options);
    options.with_program = true;
    hf_must(octavo_inspect(TEST_DATA "/models/llama_tied", &options, &text, &error), &error);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "format")), "safetensors");
    assert_string_equal(json_string_value(json_object_get(json, "architecture")), "llama");
    assert_true(json_is_null(json_object_get(json, "tokenizer")));
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "metadata"), "hidden_size")), 48);
    const json_t *types = json_object_get(json_object_get(json, "types"), "BF16");
    assert_int_equal(json_integer_value(json_object_get(types, "tensors")),
                     (json_int_t)json_array_size(json_object_get(json, "tensors")));
    assert_true(json_array_size(json_object_get(json_object_get(json, "program"), "ops")) > 30);
    json_decref(json);
    octavo_text_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_lengths),       cmocka_unit_test(test_variants),
        cmocka_unit_test(test_nested),        cmocka_unit_test(test_tied_outside),
        cmocka_unit_test(test_sharded),       cmocka_unit_test(test_biases),
        cmocka_unit_test(test_chat_template), cmocka_unit_test(test_no_tokenizer),
        cmocka_unit_test(test_inspect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
