/* SPDX-License-Identifier: Apache-2.0
 *
 * A row at a time: to f32, to blocks of the new type, and all rows of a panel are packed at last.
 */
#include "kernels/weight_convert.h"

#include "base/compiler.h"
#include "base/memory.h"
#include "base/number.h"
#include "kernels/weight_quantize.h"

#include <float.h>
#include <math.h>
#include <string.h>

static octavo_weight_type wider(octavo_weight_type type, octavo_weight_type from) {
    switch (type) {
    case OCTAVO_WEIGHT_Q6_K:
        return OCTAVO_WEIGHT_Q8_0;
    case OCTAVO_WEIGHT_Q4_K:
        return OCTAVO_WEIGHT_Q5_0;
    case OCTAVO_WEIGHT_TQ1_0:
    case OCTAVO_WEIGHT_TQ2_0:
        return OCTAVO_WEIGHT_Q4_0;
    default:
        return from == OCTAVO_WEIGHT_BF16 ? OCTAVO_WEIGHT_BF16 : OCTAVO_WEIGHT_F16;
    }
}

octavo_weight_type octavo_weight_type_that_fits(octavo_weight_type want, octavo_weight_type from,
                                                int64_t k) {
    while (k % octavo_weight_info_of(want)->source_inputs != 0)
        want = wider(want, from);
    return want;
}

/* ---- memory: the old type's panel, where values are read through one, a row of values, rows of
 * the new type ---- */

static size_t old_panel_bytes(octavo_weight_type from, int64_t k) {
    if (octavo_weight_info_of(from)->source_inputs == 1) return 0;
    return octavo_align_up(octavo_weight_panel_bytes(from, k), OCTAVO_ALIGN);
}

static size_t values_bytes(int64_t k) {
    return octavo_align_up((size_t)k * sizeof(float), OCTAVO_ALIGN);
}

static size_t new_row_bytes(octavo_weight_type to, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(to);
    return (size_t)(k / info->source_inputs) * (size_t)info->source_bytes;
}

bool octavo_weight_convert_bytes(octavo_weight_type from, octavo_weight_type to, int64_t k,
                                 size_t *bytes) {
    size_t most;
    /* no panel takes more than those of f32 */
    if (!octavo_size_mul((size_t)k, 3 * OCTAVO_PANEL * sizeof(float), &most)) return false;
    *bytes = old_panel_bytes(from, k) + values_bytes(k) +
             octavo_align_up(new_row_bytes(to, k) * OCTAVO_PANEL, OCTAVO_ALIGN);
    return true;
}

/* ---- work ---- */

/* Row o of the source. */
static void read_row(octavo_weight_type from, float *values, const uint8_t *row,
                     const uint8_t *panel, int o, int64_t k) {
    switch (from) {
    case OCTAVO_WEIGHT_F32:
        memcpy(values, row, (size_t)k * sizeof *values);
        break;
    case OCTAVO_WEIGHT_F16:
        for (int64_t i = 0; i < k; i++) {
            uint16_t half;
            memcpy(&half, row + i * 2, sizeof half);
            values[i] = octavo_f16_to_f32(half);
        }
        break;
    case OCTAVO_WEIGHT_BF16:
        for (int64_t i = 0; i < k; i++) {
            uint16_t half;
            memcpy(&half, row + i * 2, sizeof half);
            values[i] = octavo_bf16_to_f32(half);
        }
        break;
    default:
        octavo_weight_unpack_row(from, values, panel, o, k);
        break;
    }
}

/* What surely becomes no infinity: scales are f16, and no code is larger than what it stands for.
 */
static float largest_of(octavo_weight_type to) {
    if (to == OCTAVO_WEIGHT_F32) return FLT_MAX;
    return to == OCTAVO_WEIGHT_BF16 ? 0x1.fep127f : 65504.0f;
}

static bool are_within(const float *values, int64_t k, float most) {
    int n_beyond = 0;
    for (int64_t i = 0; i < k; i++)
        n_beyond += !(fabsf(values[i]) <= most); /* NaN too */
    return n_beyond == 0;
}

bool octavo_weight_convert(octavo_weight_type from, octavo_weight_type to, uint8_t *panel,
                           const uint8_t *source, size_t row_bytes, int n_rows, int64_t k,
                           uint8_t *scratch) {
    uint8_t *old_panel = scratch;
    float *values = (float *)(void *)(scratch + old_panel_bytes(from, k));
    uint8_t *rows = (uint8_t *)values + values_bytes(k);
    const size_t new_bytes = new_row_bytes(to, k);
    if (octavo_weight_info_of(from)->source_inputs > 1)
        octavo_weight_pack(from, old_panel, source, row_bytes, n_rows, k);
    for (int o = 0; o < n_rows; o++) {
        read_row(from, values, source + (size_t)o * row_bytes, old_panel, o, k);
        if (!are_within(values, k, largest_of(to))) return false;
        octavo_weight_quantize(to, rows + (size_t)o * new_bytes, values, k);
    }
    octavo_weight_pack(to, panel, rows, new_bytes, n_rows, k);
    return true;
}

void octavo_weight_widen(octavo_weight_type from, float *values, const uint8_t *source,
                         size_t row_bytes, int n_rows, int64_t k, uint8_t *scratch) {
    if (octavo_weight_info_of(from)->source_inputs > 1)
        octavo_weight_pack(from, scratch, source, row_bytes, n_rows, k);
    for (int o = 0; o < n_rows; o++)
        read_row(from, values + o * k, source + (size_t)o * row_bytes, scratch, o, k);
}
