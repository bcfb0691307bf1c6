/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders of one block as a file holds it, written from the definitions of gguf. They share
 * nothing with the packed layout, and with the kernels only the grids' numbers.
 */
#include "weight_decoders.h"

#include "base/number.h"
#include "kernels/weight_tables.h"

#include <math.h>
#include <string.h>

static float half_at(const uint8_t *p) {
    return octavo_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static void decode_q8_0(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++)
        y[i] = half_at(block) * (float)(int8_t)block[2 + i];
}

static void decode_q4_0(float *y, const uint8_t *block) {
    for (int i = 0; i < 16; i++) {
        y[i] = half_at(block) * (float)((block[2 + i] & 15) - 8);
        y[i + 16] = half_at(block) * (float)((block[2 + i] >> 4) - 8);
    }
}

static void decode_q4_1(float *y, const uint8_t *block) {
    for (int i = 0; i < 16; i++) {
        y[i] = half_at(block) * (float)(block[4 + i] & 15) + half_at(block + 2);
        y[i + 16] = half_at(block) * (float)(block[4 + i] >> 4) + half_at(block + 2);
    }
}

static void decode_q5_0(float *y, const uint8_t *block) {
    uint32_t high = block[2] | block[3] << 8 | block[4] << 16 | (uint32_t)block[5] << 24;
    for (int i = 0; i < 32; i++) {
        uint32_t low = i < 16 ? block[6 + i] & 15u : block[6 + i - 16] >> 4u;
        y[i] = half_at(block) * (float)((int)(low | (high >> i & 1) << 4) - 16);
    }
}

static void decode_f8(float *y, const uint8_t *block, int exponent_bits) {
    const int mantissa_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    float d;
    memcpy(&d, block, sizeof d);
    for (int i = 0; i < 64; i++) {
        const int size = block[4 + i] & 127, e = size >> mantissa_bits;
        const int m = size & ((1 << mantissa_bits) - 1);
        const int whole = e > 0 ? m | 1 << mantissa_bits : m;
        const double value = ldexp(whole, (e > 0 ? e : 1) - bias - mantissa_bits);
        /* d of E4M3 is 2^8 times the scale */
        const double unit = exponent_bits == 4 ? value / 256.0 : value;
        y[i] = (float)(block[4 + i] & 128 ? -unit : unit) * d;
    }
}

static void decode_f8_e4m3(float *y, const uint8_t *block) {
    decode_f8(y, block, 4);
}

static void decode_f8_e5m2(float *y, const uint8_t *block) {
    decode_f8(y, block, 5);
}

static float z_value(const uint8_t *block, int code) {
    return half_at(block) * (float)code - half_at(block) * (float)(int8_t)block[2];
}

static void decode_z2(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++)
        y[i] = z_value(block, block[3 + i / 16 * 4 + i % 4] >> (i / 4 % 4 * 2) & 3);
}

static void decode_z3(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++)
        y[i] = z_value(block, (block[3 + i / 16 * 4 + i % 4] >> (i / 4 % 4 * 2) & 3) +
                                  4 * (block[11 + i % 4] >> (i / 4) & 1));
}

static void decode_z4(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++)
        y[i] = z_value(block, block[3 + i % 16] >> (i / 16 * 4) & 15);
}

static void decode_z4_64(float *y, const uint8_t *block) {
    for (int i = 0; i < 64; i++)
        y[i] = z_value(block, block[3 + i / 32 * 16 + i % 16] >> (i / 16 % 2 * 4) & 15);
}

static void decode_z8(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++)
        y[i] = z_value(block, block[3 + i] - 128);
}

static void decode_q4_k(float *y, const uint8_t *block) {
    const uint8_t *s = block + 4, *codes = block + 16;
    for (int i = 0; i < 256; i++) {
        const int b = i / 32;
        int scale = b < 4 ? s[b] & 63 : (s[b + 4] & 15) | (s[b - 4] >> 6) << 4;
        int min = b < 4 ? s[b + 4] & 63 : (s[b + 4] >> 4) | (s[b] >> 6) << 4;
        int both = codes[i / 64 * 32 + i % 32];
        float d = half_at(block) * (float)scale, m = half_at(block + 2) * (float)min;
        y[i] = d * (float)(b % 2 ? both >> 4 : both & 15) - m;
    }
}

