/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a folder of DeepSeek's as a GGUF file: what leads out of the latent in one matrix, as
 * older files have it, or in two.
 */
#ifndef OCTAVO_TESTS_ENGINE_DEEPSEEK_GGUF_H
#define OCTAVO_TESTS_ENGINE_DEEPSEEK_GGUF_H

#include "../gguf_writer.h"
#include "../unit.h"
#include "base/compiler.h"
#include "base/number.h"
#include "hf_maker.h"
#include "kernels/weight_quantize.h"

typedef struct deepseek_settings {
    const char *from;      /* a folder of tests/data/models */
    octavo_ggml_type type; /* of matrices whose rows are whole blocks */
    bool is_split;         /* k_b and v_b, and metadata as in newer files */
    bool is_expanded;      /* the same values, in F32 */
    const char *leave_out; /* a tensor or a key, or NULL */
    const char *bend;      /* a tensor that gets a row less, or a key that gets `number` */
    uint32_t number;
    float factor; /* beside what leads out of the latent, whose values are less for it; 0: none */
} deepseek_settings;

typedef struct converter {
    hf_maker from;
    gguf_writer to;
    deepseek_settings with;
    uint64_t d, heads, rank, key, rope, value, experts, vocabulary; /* sizes */
} converter;

/* ---- tensors ---- */

/* A number of config.json; 0 where it is null or absent. */
static inline uint64_t size_of(const converter *c, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(c->from.config, key));
}

/* Values of a tensor of the folder, which is BF16; *n of them. */
static inline float *values_of(const converter *c, const char *name, size_t *n) {
    const json_t *entry = json_object_get(c->from.header, name);
    const json_t *places = json_object_get(entry, "data_offsets");
    if (!entry) fail_msg("no tensor %s", name);
    const size_t begin = (size_t)json_integer_value(json_array_get(places, 0));
    const size_t end = (size_t)json_integer_value(json_array_get(places, 1));
    *n = (end - begin) / 2;
    float *values = malloc(*n * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < *n; i++) {
        uint16_t half;
        memcpy(&half, c->from.data + begin + 2 * i, 2);
        values[i] = octavo_bf16_to_f32(half);
    }
    return values;
}

static inline octavo_weight_type packed_type(octavo_ggml_type type) {
    return type == OCTAVO_GGML_Q8_0   ? OCTAVO_WEIGHT_Q8_0
           : type == OCTAVO_GGML_Q4_0 ? OCTAVO_WEIGHT_Q4_0
                                      : OCTAVO_WEIGHT_BF16;
}

/* What the rows' codes stand for, in place of them. */
static inline void expand(octavo_weight_type type, const uint8_t *rows, size_t row_bytes,
                          float *values, uint64_t n, uint64_t k) {
    _Alignas(64) static uint8_t panel[1 << 16];
    assert_true(octavo_weight_panel_bytes(type, (int64_t)k) <= sizeof panel);
    for (uint64_t i = 0; i < n; i++) {
        octavo_weight_pack(type, panel, rows + i * row_bytes, row_bytes, 1, (int64_t)k);
        octavo_weight_unpack_row(type, values + i * k, panel, 0, (int64_t)k);
    }
}

/* The values as they are with a factor beside them, which is written too. */
static inline void put_factor(converter *c, const char *name, float *values, uint64_t stack,
                              size_t n) {
    char factor_name[100];
    float factors[16];
    if (c->with.factor == 0.0f || !strstr(name, "_b.weight")) return;
    snprintf(factor_name, sizeof factor_name, "%.*s.scale", (int)(strlen(name) - 7), name);
    stack = stack ? stack : 1;
    assert_in_range(stack, 1, OCTAVO_COUNT(factors));
    for (uint64_t i = 0; i < stack; i++)
        factors[i] = c->with.factor;
    for (size_t i = 0; i < n; i++)
        values[i] /= c->with.factor;
    gguf_writer_tensor(&c->to, factor_name, OCTAVO_GGML_F32, 1, &stack, factors,
                       (size_t)stack * sizeof *factors);
}

