/* SPDX-License-Identifier: Apache-2.0
 *
 * Hugging Face folders that contradict themselves, lack something or want what this version does
 * not have: a status and a message that names the file and the key or tensor.
 */
#include "hf_bad.h"

#define LLAMA3(factors)                                                                            \
    "{\"rope_type\": \"llama3\", \"factor\": 8.0, \"original_max_position_embeddings\": "          \
    "64" factors "}"

#define YARN(more) "{\"rope_type\": \"yarn\", \"factor\": 2.0" more "}"
#define LONGROPE(short, long)                                                                      \
    "{\"rope_type\": \"longrope\", \"short_factor\": " short ", \"long_factor\": " long "}"

static const bad_config llama_configs[] = {
    {"model_type", "", OCTAVO_ERROR_NOT_FOUND, "model_type"},
    {"model_type", "7", OCTAVO_ERROR_FORMAT, "model_type"},
    {"model_type", "\"nosuchmodel\"", OCTAVO_ERROR_UNSUPPORTED, "nosuchmodel"},
    {"hidden_size", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"hidden_size", "null", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"hidden_size", "48.5", OCTAVO_ERROR_FORMAT, NULL},
    {"hidden_size", "-48", OCTAVO_ERROR_FORMAT, NULL},
    {"intermediate_size", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"num_hidden_layers", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"num_hidden_layers", "9000000000000000000", OCTAVO_ERROR_FORMAT, NULL},
    {"num_attention_heads", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"num_attention_heads", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"num_key_value_heads", "3", OCTAVO_ERROR_FORMAT, NULL},
    {"num_key_value_heads", "8", OCTAVO_ERROR_FORMAT, NULL},
    {"vocab_size", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"head_dim", "17", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"max_position_embeddings", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"rms_norm_eps", "\"small\"", OCTAVO_ERROR_FORMAT, NULL},
    {"rms_norm_eps", "2", OCTAVO_ERROR_FORMAT, NULL},
    {"hidden_act", "\"relu\"", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"tie_word_embeddings", "1", OCTAVO_ERROR_FORMAT, NULL},
    {"attention_bias", "\"yes\"", OCTAVO_ERROR_FORMAT, NULL},
    {"num_experts", "8", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"partial_rotary_factor", "0.5", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"quantization_config", "{\"quant_method\": \"bitsandbytes\"}", OCTAVO_ERROR_UNSUPPORTED,
     "bitsandbytes"},
    {"quantization_config", "{\"quant_method\": \"mxfp4\"}", OCTAVO_ERROR_UNSUPPORTED, "mxfp4"},
    {"rope_theta", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"rope_theta", "1e300", OCTAVO_ERROR_FORMAT, NULL},
    {"rope_scaling", "[]", OCTAVO_ERROR_FORMAT, NULL},
    {"rope_scaling", "{\"type\": \"spiral\", \"factor\": 2.0}", OCTAVO_ERROR_UNSUPPORTED, "spiral"},
    {"rope_scaling", "{\"rope_type\": \"ntk\", \"factor\": 2.0}", OCTAVO_ERROR_UNSUPPORTED,
     "\"rope_scaling.rope_type\""},
    {"rope_scaling", YARN(", \"beta_fast\": 1"), OCTAVO_ERROR_FORMAT, "\"rope_scaling.beta_fast\""},
    {"rope_scaling", YARN(", \"attention_factor\": []"), OCTAVO_ERROR_FORMAT,
     "\"rope_scaling.attention_factor\""},
    {"rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": -2.0}", OCTAVO_ERROR_FORMAT,
     "\"rope_scaling.factor\""},
    {"rope_scaling", LONGROPE("[1, 1, 1, 1, 1, 1, 1, 1]", "[]"), OCTAVO_ERROR_FORMAT,
     "\"rope_scaling.long_factor\""},
    {"rope_scaling", LONGROPE("[1, 1, 1, 1, 1, 1, 1, 0]", "[1, 1, 1, 1, 1, 1, 1, 1]"),
     OCTAVO_ERROR_FORMAT, "\"rope_scaling.short_factor\""},
    {"rope_scaling", LONGROPE("[1, 2]", "[1, 2]"), OCTAVO_ERROR_FORMAT,
     "\"rope_scaling.short_factor\""},
    {"rope_scaling", "{\"rope_type\": \"linear\"}", OCTAVO_ERROR_NOT_FOUND,
     "\"rope_scaling.factor\""},
    {"rope_scaling", "{\"factor\": 2.0}", OCTAVO_ERROR_NOT_FOUND, "\"rope_scaling.rope_type\""},
    {"rope_scaling", "{\"rope_type\": \"linear\", \"type\": \"llama3\", \"factor\": 2.0}",
     OCTAVO_ERROR_FORMAT, "\"rope_scaling.rope_type\""},
    {"rope_scaling", LLAMA3(", \"low_freq_factor\": 1.0"), OCTAVO_ERROR_NOT_FOUND,
     "\"rope_scaling.high_freq_factor\""},
    {"rope_scaling", LLAMA3(", \"low_freq_factor\": 4, \"high_freq_factor\": 1"),
     OCTAVO_ERROR_FORMAT, "\"rope_scaling.high_freq_factor\""},
    {"rope_parameters", "{\"rope_type\": \"default\"}", OCTAVO_ERROR_FORMAT, "\"rope_scaling\""},
};

