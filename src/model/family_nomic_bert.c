/* SPDX-License-Identifier: Apache-2.0
 *
 * Nomic BERT: as BERT, with rope in place of the table of positions, a gate, and no biases but
 * those of the norms. Folders call their keys as GPT-2's, or in newer files as others do.
 */
#include "model/family.h"

const octavo_weight_name octavo_family_nomic_bert_names[] = {
    {OCTAVO_ROLE_LAYERS, "encoder.layers"},
    {OCTAVO_ROLE_EMBED, "embeddings.word_embeddings.weight"},
    {OCTAVO_ROLE_EMBED_NORM, "emb_ln.weight"},
    {OCTAVO_ROLE_EMBED_NORM_BIAS, "emb_ln.bias"},
    {OCTAVO_ROLE_ATTN_QKV, "attn.Wqkv.weight"},
    {OCTAVO_ROLE_ATTN_QKV_BIAS, "attn.Wqkv.bias"},
    {OCTAVO_ROLE_ATTN_O, "attn.out_proj.weight"},
    {OCTAVO_ROLE_ATTN_O_BIAS, "attn.out_proj.bias"},
    {OCTAVO_ROLE_ATTN_SUM_NORM, "norm1.weight"},
    {OCTAVO_ROLE_ATTN_SUM_NORM_BIAS, "norm1.bias"},
    {OCTAVO_ROLE_FFW_GATE, "mlp.fc12.weight"},
    {OCTAVO_ROLE_FFW_GATE_BIAS, "mlp.fc12.bias"},
    {OCTAVO_ROLE_FFW_UP, "mlp.fc11.weight"},
    {OCTAVO_ROLE_FFW_UP_BIAS, "mlp.fc11.bias"},
    {OCTAVO_ROLE_FFW_DOWN, "mlp.fc2.weight"},
    {OCTAVO_ROLE_FFW_DOWN_BIAS, "mlp.fc2.bias"},
    {OCTAVO_ROLE_FFW_SUM_NORM, "norm2.weight"},
    {OCTAVO_ROLE_FFW_SUM_NORM_BIAS, "norm2.bias"},
    {OCTAVO_ROLE_NONE, NULL},
};

const octavo_key_alias octavo_family_nomic_bert_keys[] = {
    {"num_hidden_layers", "n_layer"},
    {"hidden_size", "n_embd"},
    {"intermediate_size", "n_inner"},
    {"num_attention_heads", "n_head"},
    {"max_position_embeddings", "n_positions"},
    {"layer_norm_eps", "layer_norm_epsilon"},
    {"hidden_act", "activation_function"},
    {"rope_theta", "rotary_emb_base"},
    {NULL, NULL},
};

/* Other models of the kind set these, and are something else. */
static octavo_status refuse_variants(const octavo_config_reader *reader) {
    static const char *const keys[] = {"prenorm", "rotary_emb_interleaved", "use_rms_norm"};
    for (size_t i = 0; i < OCTAVO_COUNT(keys); i++) {
        const octavo_key key = {NULL, keys[i]};
        bool is_set;
        octavo_status status = octavo_config_flag(reader, key, false, &is_set);
        if (status) return status;
        if (is_set)
            return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                                      "true is not in this version");
    }
    return OCTAVO_OK;
}

/* "swiglu" is what others call by its gate alone. */
static octavo_status read_activation(const octavo_config_reader *reader,
                                     octavo_model_config *config) {
    const octavo_key key = {NULL, "hidden_act"};
    octavo_gguf_string name;
    octavo_status status = octavo_config_text(reader, key, "silu", &name);
    if (status || octavo_text_is(name, "swiglu")) return status;
    return octavo_family_activation(reader, key.hf, "silu", &config->activation);
}

octavo_status octavo_family_nomic_bert(const octavo_config_reader *reader,
                                       octavo_model_config *config) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 1e3, .is_scaled = true};
    const octavo_key trained = {NULL, "max_trained_positions"};
    int64_t context;
    octavo_status status;
    octavo_family_set_encoder(reader, config);
    config->qkv_fusion = OCTAVO_FUSION_ROWS;
    config->qkv_bias = config->attn_o_bias = config->ffw_bias = OCTAVO_BIAS_OPTIONAL;
    for (int i = 0; i < config->n_layers; i++)
        config->layers[i].rope = 0;
    if ((status = refuse_variants(reader)) || (status = read_activation(reader, config)) ||
        (status = octavo_family_types(reader, config)) ||
        (status = octavo_config_integer(reader, trained,
                                        octavo_config_is_hf(reader) ? 2048 : config->context, 1,
                                        1 << 28, &context)))
        return status;
    /* Behind it the base would grow with the text. */
    if (config->context > context) config->context = context;
    return octavo_family_rope(reader, config, 0, &rope);
}
