/* SPDX-License-Identifier: Apache-2.0
 *
 * Matmul with AVX2, FMA and F16C: 16 registers hold 4 rows by 16 outputs.
 */
#include "kernels/matmul.h"
#include "kernels/x86/matmul_words_avx2.h"
/* the words come first */
#include "kernels/x86/matmul_maddubs.h"

enum { F32_ROWS = 4, Q8_ROWS = 4 };

/* 8 accumulators; codes of 5 and 6 bits and halves need two for a row and vector. */
static OCTAVO_ALWAYS_INLINE int q8_vectors(octavo_weight_type type, int rows) {
    const int bits = code_bits(type);
    if (bits == 5 || bits == 6 || has_halves(type)) return rows == 1 ? 2 : 1;
    return rows <= 2 ? 4 : 2;
}

#include "kernels/x86/matmul_stage.h"
/* used by the dots */
#include "kernels/x86/matmul_f32_tmpl.h"
#include "kernels/x86/matmul_q8_tmpl.h"

#define DOT_F32     dot_f32
#define DOT_Q8      dot_q8
#define DOT_Q8_GRID dot_q8_grid
#include "kernels/matmul_entries_tmpl.h"

void octavo_matmul_kernels_avx2(octavo_matmul_kernels *kernels) {
    for (int type = 0; type < OCTAVO_WEIGHT_TYPES; type++) {
        kernels->dot_f32[type] = entries_f32[type];
        if (entries_q8[type]) kernels->dot_q8[type] = entries_q8[type];
    }
    kernels->tile_rows_f32 = 2 * F32_ROWS; /* quantised weights are unpacked once for both */
    kernels->tile_rows_grid = OCTAVO_GRID_ROWS;
    kernels->tile_rows_q8 = 2 * Q8_ROWS; /* a slice stays in the first cache for both */
}
