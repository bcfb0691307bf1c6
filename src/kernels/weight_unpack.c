/* SPDX-License-Identifier: Apache-2.0
 *
 * From panels back to f32: the plain, exact definition of what packed weights mean.
 */
#include "base/compiler.h"
#include "base/number.h"
#include "kernels/weight.h"
#include "kernels/weight_layout.h"
#include "kernels/weight_tables.h"

#include <string.h>

static uint16_t load_u16(const uint8_t *part, int64_t index) {
    uint16_t bits;
    memcpy(&bits, part + index * 2, sizeof bits);
    return bits;
}

static float load_f16(const uint8_t *part, int64_t index) {
    return octavo_f16_to_f32(load_u16(part, index));
}

/* Each part's share in the codes of output o, see weight.h. */
static void load_codes8(uint8_t code[OCTAVO_BLOCK], const uint8_t *part, int o) {
    for (int g = 0; g < 8; g++)
        memcpy(code + 4 * g, part + (g * OCTAVO_PANEL + o) * 4, 4);
}

static void load_codes4(uint8_t code[OCTAVO_BLOCK], const uint8_t *part, int o) {
    for (int i = 0; i < OCTAVO_BLOCK / 2; i++) {
        const uint8_t both = part[(i / 4 * OCTAVO_PANEL + o) * 4 + i % 4];
        code[i] = both & 15;
        code[16 + i] = both >> 4;
    }
}

static void add_codes2(uint8_t code[OCTAVO_BLOCK], const uint8_t *part, int o, int shift) {
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        const int two = part[i / 16 * 128 + o * 4 + i % 4] >> (i / 4 % 4 * 2) & 3;
        code[i] |= (uint8_t)(two << shift);
    }
}

static void add_codes1(uint8_t code[OCTAVO_BLOCK], const uint8_t *part, int o, int shift) {
    for (int i = 0; i < OCTAVO_BLOCK; i++)
        code[i] |= (uint8_t)((part[o * 4 + i % 4] >> (i / 4) & 1) << shift);
}

static void load_codes(const octavo_weight_layout *layout, uint8_t code[OCTAVO_BLOCK],
                       const uint8_t *block, int o) {
    const uint8_t *high = block + octavo_layout_high_at(layout);
    memset(code, 0, OCTAVO_BLOCK);
    if (layout->bits == 8) load_codes8(code, block, o);
    if (layout->bits == 4) load_codes4(code, block, o);
    if (layout->bits == 2) add_codes2(code, block, o, 0);
    if (layout->bits == 1) add_codes1(code, block, o, 1); /* 0 or 2 */
    if (layout->high_bits == 1) add_codes1(code, high, o, layout->bits);
    if (layout->high_bits == 2) add_codes2(code, high, o, layout->bits);
}

/* Place c of a grid's list. */
static int grid_value(octavo_code_table table, int c) {
    switch (table) {
    case OCTAVO_TABLE_IQ2:
        return 8 + 17 * c + (c >> 1);
    case OCTAVO_TABLE_IQ3_XXS:
        return 4 + 8 * c + 2 * (c == 7);
    case OCTAVO_TABLE_IQ3_S:
        return 1 + 2 * c;
    default:
        return 8 * c - 8;
    }
}

static void load_grid(octavo_weight_type type, int8_t value[OCTAVO_BLOCK], const uint8_t *block,
                      int o) {
    const octavo_weight_layout *layout = &octavo_weight_layouts[type];
    const uint8_t *high = block + octavo_layout_high_at(layout) + o;
    const int n = OCTAVO_BLOCK / layout->indices; /* values of an index */
    const uint8_t *signs = block + octavo_layout_codes_bytes(layout) + o / 2;
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        const int at = i / n * layout->high_bits;
        int index = block[i / n * OCTAVO_BYTES_BYTES + o], rest = 0;
        if (layout->high_bits)
            rest = high[at / 8 * OCTAVO_BYTES_BYTES] >> (at % 8) & ((1 << layout->high_bits) - 1);
        const int lean = layout->table != OCTAVO_TABLE_IQ1 ? 0 : rest & 8 ? -1 : 1;
        if (lean) rest &= 7;
        index |= rest << 8;
        const int c = octavo_grid_of(type)[index] >> (i % n * (16 / n)) & (n == 8 ? 3 : 7);
        const int size = grid_value(layout->table, c) + lean;
        const bool is_negative = layout->is_signed && signs[i / 4 * 16] >> (o % 2 * 4 + i % 4) & 1;
        value[i] = (int8_t)(is_negative ? -size : size);
    }
}

static void load_values(octavo_weight_type type, int8_t value[OCTAVO_BLOCK], const uint8_t *block,
                        int o) {
    const octavo_weight_layout *layout = &octavo_weight_layouts[type];
    uint8_t code[OCTAVO_BLOCK];
    if (!layout->bits) {
        load_grid(type, value, block, o);
        return;
    }
    load_codes(layout, code, block, o);
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        int wide = code[i];
        if (layout->table == OCTAVO_TABLE_IQ4) wide = octavo_table_iq4[code[i]];
        if (layout->table == OCTAVO_TABLE_FP4) wide = octavo_table_fp4[code[i]];
        value[i] = (int8_t)(wide - layout->offset);
    }
}