static void decode_q6_k(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, run = i / 32 % 4, l = i % 32;
        int low = block[half * 64 + run % 2 * 32 + l] >> (run / 2 * 4) & 15;
        int high = block[128 + half * 32 + l] >> (2 * run) & 3;
        float d = half_at(block + 208) * (float)(int8_t)block[192 + i / 16];
        y[i] = d * (float)((low | high << 4) - 32);
    }
}

static void decode_f32(float *y, const uint8_t *p) {
    memcpy(y, p, sizeof *y);
}

static void decode_f16(float *y, const uint8_t *p) {
    *y = half_at(p);
}

static void decode_bf16(float *y, const uint8_t *p) {
    *y = octavo_f32_from_bits((uint32_t)p[1] << 24 | (uint32_t)p[0] << 16);
}

static void decode_q5_1(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++) {
        int low = i < 16 ? block[8 + i] & 15 : block[8 + i - 16] >> 4;
        int high = block[4 + i / 8] >> (i % 8) & 1;
        y[i] = half_at(block) * (float)(low + 16 * high) + half_at(block + 2);
    }
}

static void decode_q1_0(float *y, const uint8_t *block) {
    for (int i = 0; i < 128; i++)
        y[i] = block[2 + i / 8] >> (i % 8) & 1 ? half_at(block) : -half_at(block);
}

static int iq4_value(int code) {
    static const int values[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};
    return values[code & 15];
}

static float fp4_value(int code) {
    static const float values[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return code & 8 ? -values[code & 7] : values[code & 7];
}

static void decode_iq4_nl(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++)
        y[i] = half_at(block) * (float)iq4_value(block[2 + i % 16] >> (i / 16 * 4));
}

static void decode_mxfp4(float *y, const uint8_t *block) {
    for (int i = 0; i < 32; i++)
        y[i] = ldexpf(fp4_value(block[1 + i % 16] >> (i / 16 * 4)), block[0] - 127);
}

static void decode_nvfp4(float *y, const uint8_t *block) {
    for (int i = 0; i < 64; i++) {
        const int s = block[i / 16], e = s >> 3 & 15;
        float scale = e == 0 ? ldexpf((float)(s & 7), -9) : ldexpf((float)(8 + (s & 7)), e - 10);
        if (s == 0x7f) scale = 0.0f;
        y[i] = scale * fp4_value(block[4 + i / 16 * 8 + i % 8] >> (i / 8 % 2 * 4));
    }
}

static void decode_q2_k(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        int both = block[i / 16], code = block[16 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
        float d = half_at(block + 80) * (float)(both & 15);
        y[i] = d * (float)code - half_at(block + 82) * (float)(both >> 4);
    }
}

static void decode_q3_k(float *y, const uint8_t *block) {
    const uint8_t *s = block + 96;
    for (int i = 0; i < 256; i++) {
        const int g = i / 16;
        int low = block[32 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
        int high = block[i % 32] >> (i / 32) & 1;
        int scale = (g < 8 ? s[g] & 15 : s[g - 8] >> 4) | (s[8 + g % 4] >> (g / 4 * 2) & 3) << 4;
        y[i] = half_at(block + 108) * (float)(scale - 32) * (float)(low - (high ? 0 : 4));
    }
}

static void decode_q5_k(float *y, const uint8_t *block) {
    const uint8_t *s = block + 4;
    for (int i = 0; i < 256; i++) {
        const int b = i / 32;
        int scale = b < 4 ? s[b] & 63 : (s[b + 4] & 15) | (s[b - 4] >> 6) << 4;
        int min = b < 4 ? s[b + 4] & 63 : (s[b + 4] >> 4) | (s[b] >> 6) << 4;
        int low = block[48 + i / 64 * 32 + i % 32] >> (b % 2 * 4) & 15;
        int high = block[16 + i % 32] >> b & 1;
        float d = half_at(block) * (float)scale, m = half_at(block + 2) * (float)min;
        y[i] = d * (float)(low + 16 * high) - m;
    }
}

static void decode_iq4_xs(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        const int b = i / 32;
        int scale = (block[4 + b / 2] >> (b % 2 * 4) & 15) | (block[2 + b / 4] >> (b % 4 * 2) & 3)
                                                                 << 4;
        int value = iq4_value(block[8 + 16 * b + i % 16] >> (i / 16 % 2 * 4));
        y[i] = half_at(block) * (float)(scale - 32) * (float)value;
    }
}

