/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of tensor types: consistent, and found by number and by name.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "formats/ggml_type.h"

#include <stdio.h>
#include <string.h>

/* Bytes of 256 values, written down apart from the table. */
static const struct {
    uint32_t id;
    const char *name;
    uint64_t bytes;
} expected[] = {
    {0, "F32", 1024},    {1, "F16", 512},     {2, "Q4_0", 144},    {3, "Q4_1", 160},
    {6, "Q5_0", 176},    {7, "Q5_1", 192},    {8, "Q8_0", 272},    {9, "Q8_1", 320},
    {10, "Q2_K", 84},    {11, "Q3_K", 110},   {12, "Q4_K", 144},   {13, "Q5_K", 176},
    {14, "Q6_K", 210},   {15, "Q8_K", 292},   {16, "IQ2_XXS", 66}, {17, "IQ2_XS", 74},
    {18, "IQ3_XXS", 98}, {19, "IQ1_S", 50},   {20, "IQ4_NL", 144}, {21, "IQ3_S", 110},
    {22, "IQ2_S", 82},   {23, "IQ4_XS", 136}, {24, "I8", 256},     {25, "I16", 512},
    {26, "I32", 1024},   {27, "I64", 2048},   {28, "F64", 2048},   {29, "IQ1_M", 56},
    {30, "BF16", 512},   {34, "TQ1_0", 54},   {35, "TQ2_0", 66},   {39, "MXFP4", 136},
    {40, "NVFP4", 144},  {41, "Q1_0", 36},
};

static void test_table(void **unused) {
    (void)unused;
    size_t count = 0;
    const octavo_ggml_type_info *types = octavo_ggml_types(&count);
    assert_int_equal(count, OCTAVO_COUNT(expected));
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        assert_int_equal(types[i].type, expected[i].id);
        assert_string_equal(types[i].name, expected[i].name);
        assert_true(octavo_ggml_row_bytes(&types[i], 256, &bytes));
        assert_int_equal(bytes, expected[i].bytes);
        assert_ptr_equal(octavo_ggml_type_lookup(expected[i].id), &types[i]);
        assert_string_equal(octavo_ggml_type_name(types[i].type), expected[i].name);
    }
}

static void test_unknown_numbers(void **unused) {
    (void)unused;
    static const uint32_t none[] = {4, 5, 31, 32, 33, 36, 37, 38, 42, 255, 0x7fffffff, UINT32_MAX};
    for (size_t i = 0; i < OCTAVO_COUNT(none); i++) {
        assert_null(octavo_ggml_type_lookup(none[i]));
    }
    assert_string_equal(octavo_ggml_type_name((octavo_ggml_type)4), "?");
}

static void test_names(void **unused) {
    (void)unused;
    for (size_t i = 0; i < OCTAVO_COUNT(expected); i++) {
        octavo_ggml_type type = OCTAVO_GGML_Q5_1;
        assert_int_equal(octavo_ggml_type_parse(expected[i].name, &type, NULL), OCTAVO_OK);
        assert_int_equal(type, expected[i].id);
    }
    octavo_ggml_type type = OCTAVO_GGML_Q5_1;
    assert_int_equal(octavo_ggml_type_parse("iq4_xs", &type, NULL), OCTAVO_OK);
    assert_int_equal(type, OCTAVO_GGML_IQ4_XS);

    static const char *const none[] = {"", "Q4", "Q4_", "Q4_00", "Q4_K_M", " F32", "f33"};
    for (size_t i = 0; i < OCTAVO_COUNT(none); i++) {
        octavo_error error = {0};
        assert_int_equal(octavo_ggml_type_parse(none[i], &type, &error), OCTAVO_ERROR_NOT_FOUND);
        assert_int_equal(type, OCTAVO_GGML_IQ4_XS);
        assert_non_null(strstr(error.message, "IQ2_XXS")); /* lists what is legal */
        assert_non_null(strstr(error.message, "NVFP4"));
    }
}

static void test_row_bytes(void **unused) {
    (void)unused;
    const octavo_ggml_type_info *q4_k = octavo_ggml_type_lookup(OCTAVO_GGML_Q4_K);
    const octavo_ggml_type_info *f64 = octavo_ggml_type_lookup(OCTAVO_GGML_F64);
    uint64_t bytes = 7;
    assert_false(octavo_ggml_row_bytes(q4_k, 255, &bytes));
    assert_false(octavo_ggml_row_bytes(q4_k, 257, &bytes));
    assert_false(octavo_ggml_row_bytes(f64, UINT64_MAX / 8 + 1, &bytes));
    assert_int_equal(bytes, 7);
    assert_true(octavo_ggml_row_bytes(f64, UINT64_MAX / 8, &bytes));
    assert_true(bytes == UINT64_MAX / 8 * 8);
    assert_true(octavo_ggml_row_bytes(q4_k, 0, &bytes));
    assert_int_equal(bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_unknown_numbers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_row_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
