/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a small model with random weights to a temporary file, for tests of what does not depend
 * on the weights: order, steps, errors, allocations. Matrices take turns through all types, so that
 * each kind of kernel has a part; every axis that is summed over has two slices or more (except the
 * width of an expert).
 */
#ifndef OCTAVO_TESTS_ENGINE_TINY_MODEL_H
#define OCTAVO_TESTS_ENGINE_TINY_MODEL_H

#include "../gguf_writer.h"
#include "base/number.h"
#include "kernels/weight.h"

#include <math.h>
#include <strings.h>
#include <unistd.h>

enum {
    TINY_D = 512,
    TINY_HEADS = 8,
    TINY_KV_HEADS = 2,
    TINY_DIM = 64,
    TINY_FFW = 1024,
    TINY_EXPERT = 256,
    TINY_VOCAB = 300
};

typedef enum tiny_expert_form {
    TINY_STACKS,
    TINY_FUSED, /* gate and up in one stack; both must be of one type */
    TINY_APART, /* a tensor for each expert */
} tiny_expert_form;

typedef struct tiny_options {
    const char *architecture; /* "llama", "qwen2", "gemma3"; with experts "qwen3moe", "gpt-oss" */
    int n_layers;
    int context;
    const octavo_ggml_type *types; /* [n_types] taken in turn */
    int n_types;
    const char *leave_out; /* a tensor's name, or NULL */
    const char *add;       /* the name of one more tensor, of one value, or NULL */
    int n_experts;         /* of which a token chooses two; 0: none */
    bool is_expanded;      /* the same values, all in F32 */
    tiny_expert_form expert_form;
    bool has_factors; /* "NAME.scale" beside each matrix of a layer */
} tiny_options;

static const octavo_ggml_type tiny_all_types[] = {
    OCTAVO_GGML_Q4_K,  OCTAVO_GGML_Q8_0,    OCTAVO_GGML_Q6_K,   OCTAVO_GGML_Q4_0,
    OCTAVO_GGML_F32,   OCTAVO_GGML_Q5_0,    OCTAVO_GGML_Q4_1,   OCTAVO_GGML_F16,
    OCTAVO_GGML_BF16,  OCTAVO_GGML_Q5_1,    OCTAVO_GGML_Q2_K,   OCTAVO_GGML_IQ2_XXS,
    OCTAVO_GGML_Q3_K,  OCTAVO_GGML_IQ4_NL,  OCTAVO_GGML_Q5_K,   OCTAVO_GGML_IQ1_S,
    OCTAVO_GGML_MXFP4, OCTAVO_GGML_IQ4_XS,  OCTAVO_GGML_IQ3_S,  OCTAVO_GGML_TQ2_0,
    OCTAVO_GGML_IQ2_S, OCTAVO_GGML_IQ3_XXS, OCTAVO_GGML_NVFP4,  OCTAVO_GGML_IQ1_M,
    OCTAVO_GGML_Q1_0,  OCTAVO_GGML_TQ1_0,   OCTAVO_GGML_IQ2_XS,
};

typedef struct tiny_writer {
    gguf_writer file;
    tiny_options options;
    uint64_t random;
    int next_type, next_stack_type;
    uint8_t *gate; /* see tiny_fused */
} tiny_writer;

static inline uint32_t tiny_random(tiny_writer *w) {
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(w->random >> 33);
}

static inline float tiny_uniform(tiny_writer *w) { /* -1 to 1 */
    return (float)tiny_random(w) / 1073741824.0f - 1.0f;
}

static inline void tiny_half(uint8_t *to, float value) {
    uint16_t bits = octavo_f32_to_f16(value);
    memcpy(to, &bits, 2);
}

