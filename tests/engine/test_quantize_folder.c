/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo_quantize from Hugging Face folders: the GGUF file that comes out is the same model, to the
 * bit where GGUF keeps the order of its rows; its tokenizer makes the same ids; and what GGUF
 * cannot say is refused.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "formats/gguf.h"
#include "hf_maker.h"

#include "octavo/embed.h"
#include "octavo/model.h"
#include "octavo/quantize.h"
#include "octavo/tokenizer.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

enum { MAX_VOCAB = 4096, N_IDS = 40, MAX_IDS = 4096 };

static char out[] = "/tmp/octavo-folder-XXXXXX";

static int setup(void **state) {
    (void)state;
    const int fd = mkstemp(out);
    return fd < 0 || close(fd) != 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(out);
}

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

static octavo_status quantize(const char *in, const char *type, octavo_quantize_total *total,
                              octavo_error *error) {
    octavo_quantize_options options;
    octavo_quantize_options_init(&options);
    options.type = type;
    options.threads = 2;
    return octavo_quantize(in, out, &options, total, error);
}

static void embed(octavo_model *model, const int32_t *ids, float *vector) {
    octavo_embedder_options options;
    octavo_embedder *embedder = NULL;
    octavo_error error;
    octavo_embedder_options_init(&options);
    options.pooling = OCTAVO_POOLING_MEAN;
    const octavo_embed_text text = {.ids = ids, .n_ids = N_IDS, .out = vector};
    must(octavo_embedder_create(model, &options, &embedder, &error), &error);
    must(octavo_embedder_run(embedder, &text, 1, &error), &error);
    octavo_embedder_destroy(&embedder);
}

static void feed(octavo_model *model, const int32_t *ids, float *logits) {
    octavo_sequence *sequence = NULL;
    octavo_error error;
    must(octavo_sequence_create(model, &sequence, &error), &error);
    must(octavo_sequence_feed(sequence, ids, N_IDS, OCTAVO_LOGITS_LAST, logits, NULL, &error),
         &error);
    octavo_sequence_destroy(&sequence);
}

/* Logits after a prompt, or of an encoder the mean of its vectors; returns how many values. */
static int32_t run(const char *path, octavo_weights weights, float *out_values,
                   char *architecture) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_error error;
    int32_t ids[N_IDS];
    octavo_model_options_init(&options);
    options.precision = OCTAVO_PRECISION_EXACT;
    options.threads = 1;
    options.weights = weights;
    must(octavo_model_open(path, &options, &model, &error), &error);
    const octavo_model_facts facts = octavo_model_describe(model);
    snprintf(architecture, 32, "%s", facts.architecture);
    assert_in_range(facts.vocabulary, 1, MAX_VOCAB);
    for (int i = 0; i < N_IDS; i++)
        ids[i] = (i * 29 + 7) % facts.vocabulary;
    (facts.is_encoder ? embed : feed)(model, ids, out_values);
    octavo_model_close(&model);
    return facts.is_encoder ? (int32_t)facts.width : facts.vocabulary;
}

/* ---- every family ---- */

/* GGUF files of these rotate neighbours, so that products of q and k are summed in another order.
 */
static bool is_turned(const char *architecture) {
    static const char *const names[] = {"llama", "granite", "smollm3", "ministral3"};
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++)
        if (strcmp(architecture, names[i]) == 0) return true;
    return false;
}

static void compare(const char *path, octavo_weights weights, const char *type) {
    static float folder[MAX_VOCAB], file[MAX_VOCAB];
    char architecture[32];
    octavo_error error;
    must(quantize(path, type, NULL, &error), &error);
    (void)run(path, weights, folder, architecture);
    const int32_t n = run(out, OCTAVO_WEIGHTS_FILE, file, architecture);
    const bool is_exact = !is_turned(architecture) && !strstr(path, "_order");
    for (int32_t i = 0; i < n; i++) {
        const double off = fabs((double)folder[i] - (double)file[i]);
        if (!(off <= (is_exact ? 0.0 : 1e-3)))
            fail_msg("%s as %s: value %d is %g, from the folder %g", path, type, (int)i,
                     (double)file[i], (double)folder[i]);
    }
}