static const bad_config gemma_configs[] = {
    {"rope_theta", "", OCTAVO_OK, ""},
    {"rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 8.0, \"rope_theta\": 5.0}",
     OCTAVO_ERROR_FORMAT, "\"rope_theta\""},
    {"layer_types", "[\"full_attention\"]", OCTAVO_ERROR_FORMAT, NULL},
    {"layer_types", "[1, 2, 3, 4, 5, 6]", OCTAVO_ERROR_FORMAT, NULL},
    {"layer_types",
     "[\"full_attention\", \"chunked\", \"full_attention\", \"full_attention\", "
     "\"full_attention\", \"full_attention\"]",
     OCTAVO_ERROR_UNSUPPORTED, "chunked"},
    {"final_logit_softcapping", "-30.0", OCTAVO_ERROR_FORMAT, NULL},
    {"use_bidirectional_attention", "1", OCTAVO_ERROR_FORMAT, NULL},
    {"query_pre_attn_scalar", "-1", OCTAVO_ERROR_FORMAT, NULL},
};

static const bad_config phi3_configs[] = {
    {"partial_rotary_factor", "1.5", OCTAVO_ERROR_FORMAT, NULL},
    {"partial_rotary_factor", "0.01", OCTAVO_ERROR_UNSUPPORTED, "\"head_dim\""},
    {"original_max_position_embeddings", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"sliding_window", "-1", OCTAVO_ERROR_FORMAT, NULL},
};

static const bad_config cohere2_configs[] = {
    {"logit_scale", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"layer_norm_eps", "1e9", OCTAVO_ERROR_FORMAT, NULL},
    {"sliding_window_pattern", "0", OCTAVO_ERROR_FORMAT, NULL},
};

static const bad_config gpt_neox_configs[] = {
    {"num_key_value_heads", "1", OCTAVO_ERROR_FORMAT, NULL},
    {"rotary_pct", "[]", OCTAVO_ERROR_FORMAT, NULL},
    {"use_parallel_residual", "3", OCTAVO_ERROR_FORMAT, NULL},
    {"hidden_act", "\"relu\"", OCTAVO_ERROR_UNSUPPORTED, NULL},
};

static const bad_config qwen2_moe_configs[] = {
    {"num_experts", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"num_experts", "100000", OCTAVO_ERROR_FORMAT, NULL},
    {"num_experts_per_tok", "7", OCTAVO_ERROR_FORMAT, NULL},
    {"num_experts_per_tok", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"moe_intermediate_size", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"shared_expert_intermediate_size", "-4", OCTAVO_ERROR_FORMAT, NULL},
    {"decoder_sparse_step", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"mlp_only_layers", "[4]", OCTAVO_ERROR_FORMAT, NULL},
    {"mlp_only_layers", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"norm_topk_prob", "1", OCTAVO_ERROR_FORMAT, NULL},
};

static const bad_config llama4_configs[] = {
    {"attention_chunk_size", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"floor_scale", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"interleave_moe_layer_step", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"no_rope_layers", "[1, 1]", OCTAVO_ERROR_FORMAT, NULL},
    {"no_rope_layers", "[1, 1, 1, 2]", OCTAVO_ERROR_FORMAT, NULL},
    {"no_rope_layers", "4", OCTAVO_ERROR_FORMAT, NULL},
    {"num_local_experts", "", OCTAVO_ERROR_NOT_FOUND, NULL},
};

static const bad_config gpt_oss_configs[] = {
    {"quantization_config", "{\"quant_method\": \"aqlm\"}", OCTAVO_ERROR_UNSUPPORTED, "aqlm"},
    {"quantization_config", "{\"quant_method\": 4}", OCTAVO_ERROR_FORMAT, "quant_method"},
    {"num_local_experts", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"num_experts_per_tok", "5", OCTAVO_ERROR_FORMAT, NULL},
    {"swiglu_limit", "0", OCTAVO_ERROR_FORMAT, NULL},
};