/* One block of random codes with scales that make values of about +-0.05. */
static inline void tiny_block(tiny_writer *w, octavo_ggml_type type, uint8_t *block, size_t bytes) {
    float value = 0.05f * tiny_uniform(w);
    uint32_t bits = octavo_f32_bits(value);
    uint8_t split[2];
    for (size_t i = 0; i < bytes; i++)
        block[i] = (uint8_t)tiny_random(w);
    switch (type) {
    case OCTAVO_GGML_F32:
        memcpy(block, &bits, 4);
        break;
    case OCTAVO_GGML_F16:
        tiny_half(block, value);
        break;
    case OCTAVO_GGML_BF16: {
        uint16_t half = octavo_f32_to_bf16(value);
        memcpy(block, &half, 2);
        break;
    }
    case OCTAVO_GGML_Q8_0:
        tiny_half(block, value / 64.0f);
        break;
    case OCTAVO_GGML_Q4_0:
        tiny_half(block, value / 4.0f);
        break;
    case OCTAVO_GGML_Q5_0:
        tiny_half(block, value / 8.0f);
        break;
    case OCTAVO_GGML_Q1_0:
        tiny_half(block, value);
        break;
    case OCTAVO_GGML_IQ4_NL:
        tiny_half(block, value / 64.0f);
        break;
    case OCTAVO_GGML_Q3_K:
        tiny_half(block + 108, value / 64.0f);
        break;
    case OCTAVO_GGML_Q6_K:
        tiny_half(block + 208, value / 1024.0f);
        break;
    case OCTAVO_GGML_IQ4_XS:
        tiny_half(block, value / 1024.0f);
        break;
    case OCTAVO_GGML_TQ1_0:
        tiny_half(block + 52, value);
        break;
    case OCTAVO_GGML_TQ2_0:
        tiny_half(block + 64, value);
        break;
    case OCTAVO_GGML_IQ2_XXS:
    case OCTAVO_GGML_IQ2_XS:
    case OCTAVO_GGML_IQ2_S:
        tiny_half(block, value / 64.0f);
        break;
    case OCTAVO_GGML_IQ3_XXS:
        tiny_half(block, value / 128.0f);
        break;
    case OCTAVO_GGML_IQ3_S:
        tiny_half(block, value / 128.0f);
        break;
    case OCTAVO_GGML_IQ1_S:
        tiny_half(block, value / 8.0f);
        break;
    case OCTAVO_GGML_Q4_1:
    case OCTAVO_GGML_Q5_1:
        tiny_half(block, value / 8.0f);
        tiny_half(block + 2, -value * 2.0f);
        break;
    case OCTAVO_GGML_Q4_K:
    case OCTAVO_GGML_Q5_K:
        tiny_half(block, fabsf(value) / 256.0f);
        tiny_half(block + 2, fabsf(value) / 32.0f);
        break;
    case OCTAVO_GGML_Q2_K:
        tiny_half(block + 80, fabsf(value) / 16.0f);
        tiny_half(block + 82, fabsf(value) / 10.0f);
        break;
    case OCTAVO_GGML_MXFP4:
        block[0] = (uint8_t)(120 + block[0] % 3);
        break;
    case OCTAVO_GGML_NVFP4:
        for (int i = 0; i < 4; i++)
            block[i] = (uint8_t)(8 + block[i] % 16);
        break;
    case OCTAVO_GGML_IQ1_M:
        tiny_half(split, value / 8.0f);
        for (int i = 0; i < 4; i++)
            block[49 + 2 * i] =
                (uint8_t)((block[49 + 2 * i] & 15) | (split[i / 2] >> (i % 2 * 4) & 15) << 4);
        break;
    case OCTAVO_GGML_Q8_K: /* no type of weights */
        break;
    default:
        abort();
    }
}

static inline octavo_weight_type tiny_weight_type(octavo_ggml_type type) {
    for (int i = 0; i < OCTAVO_WEIGHT_TYPES; i++)
        if (strcasecmp(octavo_weight_info_of((octavo_weight_type)i)->name,
                       octavo_ggml_type_name(type)) == 0)
            return (octavo_weight_type)i;
    abort();
}

/* The values of n rows of k, which the caller frees. */
static inline float *tiny_expand(octavo_ggml_type type, const uint8_t *rows, size_t row_bytes,
                                 uint64_t k, uint64_t n) {
    const octavo_weight_type packed = tiny_weight_type(type);
    uint8_t *panel =
        aligned_alloc(64, (octavo_weight_panel_bytes(packed, (int64_t)k) + 63) / 64 * 64);
    float *values = malloc((size_t)(n * k) * sizeof *values);
    if (!panel || !values) abort();
    for (uint64_t i = 0; i < n; i++) {
        octavo_weight_pack(packed, panel, rows + i * row_bytes, row_bytes, 1, (int64_t)k);
        octavo_weight_unpack_row(packed, values + i * k, panel, 0, (int64_t)k);
    }
    free(panel);
    return values;
}

