/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention in GGUF files: what leads out of the latent in one matrix, as older files have
 * it, or in two; in floats the same as the folder that the file is made of, in codes the same as
 * the values that they stand for; and files that lack something or contradict themselves.
 */
#include "../gguf_writer.h"
#include "base/compiler.h"
#include "base/number.h"
#include "hf_bits.h"
#include "hf_maker.h"
#include "kernels/weight_quantize.h"

#include "octavo/inspect.h"
#include "octavo/template.h"

/* The sizes of tests/data/models/deepseek_v2. */
enum { LAYERS = 2, D = 64, HEADS = 4, RANK = 32, KEY = 32, ROPE = 16, VALUE = 24, EXPERTS = 8 };

typedef struct settings {
    octavo_ggml_type type; /* of matrices whose rows are whole blocks */
    bool is_split;         /* k_b and v_b, and metadata as in newer files */
    bool is_expanded;      /* the same values, in F32 */
    const char *leave_out; /* a tensor or a key, or NULL */
    const char *bend;      /* a tensor that gets a row less, or a key that gets `number` */
    uint32_t number;
} settings;

typedef struct converter {
    hf_maker from;
    gguf_writer to;
    settings with;
} converter;

/* ---- tensors ---- */

/* Values of a tensor of the folder, which is BF16; *n of them. */
static float *values_of(const converter *c, const char *name, size_t *n) {
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

static octavo_weight_type packed_type(octavo_ggml_type type) {
    return type == OCTAVO_GGML_Q8_0   ? OCTAVO_WEIGHT_Q8_0
           : type == OCTAVO_GGML_Q4_0 ? OCTAVO_WEIGHT_Q4_0
                                      : OCTAVO_WEIGHT_BF16;
}

/* What the rows' codes stand for, in place of them. */
static void expand(octavo_weight_type type, const uint8_t *rows, size_t row_bytes, float *values,
                   uint64_t n, uint64_t k) {
    _Alignas(64) static uint8_t panel[1 << 16];
    assert_true(octavo_weight_panel_bytes(type, (int64_t)k) <= sizeof panel);
    for (uint64_t i = 0; i < n; i++) {
        octavo_weight_pack(type, panel, rows + i * row_bytes, row_bytes, 1, (int64_t)k);
        octavo_weight_unpack_row(type, values + i * k, panel, 0, (int64_t)k);
    }
}

/* [stack, n, k], with stack 0 [n, k], with n 0 [k]; vectors are F32. */
static void put(converter *c, const char *name, float *values, uint64_t stack, uint64_t n,
                uint64_t k) {
    const uint32_t n_dims = stack ? 3 : n ? 2 : 1;
    if (c->with.bend && strcmp(c->with.bend, name) == 0) *(n ? &n : &k) -= 1;
    const uint64_t rows = (stack ? stack : 1) * (n ? n : 1);
    const octavo_weight_type type = packed_type(c->with.type);
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
static void copy(converter *c, const char *from, const char *to, uint64_t n) {
    size_t all;
    float *values = values_of(c, from, &all);
    put(c, to, values, 0, n, n ? all / n : all);
    free(values);
}

static void copy_experts(converter *c, int layer, const char *from, const char *to, uint64_t n) {
    float *stack = NULL;
    size_t all = 0;
    char name[100];
    for (size_t e = 0; e < EXPERTS; e++) {
        snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%zu.%s.weight", layer, e, from);
        float *values = values_of(c, name, &all);
        stack = realloc(stack, EXPERTS * all * sizeof *stack);
        assert_non_null(stack);
        memcpy(stack + e * all, values, all * sizeof *stack);
        free(values);
    }
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, to);
    put(c, name, stack, EXPERTS, n, all / n);
    free(stack);
}

/* Newer files: keys with their axes swapped, values as they are. */
static void split(converter *c, int layer) {
    static float keys[HEADS * RANK * KEY], rows[HEADS * VALUE * RANK];
    char name[100];
    size_t all;
    snprintf(name, sizeof name, "model.layers.%d.self_attn.kv_b_proj.weight", layer);
    float *values = values_of(c, name, &all);
    assert_int_equal(all, HEADS * (KEY + VALUE) * RANK);
    for (int h = 0; h < HEADS; h++) {
        const float *head = values + h * (KEY + VALUE) * RANK;
        for (int r = 0; r < RANK; r++)
            for (int i = 0; i < KEY; i++)
                keys[(h * RANK + r) * KEY + i] = head[i * RANK + r];
        memcpy(rows + h * VALUE * RANK, head + KEY * RANK, VALUE * RANK * sizeof *rows);
    }
    free(values);
    snprintf(name, sizeof name, "blk.%d.attn_k_b.weight", layer);
    put(c, name, keys, HEADS, RANK, KEY);
    snprintf(name, sizeof name, "blk.%d.attn_v_b.weight", layer);
    put(c, name, rows, HEADS, VALUE, RANK);
}

static void put_layer(converter *c, int layer) {
    static const struct {
        const char *from, *to;
        uint64_t n;
        int in; /* layers of which kind: 0 all, 1 the dense first, 2 the others */
    } list[] = {
        {"input_layernorm.weight", "attn_norm.weight", 0, 0},
        {"post_attention_layernorm.weight", "ffn_norm.weight", 0, 0},
        {"self_attn.q_proj.weight", "attn_q.weight", HEADS * (KEY + ROPE), 0},
        {"self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight", RANK + ROPE, 0},
        {"self_attn.kv_a_proj_with_mqa.bias", "attn_kv_a_mqa.bias", 0, 0},
        {"self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight", 0, 0},
        {"self_attn.o_proj.weight", "attn_output.weight", D, 0},
        {"self_attn.o_proj.bias", "attn_output.bias", 0, 0},
        {"mlp.gate_proj.weight", "ffn_gate.weight", 64, 1},
        {"mlp.up_proj.weight", "ffn_up.weight", 64, 1},
        {"mlp.down_proj.weight", "ffn_down.weight", D, 1},
        {"mlp.gate.weight", "ffn_gate_inp.weight", EXPERTS, 2},
        {"mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight", 64, 2},
        {"mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight", 64, 2},
        {"mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight", D, 2},
    };
    char from[100], to[100];
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        snprintf(from, sizeof from, "model.layers.%d.%s", layer, list[i].from);
        snprintf(to, sizeof to, "blk.%d.%s", layer, list[i].to);
        if (list[i].in == 0 || list[i].in == (layer == 0 ? 1 : 2)) copy(c, from, to, list[i].n);
    }
    snprintf(from, sizeof from, "model.layers.%d.self_attn.kv_b_proj.weight", layer);
    snprintf(to, sizeof to, "blk.%d.attn_kv_b.weight", layer);
    if (c->with.is_split)
        split(c, layer);
    else
        copy(c, from, to, HEADS * (KEY + VALUE));
    if (layer == 0) return;
    copy_experts(c, layer, "gate_proj", "ffn_gate_exps", 32);
    copy_experts(c, layer, "up_proj", "ffn_up_exps", 32);
    copy_experts(c, layer, "down_proj", "ffn_down_exps", D);
}