static const bad_config ministral3_configs[] = {
    {"rope_parameters", "{\"llama_4_scaling_beta\": 0.3, \"rope_theta\": 10000.0}",
     OCTAVO_ERROR_NOT_FOUND, "original_max_position_embeddings"},
    {"rope_parameters", YARN(", \"llama_4_scaling_beta\": -1"), OCTAVO_ERROR_FORMAT,
     "llama_4_scaling_beta"},
    {"rope_parameters",
     YARN(", \"llama_4_scaling_beta\": 1, \"original_max_position_embeddings\": 0"),
     OCTAVO_ERROR_FORMAT, "original_max_position_embeddings"},
};

static const bad_config deepseek_configs[] = {
    {"kv_lora_rank", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"kv_lora_rank", "540", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"q_lora_rank", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"qk_rope_head_dim", "7", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"v_head_dim", "-1", OCTAVO_ERROR_FORMAT, NULL},
    {"rope_interleave", "1", OCTAVO_ERROR_FORMAT, NULL},
    {"topk_method", "\"best\"", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"topk_method", "\"best\"", OCTAVO_ERROR_UNSUPPORTED, "noaux_tc"},
    {"scoring_func", "\"tanh\"", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"n_group", "3", OCTAVO_ERROR_FORMAT, NULL},
    {"topk_group", "5", OCTAVO_ERROR_FORMAT, NULL},
    {"topk_group", "1", OCTAVO_ERROR_FORMAT, NULL},
    {"n_routed_experts", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"moe_intermediate_size", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"n_shared_experts", "-1", OCTAVO_ERROR_FORMAT, NULL},
    {"first_k_dense_replace", "-1", OCTAVO_ERROR_FORMAT, NULL},
    {"moe_layer_freq", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"routed_scaling_factor", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"rope_scaling", YARN(", \"mscale_all_dim\": []"), OCTAVO_ERROR_FORMAT,
     "\"rope_scaling.mscale_all_dim\""},
};

static void test_configs(void **state) {
    (void)state;
    check_configs("llama_tied", llama_configs, OCTAVO_COUNT(llama_configs), "config.json");
    check_configs("gemma3", gemma_configs, OCTAVO_COUNT(gemma_configs), "config.json");
    check_configs("phi3", phi3_configs, OCTAVO_COUNT(phi3_configs), "config.json");
    check_configs("cohere2", cohere2_configs, OCTAVO_COUNT(cohere2_configs), "config.json");
    check_configs("gpt_neox", gpt_neox_configs, OCTAVO_COUNT(gpt_neox_configs), "config.json");
    check_configs("qwen2_moe", qwen2_moe_configs, OCTAVO_COUNT(qwen2_moe_configs), "config.json");
    check_configs("ministral3", ministral3_configs, OCTAVO_COUNT(ministral3_configs),
                  "config.json");
    check_configs("llama4_scout", llama4_configs, OCTAVO_COUNT(llama4_configs), "config.json");
    check_configs("gpt_oss_mxfp4", gpt_oss_configs, OCTAVO_COUNT(gpt_oss_configs), "config.json");
    check_configs("deepseek_v3", deepseek_configs, OCTAVO_COUNT(deepseek_configs), "config.json");
}

static void test_contradicting_layers(void **state) {
    hf_maker maker;
    octavo_error error;
    (void)state;
    hf_maker_start(&maker, "gemma3");
    hf_maker_set(&maker, "sliding_window", "null");
    hf_maker_set(&maker, "layer_types",
                 "[\"sliding_attention\", \"full_attention\", \"full_attention\", "
                 "\"full_attention\", \"full_attention\", \"full_attention\"]");
    hf_maker_write(&maker);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_FORMAT, &error, "\"layer_types\"",
            "config.json");
    hf_maker_end(&maker);
    hf_maker_start(&maker, "llama_tied");
    hf_maker_set(&maker, "head_dim", "");
    hf_maker_set(&maker, "num_attention_heads", "5");
    hf_maker_set(&maker, "num_key_value_heads", "");
    hf_maker_write(&maker);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_FORMAT, &error, "\"num_attention_heads\"",
            "config.json");
    hf_maker_end(&maker);
}

/* ---- config.json against the weights ---- */

