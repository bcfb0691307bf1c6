/* SPDX-License-Identifier: Apache-2.0
 *
 * From panels back to f32: the plain, exact definition of what packed weights mean.
 */
#include "base/compiler.h"
#include "base/number.h"
#include "kernels/weight.h"
#include "kernels/weight_layout.h"

#include <string.h>

static uint16_t load_u16(const uint8_t *part, int64_t index) {
    uint16_t bits;
    memcpy(&bits, part + index * 2, sizeof bits);
    return bits;
}

static float load_f16(const uint8_t *part, int64_t index) {
    return octavo_f16_to_f32(load_u16(part, index));
}

static void load_codes4(uint8_t code[OCTAVO_BLOCK], const uint8_t *codes, int o) {
    for (int g = 0; g < 4; g++) {
        for (int j = 0; j < 4; j++) {
            uint8_t both = codes[(g * OCTAVO_PANEL + o) * 4 + j];
            code[4 * g + j] = both & 15;
            code[16 + 4 * g + j] = both >> 4;
        }
    }
}

static void load_codes8(uint8_t code[OCTAVO_BLOCK], const uint8_t *codes, int o) {
    for (int g = 0; g < 8; g++)
        memcpy(code + 4 * g, codes + (g * OCTAVO_PANEL + o) * 4, 4);
}

static void add_high1(uint8_t code[OCTAVO_BLOCK], const uint8_t *high, int o) {
    for (int i = 0; i < OCTAVO_BLOCK; i++)
        code[i] |= (uint8_t)((high[o * 4 + i % 4] >> (i / 4) & 1) << 4);
}

static void add_high2(uint8_t code[OCTAVO_BLOCK], const uint8_t *high, int o) {
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        uint8_t pairs = high[i / 16 * 128 + o * 4 + i % 4];
        code[i] |= (uint8_t)((pairs >> (i / 4 % 4 * 2) & 3) << 4);
    }
}

void octavo_weight_run_load(octavo_weight_type type, octavo_weight_run *run, const uint8_t *panel,
                            int64_t k, int o) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    const uint8_t *record = panel + k / info->record_inputs * info->record_bytes;
    const int64_t b = k % info->record_inputs / OCTAVO_BLOCK; /* in a super-block */
    const uint8_t *block;
    octavo_assert(k % OCTAVO_BLOCK == 0 && o >= 0 && o < OCTAVO_PANEL);
    *run = (octavo_weight_run){.scale = {1, 1}};
    switch (type) {
    case OCTAVO_WEIGHT_Q8_0:
        load_codes8(run->code, record, o);
        run->offset = 128;
        run->d = load_f16(record + OCTAVO_Q8_0_D, o);
        break;
    case OCTAVO_WEIGHT_Q4_0:
        load_codes4(run->code, record, o);
        run->offset = 8;
        run->d = load_f16(record + OCTAVO_Q4_0_D, o);
        break;
    case OCTAVO_WEIGHT_Q4_1:
        load_codes4(run->code, record, o);
        run->d = load_f16(record + OCTAVO_Q4_1_D, o);
        run->m = load_f16(record + OCTAVO_Q4_1_M, o);
        run->has_m = true;
        break;
    case OCTAVO_WEIGHT_Q5_0:
        load_codes4(run->code, record, o);
        add_high1(run->code, record + OCTAVO_Q5_0_HIGH, o);
        run->offset = 16;
        run->d = load_f16(record + OCTAVO_Q5_0_D, o);
        break;
    case OCTAVO_WEIGHT_Q4_K:
        block = record + OCTAVO_Q4_K_HEAD + b * OCTAVO_Q4_K_BLOCK;
        load_codes4(run->code, block, o);
        run->scale[0] = run->scale[1] = block[OCTAVO_Q4_K_SCALE + o];
        run->d = load_f16(record + OCTAVO_Q4_K_D, o);
        run->m = -(load_f16(record + OCTAVO_Q4_K_DMIN, o) * (float)block[OCTAVO_Q4_K_MIN + o]);
        run->has_m = true;
        break;
    case OCTAVO_WEIGHT_Q6_K:
        block = record + OCTAVO_Q6_K_HEAD + b * OCTAVO_Q6_K_BLOCK;
        load_codes4(run->code, block, o);
        add_high2(run->code, block + OCTAVO_Q6_K_HIGH, o);
        run->offset = 32;
        run->scale[0] = (int8_t)block[OCTAVO_Q6_K_SCALE + o];
        run->scale[1] = (int8_t)block[OCTAVO_Q6_K_SCALE + OCTAVO_SCALES_BYTES + o];
        run->d = load_f16(record + OCTAVO_Q6_K_D, o);
        break;
    default:
        octavo_assert(!"a quantised type");
        break;
    }
}

/* Output o of inputs [k0, k1), `stride` apart in out. */
static void unpack_output(octavo_weight_type type, float *out, int64_t stride, const uint8_t *panel,
                          int o, int64_t k0, int64_t k1) {
    switch (type) {
    case OCTAVO_WEIGHT_F32:
        for (int64_t k = k0; k < k1; k++)
            memcpy(out + (k - k0) * stride, panel + (k * OCTAVO_PANEL + o) * 4, 4);
        break;
    case OCTAVO_WEIGHT_F16:
        for (int64_t k = k0; k < k1; k++)
            out[(k - k0) * stride] = load_f16(panel, k * OCTAVO_PANEL + o);
        break;
    case OCTAVO_WEIGHT_BF16:
        for (int64_t k = k0; k < k1; k++)
            out[(k - k0) * stride] =
                octavo_bf16_to_f32(load_u16(panel, (k / 2 * OCTAVO_PANEL + o) * 2 + k % 2));
        break;
    default:
        for (int64_t k = k0; k < k1; k += OCTAVO_BLOCK) {
            octavo_weight_run run;
            octavo_weight_run_load(type, &run, panel, k, o);
            for (int i = 0; i < OCTAVO_BLOCK; i++) {
                float w = run.d * (float)run.scale[i / 16] * (float)(run.code[i] - run.offset);
                out[(k - k0 + i) * stride] = run.has_m ? w + run.m : w;
            }
        }
        break;
    }
}

void octavo_weight_unpack(octavo_weight_type type, float *out, const uint8_t *panel, int64_t k0,
                          int64_t k1) {
    for (int o = 0; o < OCTAVO_PANEL; o++)
        unpack_output(type, out + o, OCTAVO_PANEL, panel, o, k0, k1);
}

void octavo_weight_unpack_row(octavo_weight_type type, float *out, const uint8_t *panel, int row,
                              int64_t k) {
    octavo_assert(row >= 0 && row < OCTAVO_PANEL);
    unpack_output(type, out, 1, panel, row, 0, k);
}
