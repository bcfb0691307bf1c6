/* SPDX-License-Identifier: Apache-2.0
 *
 * Dots with f32 activations. Included after matmul_words_*.h and matmul_codes.h with F32_ROWS (up
 * to OCTAVO_TILE_ROWS) defined: rows whose accumulators for 2 vectors of outputs stay in registers.
 * Quantised weights and 8-bit floats are unpacked 32 inputs at a time and then multiplied as f32.
 */

enum { RECORD_VECTORS = OCTAVO_PANEL / LANES };

/* Weights of input k, outputs o..o + LANES - 1, of a float type; BF16: `half` is k % 2. */
static OCTAVO_ALWAYS_INLINE vf load_weights(octavo_weight_type type, const uint8_t *panel,
                                            int64_t k, int half, int o) {
    if (type == OCTAVO_WEIGHT_F32) return vf_from_bits(vi_load(panel + (k * OCTAVO_PANEL + o) * 4));
    if (type == OCTAVO_WEIGHT_F16) return vf_from_f16(panel + (k * OCTAVO_PANEL + o) * 2);
    vi pairs = vi_load(panel + (k / 2 * OCTAVO_PANEL + o) * 4);
    return vf_from_bits(half ? vi_and(pairs, vi_set32(-0x10000)) : vi_shl32(pairs, 16));
}

static OCTAVO_ALWAYS_INLINE void add_input(octavo_weight_type type, int rows, int vectors, vf *sum,
                                           const uint8_t *panel, int o, const float *const *x,
                                           int64_t k, int half) {
    for (int v = 0; v < vectors; v++) {
        vf w = load_weights(type, panel, k, half, o + v * LANES);
        for (int r = 0; r < rows; r++)
            sum[r * vectors + v] = vf_fma(w, vf_set1(x[r][k]), sum[r * vectors + v]);
    }
}

/* acc[r][o..] += w x of inputs [k0, k1), ascending, for `vectors` vectors of outputs. */
static OCTAVO_ALWAYS_INLINE void add_inputs(octavo_weight_type type, int rows, int vectors,
                                            float *acc, const uint8_t *panel, int o,
                                            const float *const *x, int64_t k0, int64_t k1) {
    vf sum[OCTAVO_TILE_ROWS * 2];
    int64_t k = k0;
    for (int i = 0; i < rows * vectors; i++)
        sum[i] = vf_load(acc + i / vectors * OCTAVO_PANEL + o + i % vectors * LANES);
    for (; k + 1 < k1; k += 2) {
        add_input(type, rows, vectors, sum, panel, o, x, k, 0);
        add_input(type, rows, vectors, sum, panel, o, x, k + 1, 1);
    }
    if (k < k1) add_input(type, rows, vectors, sum, panel, o, x, k, 0);
    for (int i = 0; i < rows * vectors; i++)
        vf_store(acc + i / vectors * OCTAVO_PANEL + o + i % vectors * LANES, sum[i]);
}

/* All 32 outputs of `rows` rows. Few rows take records whole: the panel is one ascending stream. */
static OCTAVO_ALWAYS_INLINE void add_rows(octavo_weight_type type, int rows, float *acc,
                                          const uint8_t *panel, const float *const *x, int64_t k0,
                                          int64_t k1) {
    if (rows > F32_ROWS) return; /* not at this level */
    const int vectors = rows * RECORD_VECTORS <= 12 ? RECORD_VECTORS : 2;
    for (int o = 0; o < OCTAVO_PANEL; o += vectors * LANES)
        add_inputs(type, rows, vectors, acc, panel, o, x, k0, k1);
}

static OCTAVO_ALWAYS_INLINE void add_all_rows(octavo_weight_type type, float *acc,
                                              const uint8_t *panel, const float *const *x,
                                              int n_rows, int64_t k0, int64_t k1) {
    for (int r = 0; r < n_rows; r += F32_ROWS) {
        float *to = acc + r * OCTAVO_PANEL;
        switch (n_rows - r < F32_ROWS ? n_rows - r : F32_ROWS) {
        case 1:
            add_rows(type, 1, to, panel, x + r, k0, k1);
            break;
        case 2:
            add_rows(type, 2, to, panel, x + r, k0, k1);
            break;
        case 3:
            add_rows(type, 3, to, panel, x + r, k0, k1);
            break;
        case 4:
            add_rows(type, 4, to, panel, x + r, k0, k1);
            break;
        case 5:
            add_rows(type, 5, to, panel, x + r, k0, k1);
            break;
        case 6:
            add_rows(type, 6, to, panel, x + r, k0, k1);
            break;
        case 7:
            add_rows(type, 7, to, panel, x + r, k0, k1);
            break;
        default:
            add_rows(type, 8, to, panel, x + r, k0, k1);
            break;
        }
    }
}