static float load_d(const octavo_weight_layout *layout, const uint8_t *record, int o) {
    if (layout->d == OCTAVO_D_ONE) return 1.0f;
    if (layout->d == OCTAVO_D_E8M0) {
        const uint32_t e = record[layout->d_at + o];
        return octavo_f32_from_bits(e < 2 ? UINT32_C(0x200000) << e : (e - 1) << 23);
    }
    const float d = load_f16(record + layout->d_at, o);
    return layout->d_factor != 0.0f ? d * layout->d_factor : d;
}

static float load_scale(const octavo_weight_layout *layout, const uint8_t *block, int o, int half) {
    const uint8_t *at = block + layout->scale_at + o;
    switch (layout->scale) {
    case OCTAVO_SCALE_U8:
        return at[0];
    case OCTAVO_SCALE_S8:
        return (int8_t)at[0];
    case OCTAVO_SCALE_ODD:
        return (float)(2 * (at[0] & 15) + 1);
    case OCTAVO_SCALE_S8_2:
        return (int8_t)at[half * OCTAVO_BYTES_BYTES];
    case OCTAVO_SCALE_NIBBLE_2:
        return (float)(at[0] >> (4 * half) & 15);
    case OCTAVO_SCALE_ODD_2:
        return (float)(2 * (at[0] >> (4 * half) & 15) + 1);
    case OCTAVO_SCALE_UE4M3_2:
        /* as the upper bits of an f32 of the same exponent and a lower bias; exact */
        return octavo_f32_from_bits((uint32_t)at[half * OCTAVO_BYTES_BYTES] << 20) * 0x1p119f;
    default:
        return 1.0f;
    }
}

static float load_m(const octavo_weight_layout *layout, const uint8_t *record, const uint8_t *block,
                    int o, int half) {
    const float m = load_f16(record + layout->m_at, o);
    const uint8_t *at = block + layout->min_at + o;
    if (layout->min == OCTAVO_MIN_F16) return m;
    if (layout->min == OCTAVO_MIN_S8) return -(m * (float)(int8_t)record[layout->min_at + o]);
    return -(m * (float)(layout->min == OCTAVO_MIN_U8 ? at[0] : at[0] >> (4 * half) & 15));
}

void octavo_weight_run_load(octavo_weight_type type, octavo_weight_run *run, const uint8_t *panel,
                            int64_t k, int o) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    const octavo_weight_layout *layout = &octavo_weight_layouts[type];
    const uint8_t *record = panel + k / info->record_inputs * info->record_bytes;
    const uint8_t *block =
        record + layout->head_bytes + k % info->record_inputs / OCTAVO_BLOCK * layout->block_bytes;
    octavo_assert(k % OCTAVO_BLOCK == 0 && o >= 0 && o < OCTAVO_PANEL && info->is_quantised);
    *run = (octavo_weight_run){.has_m = layout->min != OCTAVO_MIN_NONE};
    load_values(type, run->value, block, o);
    run->d = load_d(layout, record, o);
    for (int half = 0; half < 2; half++) {
        run->scale[half] = load_scale(layout, block, o, half);
        if (run->has_m) run->m[half] = load_m(layout, record, block, o, half);
    }
}

static float load_f8(octavo_weight_type type, const uint8_t *panel, int64_t k, int o) {
    const uint8_t *record = panel + k / OCTAVO_F8_INPUTS * OCTAVO_F8_RECORD_BYTES;
    const uint32_t code = record[OCTAVO_F8_HEAD_BYTES + k % OCTAVO_F8_INPUTS * OCTAVO_PANEL + o];
    float d;
    memcpy(&d, record + (size_t)o * 4, sizeof d);
    if (type == OCTAVO_WEIGHT_F8_E5M2) return octavo_f16_to_f32((uint16_t)(code << 8)) * d;
    return octavo_f16_to_f32((uint16_t)((code & 0x80) << 8 | (code & 0x7f) << 7)) * d;
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
    case OCTAVO_WEIGHT_F8_E4M3:
    case OCTAVO_WEIGHT_F8_E5M2:
        for (int64_t k = k0; k < k1; k++)
            out[(k - k0) * stride] = load_f8(type, panel, k, o);
        break;
    default:
        for (int64_t k = k0; k < k1; k += OCTAVO_BLOCK) {
            octavo_weight_run run;
            octavo_weight_run_load(type, &run, panel, k, o);
            for (int i = 0; i < OCTAVO_BLOCK; i++) {
                float w = run.d * run.scale[i / 16] * (float)run.value[i];
                out[(k - k0 + i) * stride] = run.has_m ? w + run.m[i / 16] : w;
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
