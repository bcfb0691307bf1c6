/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that a plan needs no more of than a config.json, and plans as parsed documents.
 */
#ifndef OCTAVO_TESTS_ENGINE_PLAN_CONFIG_H
#define OCTAVO_TESTS_ENGINE_PLAN_CONFIG_H

#include "../unit.h"

#include "octavo/plan.h"
#include "octavo/template.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One layer of the dims of the cases in tests/data/sharding/xla.json. */
#define PLAN_LLAMA                                                                                 \
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 64, " \
    "\"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"head_dim\": 16, "                  \
    "\"intermediate_size\": 256, \"vocab_size\": 512, \"num_hidden_layers\": 1, "                  \
    "\"max_position_embeddings\": 2048, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, "         \
    "\"tie_word_embeddings\": false, \"hidden_act\": \"silu\", \"torch_dtype\": \"float32\"}"

/* DeepSeek V3, from the numbers that were published with it. */
#define PLAN_DEEPSEEK                                                                              \
    "{\"architectures\": [\"DeepseekV3ForCausalLM\"], \"model_type\": \"deepseek_v3\", "           \
    "\"hidden_size\": 7168, \"intermediate_size\": 18432, \"moe_intermediate_size\": 2048, "       \
    "\"num_hidden_layers\": 61, \"first_k_dense_replace\": 3, \"moe_layer_freq\": 1, "             \
    "\"num_attention_heads\": 128, \"num_key_value_heads\": 128, \"q_lora_rank\": 1536, "          \
    "\"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, "                 \
    "\"v_head_dim\": 128, \"n_routed_experts\": 256, \"n_shared_experts\": 1, "                    \
    "\"num_experts_per_tok\": 8, \"n_group\": 8, \"topk_group\": 4, "                              \
    "\"topk_method\": \"noaux_tc\", \"scoring_func\": \"sigmoid\", \"norm_topk_prob\": true, "     \
    "\"routed_scaling_factor\": 2.5, \"vocab_size\": 129280, \"rms_norm_eps\": 1e-6, "             \
    "\"rope_theta\": 10000, \"max_position_embeddings\": 163840, \"hidden_act\": \"silu\", "       \
    "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, \"beta_fast\": 32, "                   \
    "\"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0, "                                 \
    "\"original_max_position_embeddings\": 4096}, \"tie_word_embeddings\": false, "                \
    "\"attention_bias\": false, \"torch_dtype\": \"bfloat16\", \"quantization_config\": "          \
    "{\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"activation_scheme\": \"dynamic\", "          \
    "\"weight_block_size\": [128, 128]}}"

#define PLAN_PATH "/tmp/octavo-plan-XXXXXX.json" /* for plan_write */

static inline int plan_write(char *path, const char *text) {
    const int file = mkstemps(path, 5);
    const size_t length = strlen(text);
    if (file < 0) return -1;
    const bool is_written = write(file, text, length) == (ssize_t)length;
    return close(file) || !is_written;
}

/* For json_decref. */
static inline json_t *plan_make(const char *path, const octavo_plan_options *options) {
    octavo_error error = {0};
    char *text = NULL;
    if (octavo_plan(path, options, &text, &error)) fail_msg("%s", error.message);
    json_t *plan = json_loads(text, 0, NULL);
    if (!plan) fail_msg("no JSON: %s", text);
    octavo_text_free(text);
    return plan;
}

static inline double plan_wire_bytes(const json_t *plan, const char *phase) {
    const json_t *bytes = json_object_get(json_object_get(plan, phase), "wire_bytes_per_rank");
    assert_true(json_is_number(bytes));
    return json_number_value(bytes);
}

#endif