/* 1 for a model that GGUF can express. */
static int check_model(const char *path) {
    octavo_error error;
    octavo_status status = quantize(path, "F32", NULL, &error);
    if (status == OCTAVO_ERROR_UNSUPPORTED) {
        print_message("%s\n", error.message);
        return 0;
    }
    must(status, &error);
    compare(path, OCTAVO_WEIGHTS_F32, "F32");
    /* of inputs in another order other ones share a block */
    if (!strstr(path, "_order")) compare(path, OCTAVO_WEIGHTS_Q8, "Q8_0");
    return 1;
}

static int check_models(const char *folder) {
    int n = 0;
    DIR *all = opendir(folder);
    if (!all) fail_msg("%s cannot be read", folder);
    for (struct dirent *one = readdir(all); one; one = readdir(all)) {
        char path[512];
        if (strchr(one->d_name, '.')) continue; /* folders have no dot */
        snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        n += check_model(path);
    }
    closedir(all);
    return n;
}

static void test_every_family(void **state) {
    const char *oracle = getenv("OCTAVO_ORACLE");
    char path[512];
    (void)state;
    assert_true(check_models(TEST_DATA "/models") >= 10);
    if (!oracle) return;
    snprintf(path, sizeof path, "%s/models", oracle);
    assert_true(check_models(path) >= 24);
}

/* config.json in its variants. */
static void check_variant(const char *from, const char *const (*set)[2], size_t n) {
    hf_maker maker;
    hf_maker_start(&maker, from);
    for (size_t i = 0; i < n; i++)
        hf_maker_set(&maker, set[i][0], set[i][1]);
    hf_maker_write(&maker);
    compare(maker.path, OCTAVO_WEIGHTS_F32, "F32");
    hf_maker_end(&maker);
}

static void test_variants(void **state) {
    static const char *const linear[][2] = {
        {"rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 4.0}"}};
    static const char *const llama3[][2] = {
        {"rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
                         "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64}"}};
    static const char *const yarn[][2] = {
        {"rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 4.0, \"beta_fast\": 20, "
                         "\"attention_factor\": 0.7, \"original_max_position_embeddings\": 64}"}};
    static const char *const mistral[][2] = {{"model_type", "\"mistral\""},
                                             {"sliding_window", "8"}};
    static const char *const olmo3[][2] = {{"model_type", "\"olmo3\""}, {"sliding_window", "8"}};
    (void)state;
    check_variant("llama_tied", linear, 1);
    check_variant("llama_tied", llama3, 1);
    check_variant("llama_tied", yarn, 1);
    check_variant("llama_tied", mistral, 2);
    check_variant("olmo2", olmo3, 2);
}

/* ---- tokenizers ---- */

enum { TOKENS = 1300, WIDTH = 48 };

/* More rows of the embedding, for the tokenizers of tests/data. */
static void widen(hf_maker *maker) {
    const size_t bytes = (size_t)TOKENS * WIDTH * 2;
    json_t *embed = json_object_get(maker->header, "model.embed_tokens.weight");
    maker->data = realloc(maker->data, maker->data_size + bytes);
    assert_non_null(maker->data);
    for (size_t i = 0; i < bytes; i++)
        maker->data[maker->data_size + i] = maker->data[i % 20000];
    json_object_set_new(maker->header, "unused", json_deep_copy(embed));
    json_object_set_new(embed, "shape", json_pack("[i, i]", TOKENS, WIDTH));
    json_object_set_new(
        embed, "data_offsets",
        json_pack("[I, I]", (json_int_t)maker->data_size, (json_int_t)(maker->data_size + bytes)));
    maker->data_size += bytes;
    hf_maker_set(maker, "vocab_size", "1300");
}

