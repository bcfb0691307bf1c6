/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiny models of all families over meshes of ranks say what they say on one rank: logits, hidden
 * states and traces within 1e-5, and the same greedy text. Each model takes a few of the meshes,
 * so that all have their turn; with OCTAVO_TEST_FULL=1 it takes all.
 */
#include "ranks.h"

/* Every axis alone and all together, degrees that divide nothing, more ranks than there are
 * heads. */
static const char *const meshes[] = {
    "model=2",
    "data=2",
    "expert=2",
    "seq=2",
    "model=3",
    "data=3",
    "seq=3,expert=2",
    "data=2,model=2",
    "expert=2,model=2",
    "seq=2,model=2",
    "data=2,seq=2",
    "data=2,expert=2",
    "expert=2,seq=2",
    "model=4",
    "data=4",
    "expert=4",
    "seq=4",
    "data=3,model=2",
    "model=5",
    "data=2,seq=2,model=2",
    "data=2,expert=2,model=2",
    "expert=2,seq=2,model=2",
    "data=2,expert=2,seq=2",
    "data=4,model=2",
    "seq=4,model=2",
    "expert=4,model=2",
    "model=8",
    "data=8",
    "expert=8",
    "seq=8",
};

static const char *const stored[] = {
    "llama-f32.gguf", "gemma3-f32.gguf",    "qwen2-bf16.gguf", "bert",       "cohere2",
    "deepseek_v2",    "deepseek_v3",        "gemma3",          "gpt_neox",   "gpt_oss_mxfp4",
    "llama4_scout",   "llama_gptq4_order",  "llama_f8_blocks", "llama_tied", "ministral3",
    "modernbert",     "moe_gptq4_order",    "nemotron",        "nomic_bert", "olmo2",
    "phi3",           "phi3_packed4_order", "qwen2_moe",
};

static const char *const oracle[] = {
    "llama",           "llama_rope3", "mistral",     "qwen2",      "qwen3",
    "gemma",           "gemma2",      "granite",     "smollm3",    "glm4",
    "mixtral",         "starcoder2",  "qwen3_moe",   "gpt_oss",    "llama4_scout",
    "llama4_maverick", "phi3",        "deepseek_v3", "gemma3",     "olmo2",
    "cohere2",         "gpt_neox",    "bert",        "llama_tied", "qwen2_moe",
    "gpt_oss_mxfp4",
};

enum { PER_MODEL = 3 };

static void check_mesh(const char *path, const char *mesh, const ranks_rows *want) {
    char where[600];
    ranks_rows got;
    octavo_model *model = NULL;
    octavo_error error;
    const ranks_setting s = {.mesh = mesh, .precision = OCTAVO_PRECISION_EXACT};
    snprintf(where, sizeof where, "%s, %s", path, mesh);
    ranks_must(ranks_open(path, &s, &model, &error), &error, where);
    assert_true(octavo_model_describe(model).ranks > 1);
    ranks_run(model, false, &got, where);
    octavo_model_close(&model);
    const double difference = ranks_difference(want, &got);
    if (!(difference <= 1e-5)) fail_msg("%s: other by %g", where, difference);
    if (memcmp(want->greedy, got.greedy, sizeof got.greedy) != 0)
        fail_msg("%s: another greedy text", where);
    ranks_rows_deinit(&got);
}

static void check_models(const char *folder, const char *const *names, size_t n) {
    const bool is_full = getenv("OCTAVO_TEST_FULL") != NULL;
    for (size_t i = 0; i < n; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        ranks_rows want = ranks_run_whole(path, OCTAVO_PRECISION_EXACT, false);
        for (size_t k = 0; k < (is_full ? OCTAVO_COUNT(meshes) : PER_MODEL); k++)
            check_mesh(path, meshes[(i * 7 + k * 11) % OCTAVO_COUNT(meshes)], &want);
        ranks_rows_deinit(&want);
    }
}

static void test_stored(void **state) {
    (void)state;
    check_models(TEST_DATA "/models", stored, OCTAVO_COUNT(stored));
}

static void test_oracle(void **state) {
    char folder[400];
    (void)state;
    if (!getenv("OCTAVO_ORACLE")) skip();
    snprintf(folder, sizeof folder, "%s/models", getenv("OCTAVO_ORACLE"));
    check_models(folder, oracle, OCTAVO_COUNT(oracle));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
