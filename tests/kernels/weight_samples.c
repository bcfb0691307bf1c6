/* SPDX-License-Identifier: Apache-2.0
 *
 * Random blocks of every weight type; where their f16 fields lie comes from the gguf definitions.
 */
#include "weight_samples.h"

#include "base/compiler.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

/* Byte offsets of the f16 fields of a block, plus 1; 0: none. */
static const int half_fields[OCTAVO_WEIGHT_TYPES][2] = {
    [OCTAVO_WEIGHT_Q8_0] = {1},    [OCTAVO_WEIGHT_Q4_0] = {1},      [OCTAVO_WEIGHT_Q4_1] = {1, 3},
    [OCTAVO_WEIGHT_Q5_0] = {1},    [OCTAVO_WEIGHT_Q5_1] = {1, 3},   [OCTAVO_WEIGHT_Q1_0] = {1},
    [OCTAVO_WEIGHT_IQ4_NL] = {1},  [OCTAVO_WEIGHT_Q2_K] = {81, 83}, [OCTAVO_WEIGHT_Q3_K] = {109},
    [OCTAVO_WEIGHT_Q4_K] = {1, 3}, [OCTAVO_WEIGHT_Q5_K] = {1, 3},   [OCTAVO_WEIGHT_Q6_K] = {209},
    [OCTAVO_WEIGHT_IQ4_XS] = {1},  [OCTAVO_WEIGHT_TQ1_0] = {53},    [OCTAVO_WEIGHT_TQ2_0] = {65},
    [OCTAVO_WEIGHT_IQ2_XXS] = {1}, [OCTAVO_WEIGHT_IQ2_XS] = {1},    [OCTAVO_WEIGHT_IQ2_S] = {1},
    [OCTAVO_WEIGHT_IQ3_XXS] = {1}, [OCTAVO_WEIGHT_IQ3_S] = {1},     [OCTAVO_WEIGHT_IQ1_S] = {1},
    [OCTAVO_WEIGHT_Z2] = {1},      [OCTAVO_WEIGHT_Z3] = {1},        [OCTAVO_WEIGHT_Z4] = {1},
    [OCTAVO_WEIGHT_Z4_64] = {1},   [OCTAVO_WEIGHT_Z8] = {1},
};

const char *weight_sample_name(weight_sample sample) {
    static const char *const names[] = {"normal", "ones", "zeros", "flat", "tiny", "nonfinite"};
    return names[sample];
}

uint32_t sample_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 20);
}

float sample_uniform(uint64_t *state) {
    return (float)(int32_t)sample_random(state) * 0x1p-31f;
}

size_t weight_row_bytes(octavo_weight_type type, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    return (size_t)(k / info->source_inputs) * (size_t)info->source_bytes;
}

static uint16_t sample_scale(weight_sample sample, int64_t row, uint64_t *state) {
    static const uint16_t odd[] = {0x7c00, 0xfc00, 0x7e00, 0xfe01}; /* infinities and NaN */
    uint32_t random = sample_random(state);
    if (sample == WEIGHT_SAMPLE_FLAT) return random & 1 ? 0x8000 : 0;
    if (sample == WEIGHT_SAMPLE_TINY) return (uint16_t)(random & 0x83ff);
    if (sample == WEIGHT_SAMPLE_NONFINITE && row == 5) return odd[random % 4];
    float scale = 0.001f + 0.02f * fabsf(sample_uniform(state));
    return octavo_f32_to_f16(random % 4 ? scale : -scale);
}

static void fill_floats(octavo_weight_type type, uint8_t *rows, int64_t n, uint64_t *state) {
    for (int64_t i = 0; i < n; i++) {
        float value = sample_uniform(state);
        uint16_t narrow =
            type == OCTAVO_WEIGHT_F16 ? octavo_f32_to_f16(value) : octavo_f32_to_bf16(value);
        if (type == OCTAVO_WEIGHT_F32)
            memcpy(rows + i * 4, &value, 4);
        else
            memcpy(rows + i * 2, &narrow, 2);
    }
}

/* Numbers of all sizes; infinities and NaN of E5M2 only where asked for. */
static void fill_f8(octavo_weight_type type, weight_sample sample, uint8_t *block, int64_t row,
                    uint64_t *state) {
    const float d = octavo_f16_to_f32(sample_scale(sample, row, state));
    memcpy(block, &d, sizeof d);
    if (type == OCTAVO_WEIGHT_F8_E5M2)
        for (int i = 4; i < 68; i++)
            if ((block[i] & 0x7c) == 0x7c) block[i] ^= 0x40;
}

/* Scales that are no f16 fields. */
static void fill_odd_scales(octavo_weight_type type, weight_sample sample, uint8_t *block,
                            int64_t row, uint64_t *state) {
    if (type == OCTAVO_WEIGHT_F8_E4M3 || type == OCTAVO_WEIGHT_F8_E5M2) {
        fill_f8(type, sample, block, row, state);
    } else if (type == OCTAVO_WEIGHT_MXFP4) {
        const bool is_small = sample == WEIGHT_SAMPLE_FLAT || sample == WEIGHT_SAMPLE_TINY;
        block[0] = (uint8_t)((is_small ? 0 : 116) + sample_random(state) % 8);
    } else if (type == OCTAVO_WEIGHT_NVFP4) {
        for (int i = 0; i < 4; i++)
            block[i] = sample == WEIGHT_SAMPLE_FLAT ? 0 : (uint8_t)(sample_random(state) % 128);
    } else if (type == OCTAVO_WEIGHT_IQ1_M) {
        const uint16_t scale = sample_scale(sample, row, state);
        for (int i = 0; i < 4; i++)
            block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | (scale >> (4 * i) & 15) << 4);
    }
}

void weight_sample_fill(octavo_weight_type type, weight_sample sample, uint8_t *rows,
                        int64_t n_rows, int64_t k, uint64_t *state) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    if (info->source_inputs == 1) {
        fill_floats(type, rows, n_rows * k, state);
        return;
    }
    const int64_t row_blocks = k / info->source_inputs;
    for (int64_t i = 0; i < n_rows * row_blocks; i++) {
        uint8_t *block = rows + i * info->source_bytes;
        for (int j = 0; j < info->source_bytes; j++)
            block[j] = sample == WEIGHT_SAMPLE_ALL_ONES    ? 0xff
                       : sample == WEIGHT_SAMPLE_ALL_ZEROS ? 0
                                                           : (uint8_t)sample_random(state);
        for (int j = 0; j < 2; j++) {
            if (half_fields[type][j] == 0) continue;
            uint16_t scale = sample_scale(sample, i / row_blocks, state);
            memcpy(block + half_fields[type][j] - 1, &scale, sizeof scale);
        }
        fill_odd_scales(type, sample, block, i / row_blocks, state);
    }
}

void q8_sample_block(octavo_q8_block *block, const float *x) {
    float max = 0.0f;
    for (int i = 0; i < 32; i++)
        max = fmaxf(max, fabsf(x[i]));
    float scale = 127.0f / max;
    *block = (octavo_q8_block){0};
    if (!isfinite(scale)) return;
    block->d = max / 127.0f;
    for (int i = 0; i < 32; i++) {
        block->q[i] = (int8_t)lrintf(x[i] * scale);
        block->sum[i / 16] = (int16_t)(block->sum[i / 16] + block->q[i]);
    }
}
