/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed and unpacked, weights are the values of the formats' definitions: against golden values
 * (tests/data/quant) and against decoders that are written from those definitions and share nothing
 * with the packed layout.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "kernels/weight_layout.h"
#include "weight_decoders.h"
#include "weight_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- comparison --- */

/* Equal in bits; any NaN is the same, and zeros of both signs are. */
static bool is_same(float a, float b) {
    return a == b || (isnan(a) && isnan(b));
}

/* Packs n_rows rows and compares what comes back with want [n_rows][k]. */
static void assert_unpacks_to(octavo_weight_type type, const uint8_t *rows, int n_rows, int64_t k,
                              const float *want) {
    const size_t panel_bytes = octavo_weight_panel_bytes(type, k);
    uint8_t *panel = octavo_alloc_aligned(panel_bytes);
    float *all = octavo_alloc_aligned((size_t)k * OCTAVO_PANEL * sizeof *all);
    float *row = octavo_alloc_aligned((size_t)k * sizeof *row);
    assert_non_null(panel);
    assert_non_null(all);
    assert_non_null(row);
    memset(panel, 0xff, panel_bytes);
    octavo_weight_pack(type, panel, rows, weight_row_bytes(type, k), n_rows, k);
    octavo_weight_unpack(type, all, panel, 0, k);
    for (int o = 0; o < OCTAVO_PANEL; o++) {
        octavo_weight_unpack_row(type, row, panel, o, k);
        for (int64_t i = 0; i < k; i++) {
            float value = o < n_rows ? want[o * k + i] : 0.0f;
            if (is_same(all[i * OCTAVO_PANEL + o], value) && is_same(row[i], value)) continue;
            fail_msg("%s row %d of %d, input %lld: %a in the panel, %a in the row, wanted %a",
                     octavo_weight_info_of(type)->name, o, n_rows, (long long)i,
                     (double)all[i * OCTAVO_PANEL + o], (double)row[i], (double)value);
        }
    }
    octavo_free_aligned(panel);
    octavo_free_aligned(all);
    octavo_free_aligned(row);
}

/* --- golden values --- */

enum { GOLDEN_BLOCKS = 64 };

static void read_golden(const char *name, const char *suffix, size_t skip, void *data,
                        size_t bytes) {
    char path[512];
    snprintf(path, sizeof path, "%s/quant/%s%s", TEST_DATA, name, suffix);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    if (skip) { /* an .npy header: magic and version in 8 bytes, its length in 2 */
        uint8_t start[10];
        assert_int_equal(fread(start, 1, sizeof start, file), sizeof start);
        assert_memory_equal(start, "\x93NUMPY", 6);
        assert_int_equal(fseek(file, start[8] + start[9] * 256, SEEK_CUR), 0);
    }
    assert_int_equal(fread(data, 1, bytes, file), bytes);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

static void test_golden_values(void **state) {
    static const struct {
        const char *name;
        octavo_weight_type type;
    } goldens[] = {
        {"F16", OCTAVO_WEIGHT_F16},         {"BF16", OCTAVO_WEIGHT_BF16},
        {"Q8_0", OCTAVO_WEIGHT_Q8_0},       {"Q4_0", OCTAVO_WEIGHT_Q4_0},
        {"Q4_1", OCTAVO_WEIGHT_Q4_1},       {"Q5_0", OCTAVO_WEIGHT_Q5_0},
        {"Q5_1", OCTAVO_WEIGHT_Q5_1},       {"IQ4_NL", OCTAVO_WEIGHT_IQ4_NL},
        {"MXFP4", OCTAVO_WEIGHT_MXFP4},     {"NVFP4", OCTAVO_WEIGHT_NVFP4},
        {"Q2_K", OCTAVO_WEIGHT_Q2_K},       {"Q3_K", OCTAVO_WEIGHT_Q3_K},
        {"Q4_K", OCTAVO_WEIGHT_Q4_K},       {"Q5_K", OCTAVO_WEIGHT_Q5_K},
        {"Q6_K", OCTAVO_WEIGHT_Q6_K},       {"IQ4_XS", OCTAVO_WEIGHT_IQ4_XS},
        {"TQ1_0", OCTAVO_WEIGHT_TQ1_0},     {"TQ2_0", OCTAVO_WEIGHT_TQ2_0},
        {"IQ2_XXS", OCTAVO_WEIGHT_IQ2_XXS}, {"IQ2_XS", OCTAVO_WEIGHT_IQ2_XS},
        {"IQ2_S", OCTAVO_WEIGHT_IQ2_S},     {"IQ3_XXS", OCTAVO_WEIGHT_IQ3_XXS},
        {"IQ3_S", OCTAVO_WEIGHT_IQ3_S},     {"IQ1_S", OCTAVO_WEIGHT_IQ1_S},
        {"IQ1_M", OCTAVO_WEIGHT_IQ1_M},
    };
    static uint8_t blocks[GOLDEN_BLOCKS * 210];
    static float values[GOLDEN_BLOCKS * 256];
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(goldens); i++) {
        const octavo_weight_info *info = octavo_weight_info_of(goldens[i].type);
        const int64_t width = info->source_inputs;
        read_golden(goldens[i].name, ".bin", 0, blocks,
                    (size_t)(GOLDEN_BLOCKS * info->source_bytes));
        read_golden(goldens[i].name, ".f32.npy", 1, values,
                    (size_t)(GOLDEN_BLOCKS * width) * sizeof *values);
        for (int n_rows = 1; n_rows <= OCTAVO_PANEL; n_rows *= 2)
            assert_unpacks_to(goldens[i].type, blocks, n_rows, GOLDEN_BLOCKS / n_rows * width,
                              values);
    }
}