static void test_shapes(void **state) {
    static const bad_config llama[] = {
        {"hidden_size", "64", OCTAVO_ERROR_FORMAT, "\"model.embed_tokens.weight\""},
        {"vocab_size", "299", OCTAVO_ERROR_FORMAT, "\"model.embed_tokens.weight\""},
        {"head_dim", "", OCTAVO_ERROR_FORMAT, "\"model.layers.0.self_attn.q_proj.weight\""},
        {"num_key_value_heads", "", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.self_attn.k_proj.weight\""},
        {"intermediate_size", "97", OCTAVO_ERROR_FORMAT, "\"model.layers.0.mlp.gate_proj.weight\""},
        {"num_hidden_layers", "4", OCTAVO_ERROR_NOT_FOUND,
         "\"model.layers.3.self_attn.q_proj.weight\""},
        {"tie_word_embeddings", "false", OCTAVO_ERROR_NOT_FOUND, "\"lm_head.weight\""},
    };
    static const bad_config gemma[] = {
        {"attention_bias", "true", OCTAVO_ERROR_NOT_FOUND,
         "\"model.layers.0.self_attn.q_proj.bias\""},
    };
    static const bad_config phi3[] = {
        {"num_key_value_heads", "1", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.self_attn.qkv_proj.weight\""},
        {"intermediate_size", "97", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.mlp.gate_up_proj.weight\""},
    };
    static const bad_config gpt_neox[] = {
        {"intermediate_size", "127", OCTAVO_ERROR_FORMAT,
         "\"gpt_neox.layers.0.mlp.dense_h_to_4h.weight\""},
    };
    static const bad_config qwen2_moe[] = {
        {"num_experts", "7", OCTAVO_ERROR_FORMAT, "\"model.layers.1.mlp.gate.weight\""},
        {"moe_intermediate_size", "25", OCTAVO_ERROR_FORMAT,
         "\"model.layers.1.mlp.experts.0.gate_proj.weight\""},
        {"decoder_sparse_step", "1", OCTAVO_ERROR_NOT_FOUND, "\"model.layers.0.mlp.gate.weight\""},
    };
    static const bad_config llama4[] = {
        {"num_local_experts", "3", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.feed_forward.router.weight\""},
        {"intermediate_size", "31", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.feed_forward.experts.gate_up_proj\""},
    };
    static const bad_config gpt_oss[] = {
        {"intermediate_size", "72", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.mlp.experts.gate_up_proj_blocks\""},
        {"intermediate_size", "72", OCTAVO_ERROR_FORMAT,
         "shape [4, 128, 2, 16] where the config.json asks for [4, 144, 2, 16]"},
    };
    static const bad_config deepseek[] = {
        {"v_head_dim", "21", OCTAVO_ERROR_FORMAT, "\"model.layers.0.self_attn.kv_b_proj.weight\""},
        {"kv_lora_rank", "17", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.self_attn.kv_a_proj_with_mqa.weight\""},
        {"q_lora_rank", "null", OCTAVO_ERROR_NOT_FOUND,
         "\"model.layers.0.self_attn.q_proj.weight\""},
        {"first_k_dense_replace", "0", OCTAVO_ERROR_NOT_FOUND,
         "\"model.layers.0.mlp.gate.weight\""},
        {"n_shared_experts", "2", OCTAVO_ERROR_FORMAT,
         "\"model.layers.1.mlp.shared_experts.gate_proj.weight\""},
    };
    (void)state;
    check_configs("llama_tied", llama, OCTAVO_COUNT(llama), "model.safetensors");
    check_configs("gemma3", gemma, OCTAVO_COUNT(gemma), "model.safetensors");
    check_configs("phi3", phi3, OCTAVO_COUNT(phi3), "model.safetensors");
    check_configs("gpt_neox", gpt_neox, OCTAVO_COUNT(gpt_neox), "model.safetensors");
    check_configs("qwen2_moe", qwen2_moe, OCTAVO_COUNT(qwen2_moe), "model.safetensors");
    check_configs("llama4_scout", llama4, OCTAVO_COUNT(llama4), "model.safetensors");
    check_configs("gpt_oss_mxfp4", gpt_oss, OCTAVO_COUNT(gpt_oss), "model.safetensors");
    check_configs("deepseek_v3", deepseek, OCTAVO_COUNT(deepseek), "model.safetensors");
}