static void decode_tq1_0(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        int digit = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
        int byte = i < 160 ? block[i % 32] : i < 240 ? block[32 + i % 16] : block[48 + i % 4];
        while (digit-- > 0)
            byte = byte * 3 % 256;
        y[i] = half_at(block + 52) * (float)(byte * 3 / 256 - 1);
    }
}

static void decode_tq2_0(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        int code = block[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
        y[i] = half_at(block + 64) * (float)(code - 1);
    }
}

/* Value i % 8 (or % 4) of an entry. */
static float iq2_value(const uint16_t *grid, int index, int i) {
    static const float values[] = {8.0f, 25.0f, 43.0f, 0.0f};
    return values[grid[index] >> (i % 8 * 2) & 3];
}

static float iq1_value(int index, int i) {
    return (float)(octavo_grid_iq1[index] >> (i % 8 * 2) & 3) - 1.0f;
}

/* Sign i of 8, of which the last makes the number of minus signs even. */
static float sign_of_7(uint32_t signs, int i) {
    int odd = 0;
    for (int j = 0; j < 7; j++)
        odd ^= (int)(signs >> j & 1);
    return (i % 8 < 7 ? (int)(signs >> (i % 8) & 1) : odd) ? -1.0f : 1.0f;
}

static float sign_of_8(const uint8_t *signs, int i) {
    return signs[i / 8] >> (i % 8) & 1 ? -1.0f : 1.0f;
}

static uint32_t word_at(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void decode_iq2_xxs(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        const uint8_t *run = block + 2 + i / 32 * 8;
        const uint32_t packed = word_at(run + 4);
        float d = half_at(block) * (0.5f + (float)(packed >> 28)) * 0.25f;
        y[i] = d * iq2_value(octavo_grid_iq2_xxs, run[i / 8 % 4], i) *
               sign_of_7(packed >> (i / 8 % 4 * 7), i);
    }
}

static void decode_iq2_xs(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        int both = block[2 + i / 8 * 2] | block[3 + i / 8 * 2] << 8;
        float scale = (float)(block[66 + i / 32] >> (i / 16 % 2 * 4) & 15);
        y[i] = half_at(block) * (0.5f + scale) * 0.25f *
               iq2_value(octavo_grid_iq2_xs, both & 511, i) * sign_of_7((uint32_t)both >> 9, i);
    }
}

static void decode_iq2_s(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        int index = block[2 + i / 8] | (block[66 + i / 32] >> (i / 8 % 4 * 2) & 3) << 8;
        float scale = (float)(block[74 + i / 32] >> (i / 16 % 2 * 4) & 15);
        y[i] = half_at(block) * (0.5f + scale) * 0.25f * iq2_value(octavo_grid_iq2_s, index, i) *
               sign_of_8(block + 34, i);
    }
}

static void decode_iq3_xxs(float *y, const uint8_t *block) {
    static const float values[] = {4.0f, 12.0f, 20.0f, 28.0f, 36.0f, 44.0f, 52.0f, 62.0f};
    for (int i = 0; i < 256; i++) {
        const uint32_t packed = word_at(block + 66 + i / 32 * 4);
        float d = half_at(block) * (0.5f + (float)(packed >> 28)) * 0.5f;
        y[i] = d * values[octavo_grid_iq3_xxs[block[2 + i / 4]] >> (i % 4 * 4) & 7] *
               sign_of_7(packed >> (i / 8 % 4 * 7), i);
    }
}

static void decode_iq3_s(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        int index = block[2 + i / 4] | (block[66 + i / 32] >> (i / 4 % 8) & 1) << 8;
        int scale = block[106 + i / 64] >> (i / 32 % 2 * 4) & 15;
        int value = 1 + 2 * (octavo_grid_iq3_s[index] >> (i % 4 * 4) & 7);
        y[i] = half_at(block) * (float)(1 + 2 * scale) * (float)value * sign_of_8(block + 74, i);
    }
}

