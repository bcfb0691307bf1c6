/* SPDX-License-Identifier: Apache-2.0
 *
 * Q4_K and Q6_K. For each inner block several divisions of its range are tried. The codes of one
 * fix the least-squares scale (and min) for them in closed form, and the division whose codes then
 * leave the least squared error wins. Inner scales are rounded to the block's own; codes are taken
 * at last from what the file will say.
 */
#include "base/number.h"
#include "kernels/weight_quantize.h"

#include <math.h>
#include <string.h>

enum { SUPER_BLOCK = 256, TRIES = 21 };

/* w = scale * code - min */
typedef struct fit {
    float scale, min;
} fit;

static int clamp(float x, int least, int most) {
    if (!(x > (float)least)) return least;
    return x >= (float)most ? most : (int)lrintf(x);
}

static float put_f16(uint8_t *to, float value) {
    const uint16_t bits = octavo_f32_to_f16(value);
    memcpy(to, &bits, sizeof bits);
    return octavo_f16_to_f32(bits);
}

static float inverse_of(float d) {
    const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    return isinf(inverse) ? 0.0f : inverse;
}

/* ---- Q4_K: 8 blocks of 32, codes 0..15, scales and mins 0..63 ---- */

/* The best scale and min >= 0 for codes, and the squared error that they leave. */
static float solve_ranged(const float *x, const uint8_t code[OCTAVO_BLOCK], fit *best) {
    float q1 = 0, q2 = 0, x1 = 0, xq = 0, error = 0;
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        const float q = code[i];
        q1 += q;
        q2 += q * q;
        x1 += x[i];
        xq += x[i] * q;
    }
    const float determinant = OCTAVO_BLOCK * q2 - q1 * q1;
    fit found = {0};
    if (determinant > 0.0f) {
        found.scale = (OCTAVO_BLOCK * xq - q1 * x1) / determinant;
        found.min = (q1 * xq - q2 * x1) / determinant;
    }
    if (!(determinant > 0.0f) || found.min < 0.0f) {
        found.scale = q2 > 0.0f ? xq / q2 : 0.0f;
        found.min = 0.0f;
    }
    if (found.scale < 0.0f) found.scale = 0.0f;
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        const float off = found.scale * code[i] - found.min - x[i];
        error += off * off;
    }
    *best = found;
    return error;
}

static fit fit_ranged(const float *x) {
    float least = 0.0f, greatest = 0.0f, best_error = INFINITY;
    fit best = {0};
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        if (x[i] < least) least = x[i];
        if (x[i] > greatest) greatest = x[i];
    }
    const float inverse = inverse_of(greatest - least);
    for (int t = 0; t < TRIES; t++) {
        uint8_t code[OCTAVO_BLOCK];
        fit found;
        const float steps = (14.0f + 0.1f * (float)t) * inverse;
        for (int i = 0; i < OCTAVO_BLOCK; i++)
            code[i] = (uint8_t)clamp((x[i] - least) * steps, 0, 15);
        const float error = solve_ranged(x, code, &found);
        if (!(error < best_error)) continue;
        best_error = error;
        best = found;
    }
    return best;
}

/* The 12 bytes of eight 6-bit scales and mins. */
static void put_scales(uint8_t *to, const uint8_t scale[8], const uint8_t min[8]) {
    for (int b = 0; b < 4; b++) {
        to[b] = (uint8_t)(scale[b] | scale[b + 4] >> 4 << 6);
        to[b + 4] = (uint8_t)(min[b] | min[b + 4] >> 4 << 6);
        to[b + 8] = (uint8_t)((scale[b + 4] & 15) | (min[b + 4] & 15) << 4);
    }
}

void octavo_weight_quantize_q4_k(uint8_t *block, const float *values) {
    fit fits[8];
    uint8_t scale[8], min[8];
    float most_scale = 0.0f, most_min = 0.0f;
    for (int b = 0; b < 8; b++) {
        fits[b] = fit_ranged(values + b * OCTAVO_BLOCK);
        most_scale = fmaxf(most_scale, fits[b].scale);
        most_min = fmaxf(most_min, fits[b].min);
    }
    const float d = put_f16(block, most_scale / 63.0f), d_inverse = inverse_of(d);
    const float dmin = put_f16(block + 2, most_min / 63.0f), dmin_inverse = inverse_of(dmin);
    memset(block + 16, 0, SUPER_BLOCK / 2);
    for (int b = 0; b < 8; b++) {
        scale[b] = (uint8_t)clamp(fits[b].scale * d_inverse, 0, 63);
        min[b] = (uint8_t)clamp(fits[b].min * dmin_inverse, 0, 63);
        const float m = dmin * min[b], inverse = inverse_of(d * scale[b]);
        for (int i = 0; i < OCTAVO_BLOCK; i++) {
            const int code = clamp((values[b * OCTAVO_BLOCK + i] + m) * inverse, 0, 15);
            block[16 + b / 2 * OCTAVO_BLOCK + i] |= (uint8_t)(code << (b % 2 * 4));
        }
    }
    put_scales(block + 4, scale, min);
}

/* ---- Q6_K: 16 blocks of 16, codes -32..31, scales -128..127 ---- */

enum { INNER = 16 };

/* The sign of the scale is such that the extreme value gets a negative code: there are more. */
static float fit_signed(const float *x) {
    float extreme = 0.0f, best = 0.0f, best_gain = 0.0f;
    for (int i = 0; i < INNER; i++)
        if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
    const float inverse = inverse_of(extreme);
    for (int t = 0; t < TRIES; t++) {
        float xq = 0.0f, q2 = 0.0f;
        const float steps = -(31.0f + 0.1f * (float)t) * inverse;
        for (int i = 0; i < INNER; i++) {
            const float q = (float)clamp(x[i] * steps, -32, 31);
            xq += x[i] * q;
            q2 += q * q;
        }
        /* the squared error is sum x^2 - xq^2 / q2 */
        if (q2 > 0.0f && xq * (xq / q2) > best_gain) {
            best_gain = xq * (xq / q2);
            best = xq / q2;
        }
    }
    return best;
}

void octavo_weight_quantize_q6_k(uint8_t *block, const float *values) {
    float scales[SUPER_BLOCK / INNER], most = 0.0f;
    for (int b = 0; b < SUPER_BLOCK / INNER; b++) {
        scales[b] = fit_signed(values + b * INNER);
        if (fabsf(scales[b]) > fabsf(most)) most = scales[b];
    }
    const float d = put_f16(block + 208, most / -128.0f), d_inverse = inverse_of(d);
    memset(block, 0, 192);
    for (int b = 0; b < SUPER_BLOCK / INNER; b++) {
        const int scale = clamp(scales[b] * d_inverse, -128, 127);
        const float inverse = inverse_of(d * (float)scale);
        block[192 + b] = (uint8_t)(int8_t)scale;
        for (int i = 0; i < INNER; i++) {
            /* four runs of 32 in each half: see weight_pack_super.c */
            const int at = b * INNER + i, half = at / 128, run = at / 32 % 4, j = at % 32;
            const int code = clamp(values[at] * inverse, -32, 31) + 32;
            block[half * 64 + run % 2 * 32 + j] |= (uint8_t)((code & 15) << (run / 2 * 4));
            block[128 + half * 32 + j] |= (uint8_t)((code >> 4) << (run * 2));
        }
    }
}
