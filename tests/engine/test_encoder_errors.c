/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoders that lack something or contradict themselves, and what is asked of a model that it does
 * not have: a status and a message that names the culprit.
 */
#include "hf_bad.h"

#include "octavo/embed.h"

#include <sys/stat.h>

static const char BERT[] = TEST_DATA "/models/bert";

static const bad_config configs[] = {
    {"hidden_size", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"num_hidden_layers", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"num_attention_heads", "5", OCTAVO_ERROR_FORMAT, NULL},
    {"max_position_embeddings", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"type_vocab_size", "-1", OCTAVO_ERROR_FORMAT, NULL},
    {"type_vocab_size", "\"two\"", OCTAVO_ERROR_FORMAT, NULL},
    {"layer_norm_eps", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"hidden_act", "\"relu\"", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"position_embedding_type", "\"relative_key\"", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"position_embedding_type", "null", OCTAVO_OK, NULL},
    {"is_decoder", "true", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"is_decoder", "1", OCTAVO_ERROR_FORMAT, NULL},
    {"use_bidirectional_attention", "false", OCTAVO_ERROR_FORMAT, NULL},
    {"num_experts", "4", OCTAVO_ERROR_UNSUPPORTED, NULL},
};

static const bad_config modern_configs[] = {
    {"local_attention", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"global_attn_every_n_layers", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"norm_bias", "1", OCTAVO_ERROR_FORMAT, NULL},
    {"mlp_bias", "true", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"local_rope_theta", "-1", OCTAVO_ERROR_FORMAT, NULL},
    {"layer_types", "[\"full_attention\"]", OCTAVO_ERROR_FORMAT, NULL},
};

static const bad_config nomic_configs[] = {
    {"n_embd", "", OCTAVO_ERROR_NOT_FOUND, NULL},
    {"prenorm", "true", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"use_rms_norm", "true", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"rotary_emb_base", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"max_trained_positions", "0", OCTAVO_ERROR_FORMAT, NULL},
    {"activation_function", "\"relu\"", OCTAVO_ERROR_UNSUPPORTED, NULL},
    {"rotary_emb_fraction", "1.5", OCTAVO_ERROR_FORMAT, NULL},
};

static const bad_config shapes[] = {
    {"vocab_size", "255", OCTAVO_ERROR_FORMAT, "\"embeddings.word_embeddings.weight\""},
    {"max_position_embeddings", "193", OCTAVO_ERROR_FORMAT,
     "\"embeddings.position_embeddings.weight\""},
    {"type_vocab_size", "3", OCTAVO_ERROR_FORMAT, "\"embeddings.token_type_embeddings.weight\""},
    {"intermediate_size", "95", OCTAVO_ERROR_FORMAT,
     "\"encoder.layer.0.intermediate.dense.weight\""},
    {"num_hidden_layers", "4", OCTAVO_ERROR_NOT_FOUND,
     "\"encoder.layer.3.attention.self.query.weight\""},
};

static void test_configs(void **state) {
    (void)state;
    check_configs("bert", configs, OCTAVO_COUNT(configs), "config.json");
    check_configs("modernbert", modern_configs, OCTAVO_COUNT(modern_configs), "config.json");
    check_configs("nomic_bert", nomic_configs, OCTAVO_COUNT(nomic_configs), "config.json");
    check_configs("bert", shapes, OCTAVO_COUNT(shapes), "model.safetensors");
}

static void test_padding(void **state) {
    static const bad_config paddings[] = {
        {"pad_token_id", "191", OCTAVO_ERROR_FORMAT, "\"max_position_embeddings\""},
        {"pad_token_id", "-1", OCTAVO_ERROR_FORMAT, NULL},
    };
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(paddings); i++) {
        hf_maker maker;
        octavo_error error;
        hf_maker_start(&maker, "bert");
        hf_maker_set(&maker, "model_type", "\"roberta\"");
        hf_maker_set(&maker, paddings[i].key, paddings[i].json);
        hf_maker_write(&maker);
        refused(open_path(maker.path, &error), paddings[i].status, &error,
                paddings[i].culprit ? paddings[i].culprit : "\"pad_token_id\"", "config.json");
        hf_maker_end(&maker);
    }
}

/* Every tensor of the first two layers and of none. */
static int check_tensors(const char *from, const char *prefix) {
    hf_maker maker;
    const char *name;
    json_t *entry;
    int n = 0;
    hf_maker_start(&maker, from);
    json_object_foreach(maker.header, name, entry) {
        const char *layer = strstr(name, prefix);
        if (strcmp(name, "__metadata__") == 0 || strcmp(name, "pooler.dense.weight") == 0 ||
            (layer && layer[strlen(prefix)] > '1'))
            continue;
        check_tensor(from, name, name);
        n++;
    }
    hf_maker_end(&maker);
    return n;
}

