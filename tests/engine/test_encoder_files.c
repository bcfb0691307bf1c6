/* SPDX-License-Identifier: Apache-2.0
 *
 * One encoder in the forms that its kind is published in (names with a prefix, the older names of
 * norms, RoBERTa's positions, DistilBERT's names and keys, GGUF files): the same bits each time.
 */
#include "../gguf_writer.h"
#include "embed_golden.h"
#include "hf_maker.h"

static const char BERT[] = TEST_DATA "/models/bert";

enum { MAX_OUT = EMBED_PROMPTS * 64, CONTEXT = 192, WIDTH = 48, FFW = 96 };

/* Mean vectors of the goldens' prompts, with their token types or without. */
static void vectors_of(const char *path, bool has_types, float *out) {
    static embed_texts texts;
    octavo_model *model = embed_open(path, (embed_setting){.threads = 2});
    assert_in_range(octavo_model_describe(model).width, 1, 64);
    embed_read(BERT, &texts);
    for (size_t i = 0; i < EMBED_PROMPTS && !has_types; i++)
        texts.texts[i].types = NULL;
    embed_run(model, OCTAVO_POOLING_MEAN, texts.texts, EMBED_PROMPTS, out);
    octavo_model_close(&model);
}

static void same_as_bert(const char *path, bool has_types) {
    float want[MAX_OUT] = {0}, got[MAX_OUT] = {0};
    vectors_of(BERT, has_types, want);
    vectors_of(path, has_types, got);
    assert_memory_equal(got, want, sizeof want);
}

/* Renames every tensor; `to` gives the new name in `name` [size]. */
static void rename_all(hf_maker *maker, void (*to)(const char *from, char *name, size_t size)) {
    json_t *renamed = json_object(), *entry;
    const char *from;
    char name[160];
    json_object_foreach(maker->header, from, entry) {
        to(from, name, sizeof name);
        (void)json_object_set(renamed, strcmp(from, "__metadata__") ? name : from, entry);
    }
    json_decref(maker->header);
    maker->header = renamed;
}

/* `text` with `from`, which occurs at most once, replaced. */
static void replace(char *text, size_t size, const char *from, const char *with) {
    char copy[160];
    const char *at = strstr(text, from);
    if (!at) return;
    snprintf(copy, sizeof copy, "%.*s%s%s", (int)(at - text), text, with, at + strlen(from));
    snprintf(text, size, "%s", copy);
}

/* As a whole model with its head saves it. */
static void with_prefix(const char *from, char *name, size_t size) {
    snprintf(name, size, "%s%s", strncmp(from, "pooler.", 7) == 0 ? "unused." : "bert.", from);
}

/* As the first models were saved. */
static void with_gamma(const char *from, char *name, size_t size) {
    with_prefix(from, name, size);
    replace(name, size, "LayerNorm.weight", "LayerNorm.gamma");
    replace(name, size, "LayerNorm.bias", "LayerNorm.beta");
}

static void as_distilbert(const char *from, char *name, size_t size) {
    static const char *const names[][2] = {
        {"encoder.layer.", "transformer.layer."},
        {"attention.self.query", "attention.q_lin"},
        {"attention.self.key", "attention.k_lin"},
        {"attention.self.value", "attention.v_lin"},
        {"attention.output.dense", "attention.out_lin"},
        {"attention.output.LayerNorm", "sa_layer_norm"},
        {"intermediate.dense", "ffn.lin1"},
        {"output.dense", "ffn.lin2"},
        {"output.LayerNorm", "output_layer_norm"},
    };
    const bool is_unused = strncmp(from, "pooler.", 7) == 0 || strstr(from, "token_type");
    snprintf(name, size, "%s%s", is_unused ? "unused." : "distilbert.", from);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        replace(name, size, names[i][0], names[i][1]);
}

static void test_names(void **state) {
    hf_maker maker;
    (void)state;
    hf_maker_start(&maker, "bert");
    rename_all(&maker, with_prefix);
    hf_maker_write(&maker);
    same_as_bert(maker.path, true);
    hf_maker_end(&maker);
    hf_maker_start(&maker, "bert");
    rename_all(&maker, with_gamma);
    hf_maker_write(&maker);
    same_as_bert(maker.path, true);
    hf_maker_end(&maker);
}

/* ---- others, made from it ---- */

static float *floats_of(const hf_maker *maker, const char *name) {
    const json_t *offsets = json_object_get(json_object_get(maker->header, name), "data_offsets");
    assert_non_null(offsets);
    return (float *)(void *)(maker->data + json_integer_value(json_array_get(offsets, 0)));
}

