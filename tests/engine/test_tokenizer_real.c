/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers of model files give the ids of the reference: the published vocabularies whose files
 * are in $OCTAVO_MODELS (a folder of .gguf) and $OCTAVO_ORACLE (the folder of reference data), and
 * the small models of the latter. Skipped where neither is set.
 */
#include "../text/token_golden.h"

static octavo_tokenizer *open_or_null(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    fclose(file);
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (octavo_tokenizer_open(path, &t, &error) != OCTAVO_OK)
        fail_msg("%s: %s", path, error.message);
    return t;
}

typedef struct real_vocabulary {
    const char *golden;
    const char *folder; /* environment variable */
    const char *file;   /* under that folder */
} real_vocabulary;

static const real_vocabulary vocabularies[] = {
    {"smollm2", "OCTAVO_MODELS", "smollm2-135m-q4_1.gguf"},
    {"qwen25c", "OCTAVO_MODELS", "qwen25c-0.5b-q4_k_m.gguf"},
    {"gemma3", "OCTAVO_MODELS", "gemma3-270m-q4_k_m.gguf"},
    {"gpt2", "OCTAVO_ORACLE", "tokenizers_real/ggml-vocab-gpt-2.gguf"},
    {"llama2", "OCTAVO_ORACLE", "tokenizers_real/ggml-vocab-llama-spm.gguf"},
    {"bert_bge", "OCTAVO_ORACLE", "tokenizers_real/ggml-vocab-bert-bge.gguf"},
    {"mistral_v3", "OCTAVO_ORACLE", "tokenizers_real/mistral_v3.model"},
};

static octavo_tokenizer *open_vocabulary(const real_vocabulary *v) {
    char path[600];
    const char *folder = getenv(v->folder);
    if (folder == NULL) return NULL;
    snprintf(path, sizeof(path), "%s/%s", folder, v->file);
    return open_or_null(path);
}

static void test_goldens(void **state) {
    (void)state;
    const char *oracle = getenv("OCTAVO_ORACLE");
    size_t ran = 0;
    if (oracle == NULL) skip();
    for (size_t i = 0; i < sizeof(vocabularies) / sizeof(vocabularies[0]); i++) {
        const real_vocabulary *v = &vocabularies[i];
        octavo_tokenizer *t = open_vocabulary(v);
        if (t == NULL) continue;
        char path[600];
        snprintf(path, sizeof(path), "%s/tokenizers_real/%s.encode.jsonl", oracle, v->golden);
        assert_true(golden_run(t, path, golden_check_line) >= 148);
        snprintf(path, sizeof(path), "%s/tokenizers_real/%s.stream.jsonl", oracle, v->golden);
        bool has_stream = strcmp(v->golden, "bert_bge") != 0;
        assert_true(golden_run(t, path, golden_check_stream) >= (has_stream ? 40 : 0));
        octavo_tokenizer_destroy(&t);
        ran++;
    }
    if (ran == 0) skip();
}

static void test_real_prompts(void **state) {
    (void)state;
    static const char *const names[] = {"smollm2-135m-q4_1", "gemma3-270m-q4_k_m",
                                        "qwen25c-0.5b-q4_k_m"};
    size_t ran = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[600];
        if (getenv("OCTAVO_MODELS") == NULL || getenv("OCTAVO_ORACLE") == NULL) break;
        snprintf(path, sizeof(path), "%s/%s.gguf", getenv("OCTAVO_MODELS"), names[i]);
        octavo_tokenizer *t = open_or_null(path);
        if (t == NULL) continue;
        snprintf(path, sizeof(path), "%s/real/%s.json", getenv("OCTAVO_ORACLE"), names[i]);
        json_error_t problem;
        json_t *json = json_load_file(path, JSON_ALLOW_NUL, &problem);
        if (json == NULL) fail_msg("%s: %s", path, problem.text);
        size_t k;
        json_t *prompt;
        json_array_foreach(json_object_get(json, "prompts"), k, prompt) {
            golden_check_prompt(t, json_object_get(prompt, "text"), json_object_get(prompt, "ids"),
                                path);
            ran++;
        }
        json_decref(json);
        octavo_tokenizer_destroy(&t);
    }
    if (ran == 0) skip();
}

static void test_small_models(void **state) {
    (void)state;
    static const char *const names[] = {"gptoss-mxfp4", "llama-kmix", "llama-q32mix", "llama4-f32",
                                        "qwen3moe-q8_0"};
    const char *oracle = getenv("OCTAVO_ORACLE");
    if (oracle == NULL) skip();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[600];
        snprintf(path, sizeof(path), "%s/gguf/%s.gguf", oracle, names[i]);
        octavo_tokenizer *t = open_or_null(path);
        assert_non_null(t);
        snprintf(path, sizeof(path), "%s/gguf/%s.json", oracle, names[i]);
        golden_check_prompts(t, path);
        octavo_tokenizer_destroy(&t);
    }
}

/* Where answers of the three models end. */
static void test_ends(void **state) {
    (void)state;
    static const struct {
        size_t vocabulary;
        const char *text;
    } ends[] = {{0, "<|im_end|>"},    {0, "<|endoftext|>"}, {1, "<|im_end|>"},
                {1, "<|endoftext|>"}, {2, "<end_of_turn>"}, {2, "<eos>"}};
    size_t ran = 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        octavo_tokenizer *t = open_vocabulary(&vocabularies[ends[i].vocabulary]);
        if (t == NULL) continue;
        int32_t id = octavo_tokenizer_find(t, ends[i].text, strlen(ends[i].text));
        assert_true(id >= 0);
        assert_true(octavo_tokenizer_is_eog(t, id) && octavo_tokenizer_is_special(t, id));
        octavo_tokenizer_destroy(&t);
        ran++;
    }
    if (ran == 0) skip();
}

int main(void) {
    if (getenv("OCTAVO_MODELS") == NULL && getenv("OCTAVO_ORACLE") == NULL) {
        puts("skipped: neither OCTAVO_MODELS nor OCTAVO_ORACLE is set");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_real_prompts),
        cmocka_unit_test(test_small_models),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