/* Writes the factors of a matrix, or where they are expanded multiplies its values by them. */
static inline void tiny_factors(tiny_writer *w, const char *name, uint64_t stack, float *values,
                                uint64_t n_values) {
    const uint64_t n = stack ? stack : 1;
    char scale[64];
    float factors[16];
    if (!w->options.has_factors || strncmp(name, "blk.", 4) != 0) return;
    if (n > 16) abort();
    for (uint64_t i = 0; i < n; i++)
        factors[i] = 1.5f + tiny_uniform(w);
    for (uint64_t i = 0; values && i < n_values * n; i++)
        values[i] *= factors[i / n_values];
    snprintf(scale, sizeof scale, "%.*s.scale", (int)(strstr(name, ".weight") - name), name);
    if (!values)
        gguf_writer_tensor(&w->file, scale, OCTAVO_GGML_F32, 1, &n, factors, n * sizeof *factors);
}

/* The stacks of gate and up [stack, n, k], of which the first is kept until the second comes. */
static inline void tiny_fused(tiny_writer *w, int layer, octavo_ggml_type type, uint64_t k,
                              uint64_t n, uint64_t stack, uint8_t *data, size_t bytes) {
    char name[64];
    if (!w->gate) {
        w->gate = data;
        return;
    }
    const size_t matrix = bytes / stack;
    uint8_t *both = malloc(2 * bytes);
    if (!both) abort();
    for (uint64_t e = 0; e < stack; e++) {
        memcpy(both + 2 * e * matrix, w->gate + e * matrix, matrix);
        memcpy(both + (2 * e + 1) * matrix, data + e * matrix, matrix);
    }
    snprintf(name, sizeof name, "blk.%d.ffn_gate_up_exps.weight", layer);
    gguf_writer_tensor(&w->file, name, type, 3, (uint64_t[]){k, 2 * n, stack}, both, 2 * bytes);
    free(both);
    free(data);
    free(w->gate);
    w->gate = NULL;
}

/* A stack as a tensor for each expert: "ffn_gate_exps.weight" becomes "ffn_gate.0.weight". */
static inline void tiny_apart(tiny_writer *w, const char *name, octavo_ggml_type type, uint64_t k,
                              uint64_t n, uint64_t stack, const uint8_t *data, size_t bytes) {
    const int length = (int)(strstr(name, "_exps") - name);
    for (uint64_t e = 0; e < stack; e++) {
        char one[80];
        snprintf(one, sizeof one, "%.*s.%d.weight", length, name, (int)e);
        if (w->options.leave_out && strcmp(w->options.leave_out, one) == 0) continue;
        gguf_writer_tensor(&w->file, one, type, 2, (uint64_t[]){k, n}, data + e * (bytes / stack),
                           bytes / stack);
    }
}

/* [stack, n, k], or with stack 0 [n, k] */
static inline void tiny_stack(tiny_writer *w, const char *name, octavo_ggml_type type, uint64_t k,
                              uint64_t n, uint64_t stack) {
    const octavo_ggml_type_info *info = octavo_ggml_type_lookup((uint32_t)type);
    const uint64_t rows = stack ? stack * n : n;
    const size_t row_bytes = (size_t)(k / info->block_values * info->block_bytes);
    const size_t bytes = row_bytes * (size_t)rows, block_bytes = info->block_bytes;
    const uint32_t n_dims = stack ? 3 : n > 1 ? 2 : 1;
    if (w->options.leave_out && strcmp(w->options.leave_out, name) == 0) return;
    uint8_t *data = malloc(bytes);
    if (!data) abort();
    for (size_t i = 0; i < bytes; i += block_bytes)
        tiny_block(w, type, data + i, block_bytes);
    if (w->options.is_expanded) {
        float *values = tiny_expand(type, data, row_bytes, k, rows);
        tiny_factors(w, name, stack, values, n * k);
        gguf_writer_tensor(&w->file, name, OCTAVO_GGML_F32, n_dims, (uint64_t[]){k, n, stack},
                           values, (size_t)(rows * k) * sizeof *values);
        free(values);
    } else if (w->options.expert_form == TINY_FUSED && strstr(name, "ffn_down") == NULL && stack) {
        tiny_fused(w, atoi(name + 4), type, k, n, stack, data, bytes);
        return;
    } else if (w->options.expert_form == TINY_APART && stack) {
        tiny_apart(w, name, type, k, n, stack, data, bytes);
    } else {
        tiny_factors(w, name, stack, NULL, 0);
        gguf_writer_tensor(&w->file, name, type, n_dims, (uint64_t[]){k, n, stack}, data, bytes);
    }
    free(data);
}