/* A tensor of floats at the end of the data, in place of one of that name. */
static void put_floats(hf_maker *maker, const char *name, const float *values, int64_t rows,
                       int64_t columns) {
    const size_t bytes = (size_t)(rows * columns) * sizeof *values;
    uint8_t *data = malloc(maker->data_size + bytes);
    assert_non_null(data);
    memcpy(data, maker->data, maker->data_size);
    memcpy(data + maker->data_size, values, bytes);
    free(maker->data);
    maker->data = data;
    (void)json_object_set_new(maker->header, name,
                              json_pack("{s:s, s:[I, I], s:[I, I]}", "dtype", "F32", "shape",
                                        (json_int_t)rows, (json_int_t)columns, "data_offsets",
                                        (json_int_t)maker->data_size,
                                        (json_int_t)(maker->data_size + bytes)));
    maker->data_size += bytes;
}

/* Two more rows of positions before the others, which no text reads. */
static void test_roberta(void **state) {
    static const char *const types[] = {"\"roberta\"", "\"xlm-roberta\"", "\"camembert\""};
    static const char *const name = "embeddings.position_embeddings.weight";
    static float rows[(2 + CONTEXT) * WIDTH];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        hf_maker maker;
        octavo_model *model;
        hf_maker_start(&maker, "bert");
        for (int j = 0; j < 2 * WIDTH; j++)
            rows[j] = NAN;
        memcpy(rows + 2 * WIDTH, floats_of(&maker, name), CONTEXT * WIDTH * sizeof *rows);
        (void)json_object_set_new(maker.header, "__metadata__", json_object());
        hf_maker_rename(&maker, name, "elsewhere");
        put_floats(&maker, name, rows, 2 + CONTEXT, WIDTH);
        hf_maker_set(&maker, "model_type", types[i]);
        hf_maker_set(&maker, "pad_token_id", "1");
        hf_maker_set(&maker, "max_position_embeddings", "194");
        hf_maker_write(&maker);
        model = embed_open(maker.path, (embed_setting){0});
        assert_int_equal(octavo_model_describe(model).context, CONTEXT);
        octavo_model_close(&model);
        same_as_bert(maker.path, true);
        hf_maker_end(&maker);
    }
}

/* What BERT adds for type 0 is in the table of positions. */
static void test_distilbert(void **state) {
    static const char *const keys[][2] = {{"num_hidden_layers", "n_layers"},
                                          {"hidden_size", "dim"},
                                          {"intermediate_size", "hidden_dim"},
                                          {"num_attention_heads", "n_heads"},
                                          {"hidden_act", "activation"}};
    static const char *const positions = "embeddings.position_embeddings.weight";
    float want[MAX_OUT] = {0}, got[MAX_OUT] = {0};
    hf_maker maker;
    (void)state;
    hf_maker_start(&maker, "bert");
    const float *type = floats_of(&maker, "embeddings.token_type_embeddings.weight");
    float *rows = floats_of(&maker, positions);
    for (int i = 0; i < CONTEXT * WIDTH; i++)
        rows[i] += type[i % WIDTH];
    rename_all(&maker, as_distilbert);
    for (size_t i = 0; i < 5; i++) {
        (void)json_object_set(maker.config, keys[i][1], json_object_get(maker.config, keys[i][0]));
        (void)json_object_del(maker.config, keys[i][0]);
    }
    (void)json_object_del(maker.config, "type_vocab_size");
    (void)json_object_del(maker.config, "layer_norm_eps");
    hf_maker_set(&maker, "model_type", "\"distilbert\"");
    hf_maker_write(&maker);
    vectors_of(BERT, false, want);
    vectors_of(maker.path, false, got);
    for (int i = 0; i < EMBED_PROMPTS * WIDTH; i++)
        assert_true(fabsf(got[i] - want[i]) < 1e-4f); /* sums in another order */
    octavo_model *model = NULL;
    octavo_error error;
    (void)json_object_del(maker.config, "dim");
    hf_maker_write(&maker);
    assert_int_equal(octavo_model_open(maker.path, NULL, &model, &error), OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"dim\""));
    hf_maker_end(&maker);
}

/* ---- GGUF ---- */

static void put_tensor(gguf_writer *file, const hf_maker *maker, const char *from, const char *to) {
    const json_t *entry = json_object_get(maker->header, from);
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const size_t n = json_array_size(shape);
    uint64_t extent[2] = {0};
    assert_in_range(n, 1, 2);
    for (size_t i = 0; i < n; i++)
        extent[n - 1 - i] = (uint64_t)json_integer_value(json_array_get(shape, i));
    const json_int_t begin = json_integer_value(json_array_get(offsets, 0));
    const json_int_t end = json_integer_value(json_array_get(offsets, 1));
    gguf_writer_tensor(file, to, OCTAVO_GGML_F32, (uint32_t)n, extent, maker->data + begin,
                       (size_t)(end - begin));
}

static void put_pair(gguf_writer *file, const hf_maker *maker, const char *from, const char *to) {
    static const char *const kinds[] = {"weight", "bias"};
    for (size_t i = 0; i < 2; i++) {
        char a[160], b[96];
        snprintf(a, sizeof a, "%s.%s", from, kinds[i]);
        snprintf(b, sizeof b, "%s.%s", to, kinds[i]);
        put_tensor(file, maker, a, b);
    }
}