/* ---- the file ---- */

static void put_metadata(converter *c) {
    const bool is_new = c->with.is_split;
    const struct {
        const char *key;
        uint32_t value;
        bool is_there;
    } list[] = {
        {"deepseek2.block_count", LAYERS, true},
        {"deepseek2.context_length", 640, true},
        {"deepseek2.embedding_length", D, true},
        {"deepseek2.feed_forward_length", 64, true},
        {"deepseek2.attention.head_count", HEADS, true},
        {"deepseek2.attention.head_count_kv", is_new ? 1 : HEADS, true},
        {"deepseek2.attention.kv_lora_rank", RANK, true},
        {"deepseek2.attention.key_length", is_new ? RANK + ROPE : KEY + ROPE, true},
        {"deepseek2.attention.value_length", is_new ? RANK : VALUE, true},
        {"deepseek2.attention.key_length_mla", KEY + ROPE, is_new},
        {"deepseek2.attention.value_length_mla", VALUE, is_new},
        {"deepseek2.rope.dimension_count", ROPE, true},
        {"deepseek2.rope.scaling.original_context_length", 64, true},
        {"deepseek2.leading_dense_block_count", 1, true},
        {"deepseek2.expert_count", EXPERTS, true},
        {"deepseek2.expert_used_count", 2, true},
        {"deepseek2.expert_shared_count", 2, true},
        {"deepseek2.expert_feed_forward_length", 32, true},
        {"deepseek2.expert_gating_func", 1, true},
        {"deepseek2.expert_group_count", 4, true},
        {"deepseek2.expert_group_used_count", 1, true},
    };
    gguf_writer_string(&c->to, "general.architecture", "deepseek2");
    gguf_writer_string(&c->to, "deepseek2.rope.scaling.type", "yarn");
    gguf_writer_f32(&c->to, "deepseek2.rope.scaling.factor", 8.0f);
    gguf_writer_f32(&c->to, "deepseek2.rope.scaling.yarn_log_multiplier", 0.0707f);
    gguf_writer_f32(&c->to, "deepseek2.rope.freq_base", 10000.0f);
    gguf_writer_f32(&c->to, "deepseek2.attention.layer_norm_rms_epsilon", 1e-6f);
    gguf_writer_f32(&c->to, "deepseek2.expert_weights_scale", 2.0f);
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        const bool is_bent = c->with.bend && strcmp(c->with.bend, list[i].key) == 0;
        if (!list[i].is_there || (c->with.leave_out && strcmp(c->with.leave_out, list[i].key) == 0))
            continue;
        gguf_writer_u32(&c->to, list[i].key, is_bent ? c->with.number : list[i].value);
    }
}

