/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiny Hugging Face folders, one for each family and variant, against their goldens and
 * for the same-bits promise. They lie outside of the repository: OCTAVO_ORACLE names the folder
 * that has them under models/; skipped without it.
 */
#include "embed_golden.h"
#include "hf_bits.h"

static const char *const names[] = {
    "llama",        "llama_rope3",     "llama_tied", "mistral",       "qwen2",
    "qwen3",        "gemma",           "gemma2",     "gemma3",        "olmo2",
    "granite",      "smollm3",         "phi3",       "cohere2",       "glm4",
    "starcoder2",   "gpt_neox",        "mixtral",    "qwen2_moe",     "qwen3_moe",
    "llama4_scout", "llama4_maverick", "gpt_oss",    "gpt_oss_mxfp4", "deepseek_v3"};

enum { N = sizeof names / sizeof *names };

static void check(void **state) {
    char path[400];
    snprintf(path, sizeof path, "%s/models/%s", getenv("OCTAVO_ORACLE"), (const char *)*state);
    hf_check_folder(path);
    hf_check_bits(path);
}

static void check_encoder(void **state) {
    char path[400];
    (void)state;
    snprintf(path, sizeof path, "%s/models/bert", getenv("OCTAVO_ORACLE"));
    embed_check_folder(path);
    embed_check_bits(path, OCTAVO_PRECISION_EXACT, OCTAVO_POOLING_MEAN);
}

int main(void) {
    struct CMUnitTest tests[N + 1] = {cmocka_unit_test(check_encoder)};
    if (!getenv("OCTAVO_ORACLE")) return 77;
    for (size_t i = 0; i < N; i++)
        tests[1 + i] = (struct CMUnitTest){
            .name = names[i], .test_func = check, .initial_state = (void *)(uintptr_t)names[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
