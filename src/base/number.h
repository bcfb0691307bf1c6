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
uint8_t octavo_f32_to_fp8_e4m3(float value);
float octavo_fp8_e5m2_to_f32(uint8_t bits);
uint8_t octavo_f32_to_fp8_e5m2(float value);

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

#endif