static void put_layer(gguf_writer *file, const hf_maker *maker, int layer) {
    static const char *const names[][2] = {
        {"attention.self.query", "attn_q"},
        {"attention.self.key", "attn_k"},
        {"attention.self.value", "attn_v"},
        {"attention.output.dense", "attn_output"},
        {"attention.output.LayerNorm", "attn_output_norm"},
        {"intermediate.dense", "ffn_up"},
        {"output.dense", "ffn_down"},
        {"output.LayerNorm", "layer_output_norm"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[128], to[64];
        snprintf(from, sizeof from, "encoder.layer.%d.%s", layer, names[i][0]);
        snprintf(to, sizeof to, "blk.%d.%s", layer, names[i][1]);
        put_pair(file, maker, from, to);
    }
}

static void put_vocabulary(gguf_writer *file) {
    static char names[256][16];
    static const char *tokens[256];
    static float scores[256];
    for (int i = 0; i < 256; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        tokens[i] = names[i];
    }
    gguf_writer_string(file, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(file, "tokenizer.ggml.tokens", tokens, 256);
    gguf_writer_f32s(file, "tokenizer.ggml.scores", scores, 256);
}

typedef struct bert_gguf {
    uint32_t pooling;
    bool is_causal;
    const char *leave_out; /* a table, or NULL */
} bert_gguf;

static void write_gguf(const char *path, bert_gguf options) {
    static const char *const tables[][2] = {
        {"embeddings.word_embeddings.weight", "token_embd.weight"},
        {"embeddings.position_embeddings.weight", "position_embd.weight"},
        {"embeddings.token_type_embeddings.weight", "token_types.weight"},
    };
    hf_maker maker;
    gguf_writer file;
    hf_maker_start(&maker, "bert");
    gguf_writer_init(&file, 3, 32);
    gguf_writer_string(&file, "general.architecture", "bert");
    gguf_writer_u32(&file, "bert.block_count", 3);
    gguf_writer_u32(&file, "bert.context_length", CONTEXT);
    gguf_writer_u32(&file, "bert.embedding_length", WIDTH);
    gguf_writer_u32(&file, "bert.feed_forward_length", FFW);
    gguf_writer_u32(&file, "bert.attention.head_count", 3);
    gguf_writer_f32(&file, "bert.attention.layer_norm_epsilon", 1e-12f);
    gguf_writer_bool(&file, "bert.attention.causal", options.is_causal);
    gguf_writer_u32(&file, "bert.pooling_type", options.pooling);
    put_vocabulary(&file);
    for (size_t i = 0; i < 3; i++)
        if (!options.leave_out || strcmp(options.leave_out, tables[i][1]) != 0)
            put_tensor(&file, &maker, tables[i][0], tables[i][1]);
    put_pair(&file, &maker, "embeddings.LayerNorm", "token_embd_norm");
    for (int i = 0; i < 3; i++)
        put_layer(&file, &maker, i);
    assert_true(gguf_writer_save(&file, path));
    gguf_writer_deinit(&file);
    hf_maker_end(&maker);
}

static void test_gguf(void **state) {
    static const octavo_pooling poolings[] = {OCTAVO_POOLING_MEAN, OCTAVO_POOLING_MEAN,
                                              OCTAVO_POOLING_CLS, OCTAVO_POOLING_LAST,
                                              OCTAVO_POOLING_AUTO};
    char path[] = "/tmp/octavo-bert-XXXXXX";
    (void)state;
    close(mkstemp(path));
    for (uint32_t i = 0; i < 5; i++) {
        write_gguf(path, (bert_gguf){.pooling = i});
        octavo_model *model = embed_open(path, (embed_setting){0});
        const octavo_model_facts facts = octavo_model_describe(model);
        assert_int_equal(facts.pooling, poolings[i]);
        assert_true(facts.is_encoder && !facts.has_pooler);
        assert_int_equal(facts.token_types, 2);
        octavo_model_close(&model);
    }
    same_as_bert(path, true);
    unlink(path);
}

static void test_gguf_errors(void **state) {
    static const struct {
        bert_gguf options;
        octavo_status status;
        const char *culprit;
    } cases[] = {
        {{.is_causal = true}, OCTAVO_ERROR_FORMAT, "\"bert.attention.causal\""},
        {{.leave_out = "position_embd.weight"}, OCTAVO_ERROR_NOT_FOUND, "\"position_embd.weight\""},
        {{.leave_out = "token_embd.weight"}, OCTAVO_ERROR_NOT_FOUND, "\"token_embd.weight\""},
    };
    char path[] = "/tmp/octavo-bert-XXXXXX";
    (void)state;
    close(mkstemp(path));
    for (size_t i = 0; i < 3; i++) {
        octavo_model *model = NULL;
        octavo_error error;
        write_gguf(path, cases[i].options);
        assert_int_equal(octavo_model_open(path, NULL, &model, &error), cases[i].status);
        if (!strstr(error.message, cases[i].culprit) || !strstr(error.message, path))
            fail_msg("%s", error.message);
    }
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_roberta),
        cmocka_unit_test(test_distilbert),  cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_gguf_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
