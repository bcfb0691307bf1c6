/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain quantisation of gguf's types: one pass for a block's extremes, one for its codes. Where
 * something is rounded is part of it, for the bits must be those of the format's reference.
 */
#include "kernels/weight_quantize.h"

#include "base/compiler.h"
#include "base/number.h"
#include "kernels/weight_tables.h"

#include <math.h>
#include <string.h>

enum { HALF_BLOCK = OCTAVO_BLOCK / 2, SUPER_BLOCK = 256 };

static void put_f16(uint8_t *to, float value) {
    const uint16_t bits = octavo_f32_to_f16(value);
    memcpy(to, &bits, sizeof bits);
}

/* 1 / d; 0 where there is none, and then d is 0 in f16 too. */
static float inverse_of(float d) {
    const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    return isinf(inverse) ? 0.0f : inverse;
}

/* The largest size among n values, as bits: those of sizes are in the order of whole numbers, of
 * which compilers find the largest with vectors. */
static int32_t largest_of(const float *x, int n) {
    int32_t largest = 0;
    for (int i = 0; i < n; i++) {
        const int32_t size = (int32_t)(octavo_f32_bits(x[i]) & 0x7fffffffu);
        largest = size > largest ? size : largest;
    }
    return largest;
}

static float largest_size_of(const float *x, int n) {
    return octavo_f32_from_bits((uint32_t)largest_of(x, n));
}

/* The value of the largest size, the first of several. */
static float extreme_of(const float *x, int n) {
    const uint32_t largest = (uint32_t)largest_of(x, n);
    int i = 0;
    while (i < n - 1 && (octavo_f32_bits(x[i]) & 0x7fffffffu) != largest)
        i++;
    return x[i];
}

/* As roundf, |x| < 2^31, without a call. */
static inline int rounded(float x) {
    const int whole = (int)x;
    const float rest = x - (float)whole; /* exact */
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Cut off, within 0..most. */
static uint8_t code_of(float x, int most) {
    if (!(x > 0.0f)) return 0;
    return x >= (float)most ? (uint8_t)most : (uint8_t)x;
}

/* Codes of 4 bits, (input i, input i + 16) in a byte; and their fifth bits, if any, before them. */
static void put_codes(uint8_t *to, const uint8_t code[OCTAVO_BLOCK], bool has_fifth) {
    if (has_fifth) {
        memset(to, 0, 4);
        for (int i = 0; i < OCTAVO_BLOCK; i++)
            to[i / 8] |= (uint8_t)((code[i] >> 4) << (i % 8));
        to += 4;
    }
    for (int i = 0; i < HALF_BLOCK; i++)
        to[i] = (uint8_t)((code[i] & 15) | (code[HALF_BLOCK + i] & 15) << 4);
}

/* Q4_0 and Q5_0: the extreme value gets the code 0, so that it is exact but for d's rounding. */
static void quantize_signed(uint8_t *block, const float *x, int bits) {
    uint8_t code[OCTAVO_BLOCK];
    const int zero = 1 << (bits - 1);
    const float d = extreme_of(x, OCTAVO_BLOCK) / (float)-zero, inverse = inverse_of(d);
    for (int i = 0; i < OCTAVO_BLOCK; i++)
        code[i] = code_of(x[i] * inverse + ((float)zero + 0.5f), 2 * zero - 1);
    put_f16(block, d);
    put_codes(block + 2, code, bits == 5);
}

/* Q4_1 and Q5_1: the codes reach from the least to the greatest value. */
static void quantize_ranged(uint8_t *block, const float *x, int bits) {
    uint8_t code[OCTAVO_BLOCK];
    const int most = (1 << bits) - 1;
    float least = x[0], greatest = x[0];
    for (int i = 1; i < OCTAVO_BLOCK; i++) {
        if (x[i] < least) least = x[i];
        if (x[i] > greatest) greatest = x[i];
    }
    const float d = (greatest - least) / (float)most, inverse = inverse_of(d);
    for (int i = 0; i < OCTAVO_BLOCK; i++)
        code[i] = code_of((x[i] - least) * inverse + 0.5f, most);
    put_f16(block, d);
    put_f16(block + 2, least);
    put_codes(block + 4, code, bits == 5);
}

static void quantize_q8_0(uint8_t *block, const float *x) {
    const float d = largest_size_of(x, OCTAVO_BLOCK) / 127.0f, inverse = inverse_of(d);
    put_f16(block, d);
    for (int i = 0; i < OCTAVO_BLOCK; i++)
        block[2 + i] = (uint8_t)(int8_t)rounded(x[i] * inverse);
}

/* The exponent makes the extreme value 4 to 8 units, of which 6 is the most; each value then takes
 * the nearest of the 16, the lower code of two as near. */
static void quantize_mxfp4(uint8_t *block, const float *x) {
    uint8_t code[OCTAVO_BLOCK];
    const float extreme = largest_size_of(x, OCTAVO_BLOCK);
    float e = extreme > 0.0f ? floorf(log2f(extreme)) - 2.0f + 127.0f : 0.0f;
    block[0] = code_of(e, 254);
    const uint32_t exponent = block[0];
    const float d =
        octavo_f32_from_bits(exponent < 2 ? UINT32_C(0x200000) << exponent : (exponent - 1) << 23);
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        float best = INFINITY;
        code[i] = 0;
        for (uint8_t c = 0; c < 16; c++) {
            const float error = fabsf(d * (float)(octavo_table_fp4[c] - 12) - x[i]);
            if (error >= best) continue;
            best = error;
            code[i] = c;
        }
    }
    put_codes(block + 1, code, false);
}