/* [stack, n, k], with stack 0 [n, k], with n 0 [k]; vectors are F32. */
static inline void put(converter *c, const char *name, float *values, uint64_t stack, uint64_t n,
                       uint64_t k) {
    const uint32_t n_dims = stack ? 3 : n ? 2 : 1;
    if (c->with.bend && strcmp(c->with.bend, name) == 0) *(n ? &n : &k) -= 1;
    const uint64_t rows = (stack ? stack : 1) * (n ? n : 1);
    const octavo_weight_type type = packed_type(c->with.type);
    put_factor(c, name, values, stack, (size_t)((stack ? stack : 1) * (n ? n : 1) * k));
    const octavo_weight_info *info = octavo_weight_info_of(type);
    if (c->with.leave_out && strcmp(c->with.leave_out, name) == 0) return;
    if (n == 0 || c->with.type == OCTAVO_GGML_F32 || k % (uint64_t)info->source_inputs != 0) {
        gguf_writer_tensor(&c->to, name, OCTAVO_GGML_F32, n_dims, (uint64_t[]){k, n, stack}, values,
                           (size_t)(rows * k) * sizeof *values);
        return;
    }
    const size_t row_bytes =
        (size_t)(k / (uint64_t)info->source_inputs * (uint64_t)info->source_bytes);
    uint8_t *data = malloc((size_t)rows * row_bytes);
    assert_non_null(data);
    for (uint64_t i = 0; i < rows; i++)
        octavo_weight_quantize(type, data + i * row_bytes, values + i * k, (int64_t)k);
    if (c->with.is_expanded) {
        expand(type, data, row_bytes, values, rows, k);
        gguf_writer_tensor(&c->to, name, OCTAVO_GGML_F32, n_dims, (uint64_t[]){k, n, stack}, values,
                           (size_t)(rows * k) * sizeof *values);
    } else {
        gguf_writer_tensor(&c->to, name, c->with.type, n_dims, (uint64_t[]){k, n, stack}, data,
                           (size_t)rows * row_bytes);
    }
    free(data);
}

/* n 0: a vector. */
static inline void copy(converter *c, const char *from, const char *to, uint64_t n) {
    size_t all;
    float *values = values_of(c, from, &all);
    put(c, to, values, 0, n, n ? all / n : all);
    free(values);
}

static inline void copy_experts(converter *c, int layer, const char *from, const char *to,
                                uint64_t n) {
    float *stack = NULL;
    size_t all = 0;
    char name[100];
    for (size_t e = 0; e < c->experts; e++) {
        snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%zu.%s.weight", layer, e, from);
        float *values = values_of(c, name, &all);
        stack = realloc(stack, c->experts * all * sizeof *stack);
        assert_non_null(stack);
        memcpy(stack + e * all, values, all * sizeof *stack);
        free(values);
    }
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, to);
    put(c, name, stack, c->experts, n, all / n);
    free(stack);
}

/* Newer files: keys with their axes swapped, values as they are. */
static inline void split(converter *c, int layer) {
    char name[100];
    size_t all;
    snprintf(name, sizeof name, "model.layers.%d.self_attn.kv_b_proj.weight", layer);
    float *values = values_of(c, name, &all);
    assert_int_equal(all, c->heads * (c->key + c->value) * c->rank);
    float *keys = malloc(all * sizeof *keys), *rows = malloc(all * sizeof *rows);
    assert_true(keys && rows);
    for (uint64_t h = 0; h < c->heads; h++) {
        const float *head = values + h * (c->key + c->value) * c->rank;
        for (uint64_t r = 0; r < c->rank; r++)
            for (uint64_t i = 0; i < c->key; i++)
                keys[(h * c->rank + r) * c->key + i] = head[i * c->rank + r];
        memcpy(rows + h * c->value * c->rank, head + c->key * c->rank,
               (size_t)(c->value * c->rank) * sizeof *rows);
    }
    snprintf(name, sizeof name, "blk.%d.attn_k_b.weight", layer);
    put(c, name, keys, c->heads, c->rank, c->key);
    snprintf(name, sizeof name, "blk.%d.attn_v_b.weight", layer);
    put(c, name, rows, c->heads, c->value, c->rank);
    free(keys);
    free(rows);
    free(values);
}

