/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiny Hugging Face folders, one for each family and variant, against their goldens. They lie
 * outside of the repository: OCTAVO_ORACLE names the folder that has them under models/; skipped
 * without it.
 */
#include "hf_golden.h"

static void check(const char *name) {
    char path[400];
    snprintf(path, sizeof path, "%s/models/%s", getenv("OCTAVO_ORACLE"), name);
    hf_check_folder(path);
}

static void test_llama(void **state) {
    (void)state;
    check("llama");
}

static void test_llama_rope3(void **state) {
    (void)state;
    check("llama_rope3");
}

static void test_llama_tied(void **state) {
    (void)state;
    check("llama_tied");
}

static void test_mistral(void **state) {
    (void)state;
    check("mistral");
}

static void test_qwen2(void **state) {
    (void)state;
    check("qwen2");
}

static void test_gemma3(void **state) {
    (void)state;
    check("gemma3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),      cmocka_unit_test(test_llama_rope3),
        cmocka_unit_test(test_llama_tied), cmocka_unit_test(test_mistral),
        cmocka_unit_test(test_qwen2),      cmocka_unit_test(test_gemma3),
    };
    if (!getenv("OCTAVO_ORACLE")) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
