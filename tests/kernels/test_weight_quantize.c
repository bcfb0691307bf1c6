/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of file blocks made from f32: the reference's bits where there is a reference
 * (tests/data/quant), else less error than the plain type of that size; and no harm from values at
 * the ends of the range.
 */
#include "../npy.h"
#include "../unit.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "kernels/weight_quantize.h"
#include "weight_samples.h"

#include <float.h>
#include <math.h>

enum { MAX_ROW = 1024 };

static void path_of(char path[512], const char *name, const char *suffix) {
    snprintf(path, 512, "%s/quant/%s%s", TEST_DATA, name, suffix);
}

static void check_golden(const char *name, octavo_weight_type type) {
    static uint8_t want[4096], got[4096];
    char path[512];
    path_of(path, name, ".src.npy");
    npy source = npy_read(path);
    assert_int_equal(source.n_axes, 2);
    const int64_t rows = source.extents[0], k = source.extents[1];
    const size_t row_bytes = weight_row_bytes(type, k), bytes = row_bytes * (size_t)rows;
    assert_in_range(bytes, 1, sizeof got);
    path_of(path, name, ".quantised.bin");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(want, 1, sizeof want, file), bytes);
    fclose(file);
    memset(got, 0xa5, sizeof got);
    for (int64_t r = 0; r < rows; r++)
        octavo_weight_quantize(type, got + (size_t)r * row_bytes, (float *)source.data + r * k, k);
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != want[i])
            fail_msg("%s, byte %zu of row %zu: %d, wanted %d", name, i % row_bytes, i / row_bytes,
                     got[i], want[i]);
    assert_int_equal(got[bytes], 0xa5);
    npy_free(&source);
}

static void test_golden_bits(void **state) {
    (void)state;
    check_golden("F16", OCTAVO_WEIGHT_F16);
    check_golden("BF16", OCTAVO_WEIGHT_BF16);
    check_golden("Q8_0", OCTAVO_WEIGHT_Q8_0);
    check_golden("Q4_0", OCTAVO_WEIGHT_Q4_0);
    check_golden("Q4_1", OCTAVO_WEIGHT_Q4_1);
    check_golden("Q5_0", OCTAVO_WEIGHT_Q5_0);
    check_golden("Q5_1", OCTAVO_WEIGHT_Q5_1);
    check_golden("MXFP4", OCTAVO_WEIGHT_MXFP4);
    check_golden("TQ1_0", OCTAVO_WEIGHT_TQ1_0);
    check_golden("TQ2_0", OCTAVO_WEIGHT_TQ2_0);
}

/* A row quantised and read back by the loader's own packing. */
static void there_and_back(octavo_weight_type type, const float *values, float *back, int64_t k) {
    static uint8_t row[MAX_ROW * 4];
    uint8_t *panel = octavo_alloc_aligned(octavo_weight_panel_bytes(type, k));
    assert_non_null(panel);
    assert_in_range(k, 1, MAX_ROW);
    octavo_weight_quantize(type, row, values, k);
    octavo_weight_pack(type, panel, row, weight_row_bytes(type, k), 1, k);
    octavo_weight_unpack_row(type, back, panel, 0, k);
    octavo_free_aligned(panel);
}

/* RMS of the error as a share of the values' RMS, over rows of one kind. */
static double error_of(octavo_weight_type type, bool is_shifted) {
    static float values[MAX_ROW], back[MAX_ROW];
    uint64_t random = 7;
    double error = 0, size = 0;
    for (int r = 0; r < 16; r++) {
        for (int i = 0; i < MAX_ROW; i++) { /* near to a normal distribution */
            values[i] = is_shifted ? 1.5f : 0.0f;
            for (int j = 0; j < 6; j++)
                values[i] += sample_uniform(&random) * 0.02f * (float)(r + 1);
        }
        there_and_back(type, values, back, MAX_ROW);
        for (int i = 0; i < MAX_ROW; i++) {
            const double off = (double)back[i] - (double)values[i];
            error += off * off;
            size += (double)values[i] * (double)values[i];
        }
    }
    return sqrt(error / size);
}

static void test_search_pays(void **state) {
    (void)state;
    for (int shifted = 0; shifted < 2; shifted++) {
        const double q4_0 = error_of(OCTAVO_WEIGHT_Q4_0, shifted);
        const double q4_k = error_of(OCTAVO_WEIGHT_Q4_K, shifted);
        const double q5_0 = error_of(OCTAVO_WEIGHT_Q5_0, shifted);
        const double q6_k = error_of(OCTAVO_WEIGHT_Q6_K, shifted);
        const double q8_0 = error_of(OCTAVO_WEIGHT_Q8_0, shifted);
        print_message("errors: q4_0 %.5f q4_k %.5f q5_0 %.5f q6_k %.5f q8_0 %.5f\n", q4_0, q4_k,
                      q5_0, q6_k, q8_0);
        assert_true(q4_k < 0.9 * q4_0);
        assert_true(q6_k < 0.5 * q5_0);
        assert_true(q6_k < 0.25 * q4_0 && q8_0 < q6_k);
    }
}

/* What was made of codes and scales comes back as it was (values that a type can hold), so that
 * quantising twice changes nothing more. */
static void test_twice_is_once(void **state) {
    static const octavo_weight_type types[] = {
        OCTAVO_WEIGHT_F32,   OCTAVO_WEIGHT_F16,   OCTAVO_WEIGHT_BF16, OCTAVO_WEIGHT_Q4_0,
        OCTAVO_WEIGHT_MXFP4, OCTAVO_WEIGHT_TQ1_0, OCTAVO_WEIGHT_TQ2_0};
    static float values[MAX_ROW], once[MAX_ROW], twice[MAX_ROW];
    uint64_t random = 3;
    (void)state;
    for (size_t t = 0; t < OCTAVO_COUNT(types); t++) {
        for (int i = 0; i < MAX_ROW; i++)
            values[i] = sample_uniform(&random);
        there_and_back(types[t], values, once, MAX_ROW);
        there_and_back(types[t], once, twice, MAX_ROW);
        assert_memory_equal(once, twice, sizeof once);
    }
}

/* Zeros, subnormal numbers, numbers too large for f16: zeros stay zeros and nothing becomes NaN
 * that is not infinite first. */
static void test_edges(void **state) {
    static const float edges[] = {0.0f,  -0.0f,  1e-45f, -1e-45f, 1e-39f,   FLT_MIN, -1e-20f,
                                  65504, -65520, 1e6f,   1e30f,   -FLT_MAX, FLT_MAX};
    static float values[256], back[256];
    (void)state;
    for (int type = 0; type < OCTAVO_WEIGHT_TYPES; type++) {
        if (!octavo_weight_can_quantize((octavo_weight_type)type)) continue;
        for (size_t e = 0; e < OCTAVO_COUNT(edges); e++) {
            for (int i = 0; i < 256; i++)
                values[i] = edges[e];
            there_and_back((octavo_weight_type)type, values, back, 256);
            for (int i = 0; i < 256 && e < 2; i++)
                assert_true(back[i] == 0.0f);
            for (int i = 0; i < 256 && fabsf(edges[e]) <= 65504.0f; i++)
                assert_true(isfinite(back[i]));
            values[17] = -values[17];
            values[200] = 0.0f;
            there_and_back((octavo_weight_type)type, values, back, 256);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_bits),
        cmocka_unit_test(test_search_pays),
        cmocka_unit_test(test_twice_is_once),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests_name("weight_quantize", tests, NULL, NULL);
}