/* The pooler may be away as a whole. */
static void test_tensors(void **state) {
    hf_maker maker;
    octavo_error error;
    (void)state;
    assert_int_equal(check_tensors("bert", "encoder.layer."), 5 + 2 * 16 + 1);
    assert_int_equal(check_tensors("nomic_bert", "encoder.layers."), 4 + 2 * 9);
    assert_int_equal(check_tensors("modernbert", "layers."), 3 + 5 + 6);
    hf_maker_start(&maker, "bert");
    hf_maker_rename(&maker, "pooler.dense.weight", "elsewhere");
    hf_maker_write(&maker);
    assert_int_equal(open_path(maker.path, &error), OCTAVO_OK);
    hf_maker_end(&maker);
}

/* ---- what is asked of a model ---- */

static octavo_model *open_model(const char *path) {
    octavo_model *model = NULL;
    octavo_error error;
    if (octavo_model_open(path, NULL, &model, &error)) fail_msg("%s", error.message);
    return model;
}

static void test_steps(void **state) {
    static const int32_t ids[] = {1, 2, 3}, types[] = {0, 1, 2}, low[] = {0, -1, 0};
    static float out[512];
    octavo_sequence *sequence = NULL;
    octavo_error error;
    (void)state;
    octavo_model *model = open_model(BERT);
    assert_int_equal(octavo_sequence_create(model, &sequence, &error), OCTAVO_OK);
    const octavo_step_input good = {
        .sequence = sequence, .ids = ids, .n_ids = 3, .want = OCTAVO_LOGITS_LAST, .hidden = out};
    octavo_step_input bad = good;
    bad.logits = out;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_UNSUPPORTED, &error, "logits",
            "\"bert\"");
    bad = good;
    bad.hidden = NULL;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error, "input 0", "");
    bad = good;
    bad.types = types;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error, "token type 2",
            "index 2");
    bad.types = low;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error,
            "token type -1", "index 1");
    refused(octavo_sequence_feed(sequence, ids, 3, OCTAVO_LOGITS_LAST, out, NULL, &error),
            OCTAVO_ERROR_UNSUPPORTED, &error, "logits", "encoder");
    assert_int_equal(octavo_sequence_length(sequence), 0);
    assert_int_equal(octavo_model_step(model, &good, 1, &error), OCTAVO_OK);
    refused(octavo_model_step(model, &good, 1, &error), OCTAVO_ERROR_INVALID, &error, "3 tokens",
            "whole");
    octavo_sequence_truncate(sequence, 0);
    assert_int_equal(octavo_model_step(model, &good, 1, &error), OCTAVO_OK);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);

    model = open_model(TEST_DATA "/models/llama_tied");
    assert_int_equal(octavo_sequence_create(model, &sequence, &error), OCTAVO_OK);
    bad = (octavo_step_input){
        .sequence = sequence, .ids = ids, .n_ids = 3, .pooled = out, .want = OCTAVO_LOGITS_LAST};
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_UNSUPPORTED, &error, "pooler",
            "\"llama\"");
    bad.pooled = NULL;
    bad.hidden = out;
    bad.types = types;
    refused(octavo_model_step(model, &bad, 1, &error), OCTAVO_ERROR_INVALID, &error, "token type 1",
            "has 0");
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
}

static void test_embedder(void **state) {
    static int32_t ids[200];
    static float out[512];
    octavo_embedder_options options;
    octavo_embedder *embedder = NULL;
    octavo_error error;
    (void)state;
    octavo_model *model = open_model(TEST_DATA "/models/llama_tied");
    octavo_embedder_options_init(&options);
    options.pooling = OCTAVO_POOLING_POOLER;
    refused(octavo_embedder_create(model, &options, &embedder, &error), OCTAVO_ERROR_UNSUPPORTED,
            &error, "pooler", "\"llama\"");
    options.pooling = (octavo_pooling)77;
    refused(octavo_embedder_create(model, &options, &embedder, &error), OCTAVO_ERROR_INVALID,
            &error, "arguments", "");
    options = (octavo_embedder_options){0};
    refused(octavo_embedder_create(model, &options, &embedder, &error), OCTAVO_ERROR_INVALID,
            &error, "arguments", "");
    assert_null(embedder);
    octavo_model_close(&model);

    model = open_model(BERT);
    assert_int_equal(octavo_embedder_create(model, NULL, &embedder, &error), OCTAVO_OK);
    octavo_embed_text texts[] = {{.ids = ids, .n_ids = 3, .out = out},
                                 {.ids = ids, .n_ids = 193, .out = out}};
    refused(octavo_embedder_run(embedder, texts, 2, &error), OCTAVO_ERROR_LIMIT, &error, "text 1",
            "context of 192");
    texts[1].n_ids = 0;
    refused(octavo_embedder_run(embedder, texts, 2, &error), OCTAVO_ERROR_INVALID, &error, "text 1",
            "");
    texts[1].n_ids = 2;
    ids[1] = 256;
    refused(octavo_embedder_run(embedder, texts, 2, &error), OCTAVO_ERROR_INVALID, &error,
            "token id 256", "255");
    ids[1] = 255;
    assert_int_equal(octavo_embedder_run(embedder, texts, 2, &error), OCTAVO_OK);
    octavo_embedder_destroy(&embedder);
    octavo_embedder_destroy(&embedder);
    octavo_model_close(&model);
}