static void copy_file(const hf_maker *maker, const char *tokenizer, const char *name) {
    char path[300];
    json_error_t why;
    snprintf(path, sizeof path, TEST_DATA "/tokenizers/%s/%s", tokenizer, name);
    json_t *json = json_load_file(path, 0, &why);
    if (!json) fail_msg("%s: %s", path, why.text);
    hf_maker_put_json(maker, name, json);
    json_decref(json);
}

static void make_folder(hf_maker *maker, const char *tokenizer) {
    hf_maker_start(maker, "llama_tied");
    widen(maker);
    hf_maker_write(maker);
    copy_file(maker, tokenizer, "tokenizer.json");
    copy_file(maker, tokenizer, "tokenizer_config.json");
}

static void compare_line(const octavo_tokenizer *a, const octavo_tokenizer *b, const char *text,
                         size_t length) {
    static int32_t x[MAX_IDS], y[MAX_IDS];
    const unsigned flags = OCTAVO_ENCODE_BEGIN_END | OCTAVO_ENCODE_SPECIAL_TEXT;
    size_t n_x, n_y;
    octavo_error error;
    must(octavo_tokenizer_encode(a, text, length, flags, x, MAX_IDS, &n_x, &error), &error);
    must(octavo_tokenizer_encode(b, text, length, flags, y, MAX_IDS, &n_y, &error), &error);
    if (n_x != n_y || n_x > MAX_IDS || memcmp(x, y, n_x * sizeof *x) != 0)
        fail_msg("\"%.*s\": not the same ids", (int)length, text);
}

static void check_tokenizer(const char *name, const char *pre) {
    char path[300], *line = NULL;
    size_t room = 0;
    int n = 0;
    hf_maker maker;
    octavo_error error;
    octavo_tokenizer *folder = NULL, *file = NULL;
    octavo_gguf *gguf = NULL;
    octavo_gguf_string value;
    make_folder(&maker, name);
    must(quantize(maker.path, "Q8_0", NULL, &error), &error);
    must(octavo_tokenizer_open(maker.path, &folder, &error), &error);
    must(octavo_tokenizer_open(out, &file, &error), &error);
    must(octavo_gguf_open(out, &gguf, &error), &error);
    must(octavo_gguf_get_string_or(gguf, "tokenizer.ggml.pre", "", &value, &error), &error);
    assert_int_equal(value.size, strlen(pre));
    assert_memory_equal(value.data, pre, value.size);
    octavo_gguf_close(&gguf);
    assert_int_equal(octavo_tokenizer_size(file), TOKENS);
    if (strcmp(name, "wordpiece_bert") != 0) { /* of which the folder names none */
        assert_int_equal(octavo_tokenizer_eos(file), octavo_tokenizer_eos(folder));
        assert_int_equal(octavo_tokenizer_bos(file), octavo_tokenizer_bos(folder));
    }
    snprintf(path, sizeof path, TEST_DATA "/tokenizers/%s/encode.jsonl", name);
    FILE *texts = fopen(path, "r");
    assert_non_null(texts);
    while (getline(&line, &room, texts) > 0) {
        json_t *json = json_loads(line, JSON_ALLOW_NUL, NULL);
        const json_t *text = json_object_get(json, "text");
        if (!text) fail_msg("%s: line %d has no text", path, n + 1);
        compare_line(folder, file, json_string_value(text), json_string_length(text));
        json_decref(json);
        n++;
    }
    fclose(texts);
    free(line);
    assert_true(n >= 100);
    octavo_tokenizer_destroy(&folder);
    octavo_tokenizer_destroy(&file);
    hf_maker_end(&maker);
}

static void test_tokenizers(void **state) {
    (void)state;
    check_tokenizer("bpe_gpt2", "gpt-2");
    check_tokenizer("bpe_llama3", "llama-bpe");
    check_tokenizer("bpe_qwen2", "qwen2");
    check_tokenizer("spm_bpe_llama2", "");
    check_tokenizer("spm_bpe_gemma", "");
    check_tokenizer("wordpiece_bert", "");
}

