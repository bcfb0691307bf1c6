/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders whose matrices are coded (8-bit floats with scales, GPTQ, AWQ) against goldens of the
 * decoded values, and for the same-bits promise.
 */
#include "hf_bits.h"

#include "octavo/inspect.h"
#include "octavo/template.h"

static const char *const names[] = {
    "llama_f8",        "llama_f8_blocks",   "llama_f8_odd",      "moe_f8_blocks",
    "qwen2_gptq4",     "llama_gptq8",       "llama_gptq3",       "llama_gptq2",
    "llama_gptq4_odd", "llama_gptq4_order", "moe_gptq4_order",   "moe_gptq4",
    "phi3_gptq4",      "phi3_awq",          "llama_awq",         "deepseek_f8_blocks",
    "llama4_f8",       "llama_packed8",     "phi3_packed4_order"};

enum { N = sizeof names / sizeof *names };

static void check(void **state) {
    char path[400];
    snprintf(path, sizeof path, TEST_DATA "/models/%s", (const char *)*state);
    hf_check_folder(path);
    hf_check_bits(path);
}

/* Parameters are values of weights, not words of codes nor scales. */
static void test_parameters(void **state) {
    static const struct {
        const char *name;
        json_int_t n;
    } cases[] = {
        {"llama_f8", 90432},           {"llama_gptq2", 90432},       {"llama_gptq3", 90432},
        {"llama_gptq8", 90432},        {"llama_awq", 90432},         {"llama_packed8", 90432},
        {"phi3_packed4_order", 90432}, {"llama_gptq4_order", 90432}, {"qwen2_gptq4", 90688},
        {"moe_f8_blocks", 140160},     {"moe_gptq4", 140160},        {"gpt_oss_mxfp4", 158416},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[400], *text = NULL;
        octavo_error error;
        snprintf(path, sizeof path, TEST_DATA "/models/%s", cases[i].name);
        hf_must(octavo_inspect(path, NULL, &text, &error), &error);
        json_t *document = json_loads(text, 0, NULL);
        const json_int_t n = json_integer_value(json_object_get(document, "parameters"));
        if (n != cases[i].n)
            fail_msg("%s: %lld parameters, wanted %lld", path, (long long)n, (long long)cases[i].n);
        json_decref(document);
        octavo_text_free(text);
    }
}

/* Rows are put in order once for all matrices of that order: here q and k share theirs. */
static void test_orders(void **state) {
    octavo_inspect_options options;
    octavo_error error;
    char *text = NULL;
    size_t i, n = 0;
    json_t *op;
    (void)state;
    octavo_inspect_options_init(&options);
    options.with_program = true;
    hf_must(octavo_inspect(TEST_DATA "/models/llama_gptq4_order", &options, &text, &error), &error);
    json_t *document = json_loads(text, 0, NULL);
    json_array_foreach(json_object_get(json_object_get(document, "program"), "ops"), i, op) {
        n += strcmp(json_string_value(json_object_get(op, "op")), "reorder") == 0;
    }
    assert_int_equal(n, 2 * 6);
    json_decref(document);
    octavo_text_free(text);
}

int main(void) {
    struct CMUnitTest tests[N + 2] = {{0}};
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = check, .initial_state = (void *)(uintptr_t)names[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(test_parameters);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(test_orders);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