/* ---- pooling as it stands beside a folder ---- */

static void check_pooling(const char *text, octavo_pooling want, octavo_status status) {
    char folder[300], file[320];
    hf_maker maker;
    octavo_error error;
    octavo_model *model = NULL;
    octavo_embedder *embedder = NULL;
    hf_maker_start(&maker, "bert");
    hf_maker_write(&maker);
    hf_maker_file(&maker, "1_Pooling", folder, sizeof folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    hf_maker_put_text(&maker, "1_Pooling/config.json", text);
    hf_maker_file(&maker, "1_Pooling/config.json", file, sizeof file);
    octavo_status got = octavo_model_open(maker.path, NULL, &model, &error);
    if (status) {
        refused(got, status, &error, "1_Pooling/config.json", "");
    } else {
        assert_int_equal(got, OCTAVO_OK);
        assert_int_equal(octavo_model_describe(model).pooling, want);
        got = octavo_embedder_create(model, NULL, &embedder, &error);
        if (want == OCTAVO_POOLING_AUTO)
            refused(got, OCTAVO_ERROR_UNSUPPORTED, &error, "pooling", "--pooling");
        else
            assert_int_equal(got, OCTAVO_OK);
        octavo_embedder_destroy(&embedder);
        octavo_model_close(&model);
    }
    unlink(file);
    rmdir(folder);
    hf_maker_end(&maker);
}

/* Layers behind the pooling are not computed, so what the model calls its vector is not to be had.
 */
static void test_dense(void **state) {
    char folder[300], file[320];
    hf_maker maker;
    octavo_error error;
    octavo_model *model = NULL;
    octavo_embedder *embedder = NULL;
    (void)state;
    hf_maker_start(&maker, "bert");
    hf_maker_write(&maker);
    hf_maker_file(&maker, "2_Dense", folder, sizeof folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    hf_maker_put_text(&maker, "2_Dense/config.json", "{}");
    hf_maker_file(&maker, "2_Dense/config.json", file, sizeof file);
    assert_int_equal(octavo_model_open(maker.path, NULL, &model, &error), OCTAVO_OK);
    refused(octavo_embedder_create(model, NULL, &embedder, &error), OCTAVO_ERROR_UNSUPPORTED,
            &error, "layers behind it", "--pooling");
    octavo_model_close(&model);
    unlink(file);
    rmdir(folder);
    hf_maker_end(&maker);
}

static void test_poolings(void **state) {
    (void)state;
    check_pooling("{}", OCTAVO_POOLING_MEAN, OCTAVO_OK);
    check_pooling("{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}",
                  OCTAVO_POOLING_CLS, OCTAVO_OK);
    check_pooling("{\"pooling_mode_cls_token\": false, \"pooling_mode_mean_tokens\": true}",
                  OCTAVO_POOLING_MEAN, OCTAVO_OK);
    check_pooling("{\"pooling_mode_lasttoken\": true}", OCTAVO_POOLING_LAST, OCTAVO_OK);
    check_pooling("{\"pooling_mode\": \"cls\"}", OCTAVO_POOLING_CLS, OCTAVO_OK);
    check_pooling("{\"pooling_mode\": \"max\"}", OCTAVO_POOLING_AUTO, OCTAVO_OK);
    check_pooling("{\"pooling_mode\": \"first\"}", OCTAVO_POOLING_AUTO, OCTAVO_OK);
    check_pooling("{\"pooling_mode_max_tokens\": true}", OCTAVO_POOLING_AUTO, OCTAVO_OK);
    check_pooling("{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true}",
                  OCTAVO_POOLING_AUTO, OCTAVO_OK);
    check_pooling("{\"pooling_mode_cls_token\": ", OCTAVO_POOLING_AUTO, OCTAVO_ERROR_FORMAT);
    check_pooling("[]", OCTAVO_POOLING_AUTO, OCTAVO_ERROR_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configs),  cmocka_unit_test(test_padding),
        cmocka_unit_test(test_tensors),  cmocka_unit_test(test_steps),
        cmocka_unit_test(test_embedder), cmocka_unit_test(test_poolings),
        cmocka_unit_test(test_dense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