/* A tensor of zeros at the end, in place of one of that name. */
static void replace_tensor(hf_maker *maker, const char *name, const char *dtype, json_t *shape,
                           size_t bytes) {
    char old[160];
    snprintf(old, sizeof old, "old %s", name);
    if (json_object_get(maker->header, name)) hf_maker_rename(maker, name, old);
    maker->data = realloc(maker->data, maker->data_size + bytes);
    assert_non_null(maker->data);
    memset(maker->data + maker->data_size, 0, bytes);
    (void)json_object_set_new(maker->header, name,
                              json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape,
                                        "data_offsets", (json_int_t)maker->data_size,
                                        (json_int_t)(maker->data_size + bytes)));
    maker->data_size += bytes;
}

/* 16 experts of a width of 16, which are half a block. */
static void test_half_blocks(void **state) {
    const char *down = "model.layers.0.mlp.experts.down_proj_blocks";
    hf_maker maker;
    octavo_error error;
    (void)state;
    hf_maker_start(&maker, "gpt_oss_mxfp4");
    hf_maker_set(&maker, "num_local_experts", "16");
    hf_maker_set(&maker, "intermediate_size", "16");
    replace_tensor(&maker, "model.layers.0.mlp.router.weight", "BF16", json_pack("[i, i]", 16, 64),
                   16 * 64 * 2);
    json_t *blocks =
        json_object_get(maker.header, "model.layers.0.mlp.experts.gate_up_proj_blocks");
    json_t *scales =
        json_object_get(maker.header, "model.layers.0.mlp.experts.gate_up_proj_scales");
    (void)json_object_set_new(blocks, "shape", json_pack("[i, i, i, i]", 16, 32, 2, 16));
    (void)json_object_set_new(scales, "shape", json_pack("[i, i, i]", 16, 32, 2));
    replace_tensor(&maker, down, "U8", json_pack("[i, i, i, i]", 16, 64, 1, 16), 16 * 64 * 16);
    hf_maker_write(&maker);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_FORMAT, &error, down, "16 inputs");
    hf_maker_end(&maker);
}

static void test_tensors(void **state) {
    static const char *const names[] = {
        "llama_tied", "gemma3",       "olmo2",         "phi3",        "cohere2",     "gpt_neox",
        "qwen2_moe",  "llama4_scout", "gpt_oss_mxfp4", "deepseek_v2", "deepseek_v3", "nemotron"};
    (void)state;
    for (size_t m = 0; m < OCTAVO_COUNT(names); m++) {
        hf_maker maker;
        const char *name;
        json_t *entry;
        size_t n = 0;
        hf_maker_start(&maker, names[m]);
        json_object_foreach(maker.header, name, entry) {
            /* the first two layers and what is in none */
            if (strcmp(name, "__metadata__") == 0 ||
                (strstr(name, ".layers.") && !strstr(name, ".layers.0.") &&
                 !strstr(name, ".layers.1.")))
                continue;
            check_tensor(names[m], name, name);
            n++;
        }
        assert_true(n >= 15);
        hf_maker_end(&maker);
    }
}

/* ---- the folder ---- */

static void test_folders(void **state) {
    hf_maker maker;
    octavo_error error;
    (void)state;
    hf_maker_start(&maker, "gemma3");
    refused(open_path(maker.path, &error), OCTAVO_ERROR_NOT_FOUND, &error, "config.json",
            maker.path);
    hf_maker_put_json(&maker, "config.json", maker.config);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_NOT_FOUND, &error, "safetensors",
            maker.path);
    hf_maker_put_weights(&maker, "model.safetensors");
    assert_int_equal(open_path(maker.path, &error), OCTAVO_OK);
    hf_maker_put_text(&maker, "config.json", "{\"model_type\": ");
    refused(open_path(maker.path, &error), OCTAVO_ERROR_FORMAT, &error, "config.json", "line");
    hf_maker_put_json(&maker, "config.json", maker.config);
    hf_maker_put_text(&maker, "model.safetensors", "");
    refused(open_path(maker.path, &error), OCTAVO_ERROR_FORMAT, &error, "model.safetensors", "");
    hf_maker_end(&maker);

    hf_maker_start(&maker, "gemma3");
    hf_maker_put_json(&maker, "config.json", maker.config);
    hf_maker_put_text(&maker, "model.safetensors.index.json",
                      "{\"weight_map\": {\"model.norm.weight\": \"a.safetensors\"}}");
    refused(open_path(maker.path, &error), OCTAVO_ERROR_NOT_FOUND, &error, "a.safetensors",
            maker.path);
    hf_maker_end(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configs), cmocka_unit_test(test_contradicting_layers),
        cmocka_unit_test(test_shapes),  cmocka_unit_test(test_half_blocks),
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