static void put_vocabulary(converter *c) {
    static char texts[160][8];
    static const float scores[160];
    const char *tokens[160];
    for (int i = 0; i < 160; i++) {
        snprintf(texts[i], sizeof texts[i], "t%d", i);
        tokens[i] = texts[i];
    }
    gguf_writer_string(&c->to, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(&c->to, "tokenizer.ggml.tokens", tokens, 160);
    gguf_writer_f32s(&c->to, "tokenizer.ggml.scores", scores, 160);
}

/* Writes the folder as a GGUF file and puts its name in path [64]. The test unlinks it. */
static void convert(settings with, char *path) {
    converter c = {.with = with};
    hf_maker_start(&c.from, "deepseek_v2");
    gguf_writer_init(&c.to, 3, 32);
    put_metadata(&c);
    put_vocabulary(&c);
    copy(&c, "model.embed_tokens.weight", "token_embd.weight", 160);
    copy(&c, "model.norm.weight", "output_norm.weight", 0);
    copy(&c, "lm_head.weight", "output.weight", 160);
    for (int i = 0; i < LAYERS; i++)
        put_layer(&c, i);
    strcpy(path, "/tmp/octavo-latent-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_true(gguf_writer_save(&c.to, path));
    gguf_writer_deinit(&c.to);
    hf_maker_end(&c.from);
}

static const hf_setting exact = {OCTAVO_PRECISION_EXACT, 1, 512, 16};
static float want[HF_N_IDS * HF_MAX_VOCABULARY], got[HF_N_IDS * HF_MAX_VOCABULARY];

static int32_t run(settings with, float *logits) {
    char path[64];
    convert(with, path);
    int32_t vocabulary = hf_run(path, exact, logits);
    unlink(path);
    return vocabulary;
}

static void expect_near(const char *what, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-4))
            fail_msg("%s: %g, not %g", what, (double)got[i], (double)want[i]);
}

static void test_floats(void **state) {
    (void)state;
    const int32_t n = HF_N_IDS * hf_run(TEST_DATA "/models/deepseek_v2", exact, want);
    assert_int_equal(HF_N_IDS * run((settings){.type = OCTAVO_GGML_BF16}, got), n);
    expect_near("one matrix", n);
    memcpy(want, got, sizeof want);
    run((settings){.type = OCTAVO_GGML_BF16, .is_split = true}, got);
    assert_memory_equal(got, want, (size_t)n * sizeof *want);
}

static void test_codes(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_Q8_0, OCTAVO_GGML_Q4_0};
    (void)state;
    for (int t = 0; t < 2; t++) {
        for (int is_split = 0; is_split < 2; is_split++) {
            settings with = {.type = types[t], .is_split = is_split, .is_expanded = true};
            const int32_t n = HF_N_IDS * run(with, want);
            with.is_expanded = false;
            run(with, got);
            expect_near(octavo_ggml_type_name(types[t]), n);
        }
    }
}

static void test_bits(void **state) {
    char path[64];
    (void)state;
    for (int is_split = 0; is_split < 2; is_split++) {
        convert((settings){.type = OCTAVO_GGML_Q8_0, .is_split = is_split}, path);
        hf_check_bits(path);
        unlink(path);
    }
}

/* ---- bad files ---- */

static void refused(settings with, octavo_status wanted, const char *culprit) {
    char path[64];
    octavo_model *model = NULL;
    octavo_error error;
    convert(with, path);
    octavo_status status = octavo_model_open(path, NULL, &model, &error);
    if (status != wanted || !strstr(error.message, culprit) || !strstr(error.message, path))
        fail_msg("status %s, message \"%s\"; wanted %s and \"%s\"", octavo_status_name(status),
                 error.message, octavo_status_name(wanted), culprit);
    assert_null(model);
    unlink(path);
}

