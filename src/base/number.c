/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions of narrow floating point types in portable integer code. A narrow type is described
 * by its mantissa bits and exponent bias; what its largest exponent means is each type's own
 * matter.
 */
#include "base/number.h"

#define F32_MANTISSA  0x007fffffu
#define F32_INFINITY  0x7f800000u
#define F32_QUIET_BIT 0x00400000u

enum {
    F32_MANTISSA_BITS = 23,
    F32_BIAS = 127,
    F16_MANTISSA_BITS = 10,
    F16_BIAS = 15,
    E4M3_MANTISSA_BITS = 3,
    E4M3_BIAS = 7,
    E5M2_MANTISSA_BITS = 2,
    E5M2_BIAS = 15,
};

/* Encodes a finite f32 magnitude (sign cleared), rounded to nearest even, as if the narrow exponent
 * had no upper end: the caller compares the result with its type's largest. Adding the rounded
 * mantissa, hidden bit included, to the exponent below makes carries, and the step from subnormal
 * to normal, come out right by themselves. */
static uint32_t narrow(uint32_t magnitude, int mantissa_bits, int bias) {
    int exponent = (int)(magnitude >> F32_MANTISSA_BITS);
    uint32_t mantissa = magnitude & F32_MANTISSA;
    if (exponent != 0) {
        mantissa |= F32_MANTISSA + 1;
    } else {
        exponent = 1;
    }
    exponent += bias - F32_BIAS;
    int shift = F32_MANTISSA_BITS - mantissa_bits;
    if (exponent < 1) {
        shift += 1 - exponent;
        exponent = 1;
    }
    if (shift > F32_MANTISSA_BITS + 1) return 0; /* under half of the smallest subnormal */

    uint32_t odd = (mantissa >> shift) & 1;
    uint32_t rounded = (mantissa + ((1u << (shift - 1)) - 1) + odd) >> shift;
    return ((uint32_t)(exponent - 1) << mantissa_bits) + rounded;
}

/* The f32 bits of a finite narrow magnitude. */
static uint32_t widen(uint32_t magnitude, int mantissa_bits, int bias) {
    uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
    int exponent = (int)(magnitude >> mantissa_bits);
    if (exponent == 0) {
        if (mantissa == 0) return 0;
        exponent = 1;
        while ((mantissa >> mantissa_bits) == 0) {
            mantissa <<= 1;
            exponent--;
        }
        mantissa &= (1u << mantissa_bits) - 1;
    }
    return ((uint32_t)(exponent - bias + F32_BIAS) << F32_MANTISSA_BITS) |
           (mantissa << (F32_MANTISSA_BITS - mantissa_bits));
}

float octavo_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t magnitude = bits & 0x7fffu;
    uint32_t wide;
    if (magnitude < 0x7c00u) {
        wide = widen(magnitude, F16_MANTISSA_BITS, F16_BIAS);
    } else {
        wide = F32_INFINITY | (magnitude & 0x3ffu) << (F32_MANTISSA_BITS - F16_MANTISSA_BITS);
        if (magnitude > 0x7c00u) wide |= F32_QUIET_BIT;
    }
    return octavo_f32_from_bits(sign | wide);
}

uint16_t octavo_f32_to_f16(float value) {
    uint32_t bits = octavo_f32_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t half;
    if (magnitude > F32_INFINITY) {
        half = 0x7e00u | (magnitude & F32_MANTISSA) >> (F32_MANTISSA_BITS - F16_MANTISSA_BITS);
    } else {
        half = narrow(magnitude, F16_MANTISSA_BITS, F16_BIAS);
        if (half > 0x7c00u) half = 0x7c00u;
    }
    return (uint16_t)(sign | half);
}

float octavo_fp8_e4m3_to_f32(uint8_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x80u) << 24;
    uint32_t magnitude = bits & 0x7fu;
    if (magnitude == 0x7fu) return octavo_f32_from_bits(sign | F32_INFINITY | F32_QUIET_BIT);
    return octavo_f32_from_bits(sign | widen(magnitude, E4M3_MANTISSA_BITS, E4M3_BIAS));
}

float octavo_fp8_e5m2_to_f32(uint8_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x80u) << 24;
    uint32_t magnitude = bits & 0x7fu;
    if (magnitude == 0x7cu) return octavo_f32_from_bits(sign | F32_INFINITY);
    if (magnitude > 0x7cu) return octavo_f32_from_bits(sign | F32_INFINITY | F32_QUIET_BIT);
    return octavo_f32_from_bits(sign | widen(magnitude, E5M2_MANTISSA_BITS, E5M2_BIAS));
}
