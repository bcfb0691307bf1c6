/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders whose matrices are coded (8-bit floats with scales, GPTQ, AWQ) against goldens of the
 * decoded values, and for the same-bits promise.
 */
#include "hf_bits.h"

static const char *const names[] = {
    "llama_f8",    "llama_f8_blocks", "llama_f8_odd", "moe_f8_blocks",   "qwen2_gptq4",
    "llama_gptq8", "llama_gptq3",     "llama_gptq2",  "llama_gptq4_odd", "llama_gptq4_order",
    "moe_gptq4",   "phi3_gptq4",      "phi3_awq",     "llama_awq"};

enum { N = sizeof names / sizeof *names };

static void check(void **state) {
    char path[400];
    snprintf(path, sizeof path, TEST_DATA "/models/%s", (const char *)*state);
    hf_check_folder(path);
    hf_check_bits(path);
}

int main(void) {
    struct CMUnitTest tests[N] = {{0}};
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = check, .initial_state = (void *)(uintptr_t)names[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