static void test_random_blocks(void **state) {
    uint64_t random = 20240611;
    (void)state;
    for (int t = 0; t < OCTAVO_WEIGHT_TYPES; t++) {
        const octavo_weight_type type = (octavo_weight_type)t;
        const octavo_weight_info *info = octavo_weight_info_of(type);
        for (int sample = 0; sample <= WEIGHT_SAMPLE_NONFINITE; sample++) {
            const int64_t k = info->source_inputs > 1 ? 3 * info->source_inputs : 77;
            const int n_rows = sample % 2 ? OCTAVO_PANEL : 19;
            const size_t row_bytes = weight_row_bytes(type, k);
            uint8_t *rows = octavo_alloc_aligned(row_bytes * OCTAVO_PANEL);
            float *want = octavo_alloc_aligned((size_t)(k * OCTAVO_PANEL) * sizeof *want);
            assert_non_null(rows);
            assert_non_null(want);
            weight_sample_fill(type, (weight_sample)sample, rows, n_rows, k, &random);
            for (int64_t b = 0; b < n_rows * k / info->source_inputs; b++)
                weight_decode(type, want + b * info->source_inputs, rows + b * info->source_bytes);
            assert_unpacks_to(type, rows, n_rows, k, want);
            octavo_free_aligned(rows);
            octavo_free_aligned(want);
        }
    }
}

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(octavo_weight_panel_bytes(OCTAVO_WEIGHT_F32, 7), 7 * 128);
    assert_int_equal(octavo_weight_panel_bytes(OCTAVO_WEIGHT_F16, 7), 7 * 64);
    assert_int_equal(octavo_weight_panel_bytes(OCTAVO_WEIGHT_BF16, 7), 4 * 128);
    assert_int_equal(octavo_weight_panel_bytes(OCTAVO_WEIGHT_Q8_0, 96), 3 * 1088);
    assert_int_equal(octavo_weight_panel_bytes(OCTAVO_WEIGHT_Q6_K, 512), 2 * 6720);
    assert_int_equal(octavo_weight_bytes(OCTAVO_WEIGHT_Q4_0, 33, 32), 2 * 576);
    assert_int_equal(octavo_weight_bytes(OCTAVO_WEIGHT_Q4_0, 0, 32), 0);
    assert_string_equal(octavo_weight_info_of(OCTAVO_WEIGHT_Q4_K)->name, "q4_k");
    for (int t = 0; t < OCTAVO_WEIGHT_TYPES; t++) {
        const octavo_weight_info *info = octavo_weight_info_of((octavo_weight_type)t);
        const octavo_weight_layout *layout = &octavo_weight_layouts[t];
        if (!info->is_quantised) continue;
        assert_int_equal(info->record_inputs, info->source_inputs);
        assert_int_equal(info->record_inputs, layout->blocks * OCTAVO_BLOCK);
        assert_int_equal(info->record_bytes,
                         layout->head_bytes + layout->blocks * layout->block_bytes);
    }
}

/* Bits of a weight in the file, where its blocks are put together while it is loaded: at least so
 * many, with few scales. */
static double bits_of_file(octavo_weight_type type) {
    switch (type) {
    case OCTAVO_WEIGHT_F8_E4M3:
    case OCTAVO_WEIGHT_F8_E5M2:
    case OCTAVO_WEIGHT_Z8:
        return 8.0;
    case OCTAVO_WEIGHT_Z2:
        return 2.0 + (16.0 + 2.0) / 128.0; /* groups of 128 */
    case OCTAVO_WEIGHT_Z3:
        return 3.0 + (16.0 + 3.0) / 128.0;
    case OCTAVO_WEIGHT_Z4:
        return 4.0 + (16.0 + 4.0) / 32.0;
    case OCTAVO_WEIGHT_Z4_64:
        return 4.0;
    default:
        return 8.0 * octavo_weight_info_of(type)->source_bytes /
               octavo_weight_info_of(type)->source_inputs;
    }
}

/* No type is served by expanding it: 1.1 of the file's bytes, 1.3 for those of 1 to 3 bits. */
static void test_packed_bytes(void **state) {
    (void)state;
    for (int t = 0; t < OCTAVO_WEIGHT_TYPES; t++) {
        const octavo_weight_info *info = octavo_weight_info_of((octavo_weight_type)t);
        const double bits = bits_of_file((octavo_weight_type)t);
        const double packed = 8.0 * info->record_bytes / info->record_inputs / OCTAVO_PANEL;
        const double ratio = packed / bits;
        const bool is_small = bits < 4.0;
        if (ratio > (is_small ? 1.3 : 1.1)) fail_msg("%s: %.3f", info->name, ratio);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_values),
        cmocka_unit_test(test_random_blocks),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_packed_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