static void test_tensors(void **state) {
    static const char *const names[] = {
        "blk.0.attn_q.weight",         "blk.1.attn_kv_a_mqa.weight",  "blk.1.attn_kv_a_norm.weight",
        "blk.1.attn_kv_b.weight",      "blk.0.attn_output.weight",    "blk.0.ffn_gate.weight",
        "blk.1.ffn_gate_shexp.weight", "blk.1.ffn_down_shexp.weight", "blk.1.ffn_gate_exps.weight",
    };
    static const char *const apart[] = {"blk.0.attn_k_b.weight", "blk.0.attn_v_b.weight"};
    settings with = {.type = OCTAVO_GGML_F32};
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        with.leave_out = names[i];
        with.bend = NULL;
        refused(with, OCTAVO_ERROR_NOT_FOUND, names[i]);
        with.leave_out = NULL;
        with.bend = names[i];
        refused(with, OCTAVO_ERROR_FORMAT, names[i]);
    }
    with.is_split = true;
    for (size_t i = 0; i < 2; i++) {
        with.leave_out = NULL;
        with.bend = apart[i];
        refused(with, OCTAVO_ERROR_FORMAT, apart[i]);
    }
    with.bend = NULL;
    with.leave_out = apart[1];
    refused(with, OCTAVO_ERROR_NOT_FOUND, apart[1]);
    with.leave_out = apart[0]; /* then it is a file of the older kind */
    refused(with, OCTAVO_ERROR_NOT_FOUND, "blk.0.attn_kv_b.weight");
}

static void test_metadata(void **state) {
    static const struct {
        const char *key;
        uint32_t number; /* 0: left out */
        octavo_status status;
    } list[] = {
        {"deepseek2.attention.kv_lora_rank", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.attention.kv_lora_rank", 577, OCTAVO_ERROR_FORMAT},
        {"deepseek2.attention.kv_lora_rank", 560, OCTAVO_ERROR_UNSUPPORTED},
        {"deepseek2.attention.key_length", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.attention.value_length", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.rope.dimension_count", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.rope.dimension_count", 48, OCTAVO_ERROR_FORMAT},
        {"deepseek2.rope.dimension_count", 15, OCTAVO_ERROR_UNSUPPORTED},
        {"deepseek2.expert_gating_func", 3, OCTAVO_ERROR_UNSUPPORTED},
        {"deepseek2.expert_group_count", 3, OCTAVO_ERROR_FORMAT},
        {"deepseek2.expert_group_used_count", 5, OCTAVO_ERROR_FORMAT},
        {"deepseek2.expert_used_count", 9, OCTAVO_ERROR_FORMAT},
        {"deepseek2.expert_feed_forward_length", 0, OCTAVO_ERROR_NOT_FOUND},
    };
    (void)state;
    refused((settings){.type = OCTAVO_GGML_F32, .bend = "deepseek2.expert_used_count", .number = 3},
            OCTAVO_ERROR_FORMAT, "deepseek2.expert_group_used_count");
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        settings with = {.type = OCTAVO_GGML_F32, .number = list[i].number};
        *(list[i].number ? &with.bend : &with.leave_out) = list[i].key;
        refused(with, list[i].status, list[i].key);
    }
}

/* The cache keeps the latent and what rotates, once for all heads. */
static void test_cache(void **state) {
    octavo_inspect_options options;
    octavo_error error;
    char path[64], *text = NULL;
    (void)state;
    convert((settings){.type = OCTAVO_GGML_F32}, path);
    octavo_model *model = hf_open(path, exact);
    const octavo_model_facts facts = octavo_model_describe(model);
    assert_int_equal(facts.kv_heads, 1);
    assert_int_equal(facts.head_width, RANK + ROPE);
    assert_int_equal(facts.position_bytes, LAYERS * (RANK + ROPE) * 4);
    octavo_model_close(&model);
    octavo_inspect_options_init(&options);
    options.with_program = true;
    hf_must(octavo_inspect(path, &options, &text, &error), &error);
    unlink(path);
    assert_non_null(strstr(text, "\"op\":\"head_matmul\""));
    assert_non_null(strstr(text, "\"value_lanes\":32"));
    assert_non_null(strstr(text, "\"groups\":4,\"chosen_groups\":1"));
    assert_non_null(strstr(text, "\"first_lane\":32"));
    octavo_text_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),   cmocka_unit_test(test_codes),
        cmocka_unit_test(test_bits),     cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_metadata), cmocka_unit_test(test_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
