/* SPDX-License-Identifier: Apache-2.0
 *
 * Number types narrower than f32, as bit patterns in unsigned integers. Conversions to f32 are
 * exact; conversions from f32 round to nearest even, keep the sign of zero and handle subnormals on
 * both sides. By type:
 *
 * - f16: overflow becomes infinity; a NaN, both ways, stays a NaN, made quiet, with its upper
 *   payload bits. The processor's own conversion instructions give the same bits.
 * - bf16: the same, except that widening leaves a NaN as it is.
 * - fp8 e4m3fn: there is no infinity. Overflow and infinity saturate to +-448; NaN is 0x7f with the
 *   sign.
 * - fp8 e5m2: overflow and infinity saturate to +-57344 (the caller's clip of RPA rule R9 does the
 *   same); NaN is 0x7f with the sign.
 *
 * The fp8 encodings are the OCP 8-bit floating point ones (OFP8, 2023).
 */
#ifndef OCTAVO_BASE_NUMBER_H
#define OCTAVO_BASE_NUMBER_H

#include <stdint.h>

float octavo_f16_to_f32(uint16_t bits);
uint16_t octavo_f32_to_f16(float value);
float octavo_fp8_e4m3_to_f32(uint8_t bits);
float octavo_fp8_e5m2_to_f32(uint8_t bits);

static inline uint32_t octavo_f32_bits(float value) {
    union {
        float f;
        uint32_t u;
    } both = {.f = value};
    return both.u;
}

static inline float octavo_f32_from_bits(uint32_t bits) {
    union {
        uint32_t u;
        float f;
    } both = {.u = bits};
    return both.f;
}

static inline float octavo_bf16_to_f32(uint16_t bits) {
    return octavo_f32_from_bits((uint32_t)bits << 16);
}

static inline uint16_t octavo_f32_to_bf16(float value) {
    uint32_t u = octavo_f32_bits(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/* The fp8 number nearest to an f32, given by its mantissa bits, its bias and the f32 bits of its
 * largest magnitude. Without branches, for loops over whole rows: both ends are computed, and below
 * the smallest normal the step of `magic`, which is that of the subnormals, does the rounding. */
static inline uint8_t octavo_f32_to_fp8(float value, int mantissa_bits, int bias, int32_t largest,
                                        float magic) {
    const int shift = 23 - mantissa_bits;
    const uint32_t bits = octavo_f32_bits(value);
    const int32_t given = (int32_t)(bits & 0x7fffffffu);
    const int32_t magnitude = given < largest ? given : largest;
    const int32_t half = (1 << (shift - 1)) - 1 + (magnitude >> shift & 1);
    const int32_t normal = ((magnitude + half) >> shift) - ((127 - bias) << mantissa_bits);
    const float moved = octavo_f32_from_bits((uint32_t)magnitude) + magic;
    const int32_t small = (int32_t)(octavo_f32_bits(moved) - octavo_f32_bits(magic));
    const int32_t is_small = -(magnitude < (128 - bias) << 23), is_nan = -(given > 0x7f800000);
    const int32_t code = (small & is_small) | (normal & ~is_small);
    return (uint8_t)((code & ~is_nan) | (0x7f & is_nan) | (int32_t)(bits >> 24 & 0x80u));
}

static inline uint8_t octavo_f32_to_fp8_e4m3(float value) {
    return octavo_f32_to_fp8(value, 3, 7, 0x43e00000, 0x1p14f); /* 448, steps of 2^-9 */
}

static inline uint8_t octavo_f32_to_fp8_e5m2(float value) {
    return octavo_f32_to_fp8(value, 2, 15, 0x47600000, 0x1p7f); /* 57344, steps of 2^-16 */
}

#endif
