/* SPDX-License-Identifier: Apache-2.0
 *
 * Matmul with AVX-512 F, BW, DQ and VL: 32 registers hold 6 rows by 32 outputs and more.
 */
#include "kernels/matmul.h"
#include "kernels/x86/matmul_words_avx512.h"
/* the words come first */
#include "kernels/x86/matmul_maddubs.h"

enum { F32_ROWS = 8, Q8_ROWS = 6 };

/* Up to 12 accumulators; codes of 5 and 6 bits and halves need two for a row and vector. */
static OCTAVO_ALWAYS_INLINE int q8_vectors(octavo_weight_type type, int rows) {
    const int bits = code_bits(type);
    const bool is_double = bits == 5 || bits == 6 || has_halves(type);
    return is_double && rows > 3 ? 1 : 2;
}

#include "kernels/x86/matmul_stage.h"
/* used by the dots */
#include "kernels/x86/matmul_f32_tmpl.h"
#include "kernels/x86/matmul_q8_tmpl.h"

#define DOT_F32     dot_f32
#define DOT_Q8      dot_q8
#define DOT_Q8_GRID dot_q8_grid
#include "kernels/matmul_entries_tmpl.h"

void octavo_matmul_kernels_avx512(octavo_matmul_kernels *kernels) {
    for (int type = 0; type < OCTAVO_WEIGHT_TYPES; type++) {
        kernels->dot_f32[type] = entries_f32[type];
        if (entries_q8[type]) kernels->dot_q8[type] = entries_q8[type];
    }
    kernels->tile_rows_f32 = F32_ROWS;
    kernels->tile_rows_grid = OCTAVO_GRID_ROWS;
    kernels->tile_rows_q8 = Q8_ROWS;
}
