/* SPDX-License-Identifier: Apache-2.0
 *
 * block_sums (see matmul_q8_tmpl.h) from products of unsigned and signed bytes added in pairs to 16
 * bits. With |q| <= 127 a pair is at most 3810 for codes of 4 bits, 7874 for 5, 16002 for 6 and
 * 32004 for those of 7, which are at most 126; so 8, 4, 2 and 1 of them fit into 16 bits before
 * they must be widened. Codes of 8 bits are made signed, and their sign moved to q: 128 * 127 * 2
 * fits.
 */
#ifndef OCTAVO_KERNELS_X86_MATMUL_MADDUBS_H
#define OCTAVO_KERNELS_X86_MATMUL_MADDUBS_H

#include "kernels/x86/matmul_codes.h"

static OCTAVO_ALWAYS_INLINE void block_sums_of_bytes(octavo_weight_type type, int rows, int vectors,
                                                     vi *sums, const uint8_t *codes, int o,
                                                     const octavo_q8_block *const *x, int64_t b) {
    for (int i = 0; i < rows * vectors; i++)
        sums[i] = vi_zero();
    for (int g = 0; g < 8; g++) {
        for (int v = 0; v < vectors; v++) {
            const vi w = vi_xor(load_codes(type, codes, o + v * LANES, g), vi_set8(-128));
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

/* Groups g and g + 1 to the sums of their half, or of the block. Codes of 6 bits: two groups fit
 * into 16 bits; of 7: one. */
static OCTAVO_ALWAYS_INLINE void add_wide_groups(octavo_weight_type type, int rows, int vectors,
                                                 vi *sums, const uint8_t *codes, int o,
                                                 const octavo_q8_block *const *x, int64_t b,
                                                 int g) {
    const int half = has_halves(type) ? g / 4 : 0;
    for (int v = 0; v < vectors; v++) {
        const vi w0 = load_codes(type, codes, o + v * LANES, g);
        const vi w1 = load_codes(type, codes, o + v * LANES, g + 1);
        for (int r = 0; r < rows; r++) {
            const int8_t *q = x[r][b].q + 4 * g;
            vi *sum = &sums[(half * rows + r) * vectors + v];
            const vi pairs0 = vi_maddubs(w0, vi_set_word(q));
            const vi pairs1 = vi_maddubs(w1, vi_set_word(q + 4));
            if (code_bits(type) == 6) {
                *sum = vi_add32(*sum, vi_madd16(vi_add16(pairs0, pairs1), vi_set16(1)));
            } else {
                *sum = vi_add32(*sum, vi_madd16(pairs0, vi_set16(1)));
                *sum = vi_add32(*sum, vi_madd16(pairs1, vi_set16(1)));
            }
        }
    }
}

/* See matmul_q8_tmpl.h. */
static OCTAVO_ALWAYS_INLINE void block_sums(octavo_weight_type type, int rows, int vectors,
                                            vi *sums, const uint8_t *codes, int o,
                                            const octavo_q8_block *const *x, int64_t b) {
    const int n = rows * vectors, bits = code_bits(type);
    if (bits == 8) {
        block_sums_of_bytes(type, rows, vectors, sums, codes, o, x, b);
        return;
    }
    for (int half = 0; half < (has_halves(type) ? 2 : 1); half++)
        for (int i = 0; i < n; i++)
            sums[half * n + i] =
                code_offset(type) ? offset_sum(type, x[i / vectors] + b, half) : vi_zero();
    if (bits >= 6) {
        add_wide_groups(type, rows, vectors, sums, codes, o, x, b, 0);
        add_wide_groups(type, rows, vectors, sums, codes, o, x, b, 4);
        add_wide_groups(type, rows, vectors, sums, codes, o, x, b, 2);
        add_wide_groups(type, rows, vectors, sums, codes, o, x, b, 6);
        return;
    }

    const bool is_double = bits == 5 || has_halves(type);
    vi pairs[2 * OCTAVO_TILE_ROWS * 4];
    vi *upper = is_double ? pairs + n : pairs; /* of inputs 16-31 */
    clear(pairs, is_double ? 2 * n : n);
    /* spelled out: shifts need literals, and a loop may stay one */
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 0);
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 1);
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 2);
    add_groups(type, rows, vectors, pairs, upper, codes, o, x, b, 3);
    widen(sums, pairs, n);
    if (is_double) widen(has_halves(type) ? sums + n : sums, upper, n);
}

#endif
