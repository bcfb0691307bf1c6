/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT and what follows it (RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT): encoders whose norms
 * stand behind the sums, with tables of positions and of token types, biases everywhere and a
 * feed-forward without gate. Files of the first models call a norm's scale and bias gamma and beta.
 */
#include "base/error.h"
#include "model/family.h"

#define BERT_NAMES(scale, bias)                                                                    \
    {OCTAVO_ROLE_LAYERS, "encoder.layer"},                                                         \
        {OCTAVO_ROLE_EMBED, "embeddings.word_embeddings.weight"},                                  \
        {OCTAVO_ROLE_EMBED_NORM, "embeddings.LayerNorm." scale},                                   \
        {OCTAVO_ROLE_EMBED_NORM_BIAS, "embeddings.LayerNorm." bias},                               \
        {OCTAVO_ROLE_ATTN_Q, "attention.self.query.weight"},                                       \
        {OCTAVO_ROLE_ATTN_K, "attention.self.key.weight"},                                         \
        {OCTAVO_ROLE_ATTN_V, "attention.self.value.weight"},                                       \
        {OCTAVO_ROLE_ATTN_O, "attention.output.dense.weight"},                                     \
        {OCTAVO_ROLE_ATTN_Q_BIAS, "attention.self.query.bias"},                                    \
        {OCTAVO_ROLE_ATTN_K_BIAS, "attention.self.key.bias"},                                      \
        {OCTAVO_ROLE_ATTN_V_BIAS, "attention.self.value.bias"},                                    \
        {OCTAVO_ROLE_ATTN_O_BIAS, "attention.output.dense.bias"},                                  \
        {OCTAVO_ROLE_ATTN_SUM_NORM, "attention.output.LayerNorm." scale},                          \
        {OCTAVO_ROLE_ATTN_SUM_NORM_BIAS, "attention.output.LayerNorm." bias},                      \
        {OCTAVO_ROLE_FFW_UP, "intermediate.dense.weight"},                                         \
        {OCTAVO_ROLE_FFW_UP_BIAS, "intermediate.dense.bias"},                                      \
        {OCTAVO_ROLE_FFW_DOWN, "output.dense.weight"},                                             \
        {OCTAVO_ROLE_FFW_DOWN_BIAS, "output.dense.bias"},                                          \
        {OCTAVO_ROLE_FFW_SUM_NORM, "output.LayerNorm." scale},                                     \
        {OCTAVO_ROLE_FFW_SUM_NORM_BIAS, "output.LayerNorm." bias}, {                               \
        OCTAVO_ROLE_NONE, NULL                                                                     \
    }

const octavo_weight_name octavo_family_bert_names[] = {BERT_NAMES("weight", "bias")};
static const octavo_weight_name old_names[] = {BERT_NAMES("gamma", "beta")};

const octavo_weight_name octavo_family_distilbert_names[] = {
    {OCTAVO_ROLE_LAYERS, "transformer.layer"},
    {OCTAVO_ROLE_EMBED, "embeddings.word_embeddings.weight"},
    {OCTAVO_ROLE_ATTN_Q, "attention.q_lin.weight"},
    {OCTAVO_ROLE_ATTN_K, "attention.k_lin.weight"},
    {OCTAVO_ROLE_ATTN_V, "attention.v_lin.weight"},
    {OCTAVO_ROLE_ATTN_O, "attention.out_lin.weight"},
    {OCTAVO_ROLE_ATTN_Q_BIAS, "attention.q_lin.bias"},
    {OCTAVO_ROLE_ATTN_K_BIAS, "attention.k_lin.bias"},
    {OCTAVO_ROLE_ATTN_V_BIAS, "attention.v_lin.bias"},
    {OCTAVO_ROLE_ATTN_O_BIAS, "attention.out_lin.bias"},
    {OCTAVO_ROLE_ATTN_SUM_NORM, "sa_layer_norm.weight"},
    {OCTAVO_ROLE_ATTN_SUM_NORM_BIAS, "sa_layer_norm.bias"},
    {OCTAVO_ROLE_FFW_UP, "ffn.lin1.weight"},
    {OCTAVO_ROLE_FFW_UP_BIAS, "ffn.lin1.bias"},
    {OCTAVO_ROLE_FFW_DOWN, "ffn.lin2.weight"},
    {OCTAVO_ROLE_FFW_DOWN_BIAS, "ffn.lin2.bias"},
    {OCTAVO_ROLE_FFW_SUM_NORM, "output_layer_norm.weight"},
    {OCTAVO_ROLE_FFW_SUM_NORM_BIAS, "output_layer_norm.bias"},
    {OCTAVO_ROLE_NONE, NULL},
};

const octavo_key_alias octavo_family_distilbert_keys[] = {
    {"num_hidden_layers", "n_layers"},   {"hidden_size", "dim"},
    {"intermediate_size", "hidden_dim"}, {"num_attention_heads", "n_heads"},
    {"hidden_act", "activation"},        {NULL, NULL},
};

