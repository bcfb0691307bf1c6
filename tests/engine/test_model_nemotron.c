/* SPDX-License-Identifier: Apache-2.0
 *
 * Nemotron as a GGUF file, whose norms have their 1 already: the same bits as the folder that the
 * file is made of.
 */
#include "../gguf_writer.h"
#include "base/compiler.h"
#include "base/number.h"
#include "hf_bits.h"
#include "hf_maker.h"

static const struct {
    const char *hf, *gguf;
} names[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"model.norm.bias", "output_norm.bias"},
    {"lm_head.weight", "output.weight"},
    {"input_layernorm.weight", "attn_norm.weight"},
    {"input_layernorm.bias", "attn_norm.bias"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"post_attention_layernorm.bias", "ffn_norm.bias"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
};

static void name_of(const char *hf, char *gguf, size_t size) {
    int layer, used = 0;
    const bool is_layer = sscanf(hf, "model.layers.%d.%n", &layer, &used) == 1 && used > 0;
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        if (strcmp(hf + (is_layer ? used : 0), names[i].hf) != 0) continue;
        if (is_layer)
            snprintf(gguf, size, "blk.%d.%s", layer, names[i].gguf);
        else
            snprintf(gguf, size, "%s", names[i].gguf);
        return;
    }
    fail_msg("no name for %s", hf);
}

/* Matrices stay BF16; vectors become F32. */
static void put_tensor(gguf_writer *to, const hf_maker *from, const char *name,
                       const json_t *entry) {
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *places = json_object_get(entry, "data_offsets");
    const uint8_t *data = from->data + json_integer_value(json_array_get(places, 0));
    const uint64_t rows = (uint64_t)json_integer_value(json_array_get(shape, 0));
    const float more = strstr(name, "norm.weight") ? 1.0f : 0.0f;
    char gguf[100];
    float values[256];
    name_of(name, gguf, sizeof gguf);
    if (json_array_size(shape) == 2) {
        const uint64_t columns = (uint64_t)json_integer_value(json_array_get(shape, 1));
        gguf_writer_tensor(to, gguf, OCTAVO_GGML_BF16, 2, (uint64_t[]){columns, rows}, data,
                           (size_t)(rows * columns) * 2);
        return;
    }
    assert_in_range(rows, 1, OCTAVO_COUNT(values));
    for (uint64_t i = 0; i < rows; i++) {
        uint16_t half;
        memcpy(&half, data + 2 * i, 2);
        values[i] = octavo_bf16_to_f32(half) + more;
    }
    gguf_writer_tensor(to, gguf, OCTAVO_GGML_F32, 1, &rows, values, (size_t)rows * sizeof *values);
}

static void put_metadata(gguf_writer *to) {
    enum { N = 224 };
    static char texts[N][16];
    static const float scores[N];
    const char *tokens[N];
    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "t%d", i);
        tokens[i] = texts[i];
    }
    gguf_writer_string(to, "general.architecture", "nemotron");
    gguf_writer_u32(to, "nemotron.block_count", 3);
    gguf_writer_u32(to, "nemotron.context_length", 640);
    gguf_writer_u32(to, "nemotron.embedding_length", 48);
    gguf_writer_u32(to, "nemotron.feed_forward_length", 96);
    gguf_writer_u32(to, "nemotron.attention.head_count", 4);
    gguf_writer_u32(to, "nemotron.attention.head_count_kv", 2);
    gguf_writer_u32(to, "nemotron.rope.dimension_count", 6);
    gguf_writer_f32(to, "nemotron.attention.layer_norm_epsilon", 1e-5f);
    gguf_writer_string(to, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(to, "tokenizer.ggml.tokens", tokens, N);
    gguf_writer_f32s(to, "tokenizer.ggml.scores", scores, N);
}

static void test_gguf(void **state) {
    static float want[HF_N_IDS * HF_MAX_VOCABULARY], got[HF_N_IDS * HF_MAX_VOCABULARY];
    char path[] = "/tmp/octavo-nemotron-XXXXXX";
    hf_maker from;
    gguf_writer to;
    const char *name;
    json_t *entry;
    (void)state;
    hf_maker_start(&from, "nemotron");
    gguf_writer_init(&to, 3, 32);
    put_metadata(&to);
    json_object_foreach(from.header, name, entry) {
        if (strcmp(name, "__metadata__") != 0) put_tensor(&to, &from, name, entry);
    }
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_true(gguf_writer_save(&to, path));
    gguf_writer_deinit(&to);
    hf_maker_end(&from);
    for (int p = 0; p < 2; p++) {
        const hf_setting s = {p ? OCTAVO_PRECISION_FAST : OCTAVO_PRECISION_EXACT, 1, 512, 16};
        const int32_t n = hf_run(TEST_DATA "/models/nemotron", s, want);
        assert_int_equal(hf_run(path, s, got), n);
        assert_memory_equal(got, want, sizeof *want * HF_N_IDS * (size_t)n);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gguf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
