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

enum { SUPER_BLOCK = 256, TRIES = 9 };

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

/* Sums are taken in lanes, so that compilers can make vectors of them. */
enum { LANES = 8 };

static float dot(const float *x, const float *y, int n) {
    float lane[LANES] = {0};
    for (int i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += x[i + j] * y[i + j];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Codes: y x steps to the nearest whole number, of two the even one, within least..most; returns
 * the sum of their squares. |y x steps| < 2^22. Again in a form for vectors. */
static int take_codes(int16_t *code, const float *y, int n, float steps, int least, int most) {
    const float shift = 0x1.8p23f;
    int squares = 0;
    for (int i = 0; i < n; i++)
        code[i] = (int16_t)(octavo_f32_bits(y[i] * steps + shift) - octavo_f32_bits(shift));
    for (int i = 0; i < n; i++) {
        const int16_t raised = code[i] < least ? (int16_t)least : code[i];
        code[i] = raised > most ? (int16_t)most : raised;
    }
    for (int i = 0; i < n; i++)
        squares += code[i] * code[i];
    return squares;
}

static float dot_codes(const float *x, const int16_t *code, int n) {
    float q[OCTAVO_BLOCK];
    for (int i = 0; i < n; i++)
        q[i] = code[i];
    return dot(x, q, n);
}

/* ---- Q4_K: 8 blocks of 32, codes 0..15, scales and mins 0..63 ---- */

/* Sums over a block's values x and codes q. */
typedef struct ranged_sums {
    float x1, x2, q1, q2, xq;
} ranged_sums;

/* The best scale and min >= 0 for codes, and the squared error that they leave. */
static float solve_ranged(const ranged_sums *sum, fit *best) {
    const float n = OCTAVO_BLOCK, determinant = n * sum->q2 - sum->q1 * sum->q1;
    fit found = {0};
    if (determinant > 0.0f) {
        found.scale = (n * sum->xq - sum->q1 * sum->x1) / determinant;
        found.min = (sum->q1 * sum->xq - sum->q2 * sum->x1) / determinant;
    }
    if (!(determinant > 0.0f) || found.min < 0.0f) {
        found.scale = sum->q2 > 0.0f ? sum->xq / sum->q2 : 0.0f;
        found.min = 0.0f;
    }
    if (found.scale < 0.0f) found.scale = 0.0f;
    *best = found;
    /* the sum of (scale q - min - x)^2 */
    return found.scale * (found.scale * sum->q2 - 2.0f * sum->xq) +
           found.min * (n * found.min + 2.0f * (sum->x1 - found.scale * sum->q1)) + sum->x2;
}

static fit fit_ranged(const float *x) {
    static const float ones[OCTAVO_BLOCK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                             1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    float least = 0.0f, greatest = 0.0f, best_error = INFINITY, share[OCTAVO_BLOCK];
    ranged_sums sum = {.x1 = dot(x, ones, OCTAVO_BLOCK), .x2 = dot(x, x, OCTAVO_BLOCK)};
    fit best = {0};
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        if (x[i] < least) least = x[i];
        if (x[i] > greatest) greatest = x[i];
    }
    const float inverse = inverse_of(greatest - least);
    for (int i = 0; i < OCTAVO_BLOCK; i++)
        share[i] = (x[i] - least) * inverse;
    for (int t = 0; t < TRIES; t++) {
        int16_t code[OCTAVO_BLOCK];
        fit found;
        int q1 = 0;
        sum.q2 = (float)take_codes(code, share, OCTAVO_BLOCK, 14.0f + 0.25f * (float)t, 0, 15);
        for (int i = 0; i < OCTAVO_BLOCK; i++)
            q1 += code[i];
        sum.q1 = (float)q1;
        sum.xq = dot_codes(x, code, OCTAVO_BLOCK);
        const float error = solve_ranged(&sum, &found);
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
    float extreme = 0.0f, best = 0.0f, best_gain = 0.0f, share[INNER];
    for (int i = 0; i < INNER; i++)
        if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
    const float inverse = inverse_of(extreme);
    for (int i = 0; i < INNER; i++)
        share[i] = x[i] * inverse;
    for (int t = 0; t < TRIES; t++) {
        int16_t code[INNER];
        const float steps = -(31.0f + 0.25f * (float)t);
        const float q2 = (float)take_codes(code, share, INNER, steps, -32, 31);
        const float xq = dot_codes(x, code, INNER);
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