static void test_chat_template(void **state) {
    hf_maker maker;
    octavo_error error;
    octavo_gguf *gguf = NULL;
    octavo_gguf_string value;
    (void)state;
    hf_maker_start(&maker, "llama_tied");
    hf_maker_write(&maker);
    hf_maker_put_text(&maker, "chat_template.jinja", "{{ messages }}\n");
    must(quantize(maker.path, "F16", NULL, &error), &error);
    must(octavo_gguf_open(out, &gguf, &error), &error);
    must(octavo_gguf_get_string(gguf, "tokenizer.chat_template", &value, &error), &error);
    assert_int_equal(value.size, strlen("{{ messages }}\n"));
    must(octavo_gguf_get_string(gguf, "tokenizer.ggml.model", &value, &error), &error);
    assert_memory_equal(value.data, "none", 4);
    octavo_gguf_close(&gguf);
    hf_maker_end(&maker);
}

/* ---- what cannot be said ---- */

static void refused(const char *path, octavo_status expected, const char *part) {
    struct stat before, after;
    octavo_error error;
    assert_int_equal(stat(out, &before), 0);
    octavo_status status = quantize(path, "Q8_0", NULL, &error);
    if (status != expected || !strstr(error.message, part) || !strstr(error.message, path))
        fail_msg("status %d, wanted %d; \"%s\" should say \"%s\" and \"%s\"", status, expected,
                 error.message, part, path);
    assert_int_equal(stat(out, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* what stood there is untouched */
}

static void refuse_variant(const char *from, const char *key, const char *value,
                           octavo_status expected, const char *part) {
    hf_maker maker;
    hf_maker_start(&maker, from);
    hf_maker_set(&maker, key, value);
    hf_maker_write(&maker);
    refused(maker.path, expected, part);
    hf_maker_end(&maker);
}

static void test_refused(void **state) {
    static const char *const tokenizers[] = {"spm_unigram"};
    hf_maker maker;
    (void)state;
    refuse_variant("llama4_scout", "no_rope_layers", "[1, 0, 0, 1]", OCTAVO_ERROR_UNSUPPORTED,
                   "cannot be said in a GGUF file of llama4");
    refuse_variant("llama_tied", "hidden_act", "\"gelu\"", OCTAVO_ERROR_UNSUPPORTED, "activation");
    refuse_variant("llama_tied", "model_type", "\"unheard_of\"", OCTAVO_ERROR_UNSUPPORTED,
                   "unheard_of");
    refuse_variant("llama_tied", "hidden_size", "", OCTAVO_ERROR_NOT_FOUND, "hidden_size");
    for (size_t i = 0; i < OCTAVO_COUNT(tokenizers); i++) {
        make_folder(&maker, tokenizers[i]);
        refused(maker.path, OCTAVO_ERROR_UNSUPPORTED, "tokenizer");
        hf_maker_end(&maker);
    }
}

/* The result may not be a file that is read. */
static void test_own_file(void **state) {
    static const char *const files[] = {"model.safetensors", "config.json"};
    hf_maker maker;
    octavo_error error;
    octavo_quantize_options options;
    (void)state;
    octavo_quantize_options_init(&options);
    options.type = "F16";
    hf_maker_start(&maker, "llama_tied");
    hf_maker_write(&maker);
    for (size_t i = 0; i < OCTAVO_COUNT(files); i++) {
        char path[300];
        hf_maker_file(&maker, files[i], path, sizeof path);
        assert_int_equal(octavo_quantize(maker.path, path, &options, NULL, &error),
                         OCTAVO_ERROR_INVALID);
        assert_non_null(strstr(error.message, "is the model that is read"));
    }
    hf_maker_end(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_family), cmocka_unit_test(test_variants),
        cmocka_unit_test(test_tokenizers),   cmocka_unit_test(test_chat_template),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_own_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
