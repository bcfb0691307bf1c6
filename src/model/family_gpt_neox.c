/* SPDX-License-Identifier: Apache-2.0
 *
 * GPT-NeoX and Pythia: attention and feed-forward in parallel, each behind a layer norm with bias,
 * biases at every product, a feed-forward without gate, part of each head rotated. q, k and v are
 * one tensor: in folders head by head, in GGUF files q before k before v.
 */
#include "model/family.h"

const octavo_weight_name octavo_family_gpt_neox_names[] = {
    {OCTAVO_ROLE_EMBED, "embed_in.weight"},
    {OCTAVO_ROLE_OUTPUT_NORM, "final_layer_norm.weight"},
    {OCTAVO_ROLE_OUTPUT_NORM_BIAS, "final_layer_norm.bias"},
    {OCTAVO_ROLE_OUTPUT, "embed_out.weight"},
    {OCTAVO_ROLE_ATTN_QKV, "attention.query_key_value.weight"},
    {OCTAVO_ROLE_ATTN_QKV_BIAS, "attention.query_key_value.bias"},
    {OCTAVO_ROLE_ATTN_O, "attention.dense.weight"},
    {OCTAVO_ROLE_ATTN_O_BIAS, "attention.dense.bias"},
    {OCTAVO_ROLE_FFW_UP, "mlp.dense_h_to_4h.weight"},
    {OCTAVO_ROLE_FFW_UP_BIAS, "mlp.dense_h_to_4h.bias"},
    {OCTAVO_ROLE_FFW_DOWN, "mlp.dense_4h_to_h.weight"},
    {OCTAVO_ROLE_FFW_DOWN_BIAS, "mlp.dense_4h_to_h.bias"},
    {OCTAVO_ROLE_NONE, NULL},
};

octavo_status octavo_family_gpt_neox(const octavo_config_reader *reader,
                                     octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rotary_emb_base"}, .fallback = 1e4, .is_scaled = true};
    const octavo_key parallel = {"use_parallel_residual", "use_parallel_residual"};
    const octavo_key kv_heads = {"attention.head_count_kv", "num_key_value_heads"};
    const bool is_hf = octavo_config_is_hf(reader);
    bool has_biases;
    octavo_status status;
    if (config->n_kv_heads != config->n_heads)
        return octavo_config_fail(reader, kv_heads, OCTAVO_ERROR_FORMAT,
                                  "%lld, but this architecture has one for each of its %lld query "
                                  "heads; the file is damaged",
                                  (long long)config->n_kv_heads, (long long)config->n_heads);
    config->has_gate = false;
    config->norm_bias = OCTAVO_BIAS_NEEDED;
    config->qkv_fusion = is_hf ? OCTAVO_FUSION_HEADS : OCTAVO_FUSION_ROWS;
    if ((status =
             octavo_config_flag(reader, (octavo_key){NULL, "attention_bias"}, true, &has_biases)) ||
        (status = octavo_config_flag(reader, parallel, true, &config->is_parallel)) ||
        (status = octavo_family_activation(reader, "hidden_act", "gelu", &config->activation)))
        return status;
    if (is_hf) {
        config->qkv_bias = config->attn_o_bias = has_biases ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE;
        config->ffw_bias = OCTAVO_BIAS_NEEDED;
    }
    return octavo_family_rope(reader, config, 0, &rope);
}
