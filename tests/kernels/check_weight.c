/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing touches nothing but its rows and its panel, whatever the number of rows; an unpacked row
 * is the row of the unpacked panel. Values are compared with the formats' definitions in
 * test_weight.c.
 */
#include "base/memory.h"
#include "kernels/weight.h"
#include "tester.h"
#include "weight_samples.h"

#include <stdio.h>
#include <string.h>

static void check_rows(tester *t, octavo_weight_type type, int n_rows, int64_t k) {
    uint64_t state = tester_random(t) | 1u;
    const size_t row_bytes = weight_row_bytes(type, k);
    uint8_t *rows = tester_buffer(t, "rows", row_bytes * (size_t)n_rows, 1);
    uint8_t *panel = tester_buffer(t, "panel", octavo_weight_panel_bytes(type, k), 64);
    float *all = tester_buffer(t, "all", (size_t)k * OCTAVO_PANEL * sizeof *all, 64);
    float *part = tester_buffer(t, "part", OCTAVO_BLOCK * OCTAVO_PANEL * sizeof *part, 64);
    float *row = tester_buffer(t, "row", (size_t)k * sizeof *row, sizeof *row);
    float *column = tester_buffer(t, "column", (size_t)k * sizeof *column, sizeof *column);
    tester_context(t, "k=%lld rows=%d", (long long)k, n_rows);
    weight_sample_fill(type, WEIGHT_SAMPLE_NORMAL, rows, n_rows, k, &state);
    tester_seal(t, rows);
    octavo_weight_pack(type, panel, rows, row_bytes, n_rows, k);
    tester_seal(t, panel);
    octavo_weight_unpack(type, all, panel, 0, k);
    for (int o = 0; o < OCTAVO_PANEL; o++) {
        octavo_weight_unpack_row(type, row, panel, o, k);
        for (int64_t i = 0; i < k; i++) {
            column[i] = all[i * OCTAVO_PANEL + o];
            if (o >= n_rows && column[i] != 0.0f) tester_fail(t, "row %d beyond is not zero", o);
        }
        tester_equal_f32(t, "row", row, column, k);
    }
    for (int64_t i = 0; i + OCTAVO_BLOCK <= k; i += OCTAVO_BLOCK) {
        octavo_weight_unpack(type, part, panel, i, i + OCTAVO_BLOCK);
        tester_equal_f32(t, "part", part, all + i * OCTAVO_PANEL, OCTAVO_BLOCK * OCTAVO_PANEL);
    }
    tester_release(t);
}

static void check_pack(tester *t, const void *arg) {
    const octavo_weight_type type = *(const octavo_weight_type *)arg;
    const octavo_weight_info *info = octavo_weight_info_of(type);
    for (int n_rows = 1; n_rows <= OCTAVO_PANEL; n_rows += n_rows == 3 ? 14 : n_rows == 17 ? 14 : 1)
        for (int64_t blocks = 1; blocks <= 4; blocks++)
            check_rows(t, type, n_rows, blocks * info->source_inputs);
    if (info->source_inputs == 1) check_rows(t, type, 32, 95);

    const int64_t k = 4096;
    const size_t row_bytes = weight_row_bytes(type, k);
    uint64_t state = 1;
    uint8_t *rows = tester_buffer(t, "rows", row_bytes * OCTAVO_PANEL, 64);
    uint8_t *panel = tester_buffer(t, "panel", octavo_weight_panel_bytes(type, k), 64);
    weight_sample_fill(type, WEIGHT_SAMPLE_NORMAL, rows, OCTAVO_PANEL, k, &state);
    for (tester_bench(t, "k=4096", &(tester_work){.bytes = (double)row_bytes * OCTAVO_PANEL});
         tester_run(t);)
        octavo_weight_pack(type, panel, rows, row_bytes, OCTAVO_PANEL, k);
}

void check_weight(tester *t);

void check_weight(tester *t) {
    for (int i = 0; i < OCTAVO_WEIGHT_TYPES; i++) {
        octavo_weight_type type = (octavo_weight_type)i;
        char name[32];
        snprintf(name, sizeof name, "weight_pack_%s", octavo_weight_info_of(type)->name);
        tester_check(t, name, (tester_function *)octavo_weight_pack, check_pack, &type);
    }
}