static void decode_iq1_s(float *y, const uint8_t *block) {
    for (int i = 0; i < 256; i++) {
        int packed = block[34 + i / 32 * 2] | block[35 + i / 32 * 2] << 8;
        int index = block[2 + i / 8] | (packed >> (i / 8 % 4 * 3) & 7) << 8;
        float d = half_at(block) * (float)(2 * (packed >> 12 & 7) + 1);
        y[i] = d * (iq1_value(index, i) + (packed & 0x8000 ? -0.125f : 0.125f));
    }
}

static void decode_iq1_m(float *y, const uint8_t *block) {
    const uint8_t *s = block + 48;
    const uint8_t d[2] = {(uint8_t)(s[1] >> 4 | (s[3] & 0xf0)),
                          (uint8_t)(s[5] >> 4 | (s[7] & 0xf0))};
    for (int i = 0; i < 256; i++) {
        int packed = s[i / 64 * 2] | s[i / 64 * 2 + 1] << 8;
        int high = block[32 + i / 16] >> (i / 8 % 2 * 4);
        int index = block[i / 8] | (high & 7) << 8;
        float scale = half_at(d) * (float)(2 * (packed >> (i / 16 % 4 * 3) & 7) + 1);
        y[i] = scale * (iq1_value(index, i) + (high & 8 ? -0.125f : 0.125f));
    }
}

void weight_decode(octavo_weight_type type, float *y, const uint8_t *block) {
    typedef void decode_fn(float *y, const uint8_t *block);
    static decode_fn *const decoders[OCTAVO_WEIGHT_TYPES] = {
        [OCTAVO_WEIGHT_F32] = decode_f32,         [OCTAVO_WEIGHT_F16] = decode_f16,
        [OCTAVO_WEIGHT_BF16] = decode_bf16,       [OCTAVO_WEIGHT_Q8_0] = decode_q8_0,
        [OCTAVO_WEIGHT_Q4_0] = decode_q4_0,       [OCTAVO_WEIGHT_Q4_1] = decode_q4_1,
        [OCTAVO_WEIGHT_Q5_0] = decode_q5_0,       [OCTAVO_WEIGHT_Q5_1] = decode_q5_1,
        [OCTAVO_WEIGHT_Q1_0] = decode_q1_0,       [OCTAVO_WEIGHT_IQ4_NL] = decode_iq4_nl,
        [OCTAVO_WEIGHT_MXFP4] = decode_mxfp4,     [OCTAVO_WEIGHT_NVFP4] = decode_nvfp4,
        [OCTAVO_WEIGHT_Q2_K] = decode_q2_k,       [OCTAVO_WEIGHT_Q3_K] = decode_q3_k,
        [OCTAVO_WEIGHT_Q4_K] = decode_q4_k,       [OCTAVO_WEIGHT_Q5_K] = decode_q5_k,
        [OCTAVO_WEIGHT_Q6_K] = decode_q6_k,       [OCTAVO_WEIGHT_IQ4_XS] = decode_iq4_xs,
        [OCTAVO_WEIGHT_TQ1_0] = decode_tq1_0,     [OCTAVO_WEIGHT_TQ2_0] = decode_tq2_0,
        [OCTAVO_WEIGHT_IQ2_XXS] = decode_iq2_xxs, [OCTAVO_WEIGHT_IQ2_XS] = decode_iq2_xs,
        [OCTAVO_WEIGHT_IQ2_S] = decode_iq2_s,     [OCTAVO_WEIGHT_IQ3_XXS] = decode_iq3_xxs,
        [OCTAVO_WEIGHT_IQ3_S] = decode_iq3_s,     [OCTAVO_WEIGHT_IQ1_S] = decode_iq1_s,
        [OCTAVO_WEIGHT_IQ1_M] = decode_iq1_m,     [OCTAVO_WEIGHT_F8_E4M3] = decode_f8_e4m3,
        [OCTAVO_WEIGHT_F8_E5M2] = decode_f8_e5m2, [OCTAVO_WEIGHT_Z2] = decode_z2,
        [OCTAVO_WEIGHT_Z3] = decode_z3,           [OCTAVO_WEIGHT_Z4] = decode_z4,
        [OCTAVO_WEIGHT_Z4_64] = decode_z4_64,     [OCTAVO_WEIGHT_Z8] = decode_z8,
    };
    decoders[type](y, block);
}
