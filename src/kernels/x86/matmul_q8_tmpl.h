/* SPDX-License-Identifier: Apache-2.0
 *
 * Dots with q8 activations: the loop nest and the floating-point part. Included after
 * matmul_words_*.h, matmul_codes.h, matmul_stage.h and a level's
 *
 *   block_sums(type, rows, vectors, sums, codes, o, x, b)
 *
 * which gives the integers sum of (code - offset) q of block b: sums[(h * rows + r) * vectors + v];
 * h is the half for types with scales of halves, else 0 and the whole block. Q8_ROWS (up to
 * OCTAVO_TILE_ROWS): rows for which a level has registers; FEW_ROWS: up to how many it takes
 * records whole, so that the panel is one ascending stream, and not in halves.
 */

/* acc[r][o..] += block b, as matmul.h states it. All integers here are below 2^24, so that their
 * products with scales and the sums of those are exact in f32. */
static OCTAVO_ALWAYS_INLINE void add_block(octavo_weight_type type, int rows, int vectors,
                                           float *acc, block_place at, int o,
                                           const octavo_q8_block *const *x, int64_t b) {
    vi sums[2 * OCTAVO_TILE_ROWS * 4];
    block_sums(type, rows, vectors, sums, at.codes, o, x, b);
    for (int v = 0; v < vectors; v++) {
        const int ov = o + v * LANES;
        const vf d = load_d(type, at.head, ov);
        const vf m = has_m(type) ? load_m(type, at, ov, 0) : vf_zero();
        const vf m1 = has_m_halves(type) ? load_m(type, at, ov, 1) : vf_zero();
        for (int r = 0; r < rows; r++) {
            const octavo_q8_block *block = x[r] + b;
            float *to = acc + r * OCTAVO_PANEL + ov;
            vf dot = vf_from_s32(sums[r * vectors + v]);
            if (has_scale(type)) dot = vf_mul(dot, load_scale(type, at, ov, 0));
            if (has_halves(type))
                dot = vf_fma(vf_from_s32(sums[(rows + r) * vectors + v]),
                             load_scale(type, at, ov, 1), dot);
            vf sum = vf_fma(dot, vf_mul(d, vf_set1(block->d)), vf_load(to));
            if (has_m_halves(type)) {
                sum = vf_fma(m, vf_set1(block->d * (float)block->sum[0]), sum);
                sum = vf_fma(m1, vf_set1(block->d * (float)block->sum[1]), sum);
            } else if (has_m(type)) {
                float x_sum = block->d * (float)(block->sum[0] + block->sum[1]);
                sum = vf_fma(m, vf_set1(x_sum), sum);
            }
            vf_store(to, sum);
        }
    }
}

static OCTAVO_ALWAYS_INLINE void add_blocks(octavo_weight_type type, int rows, float *acc,
                                            const uint8_t *panel, const octavo_q8_block *const *x,
                                            int64_t k0, int64_t k1) {
    if (rows > Q8_ROWS) return; /* not at this level */
    const int vectors = q8_vectors(type, rows);
    for (int64_t k = k0; k < k1; k += OCTAVO_BLOCK) {
        const block_place at = place_block(type, panel, k);
        for (int o = 0; o < OCTAVO_PANEL; o += vectors * LANES)
            add_block(type, rows, vectors, acc, at, o, x, k / OCTAVO_BLOCK);
    }
}

static OCTAVO_ALWAYS_INLINE void add_all_blocks(octavo_weight_type type, float *acc,
                                                const uint8_t *panel,
                                                const octavo_q8_block *const *x, int n_rows,
                                                int64_t k0, int64_t k1) {
    for (int r = 0; r < n_rows; r += Q8_ROWS) {
        float *to = acc + r * OCTAVO_PANEL;
        switch (n_rows - r < Q8_ROWS ? n_rows - r : Q8_ROWS) {
        case 1:
            add_blocks(type, 1, to, panel, x + r, k0, k1);
            break;
        case 2:
            add_blocks(type, 2, to, panel, x + r, k0, k1);
            break;
        case 3:
            add_blocks(type, 3, to, panel, x + r, k0, k1);
            break;
        case 4:
            add_blocks(type, 4, to, panel, x + r, k0, k1);
            break;
        case 5:
            add_blocks(type, 5, to, panel, x + r, k0, k1);
            break;
        default:
            add_blocks(type, 6, to, panel, x + r, k0, k1);
            break;
        }
    }
}

static OCTAVO_ALWAYS_INLINE void dot_q8(octavo_weight_type type, float *acc, const uint8_t *panel,
                                        const void *x, size_t x_stride, int n_rows, int64_t k0,
                                        int64_t k1) {
    const octavo_q8_block *row[OCTAVO_TILE_ROWS];
    for (int r = 0; r < n_rows; r++)
        row[r] = (const octavo_q8_block *)((const uint8_t *)x + (size_t)r * x_stride);
    memset(acc, 0, (size_t)n_rows * OCTAVO_PANEL * sizeof *acc);
    add_all_blocks(type, acc, panel, row, n_rows, k0, k1);
}

/* Staged blocks are multiplied by the same code whatever they were. */
static void add_staged(float *acc, const staged_block *staged, const octavo_q8_block *const *x,
                       int n_rows, int64_t k) {
    add_all_blocks(OCTAVO_WEIGHT_STAGED, acc, (const uint8_t *)staged, x, n_rows, 0, k);
}

static void add_staged_2(float *acc, const staged_block *staged, const octavo_q8_block *const *x,
                         int n_rows, int64_t k) {
    add_all_blocks(OCTAVO_WEIGHT_STAGED_2, acc, (const uint8_t *)staged, x, n_rows, 0, k);
}

static OCTAVO_ALWAYS_INLINE void dot_q8_grid(octavo_weight_type type, float *acc,
                                             const uint8_t *panel, const void *x, size_t x_stride,
                                             int n_rows, int64_t k0, int64_t k1) {
    _Alignas(64) staged_block staged[STAGED_BLOCKS];
    const octavo_q8_block *row[OCTAVO_GRID_ROWS];
    for (int r = 0; r < n_rows; r++)
        row[r] = (const octavo_q8_block *)((const uint8_t *)x + (size_t)r * x_stride) +
                 k0 / OCTAVO_BLOCK;
    memset(acc, 0, (size_t)n_rows * OCTAVO_PANEL * sizeof *acc);
    for (int64_t k = k0; k < k1; k += STAGED_BLOCKS * OCTAVO_BLOCK) {
        for (int b = 0; b < STAGED_BLOCKS; b++)
            stage_block(type, staged + b, panel, k + b * OCTAVO_BLOCK);
        if (has_halves(type))
            add_staged_2(acc, staged, row, n_rows, STAGED_BLOCKS * OCTAVO_BLOCK);
        else
            add_staged(acc, staged, row, n_rows, STAGED_BLOCKS * OCTAVO_BLOCK);
        for (int r = 0; r < n_rows; r++)
            row[r] += STAGED_BLOCKS;
    }
}
