/* SPDX-License-Identifier: Apache-2.0
 *
 * q8 dots with AVX-512 VNNI: groups of 4 products of bytes are added to 32 bits by one instruction,
 * to an accumulator that starts at -offset * (sum of q). f32 dots stay those of AVX-512.
 */
#include "kernels/matmul.h"
#include "kernels/x86/matmul_words_avx512.h"
/* the words come first */
#include "kernels/x86/matmul_codes.h"

enum { Q8_ROWS = 6 };

/* Up to 12 accumulators; halves need two for a row and vector. */
static OCTAVO_ALWAYS_INLINE int q8_vectors(octavo_weight_type type, int rows) {
    return has_halves(type) && rows > 3 ? 1 : 2;
}

/* Group g and group g + 4, the two nibbles of a byte. */
static OCTAVO_ALWAYS_INLINE void add_groups(octavo_weight_type type, int rows, int vectors,
                                            vi *lower, vi *upper, const uint8_t *codes, int o,
                                            const octavo_q8_block *const *x, int64_t b, int g) {
    for (int v = 0; v < vectors; v++) {
        const vi w0 = load_codes(type, codes, o + v * LANES, g);
        const vi w1 = load_codes(type, codes, o + v * LANES, g + 4);
        for (int r = 0; r < rows; r++) {
            const int8_t *q = x[r][b].q + 4 * g;
            vi *to0 = &lower[r * vectors + v], *to1 = &upper[r * vectors + v];
            *to0 = _mm512_dpbusd_epi32(*to0, w0, vi_set_word(q));
            *to1 = _mm512_dpbusd_epi32(*to1, w1, vi_set_word(q + 16));
        }
    }
}

/* See matmul_q8_tmpl.h. */
static OCTAVO_ALWAYS_INLINE void block_sums(octavo_weight_type type, int rows, int vectors,
                                            vi *sums, const uint8_t *codes, int o,
                                            const octavo_q8_block *const *x, int64_t b) {
    const int n = rows * vectors;
    vi *upper = has_halves(type) ? sums + n : sums;
    for (int i = 0; i < n; i++)
        sums[i] = code_offset(type) ? offset_sum(type, x[i / vectors] + b, 0) : vi_zero();
    if (has_halves(type))
        for (int i = 0; i < n; i++)
            upper[i] = code_offset(type) ? offset_sum(type, x[i / vectors] + b, 1) : vi_zero();
    /* spelled out: shifts need literals, and a loop may stay one */
    add_groups(type, rows, vectors, sums, upper, codes, o, x, b, 0);
    add_groups(type, rows, vectors, sums, upper, codes, o, x, b, 1);
    add_groups(type, rows, vectors, sums, upper, codes, o, x, b, 2);
    add_groups(type, rows, vectors, sums, upper, codes, o, x, b, 3);
}

#include "kernels/x86/matmul_stage.h"
/* used by the dots */
#include "kernels/x86/matmul_q8_tmpl.h"

#define DOT_Q8      dot_q8
#define DOT_Q8_GRID dot_q8_grid
#include "kernels/matmul_entries_tmpl.h"

void octavo_matmul_kernels_avx512_vnni(octavo_matmul_kernels *kernels) {
    for (int type = 0; type < OCTAVO_WEIGHT_TYPES; type++)
        if (entries_q8[type]) kernels->dot_q8[type] = entries_q8[type];
    kernels->tile_rows_q8 = Q8_ROWS;
}
