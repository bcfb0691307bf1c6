/* SPDX-License-Identifier: Apache-2.0
 *
 * Query rows times keys in words, for attention_tmpl.h. A tile is some rows times some groups; its
 * size changes speed only.
 */

/* One lane of all keys of a tile times the rows' lane. */
static OCTAVO_ALWAYS_INLINE void score_lane(vec acc[TILE_ROWS][BLOCK_VECS], const float *q,
                                            int64_t q_stride, const uint32_t *const *groups,
                                            size_t word, const int lane, const int rows,
                                            const int vectors, const int type) {
    vec x[TILE_ROWS], k[BLOCK_VECS]; /* the fewer stay in registers, the others take turns */
    for (int r = 0; rows < vectors && r < rows; r++)
        x[r] = vec_set(q[r * q_stride]);
    for (int v = 0; v < vectors; v++) {
        const uint32_t *at = groups[v / GROUP_VECS] + word * GROUP + v % GROUP_VECS * VEC_WIDTH;
        k[v] = vec_word_lane(at, lane, type);
        for (int r = 0; rows < vectors && r < rows; r++)
            acc[r][v] = vec_fma(x[r], k[v], acc[r][v]);
    }
    for (int r = 0; rows >= vectors && r < rows; r++) {
        x[r] = vec_set(q[r * q_stride]);
        for (int v = 0; v < vectors; v++)
            acc[r][v] = vec_fma(x[r], k[v], acc[r][v]);
    }
}

/* The first `lanes` lanes of a word, one at least, lane by lane; but where few rows meet fp8, whose
 * lanes are made together and would not all stay in registers, vector by vector. */
static OCTAVO_ALWAYS_INLINE void score_word(vec acc[TILE_ROWS][BLOCK_VECS], const float *q,
                                            int64_t q_stride, const uint32_t *const *groups,
                                            size_t word, const int lanes, const int rows,
                                            const int vectors, const int type) {
    if ((type != FP8_E4M3 && type != FP8_E5M2) || rows > 2) {
        for (int lane = 0; lane < lanes; lane++)
            score_lane(acc, q + lane, q_stride, groups, word, lane, rows, vectors, type);
        return;
    }
    for (int v = 0; v < vectors; v++) {
        const uint32_t *at = groups[v / GROUP_VECS] + word * GROUP + v % GROUP_VECS * VEC_WIDTH;
        vec k[4];
        for (int lane = 0; lane < lanes; lane++)
            k[lane] = vec_word_lane(at, lane, type);
        for (int r = 0; r < rows; r++) {
            for (int lane = 0; lane < lanes; lane++)
                acc[r][v] = vec_fma(vec_set(q[r * q_stride + lane]), k[lane], acc[r][v]);
        }
    }
}

/* `rows` rows times `n_groups` groups. */
static OCTAVO_ALWAYS_INLINE void score_tile(float *s, const float *q, int64_t q_stride,
                                            const uint32_t *const *groups, int d,
                                            octavo_ahead *ahead, const int rows, const int n_groups,
                                            const int type) {
    if (n_groups > tile_groups(rows)) return; /* not at this level */
    enum { STEP = 8 };                        /* words between two steps ahead */
    const int vectors = n_groups * GROUP_VECS, pk = packing(type);
    vec acc[TILE_ROWS][BLOCK_VECS];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            acc[r][v] = vec_set(0.0f);
    }
    const int whole = d / pk;
    int w = 0;
    while (w < whole) {
        const int stop = whole - w < STEP ? whole : w + STEP;
        for (int g = 0; g < n_groups; g++)
            ahead_step(ahead);
        for (; w < stop; w++, q += pk)
            score_word(acc, q, q_stride, groups, (size_t)w, pk, rows, vectors, type);
    }
    for (int rest = 1; rest < pk; rest++) {
        if (rest == d % pk)
            score_word(acc, q, q_stride, groups, (size_t)w, rest, rows, vectors, type);
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++)
            vec_store_aligned(s + r * BLOCK + v * VEC_WIDTH, acc[r][v]);
    }
}

/* All rows, `n_groups` groups. */
static OCTAVO_ALWAYS_INLINE void score_groups(float *s, const float *q, int64_t q_stride,
                                              int n_rows, const uint32_t *const *groups, int d,
                                              octavo_ahead *ahead, const int n_groups,
                                              const int type) {
    for (; n_rows >= TILE_ROWS;
         n_rows -= TILE_ROWS, q += TILE_ROWS * q_stride, s += TILE_ROWS * BLOCK)
        score_tile(s, q, q_stride, groups, d, ahead, TILE_ROWS, n_groups, type);
    switch (n_rows) {
    case 5:
        score_tile(s, q, q_stride, groups, d, ahead, 5, n_groups, type);
        break;
    case 4:
        score_tile(s, q, q_stride, groups, d, ahead, 4, n_groups, type);
        break;
    case 3:
        score_tile(s, q, q_stride, groups, d, ahead, 3, n_groups, type);
        break;
    case 2:
        score_tile(s, q, q_stride, groups, d, ahead, 2, n_groups, type);
        break;
    case 1:
        score_tile(s, q, q_stride, groups, d, ahead, 1, n_groups, type);
        break;
    default:
        break;
    }
}

static OCTAVO_ALWAYS_INLINE void scores(float *s, const float *q, int64_t q_stride, int n_rows,
                                        const uint32_t *const *groups, int first, int last, int d,
                                        octavo_ahead *ahead, const int type) {
    const int most = tile_groups(n_rows);
    int g = first;
    for (; most == 4 && g + 4 <= last; g += 4)
        score_groups(s + g * GROUP, q, q_stride, n_rows, groups + g, d, ahead, 4, type);
    for (; most >= 2 && g + 2 <= last; g += 2)
        score_groups(s + g * GROUP, q, q_stride, n_rows, groups + g, d, ahead, 2, type);
    for (; g < last; g++)
        score_groups(s + g * GROUP, q, q_stride, n_rows, groups + g, d, ahead, 1, type);
}

static OCTAVO_ALWAYS_INLINE void widen_keys(float *columns, const uint32_t *words, int d,
                                            const int type) {
    const int pk = packing(type);
    for (int i = 0; i < d; i++, columns += GROUP) {
        const uint32_t *from = words + i / pk * GROUP;
        for (int v = 0; v < GROUP; v += VEC_WIDTH)
            vec_store(columns + v, vec_word_lane(from + v, i % pk, type));
    }
}