static bool has_tensor(const octavo_config_reader *reader, const octavo_model_config *config,
                       octavo_weight_role role) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    if (!reader->checkpoint->gguf && !reader->checkpoint->safetensors)
        return false; /* a description alone */
    octavo_weight_name_make(reader->checkpoint, config->names, role, 0, 0, name);
    return octavo_checkpoint_find(reader->checkpoint, name) >= 0;
}

/* What all of them have. */
void octavo_family_set_encoder(const octavo_config_reader *reader, octavo_model_config *config) {
    const bool is_hf = octavo_config_is_hf(reader);
    config->has_attn_norm = config->has_ffw_norm = config->has_output_norm = false;
    config->has_sum_norms = config->has_embed_norm = true;
    config->norm_bias = OCTAVO_BIAS_NEEDED;
    if (is_hf) config->qkv_bias = config->attn_o_bias = config->ffw_bias = OCTAVO_BIAS_NEEDED;
    config->has_pooler = has_tensor(reader, config, OCTAVO_ROLE_POOLER);
    for (int i = 0; i < config->n_layers; i++)
        config->layers[i].rope = OCTAVO_NO_ROPE;
}

/* GGUF files have as many types as the tensor has rows, or no tensor; DistilBERT has none. */
octavo_status octavo_family_types(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key key = {NULL, "type_vocab_size"};
    octavo_checkpoint_tensor types;
    if (octavo_config_is_hf(reader))
        return octavo_config_integer(reader, key,
                                     config->names == octavo_family_distilbert_names ? 0 : 2, 0,
                                     1 << 16, &config->n_types);
    if (!has_tensor(reader, config, OCTAVO_ROLE_TYPES)) return OCTAVO_OK;
    octavo_status status =
        octavo_checkpoint_get(reader->checkpoint, "token_types.weight", &types, reader->error);
    if (status) return status;
    const uint64_t rows = types.n_dims >= 2 ? types.extent[types.n_dims - 2] : 1;
    if (rows > 1 << 16)
        return octavo_fail(reader->error, OCTAVO_ERROR_UNSUPPORTED,
                           "tensor \"%s\" (%s): more than %d rows", types.name, types.path,
                           1 << 16);
    config->n_types = (int64_t)rows;
    return OCTAVO_OK;
}

static octavo_status refuse_variants(const octavo_config_reader *reader) {
    const octavo_key positions = {NULL, "position_embedding_type"}, decoder = {NULL, "is_decoder"};
    octavo_gguf_string kind;
    bool is_decoder;
    octavo_status status;
    if ((status = octavo_config_text(reader, positions, "absolute", &kind)) ||
        (status = octavo_config_flag(reader, decoder, false, &is_decoder)))
        return status;
    if (!octavo_text_is(kind, "absolute"))
        return octavo_config_fail(reader, positions, OCTAVO_ERROR_UNSUPPORTED,
                                  "\"%.*s\" is not in this version; absolute is",
                                  (int)(kind.size < 32 ? kind.size : 32), kind.data);
    if (is_decoder)
        return octavo_config_fail(reader, decoder, OCTAVO_ERROR_UNSUPPORTED,
                                  "true: this architecture is run as an encoder only");
    return OCTAVO_OK;
}

octavo_status octavo_family_bert(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_status status;
    if (octavo_config_is_hf(reader) && !has_tensor(reader, config, OCTAVO_ROLE_EMBED_NORM) &&
        config->names == octavo_family_bert_names) {
        config->names = old_names;
        if (!has_tensor(reader, config, OCTAVO_ROLE_EMBED_NORM))
            config->names = octavo_family_bert_names;
    }
    octavo_family_set_encoder(reader, config);
    config->has_gate = false;
    config->n_positions = config->context;
    if ((status = refuse_variants(reader)) || (status = octavo_family_types(reader, config)))
        return status;
    return octavo_family_activation(reader, "hidden_act", "gelu", &config->activation);
}

/* The first positions are those of the padding, and count in max_position_embeddings. GGUF files
 * leave them out. */
octavo_status octavo_family_roberta(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    const octavo_key padding = {NULL, "pad_token_id"};
    const octavo_key context = {NULL, "max_position_embeddings"};
    int64_t id;
    octavo_status status = octavo_family_bert(reader, config);
    if (status || (status = octavo_config_integer(reader, padding, 1, 0, 1 << 24, &id)))
        return status;
    if (id + 1 >= config->context)
        return octavo_config_fail(reader, context, OCTAVO_ERROR_FORMAT,
                                  "%lld positions, of which those up to pad_token_id (%lld) are "
                                  "not for text, leave none; the file is damaged",
                                  (long long)config->context, (long long)id);
    config->first_position = id + 1;
    config->context -= config->first_position;
    return OCTAVO_OK;
}