static inline void put_layer(converter *c, int layer) {
    const uint64_t ffw = size_of(c, "intermediate_size"), q_rank = size_of(c, "q_lora_rank");
    const uint64_t expert = size_of(c, "moe_intermediate_size");
    const uint64_t shared = expert * size_of(c, "n_shared_experts");
    const bool is_dense = (uint64_t)layer < size_of(c, "first_k_dense_replace");
    const bool is_v3 = strcmp(c->with.from, "deepseek_v3") == 0;
    const struct {
        const char *from, *to;
        uint64_t n; /* rows; 0: a vector */
        bool is_there;
    } list[] = {
        {"input_layernorm.weight", "attn_norm.weight", 0, true},
        {"post_attention_layernorm.weight", "ffn_norm.weight", 0, true},
        {"self_attn.q_proj.weight", "attn_q.weight", c->heads * (c->key + c->rope), q_rank == 0},
        {"self_attn.q_a_proj.weight", "attn_q_a.weight", q_rank, q_rank > 0},
        {"self_attn.q_a_proj.bias", "attn_q_a.bias", 0, q_rank > 0},
        {"self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight", 0, q_rank > 0},
        {"self_attn.q_b_proj.weight", "attn_q_b.weight", c->heads * (c->key + c->rope), q_rank > 0},
        {"self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight", c->rank + c->rope, true},
        {"self_attn.kv_a_proj_with_mqa.bias", "attn_kv_a_mqa.bias", 0, true},
        {"self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight", 0, true},
        {"self_attn.o_proj.weight", "attn_output.weight", c->d, true},
        {"self_attn.o_proj.bias", "attn_output.bias", 0, true},
        {"mlp.gate_proj.weight", "ffn_gate.weight", ffw, is_dense},
        {"mlp.up_proj.weight", "ffn_up.weight", ffw, is_dense},
        {"mlp.down_proj.weight", "ffn_down.weight", c->d, is_dense},
        {"mlp.gate.weight", "ffn_gate_inp.weight", c->experts, !is_dense},
        {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias", 0, !is_dense && is_v3},
        {"mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight", shared, !is_dense},
        {"mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight", shared, !is_dense},
        {"mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight", c->d, !is_dense},
    };
    char from[100], to[100];
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        snprintf(from, sizeof from, "model.layers.%d.%s", layer, list[i].from);
        snprintf(to, sizeof to, "blk.%d.%s", layer, list[i].to);
        if (list[i].is_there) copy(c, from, to, list[i].n);
    }
    snprintf(from, sizeof from, "model.layers.%d.self_attn.kv_b_proj.weight", layer);
    snprintf(to, sizeof to, "blk.%d.attn_kv_b.weight", layer);
    if (c->with.is_split)
        split(c, layer);
    else
        copy(c, from, to, c->heads * (c->key + c->value));
    if (is_dense) return;
    copy_experts(c, layer, "gate_proj", "ffn_gate_exps", expert);
    copy_experts(c, layer, "up_proj", "ffn_up_exps", expert);
    copy_experts(c, layer, "down_proj", "ffn_down_exps", c->d);
}

/* ---- the file ---- */

