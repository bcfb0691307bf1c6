/* SPDX-License-Identifier: Apache-2.0
 *
 * Values are taken from the file, and the result is read again, by the packing that models are
 * loaded with: so the loss is that of the model as it will run.
 */
#include "engine/quantize_rows.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "kernels/weight_quantize.h"

#include <math.h>
#include <string.h>

enum { PANELS_A_THREAD = 4, STRIP_BYTES = 8 << 20 };

void octavo_row_loss_add(octavo_row_loss *sum, const octavo_row_loss *part) {
    sum->squares += part->squares;
    sum->errors += part->errors;
    if (part->most > sum->most) sum->most = part->most;
    sum->is_bad |= part->is_bad;
    sum->is_large |= part->is_large;
}

/* ---- memory ---- */

static size_t panel_bytes(const octavo_row_converter *converter) {
    const size_t from = octavo_weight_panel_bytes(converter->from, converter->k);
    const size_t to = octavo_weight_panel_bytes(converter->to, converter->k);
    return octavo_align_up(from > to ? from : to, OCTAVO_ALIGN);
}

static size_t values_bytes(const octavo_row_converter *converter) {
    return octavo_align_up((size_t)converter->k * sizeof(float), OCTAVO_ALIGN);
}

octavo_status octavo_row_converter_init(octavo_row_converter *converter, octavo_pool *pool,
                                        octavo_weight_type from, octavo_weight_type to, int64_t k,
                                        octavo_error *error) {
    octavo_row_converter made = {.pool = pool, .from = from, .to = to, .k = k};
    const octavo_weight_info *source = octavo_weight_info_of(from),
                             *result = octavo_weight_info_of(to);
    const size_t n_threads = (size_t)octavo_pool_threads(pool);
    octavo_assert(k > 0 && k % source->source_inputs == 0 && k % result->source_inputs == 0);
    /* Rows lie in a file: so many bytes of them, and 40 times as many here, can be counted. */
    made.from_bytes = (size_t)(k / source->source_inputs) * (size_t)source->source_bytes;
    made.to_bytes = (size_t)(k / result->source_inputs) * (size_t)result->source_bytes;
    made.max_rows = (int64_t)n_threads * PANELS_A_THREAD * OCTAVO_PANEL;
    const int64_t fit = STRIP_BYTES / (int64_t)made.to_bytes;
    if (made.max_rows > fit) made.max_rows = fit < OCTAVO_PANEL ? OCTAVO_PANEL : fit;
    made.max_rows = made.max_rows / OCTAVO_PANEL * OCTAVO_PANEL;
    /* a row of values, the same read back, a panel */
    made.scratch_bytes = (OCTAVO_PANEL + 1) * values_bytes(&made) + panel_bytes(&made);
    size_t rows_bytes, all_scratch;
    if (!octavo_size_mul((size_t)made.max_rows, made.to_bytes, &rows_bytes) ||
        !octavo_size_mul(n_threads, made.scratch_bytes, &all_scratch))
        return octavo_fail_memory(error, "rows", UINT64_MAX);
    made.rows = octavo_alloc_aligned(rows_bytes);
    made.scratch = octavo_alloc_aligned(all_scratch);
    made.losses =
        octavo_alloc_zero((size_t)(made.max_rows / OCTAVO_PANEL), sizeof(octavo_row_loss));
    if (!made.rows || !made.scratch || !made.losses) {
        octavo_row_converter_deinit(&made);
        return octavo_fail_memory(error, "rows", rows_bytes + all_scratch);
    }
    *converter = made;
    return OCTAVO_OK;
}

void octavo_row_converter_deinit(octavo_row_converter *converter) {
    octavo_free_aligned(converter->rows);
    octavo_free_aligned(converter->scratch);
    octavo_free(converter->losses);
    *converter = (octavo_row_converter){0};
}

/* ---- work ---- */

static bool is_finite(const float *values, int64_t k) {
    /* 0 x a number is 0, 0 x anything else is NaN */
    float sum = 0.0f;
    for (int64_t i = 0; i < k; i++)
        sum += values[i] * 0.0f;
    return sum == 0.0f;
}

static void measure_row(octavo_row_loss *loss, const float *values, const float *back, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        const double x = (double)values[i], off = (double)back[i] - x;
        loss->squares += x * x;
        loss->errors += off * off;
        if (fabs(off) > loss->most) loss->most = fabs(off);
    }
}

static void convert_panel(octavo_row_converter *converter, int64_t index, uint8_t *scratch) {
    const int64_t k = converter->k, first = index * OCTAVO_PANEL;
    const int64_t stride = (int64_t)(values_bytes(converter) / sizeof(float));
    float *values = (float *)(void *)scratch, *back = values + OCTAVO_PANEL * stride;
    uint8_t *panel = scratch + (OCTAVO_PANEL + 1) * values_bytes(converter);
    uint8_t *to = converter->rows + (size_t)first * converter->to_bytes;
    const int n_rows =
        (int)(converter->n_rows - first < OCTAVO_PANEL ? converter->n_rows - first : OCTAVO_PANEL);
    octavo_row_loss loss = {0};
    octavo_weight_pack(converter->from, panel,
                       converter->source + (size_t)first * converter->from_bytes,
                       converter->from_bytes, n_rows, k);
    for (int r = 0; r < n_rows; r++)
        octavo_weight_unpack_row(converter->from, values + r * stride, panel, r, k);
    for (int r = 0; r < n_rows && !loss.is_bad; r++)
        loss.is_bad = !is_finite(values + r * stride, k);
    for (int r = 0; r < n_rows && !loss.is_bad; r++)
        octavo_weight_quantize(converter->to, to + (size_t)r * converter->to_bytes,
                               values + r * stride, k);
    if (!loss.is_bad) octavo_weight_pack(converter->to, panel, to, converter->to_bytes, n_rows, k);
    for (int r = 0; r < n_rows && !loss.is_bad && !loss.is_large; r++) {
        octavo_weight_unpack_row(converter->to, back, panel, r, k);
        loss.is_large = !is_finite(back, k);
        if (!loss.is_large) measure_row(&loss, values + r * stride, back, k);
    }
    converter->losses[index] = loss;
}

static int64_t count_panels(const octavo_row_converter *converter) {
    return (converter->n_rows + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
}

static void convert_share(void *arg, int thread, int n_threads) {
    octavo_row_converter *converter = arg;
    int64_t begin, end;
    octavo_pool_share(count_panels(converter), 1, thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        convert_panel(converter, i, converter->scratch + (size_t)thread * converter->scratch_bytes);
}

void octavo_row_converter_run(octavo_row_converter *converter, const uint8_t *source,
                              int64_t n_rows, octavo_row_loss *loss) {
    octavo_assert(n_rows > 0 && n_rows <= converter->max_rows);
    converter->source = source;
    converter->n_rows = n_rows;
    octavo_pool_run(converter->pool, convert_share, converter);
    for (int64_t i = 0; i < count_panels(converter); i++)
        octavo_row_loss_add(loss, &converter->losses[i]);
}