static inline void tiny_tensor(tiny_writer *w, const char *name, octavo_ggml_type type, uint64_t k,
                               uint64_t n) {
    tiny_stack(w, name, type, k, n, 0);
}

static inline void tiny_matrix(tiny_writer *w, int layer, const char *suffix, uint64_t k,
                               uint64_t n) {
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, suffix);
    tiny_tensor(w, name, w->options.types[w->next_type++ % w->options.n_types], k, n);
}

static inline void tiny_vector(tiny_writer *w, int layer, const char *suffix, uint64_t n) {
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", layer, suffix);
    if (w->options.leave_out && strcmp(w->options.leave_out, name) == 0) return;
    float *values = malloc(n * sizeof *values);
    if (!values) abort();
    for (uint64_t i = 0; i < n; i++)
        values[i] = 1.0f + 0.1f * tiny_uniform(w);
    gguf_writer_tensor(&w->file, name, OCTAVO_GGML_F32, 1, &n, values, (size_t)n * sizeof *values);
    free(values);
}

/* Matrices of experts take the types in turn by themselves. */
static inline void tiny_experts(tiny_writer *w, int layer) {
    static const char *const names[] = {"gate", "up", "down"};
    const uint64_t n_experts = (uint64_t)w->options.n_experts;
    const bool has_bias = strcmp(w->options.architecture, "gpt-oss") == 0;
    char name[64];
    snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", layer);
    tiny_tensor(w, name, OCTAVO_GGML_F32, TINY_D, n_experts);
    if (has_bias) tiny_vector(w, layer, "ffn_gate_inp.bias", n_experts);
    for (int i = 0; i < 3; i++) {
        const uint64_t k = i < 2 ? TINY_D : TINY_EXPERT, n = i < 2 ? TINY_EXPERT : TINY_D;
        snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", layer, names[i]);
        tiny_stack(w, name, w->options.types[w->next_stack_type++ % w->options.n_types], k, n,
                   n_experts);
        snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.bias", layer, names[i]);
        if (has_bias) tiny_tensor(w, name, OCTAVO_GGML_F32, n, n_experts);
    }
}

static inline void tiny_key_u32(tiny_writer *w, const char *suffix, uint32_t value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", w->options.architecture, suffix);
    gguf_writer_u32(&w->file, key, value);
}

