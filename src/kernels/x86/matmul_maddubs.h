/* SPDX-License-Identifier: Apache-2.0
 *
 * block_sums (see matmul_q8_tmpl.h) from products of unsigned and signed bytes added in pairs to 16
 * bits. With |q| <= 127 a pair is at most 3810 for codes of 4 bits, 7874 for 5 and 16002 for 6; so
 * 8, 4 and 2 of them fit into 16 bits before they must be widened. Codes of 8 bits are made signed,
 * and their sign moved to q: 128 * 127 * 2 fits.
 */
#ifndef OCTAVO_KERNELS_X86_MATMUL_MADDUBS_H
#define OCTAVO_KERNELS_X86_MATMUL_MADDUBS_H

#include "kernels/x86/matmul_codes.h"

static OCTAVO_ALWAYS_INLINE void block_sums_of_bytes(int rows, int vectors, vi *sums,
                                                     const uint8_t *codes, int o,
                                                     const octavo_q8_block *const *x, int64_t b) {
    for (int i = 0; i < rows * vectors; i++)
        sums[i] = vi_zero();
    for (int g = 0; g < 8; g++) {
        for (int v = 0; v < vectors; v++) {
            const vi w =
                vi_xor(load_codes(OCTAVO_WEIGHT_Q8_0, codes, o + v * LANES, g), vi_set8(-128));
            const vi magnitude = vi_abs8(w);
            for (int r = 0; r < rows; r++) {
                vi pairs = vi_maddubs(magnitude, vi_sign8(vi_set_word(x[r][b].q + 4 * g), w));
                vi *sum = &sums[r * vectors + v];
                *sum = vi_add32(*sum, vi_madd16(pairs, vi_set16(1)));
            }
        }
    }
}

/* Group g to lower, group g + 4 to upper: the two nibbles of a byte, which is loaded once. */
static OCTAVO_ALWAYS_INLINE void add_groups(octavo_weight_type type, int rows, int vectors,
                                            vi *lower, vi *upper, const uint8_t *codes, int o,
                                            const octavo_q8_block *const *x, int64_t b, int g) {
    for (int v = 0; v < vectors; v++) {
        const vi w0 = load_codes(type, codes, o + v * LANES, g);
        const vi w1 = load_codes(type, codes, o + v * LANES, g + 4);
        for (int r = 0; r < rows; r++) {
            const int8_t *q = x[r][b].q + 4 * g;
            vi *to0 = &lower[r * vectors + v], *to1 = &upper[r * vectors + v];
            *to0 = vi_add16(*to0, vi_maddubs(w0, vi_set_word(q)));
            *to1 = vi_add16(*to1, vi_maddubs(w1, vi_set_word(q + 16)));
        }
    }
}

static OCTAVO_ALWAYS_INLINE void clear(vi *pairs, int n) {
    for (int i = 0; i < n; i++)
        pairs[i] = vi_zero();
}

static OCTAVO_ALWAYS_INLINE void widen(vi *sums, const vi *pairs, int n) {
    for (int i = 0; i < n; i++)
        sums[i] = vi_add32(sums[i], vi_madd16(pairs[i], vi_set16(1)));
}

/* Codes of 6 bits: two groups fit into 16 bits. Halves apart. */
static OCTAVO_ALWAYS_INLINE void add_groups_of_6_bits(int rows, int vectors, vi *sums,
                                                      const uint8_t *codes, int o,
                                                      const octavo_q8_block *const *x, int64_t b,
                                                      int g) {
    for (int v = 0; v < vectors; v++) {
        const vi w0 = load_codes(OCTAVO_WEIGHT_Q6_K, codes, o + v * LANES, g);
        const vi w1 = load_codes(OCTAVO_WEIGHT_Q6_K, codes, o + v * LANES, g + 1);
        for (int r = 0; r < rows; r++) {
            const int8_t *q = x[r][b].q + 4 * g;
            vi *sum = &sums[(g / 4 * rows + r) * vectors + v];
            vi pairs = vi_add16(vi_maddubs(w0, vi_set_word(q)), vi_maddubs(w1, vi_set_word(q + 4)));
            *sum = vi_add32(*sum, vi_madd16(pairs, vi_set16(1)));
        }
    }
}

/* See matmul_q8_tmpl.h. */
static OCTAVO_ALWAYS_INLINE void block_sums(octavo_weight_type type, int rows, int vectors,
                                            vi *sums, const uint8_t *codes, int o,
                                            const octavo_q8_block *const *x, int64_t b) {
    const int n = rows * vectors;
    const bool is_q6_k = type == OCTAVO_WEIGHT_Q6_K, is_q5_0 = type == OCTAVO_WEIGHT_Q5_0;
    if (type == OCTAVO_WEIGHT_Q8_0) {
        block_sums_of_bytes(rows, vectors, sums, codes, o, x, b);
        return;
    }
    for (int half = 0; half < (is_q6_k ? 2 : 1); half++)
        for (int i = 0; i < n; i++)
            sums[half * n + i] =
                code_offset(type) ? offset_sum(type, x[i / vectors] + b, half) : vi_zero();
    if (is_q6_k) {
        add_groups_of_6_bits(rows, vectors, sums, codes, o, x, b, 0);
        add_groups_of_6_bits(rows, vectors, sums, codes, o, x, b, 4);
        add_groups_of_6_bits(rows, vectors, sums, codes, o, x, b, 2);
        add_groups_of_6_bits(rows, vectors, sums, codes, o, x, b, 6);
        return;
    }

    vi pairs[2 * OCTAVO_TILE_ROWS * 4];
    vi *upper = is_q5_0 ? pairs + n : pairs; /* of inputs 16-31 */
    clear(pairs, is_q5_0 ? 2 * n : n);
    /* spelled out: shifts need literals, and a loop may stay one */
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 0);
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 1);
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 2);
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 3);
    widen(sums, pairs, n);
    if (is_q5_0) widen(sums, upper, n);
}

#endif
