/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the seeds of fuzz_config into a folder that exists: fuzz_config_seeds FOLDER
 */
#include "../formats/safetensors_writer.h"
#include "base/compiler.h"

#define SIZES                                                                                      \
    "\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":4,"                         \
    "\"num_attention_heads\":4,\"vocab_size\":100,\"max_position_embeddings\":128"

int main(int argc, char **argv) {
    static const char *const seeds[] = {
        "{\"model_type\":\"llama\",\"num_key_value_heads\":2,\"rope_theta\":500000.0,"
        "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
        "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":64},"
        "\"attention_bias\":true,\"mlp_bias\":false,\"tie_word_embeddings\":true," SIZES "}",
        "{\"model_type\":\"mistral\",\"sliding_window\":9,\"head_dim\":32,"
        "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}," SIZES "}",
        "{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"sliding_window\":9,"
        "\"max_window_layers\":2,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-06," SIZES "}",
        "{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\","
        "\"query_pre_attn_scalar\":256,\"rope_parameters\":{\"full_attention\":{\"rope_type\":"
        "\"linear\",\"factor\":8.0,\"rope_theta\":1000000.0},\"sliding_attention\":{\"rope_type\":"
        "\"default\",\"rope_theta\":10000.0}},\"layer_types\":[\"full_attention\","
        "\"sliding_attention\",\"sliding_attention\",\"full_attention\"],\"sliding_window\":"
        "9," SIZES "}}",
        "{\"model_type\":\"phi3\",\"partial_rotary_factor\":0.5,"
        "\"original_max_position_embeddings\":32,\"rope_scaling\":{\"type\":\"longrope\","
        "\"short_factor\":[1,1,1,2],\"long_factor\":[1,2,3,4]},\"sliding_window\":9," SIZES "}",
        "{\"model_type\":\"qwen3\",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
        "\"beta_fast\":32,\"beta_slow\":1,\"mscale\":1.0,\"mscale_all_dim\":0.5,"
        "\"truncate\":false,\"original_max_position_embeddings\":32}," SIZES "}",
        "{\"model_type\":\"gemma2\",\"attn_logit_softcapping\":50.0,"
        "\"final_logit_softcapping\":null," SIZES "}",
        "{\"model_type\":\"granite\",\"embedding_multiplier\":12.0,\"logits_scaling\":8.0,"
        "\"residual_multiplier\":0.2,\"attention_multiplier\":0.1," SIZES "}",
        "{\"model_type\":\"qwen2_moe\",\"num_experts\":6,\"num_experts_per_tok\":3,"
        "\"moe_intermediate_size\":24,\"shared_expert_intermediate_size\":80,"
        "\"norm_topk_prob\":false,\"decoder_sparse_step\":2,\"mlp_only_layers\":[0]," SIZES "}",
        "{\"model_type\":\"llama4_text\",\"num_local_experts\":4,\"intermediate_size_mlp\":80,"
        "\"interleave_moe_layer_step\":2,\"no_rope_layers\":[],\"attention_chunk_size\":32,"
        "\"attn_temperature_tuning\":true,\"floor_scale\":16,\"attn_scale\":0.3," SIZES "}",
        "{\"model_type\":\"gpt_oss\",\"num_local_experts\":4,\"num_experts_per_tok\":2,"
        "\"swiglu_limit\":7.0,\"sliding_window\":9,\"layer_types\":[\"sliding_attention\","
        "\"full_attention\",\"sliding_attention\",\"full_attention\"],"
        "\"quantization_config\":{\"quant_method\":\"mxfp4\"}," SIZES "}",
        "{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"fp8\","
        "\"weight_block_size\":[128,128]}," SIZES "}",
        "{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,"
        "\"group_size\":-1,\"checkpoint_format\":\"gptq_v2\"}," SIZES "}",
        "{\"model_type\":\"qwen2\",\"quantization_config\":{\"quant_method\":\"awq\",\"w_bit\":4,"
        "\"q_group_size\":32,\"version\":\"gemm\"}," SIZES "}",
        "{\"model_type\":\"mixtral\",\"num_local_experts\":4,\"num_experts_per_tok\":2," SIZES "}",
        "{\"model_type\":\"bert\",\"type_vocab_size\":2,\"layer_norm_eps\":1e-12,"
        "\"position_embedding_type\":\"absolute\",\"is_decoder\":false," SIZES "}",
        "{\"model_type\":\"xlm-roberta\",\"pad_token_id\":1,\"hidden_act\":\"gelu\"," SIZES "}",
        "{\"model_type\":\"distilbert\",\"dim\":64,\"hidden_dim\":96,\"n_layers\":2,\"n_heads\":4,"
        "\"activation\":\"gelu\",\"vocab_size\":100,\"max_position_embeddings\":128}",
        "{\"model_type\":\"nomic_bert\",\"n_embd\":64,\"n_inner\":96,\"n_layer\":2,\"n_head\":4,"
        "\"activation_function\":\"swiglu\",\"rotary_emb_base\":1000,\"prenorm\":false,"
        "\"vocab_size\":100,\"n_positions\":128}",
        "{\"model_type\":\"modernbert\",\"local_attention\":16,\"global_attn_every_n_layers\":3,"
        "\"norm_bias\":false,\"global_rope_theta\":160000.0," SIZES "}",
        "{\"model_type\":\"smollm3\",\"no_rope_layers\":[1,1,1,0]," SIZES "}",
        "{\"model_type\":\"cohere2\",\"layer_norm_eps\":1e-05,\"logit_scale\":0.25,"
        "\"sliding_window\":9,\"sliding_window_pattern\":4," SIZES "}",
        "{\"model_type\":\"glm4\",\"head_dim\":32,\"partial_rotary_factor\":0.5," SIZES "}",
        "{\"model_type\":\"starcoder2\",\"use_bias\":true,\"norm_epsilon\":1e-05," SIZES "}",
        "{\"model_type\":\"gpt_neox\",\"rotary_pct\":0.25,\"rotary_emb_base\":10000,"
        "\"use_parallel_residual\":false,\"hidden_act\":\"gelu\"," SIZES "}",
    };
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_config_seeds FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(seeds); i++) {
        char path[4096];
        int length = snprintf(path, sizeof(path), "%s/%zu.json", argv[1], i);
        if (length < 0 || length >= (int)sizeof(path) ||
            !safetensors_save_bytes(path, seeds[i], strlen(seeds[i]))) {
            fprintf(stderr, "cannot write into %s\n", argv[1]);
            return 1;
        }
    }
    return 0;
}