/* Byte j of each lane. */
static OCTAVO_ALWAYS_INLINE vi byte_of(vi words, int j) {
    if (j == 1) words = vi_shr32(words, 8);
    if (j == 2) words = vi_shr32(words, 16);
    if (j == 3) return vi_shr32(words, 24);
    return vi_and(words, vi_set32(0xff));
}

/* Inputs k..k + 31 as weight.h defines them: tile [32 inputs][32 outputs]. */
static OCTAVO_ALWAYS_INLINE void unpack_block(octavo_weight_type type, float *tile,
                                              const uint8_t *panel, int64_t k) {
    const block_place at = place_block(type, panel, k);
    const vf offset = vf_set1((float)code_offset(type));
    for (int o = 0; o < OCTAVO_PANEL; o += LANES) {
        const vf d = load_d(type, at.head, o);
        for (int g = 0; g < 8; g++) {
            const vf m =
                has_m(type) ? load_m(type, at, o, has_m_halves(type) ? g / 4 : 0) : vf_zero();
            const vi codes = load_codes(type, at.codes, o, g);
            const vf scaled = has_scale(type)
                                  ? vf_mul(d, load_scale(type, at, o, has_halves(type) ? g / 4 : 0))
                                  : d;
            for (int j = 0; j < 4; j++) {
                vf w = vf_mul(scaled, vf_sub(vf_from_s32(byte_of(codes, j)), offset));
                if (has_m(type)) w = vf_add(w, m);
                vf_store(tile + (4 * g + j) * OCTAVO_PANEL + o, w);
            }
        }
    }
}

/* The same of 8-bit floats, where d stands for 64 inputs. */
static OCTAVO_ALWAYS_INLINE void unpack_f8(octavo_weight_type type, float *tile,
                                           const uint8_t *panel, int64_t k) {
    const uint8_t *record = panel + k / OCTAVO_F8_INPUTS * OCTAVO_F8_RECORD_BYTES;
    const uint8_t *code = record + OCTAVO_F8_HEAD_BYTES + k % OCTAVO_F8_INPUTS * OCTAVO_PANEL;
    vf d[RECORD_VECTORS];
    for (int v = 0; v < RECORD_VECTORS; v++)
        d[v] = vf_from_bits(vi_load(record + v * LANES * 4));
    for (int i = 0; i < OCTAVO_BLOCK; i++) {
        for (int v = 0; v < RECORD_VECTORS; v++) {
            const int at = i * OCTAVO_PANEL + v * LANES;
            const vf w =
                type == OCTAVO_WEIGHT_F8_E4M3 ? vf_from_e4m3(code + at) : vf_from_e5m2(code + at);
            vf_store(tile + at, vf_mul(w, d[v]));
        }
    }
}

/* An unpacked block, whatever it was. */
static void add_tile(float *acc, const float *tile, const float *const *x, int n_rows) {
    add_all_rows(OCTAVO_WEIGHT_F32, acc, (const uint8_t *)tile, x, n_rows, 0, OCTAVO_BLOCK);
}

static OCTAVO_ALWAYS_INLINE void dot_f32(octavo_weight_type type, float *acc, const uint8_t *panel,
                                         const void *x, size_t x_stride, int n_rows, int64_t k0,
                                         int64_t k1) {
    const bool is_grid = type >= OCTAVO_WEIGHT_IQ2_XXS;
    const bool is_f8 = type == OCTAVO_WEIGHT_F8_E4M3 || type == OCTAVO_WEIGHT_F8_E5M2;
    const float *row[OCTAVO_GRID_ROWS];
    for (int r = 0; r < n_rows; r++)
        row[r] = (const float *)((const uint8_t *)x + (size_t)r * x_stride);
    memset(acc, 0, (size_t)n_rows * OCTAVO_PANEL * sizeof *acc);
    if (type <= OCTAVO_WEIGHT_BF16) {
        add_all_rows(type, acc, panel, row, n_rows, k0, k1);
        return;
    }
    _Alignas(64) float tile[OCTAVO_BLOCK * OCTAVO_PANEL];
    _Alignas(64) staged_block staged;
    for (int r = 0; r < n_rows; r++)
        row[r] += k0;
    for (int64_t k = k0; k < k1; k += OCTAVO_BLOCK) {
        if (is_f8) {
            unpack_f8(type, tile, panel, k);
        } else if (is_grid) {
            stage_block(type, &staged, panel, k);
            unpack_block(staged_type(type), tile, (const uint8_t *)&staged, 0);
        } else {
            unpack_block(type, tile, panel, k);
        }
        add_tile(acc, tile, row, n_rows);
        for (int r = 0; r < n_rows; r++)
            row[r] += OCTAVO_BLOCK;
    }
}
