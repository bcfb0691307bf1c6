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

static OCTAVO_ALWAYS_INLINE int q8_vectors(octavo_weight_type type, int rows) {
    (void)type, (void)rows;
    return 2;
}

/* See matmul_q8_tmpl.h. */
static OCTAVO_ALWAYS_INLINE void block_sums(octavo_weight_type type, int rows, int vectors,
                                            vi *sums, const uint8_t *codes, int o,
                                            const octavo_q8_block *const *x, int64_t b) {
    const int n = rows * vectors;
    for (int half = 0; half < (type == OCTAVO_WEIGHT_Q6_K ? 2 : 1); half++)
        for (int i = 0; i < n; i++)
            sums[half * n + i] =
                code_offset(type) ? offset_sum(type, x[i / vectors] + b, half) : vi_zero();
    for (int i = 0; i < 8; i++) {
        const int g = i % 2 * 4 + i / 2; /* both nibbles of a byte one after the other */
        vi *to = sums + (type == OCTAVO_WEIGHT_Q6_K && g >= 4 ? n : 0);
        for (int v = 0; v < vectors; v++) {
            const vi w = load_codes(type, codes, o + v * LANES, g);
            for (int r = 0; r < rows; r++) {
                vi *sum = &to[r * vectors + v];
                *sum = _mm512_dpbusd_epi32(*sum, w, vi_set_word(x[r][b].q + 4 * g));
            }
        }
    }
}

#include "kernels/x86/matmul_q8_tmpl.h"

#define DOT_Q8 dot_q8
#include "kernels/matmul_entries_tmpl.h"

void octavo_matmul_kernels_avx512_vnni(octavo_matmul_kernels *kernels) {
    for (int type = 0; type < OCTAVO_WEIGHT_TYPES; type++)
        if (entries_q8[type]) kernels->dot_q8[type] = entries_q8[type];
    kernels->tile_rows_q8 = Q8_ROWS;
}