/* -1, 0 and 1 as 0, 1 and 2; d is the extreme value. */
static float quantize_ternary(uint8_t code[SUPER_BLOCK], const float *x) {
    const float d = largest_size_of(x, SUPER_BLOCK), inverse = inverse_of(d);
    for (int i = 0; i < SUPER_BLOCK; i++)
        code[i] = (uint8_t)(rounded(x[i] * inverse) + 1);
    return d;
}

/* `n` bytes of up to five ternary digits: byte j has those of codes j, j + n, j + 2n, ..., the
 * first most significant, as a fraction of 256ths, rounded up. */
static void put_digits(uint8_t *to, const uint8_t *code, int n, int digits) {
    for (int j = 0; j < n; j++) {
        int sum = 0;
        for (int i = 0; i < 5; i++)
            sum = sum * 3 + (i < digits ? code[i * n + j] : 0);
        to[j] = (uint8_t)((sum * 256 + 242) / 243);
    }
}

static void quantize_tq1_0(uint8_t *block, const float *x) {
    uint8_t code[SUPER_BLOCK];
    const float d = quantize_ternary(code, x);
    put_digits(block, code, 32, 5);
    put_digits(block + 32, code + 160, 16, 5);
    put_digits(block + 48, code + 240, 4, 4);
    put_f16(block + 52, d);
}

static void quantize_tq2_0(uint8_t *block, const float *x) {
    uint8_t code[SUPER_BLOCK];
    const float d = quantize_ternary(code, x);
    for (int j = 0; j < 64; j++) {
        const uint8_t *from = code + j / 32 * 128 + j % 32;
        block[j] = (uint8_t)(from[0] | from[32] << 2 | from[64] << 4 | from[96] << 6);
    }
    put_f16(block + 64, d);
}

static void put_floats(octavo_weight_type type, uint8_t *row, const float *values, int64_t k) {
    if (type == OCTAVO_WEIGHT_F32) memcpy(row, values, (size_t)k * sizeof *values);
    if (type == OCTAVO_WEIGHT_F16)
        for (int64_t i = 0; i < k; i++)
            put_f16(row + 2 * i, values[i]);
    if (type == OCTAVO_WEIGHT_BF16)
        for (int64_t i = 0; i < k; i++) {
            const uint16_t bits = octavo_f32_to_bf16(values[i]);
            memcpy(row + 2 * i, &bits, sizeof bits);
        }
}

/* Of types of blocks. */
static void quantize_block(octavo_weight_type type, uint8_t *block, const float *x) {
    switch (type) {
    case OCTAVO_WEIGHT_Q8_0:
        quantize_q8_0(block, x);
        break;
    case OCTAVO_WEIGHT_Q4_0:
        quantize_signed(block, x, 4);
        break;
    case OCTAVO_WEIGHT_Q4_1:
        quantize_ranged(block, x, 4);
        break;
    case OCTAVO_WEIGHT_Q5_0:
        quantize_signed(block, x, 5);
        break;
    case OCTAVO_WEIGHT_Q5_1:
        quantize_ranged(block, x, 5);
        break;
    case OCTAVO_WEIGHT_MXFP4:
        quantize_mxfp4(block, x);
        break;
    case OCTAVO_WEIGHT_Q4_K:
        octavo_weight_quantize_q4_k(block, x);
        break;
    case OCTAVO_WEIGHT_Q6_K:
        octavo_weight_quantize_q6_k(block, x);
        break;
    case OCTAVO_WEIGHT_TQ1_0:
        quantize_tq1_0(block, x);
        break;
    case OCTAVO_WEIGHT_TQ2_0:
        quantize_tq2_0(block, x);
        break;
    default:
        octavo_assert(!"no type to quantise to");
        break;
    }
}

bool octavo_weight_can_quantize(octavo_weight_type type) {
    switch (type) {
    case OCTAVO_WEIGHT_F32:
    case OCTAVO_WEIGHT_F16:
    case OCTAVO_WEIGHT_BF16:
    case OCTAVO_WEIGHT_Q8_0:
    case OCTAVO_WEIGHT_Q4_0:
    case OCTAVO_WEIGHT_Q4_1:
    case OCTAVO_WEIGHT_Q5_0:
    case OCTAVO_WEIGHT_Q5_1:
    case OCTAVO_WEIGHT_MXFP4:
    case OCTAVO_WEIGHT_Q4_K:
    case OCTAVO_WEIGHT_Q6_K:
    case OCTAVO_WEIGHT_TQ1_0:
    case OCTAVO_WEIGHT_TQ2_0:
        return true;
    default:
        return false;
    }
}

void octavo_weight_quantize(octavo_weight_type type, uint8_t *row, const float *values, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    octavo_assert(k % info->source_inputs == 0 && octavo_weight_can_quantize(type));
    if (!info->is_quantised) {
        put_floats(type, row, values, k);
        return;
    }
    for (int64_t i = 0; i < k / info->source_inputs; i++)
        quantize_block(type, row + i * info->source_bytes, values + i * info->source_inputs);
}
