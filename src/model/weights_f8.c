/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of 8-bit floats as blocks of a scale and 64 codes, or as f32.
 */
#include "model/weights_f8.h"

#include "base/number.h"
#include "kernels/weight_layout.h"

#include <math.h>
#include <string.h>

static const octavo_safetensors_tensor *of_file(const octavo_loader *load,
                                                const octavo_checkpoint_tensor *tensor) {
    return octavo_safetensors_tensor_at(load->checkpoint->safetensors, tensor->index);
}

bool octavo_f8_is(const octavo_loader *load, const octavo_checkpoint_tensor *tensor) {
    if (load->checkpoint->gguf) return false;
    const octavo_safetensors_dtype dtype = of_file(load, tensor)->dtype;
    return dtype == OCTAVO_SAFETENSORS_F8_E4M3 || dtype == OCTAVO_SAFETENSORS_F8_E5M2;
}

octavo_status octavo_f8_find(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                             const octavo_weight *weight, octavo_row_map rows,
                             octavo_column_map columns, octavo_f8_source *source) {
    const octavo_safetensors_tensor *codes = of_file(load, tensor);
    const int64_t *given = load->config->quant.f8_block;
    const uint64_t block[2] = {(uint64_t)given[0], (uint64_t)given[1]};
    octavo_f8_source found = {
        .is_e4m3 = codes->dtype == OCTAVO_SAFETENSORS_F8_E4M3,
        .codes = tensor->data,
        .k = weight->k,
        .width = columns.columns ? columns.columns : weight->k,
        .rows = rows,
        .columns = columns,
    };
    octavo_status status = octavo_safetensors_find_scale(load->checkpoint->safetensors, codes,
                                                         block, &found.scale, load->error);
    if (status) return status;
    const uint64_t inputs = columns.columns ? found.scale.block_rows : found.scale.block_columns;
    const bool is_shared = inputs >= (uint64_t)weight->k || inputs % OCTAVO_F8_INPUTS == 0;
    found.type = !is_shared || weight->k % OCTAVO_F8_INPUTS ? OCTAVO_WEIGHT_F32
                 : found.is_e4m3                            ? OCTAVO_WEIGHT_F8_E4M3
                                                            : OCTAVO_WEIGHT_F8_E5M2;
    *source = found;
    return OCTAVO_OK;
}

/* Where input i of an output lies, and what its scale is. */
typedef struct place {
    const uint8_t *first;
    int64_t step; /* from input to input */
    uint64_t scale, block, stride;
} place;

static place place_of(const octavo_f8_source *source, int64_t output) {
    const octavo_safetensors_scale *scale = &source->scale;
    place at = {.step = 1, .scale = source->matrix * scale->matrix_stride};
    if (source->columns.columns) {
        const int64_t column = source->columns.first + output * source->columns.step;
        at.first = source->codes + column;
        at.step = source->width;
        at.scale += (uint64_t)column / scale->block_columns;
        at.block = scale->block_rows;
        at.stride = scale->row_stride;
    } else {
        const int64_t row = octavo_source_row(&source->rows, output);
        at.first = source->codes + row * source->width;
        at.scale += (uint64_t)row / scale->block_rows * scale->row_stride;
        at.block = scale->block_columns;
        at.stride = 1;
    }
    return at;
}

static float scale_of(const octavo_f8_source *source, const place *at, int64_t input) {
    return octavo_safetensors_scale_value(&source->scale,
                                          at->scale + (uint64_t)input / at->block * at->stride);
}

/* The exponent is all ones, and of E4M3 the mantissa too. */
static bool is_finite(bool is_e4m3, const uint8_t *codes, int n) {
    const int mask = is_e4m3 ? 0x7f : 0x7c;
    int found = 0;
    for (int i = 0; i < n; i++)
        found |= (codes[i] & mask) == mask;
    return !found;
}

static bool fill_blocks(const octavo_f8_source *source, uint8_t *to, const place *at, int64_t k0,
                        int64_t k1) {
    bool is_right = true;
    for (int64_t k = k0; k < k1; k += OCTAVO_F8_INPUTS, to += 4 + OCTAVO_F8_INPUTS) {
        const float d = scale_of(source, at, k) * (source->is_e4m3 ? 256.0f : 1.0f);
        memcpy(to, &d, sizeof d);
        if (at->step == 1) {
            memcpy(to + 4, at->first + k, OCTAVO_F8_INPUTS);
        } else {
            for (int i = 0; i < OCTAVO_F8_INPUTS; i++)
                to[4 + i] = at->first[(k + i) * at->step];
        }
        is_right &= isfinite(d) && is_finite(source->is_e4m3, to + 4, OCTAVO_F8_INPUTS);
    }
    return is_right;
}

static bool fill_floats(const octavo_f8_source *source, uint8_t *to, const place *at, int64_t k0,
                        int64_t k1) {
    bool is_right = true;
    for (int64_t k = k0; k < k1; k++, to += 4) {
        const uint8_t code = at->first[k * at->step];
        const float w = (source->is_e4m3 ? octavo_fp8_e4m3_to_f32
                                         : octavo_fp8_e5m2_to_f32)(code)*scale_of(source, at, k);
        memcpy(to, &w, sizeof w);
        is_right &= isfinite(w) != 0;
    }
    return is_right;
}

bool octavo_f8_fill(const void *cookie, uint8_t *to, int64_t row, int n, int64_t k0, int64_t k1) {
    const octavo_f8_source *source = cookie;
    const octavo_weight_info *info = octavo_weight_info_of(source->type);
    const size_t row_bytes = (size_t)((k1 - k0) / info->source_inputs * info->source_bytes);
    bool is_right = true;
    for (int i = 0; i < n; i++) {
        const place at = place_of(source, row + i);
        is_right &= (source->type == OCTAVO_WEIGHT_F32 ? fill_floats : fill_blocks)(
            source, to + (size_t)i * row_bytes, &at, k0, k1);
    }
    return is_right;
}