static inline void put_metadata(converter *c) {
    const bool is_new = c->with.is_split;
    const bool is_v3 = strcmp(c->with.from, "deepseek_v3") == 0;
    const json_t *yarn = json_object_get(c->from.config, "rope_scaling");
    const uint64_t q_rank = size_of(c, "q_lora_rank");
    const struct {
        const char *key;
        uint64_t value;
        bool is_there;
    } list[] = {
        {"block_count", size_of(c, "num_hidden_layers"), true},
        {"context_length", size_of(c, "max_position_embeddings"), true},
        {"embedding_length", c->d, true},
        {"feed_forward_length", size_of(c, "intermediate_size"), true},
        {"attention.head_count", c->heads, true},
        {"attention.head_count_kv", is_new ? 1 : c->heads, true},
        {"attention.q_lora_rank", q_rank, q_rank > 0},
        {"attention.kv_lora_rank", c->rank, true},
        {"attention.key_length", is_new ? c->rank + c->rope : c->key + c->rope, true},
        {"attention.value_length", is_new ? c->rank : c->value, true},
        {"attention.key_length_mla", c->key + c->rope, is_new},
        {"attention.value_length_mla", c->value, is_new},
        {"rope.dimension_count", c->rope, true},
        {"rope.scaling.original_context_length", 64, true},
        {"leading_dense_block_count", size_of(c, "first_k_dense_replace"), true},
        {"expert_count", c->experts, true},
        {"expert_used_count", size_of(c, "num_experts_per_tok"), true},
        {"expert_shared_count", size_of(c, "n_shared_experts"), true},
        {"expert_feed_forward_length", size_of(c, "moe_intermediate_size"), true},
        {"expert_gating_func", is_v3 ? 2 : 1, true},
        {"expert_group_count", size_of(c, "n_group"), true},
        {"expert_group_used_count", size_of(c, "topk_group"), true},
    };
    gguf_writer_string(&c->to, "general.architecture", "deepseek2");
    gguf_writer_string(&c->to, "deepseek2.rope.scaling.type", "yarn");
    gguf_writer_f32(&c->to, "deepseek2.rope.scaling.factor",
                    (float)json_number_value(json_object_get(yarn, "factor")));
    gguf_writer_f32(&c->to, "deepseek2.rope.scaling.yarn_log_multiplier",
                    0.1f * (float)json_number_value(json_object_get(yarn, "mscale_all_dim")));
    gguf_writer_f32(&c->to, "deepseek2.rope.freq_base", 10000.0f);
    gguf_writer_f32(&c->to, "deepseek2.attention.layer_norm_rms_epsilon", 1e-6f);
    gguf_writer_f32(
        &c->to, "deepseek2.expert_weights_scale",
        (float)json_number_value(json_object_get(c->from.config, "routed_scaling_factor")));
    gguf_writer_bool(&c->to, "deepseek2.expert_weights_norm", is_v3);
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        char key[100];
        snprintf(key, sizeof key, "deepseek2.%s", list[i].key);
        const bool is_bent = c->with.bend && strcmp(c->with.bend, key) == 0;
        if (!list[i].is_there || (c->with.leave_out && strcmp(c->with.leave_out, key) == 0))
            continue;
        gguf_writer_u32(&c->to, key, is_bent ? c->with.number : (uint32_t)list[i].value);
    }
}

static inline void put_vocabulary(converter *c) {
    enum { MOST = 256 };
    static char texts[MOST][24];
    static const float scores[MOST];
    const char *tokens[MOST];
    const size_t n = (size_t)c->vocabulary;
    assert_in_range(n, 1, MOST);
    for (size_t i = 0; i < n; i++) {
        snprintf(texts[i], sizeof texts[i], "t%zu", i);
        tokens[i] = texts[i];
    }
    gguf_writer_string(&c->to, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(&c->to, "tokenizer.ggml.tokens", tokens, n);
    gguf_writer_f32s(&c->to, "tokenizer.ggml.scores", scores, n);
}

/* What GGUF files cannot say: halves that rotate, cos and sin that are scaled. */
static inline void deepseek_tame(hf_maker *maker) {
    json_t *yarn = json_object_get(maker->config, "rope_scaling");
    hf_maker_set(maker, "rope_interleave", "true");
    (void)json_object_set(yarn, "mscale", json_object_get(yarn, "mscale_all_dim"));
}

/* Writes the folder, tamed, as a GGUF file and puts its name in path [64]. The test unlinks it. */
static inline void deepseek_convert(deepseek_settings with, char *path) {
    converter c = {.with = with};
    if (!with.from) c.with.from = "deepseek_v2";
    hf_maker_start(&c.from, c.with.from);
    c.d = size_of(&c, "hidden_size");
    c.heads = size_of(&c, "num_attention_heads");
    c.rank = size_of(&c, "kv_lora_rank");
    c.key = size_of(&c, "qk_nope_head_dim");
    c.rope = size_of(&c, "qk_rope_head_dim");
    c.value = size_of(&c, "v_head_dim");
    c.experts = size_of(&c, "n_routed_experts");
    c.vocabulary = size_of(&c, "vocab_size");
    gguf_writer_init(&c.to, 3, 32);
    put_metadata(&c);
    put_vocabulary(&c);
    copy(&c, "model.embed_tokens.weight", "token_embd.weight", c.vocabulary);
    copy(&c, "model.norm.weight", "output_norm.weight", 0);
    copy(&c, "lm_head.weight", "output.weight", c.vocabulary);
    for (int i = 0; (uint64_t)i < size_of(&c, "num_hidden_layers"); i++)
        put_layer(&c, i);
    strcpy(path, "/tmp/octavo-latent-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_true(gguf_writer_save(&c.to, path));
    gguf_writer_deinit(&c.to);
    hf_maker_end(&c.from);
}

#endif