static inline void tiny_metadata(tiny_writer *w) {
    char key[96];
    gguf_writer_string(&w->file, "general.architecture", w->options.architecture);
    tiny_key_u32(w, "block_count", (uint32_t)w->options.n_layers);
    tiny_key_u32(w, "embedding_length", TINY_D);
    tiny_key_u32(w, "feed_forward_length", TINY_FFW);
    tiny_key_u32(w, "attention.head_count", TINY_HEADS);
    tiny_key_u32(w, "attention.head_count_kv", TINY_KV_HEADS);
    tiny_key_u32(w, "attention.sliding_window", 24);
    tiny_key_u32(w, "attention.sliding_window_pattern", 2);
    tiny_key_u32(w, "context_length", (uint32_t)w->options.context);
    if (w->options.n_experts > 0) {
        tiny_key_u32(w, "expert_count", (uint32_t)w->options.n_experts);
        tiny_key_u32(w, "expert_used_count", 2);
        tiny_key_u32(w, "expert_feed_forward_length", TINY_EXPERT);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", w->options.architecture);
    gguf_writer_f32(&w->file, key, 1e-5f);
}

/* 256 bytes in the byte-level alphabet, then control tokens. */
static inline void tiny_vocabulary(tiny_writer *w) {
    const char *tokens[TINY_VOCAB], *merges[] = {"a b"};
    static char texts[TINY_VOCAB][16];
    int32_t types[TINY_VOCAB];
    int next = 256;
    for (int i = 0; i < TINY_VOCAB; i++) {
        bool is_plain = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || (i >= 174 && i <= 255);
        int code = i < 256 ? (is_plain ? i : next++) : 0;
        types[i] = i > 256 ? 3 : 1;
        tokens[i] = texts[i];
        if (i == 256)
            snprintf(texts[i], sizeof texts[i], "ab");
        else if (i > 256)
            snprintf(texts[i], sizeof texts[i], "<|x%d|>", i);
        else if (code < 128)
            snprintf(texts[i], sizeof texts[i], "%c", code);
        else
            snprintf(texts[i], sizeof texts[i], "%c%c", 0xc0 | code >> 6, 0x80 | (code & 63));
    }
    gguf_writer_string(&w->file, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(&w->file, "tokenizer.ggml.pre", "gpt-2");
    gguf_writer_strings(&w->file, "tokenizer.ggml.tokens", tokens, TINY_VOCAB);
    gguf_writer_i32s(&w->file, "tokenizer.ggml.token_type", types, TINY_VOCAB);
    gguf_writer_strings(&w->file, "tokenizer.ggml.merges", merges, 1);
    gguf_writer_u32(&w->file, "tokenizer.ggml.eos_token_id", TINY_VOCAB - 1);
}

static inline void tiny_layer(tiny_writer *w, int layer) {
    const uint64_t nh = TINY_HEADS * TINY_DIM, kh = TINY_KV_HEADS * TINY_DIM;
    const char *architecture = w->options.architecture;
    const bool is_gpt_oss = strcmp(architecture, "gpt-oss") == 0;
    tiny_vector(w, layer, "attn_norm.weight", TINY_D);
    tiny_vector(w, layer, is_gpt_oss ? "post_attention_norm.weight" : "ffn_norm.weight", TINY_D);
    tiny_matrix(w, layer, "attn_q", TINY_D, nh);
    tiny_matrix(w, layer, "attn_k", TINY_D, kh);
    tiny_matrix(w, layer, "attn_v", TINY_D, kh);
    tiny_matrix(w, layer, "attn_output", nh, TINY_D);
    if (w->options.n_experts > 0) {
        tiny_experts(w, layer);
    } else {
        tiny_matrix(w, layer, "ffn_gate", TINY_D, TINY_FFW);
        tiny_matrix(w, layer, "ffn_up", TINY_D, TINY_FFW);
        tiny_matrix(w, layer, "ffn_down", TINY_FFW, TINY_D);
    }
    if (is_gpt_oss) {
        tiny_vector(w, layer, "attn_output.bias", TINY_D);
        tiny_vector(w, layer, "attn_sinks.weight", TINY_HEADS);
    }
    if (is_gpt_oss || strcmp(architecture, "qwen2") == 0) {
        tiny_vector(w, layer, "attn_q.bias", nh);
        tiny_vector(w, layer, "attn_k.bias", kh);
        tiny_vector(w, layer, "attn_v.bias", kh);
    }
    const bool is_gemma = strcmp(architecture, "gemma3") == 0;
    if (is_gemma || strcmp(architecture, "qwen3moe") == 0) {
        tiny_vector(w, layer, "attn_q_norm.weight", TINY_DIM);
        tiny_vector(w, layer, "attn_k_norm.weight", TINY_DIM);
    }
    if (is_gemma) {
        tiny_vector(w, layer, "post_attention_norm.weight", TINY_D);
        tiny_vector(w, layer, "post_ffw_norm.weight", TINY_D);
    }
}

/* Writes the model to a new temporary file and puts its name in path [64]. The test unlinks it. */
static inline void tiny_model_write(const tiny_options *options, char *path) {
    tiny_writer w = {.options = *options, .random = 1};
    float norm[TINY_D];
    uint64_t d = TINY_D;
    for (int i = 0; i < TINY_D; i++)
        norm[i] = 1.0f;
    gguf_writer_init(&w.file, 3, 32);
    tiny_metadata(&w);
    tiny_vocabulary(&w);
    tiny_tensor(&w, "token_embd.weight", options->types[0], TINY_D, TINY_VOCAB);
    gguf_writer_tensor(&w.file, "output_norm.weight", OCTAVO_GGML_F32, 1, &d, norm, sizeof norm);
    for (int i = 0; i < options->n_layers; i++)
        tiny_layer(&w, i);
    if (options->add)
        gguf_writer_tensor(&w.file, options->add, OCTAVO_GGML_F32, 1, (uint64_t[]){1}, norm,
                           sizeof norm[0]);
    strcpy(path, "/tmp/octavo-tiny-XXXXXX");
    int file = mkstemp(path);
    if (file < 0) abort();
    close(file);
    if (!gguf_writer_save(&w.file, path)) abort();
    gguf_writer_deinit(&w.file);
}

#endif
