/* SPDX-License-Identifier: Apache-2.0
 *
 * The matmul driver and the table's init. Order: see kernels/order.h; tiles and loops here change
 * speed only.
 */
#include "kernels/matmul.h"

#include "base/compiler.h"
#include "kernels/scalar/matmul_scalar.h"

void octavo_matmul_kernels_init(octavo_matmul_kernels *kernels, octavo_cpu_flags flags) {
    octavo_matmul_kernels_scalar(kernels);
#if OCTAVO_HAVE_AVX2
    if (flags & OCTAVO_CPU_AVX2) octavo_matmul_kernels_avx2(kernels);
#endif
#if OCTAVO_HAVE_AVX512
    if (flags & OCTAVO_CPU_AVX512) octavo_matmul_kernels_avx512(kernels);
#endif
#if OCTAVO_HAVE_AVX512_VNNI
    if (flags & OCTAVO_CPU_AVX512_VNNI) octavo_matmul_kernels_avx512_vnni(kernels);
#endif
    (void)flags;
}

/* Bytes of activations that stay in the second cache while all panels pass over them. */
enum { ROW_BLOCK_BYTES = 192 * 1024 };

/* How many rows that is, whole tiles. */
static int64_t block_rows(size_t x_stride, int tile_rows) {
    const int64_t n = x_stride > 0 ? (int64_t)(ROW_BLOCK_BYTES / x_stride) : tile_rows;
    return n < tile_rows ? tile_rows : n / tile_rows * tile_rows;
}

typedef struct tile_out {
    float *out;
    int64_t out_stride;
    const float *factor;
    const float *bias; /* of the first output that is stored, or NULL */
    int n_rows;
    int first, width; /* outputs of the panel that are stored: so many from the first on */
} tile_out;

static void store_tile(const tile_out *tile, float *acc) {
    for (int i = 0; tile->factor && i < tile->n_rows * OCTAVO_PANEL; i++)
        acc[i] *= *tile->factor;
    for (int r = 0; r < tile->n_rows; r++) {
        float *restrict to = tile->out + r * tile->out_stride;
        const float *restrict from = acc + r * OCTAVO_PANEL + tile->first;
        if (tile->bias) {
            for (int o = 0; o < tile->width; o++)
                to[o] = from[o] + tile->bias[o];
        } else {
            for (int o = 0; o < tile->width; o++)
                to[o] = from[o];
        }
    }
}

static int tile_rows_of(const octavo_matmul_kernels *kernels, octavo_weight_type type, bool is_q8) {
    const bool is_f8 = type == OCTAVO_WEIGHT_F8_E4M3 || type == OCTAVO_WEIGHT_F8_E5M2;
    if (is_f8 || type >= OCTAVO_WEIGHT_IQ2_XXS) return kernels->tile_rows_grid;
    return is_q8 ? kernels->tile_rows_q8 : kernels->tile_rows_f32;
}

void octavo_matmul(const octavo_matmul_kernels *kernels, const octavo_matmul_args *args,
                   int64_t panel_begin, int64_t panel_end) {
    octavo_dot_fn *dot = args->is_q8 ? kernels->dot_q8[args->type] : kernels->dot_f32[args->type];
    const int tile_rows = tile_rows_of(kernels, args->type, args->is_q8);
    const size_t panel_bytes = octavo_weight_panel_bytes(args->type, args->k);
    const int n_slices = args->slice_end - args->slice_begin;
    const int64_t part = (int64_t)tile_rows * OCTAVO_PANEL;
    const int64_t row_block = block_rows(args->x_stride, tile_rows);
    _Alignas(64) float acc[OCTAVO_MAX_SLICES * OCTAVO_GRID_ROWS * OCTAVO_PANEL];

    for (int64_t row0 = 0; row0 < args->n_rows; row0 += row_block) {
        int64_t row1 = row0 + row_block < args->n_rows ? row0 + row_block : args->n_rows;
        for (int64_t p = panel_begin; p < panel_end; p++) {
            const uint8_t *panel = args->weight + (size_t)p * panel_bytes;
            const int64_t first = p == 0 ? args->first : 0;
            const int64_t end = args->n < (p + 1) * OCTAVO_PANEL ? args->n : (p + 1) * OCTAVO_PANEL;
            const int64_t column = p * OCTAVO_PANEL + first - args->first; /* of the result */
            for (int64_t row = row0; row < row1; row += tile_rows) {
                int n_rows = row1 - row < tile_rows ? (int)(row1 - row) : tile_rows;
                const uint8_t *x = (const uint8_t *)args->x + (size_t)row * args->x_stride;
                for (int s = 0; s < n_slices; s++) {
                    const int64_t *cut = args->slices->cut + args->slice_begin + s;
                    dot(acc + s * part, panel, x, args->x_stride, n_rows, cut[0], cut[1]);
                }
                octavo_tree_add(acc, n_slices, part, n_rows * OCTAVO_PANEL);
                store_tile(&(tile_out){.out = args->out + row * args->out_stride + column,
                                       .out_stride = args->out_stride,
                                       .factor = args->factor,
                                       .bias = args->bias ? args->bias + column : NULL,
                                       .n_rows = n_rows,
                                       .first = (int)first,
                                       .width = (int)(end - p * OCTAVO_PANEL - first)},
                           acc);
            }
        }
    }
}
