/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights times values, for attention_tmpl.h. A tile is some rows times some groups of 16 lanes;
 * its size changes speed only.
 */

/* What `values` is about. */
typedef struct value_block {
    const uint8_t *const *slots; /* or, of type PANEL: */
    const float *panels;
    size_t offset;
    int begin;
    int end;
    octavo_ahead *ahead;
} value_block;

/* Beside the number types: panels, the f32 values of one group of lanes after another. */
enum { PANEL = INT8 + 1 };

/* A level may have 64 lanes in fewer instructions than four times 16. */
#ifndef LOADS_TOGETHER
#define LOADS_TOGETHER(groups, type) false
#define vec_load_groups(x, at, type) ((void)0)
#endif

/* 16 lanes of a place, in the order of accumulators of that type. at: lane 0 of the tile. */
static OCTAVO_ALWAYS_INLINE void load_values(vec x[GROUP_VECS], const uint8_t *at, const int group,
                                             const int type) {
    if (type == PANEL) {
        const float *from = (const float *)(const void *)at + (size_t)group * GROUP * BLOCK;
        for (int v = 0; v < GROUP_VECS; v++)
            x[v] = vec_load_aligned(from + v * VEC_WIDTH);
        return;
    }
    vec_load_group(x, at, group * GROUP, type);
}

/* What makes up for values that are too small: exact on either side, so it goes to
 * weights that meet several groups. */
static OCTAVO_ALWAYS_INLINE vec scaled(vec x, const int type) {
    return type == FP8_E4M3 && !E4M3_IS_EXACT ? vec_mul(x, vec_set(E4M3_AS_F16)) : x;
}

/* `rows` rows times `groups` groups, from lane i. */
static OCTAVO_ALWAYS_INLINE void value_tile(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int i,
                                            const int rows, const int groups, const int type) {
    enum { STEP = 8 }; /* places between two steps ahead */
    const int vectors = groups * GROUP_VECS;
    const uint8_t *const *slots = block->slots;
    const uint8_t *panels =
        type == PANEL ? (const void *)(block->panels + (size_t)i * BLOCK) : NULL;
    const size_t offset = block->offset + (size_t)(i * (4 / packing(type)));
    octavo_ahead *ahead = block->ahead;
    vec a[TILE_ROWS][BLOCK_VECS];
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < groups; g++)
            vec_load_acc(&a[r][g * GROUP_VECS], acc + r * stride + i + g * GROUP, type);
        for (int v = 0; rescale && v < vectors; v++)
            a[r][v] = vec_mul(a[r][v], vec_set(rescale[r]));
    }
    int j = block->begin;
    const int end = block->end;
    while (j < end) {
        const int stop = end - j < STEP ? end : j + STEP;
        for (int g = 0; g < groups; g++)
            ahead_step(ahead);
        for (; j < stop; j++) {
            const uint8_t *at =
                type == PANEL ? panels + (size_t)j * GROUP * sizeof(float) : slots[j] + offset;
            vec x[BLOCK_VECS], weight[TILE_ROWS];
            for (int r = 0; groups > 1 && r < rows; r++)
                weight[r] = scaled(vec_set(p[r * BLOCK + j]), type);
            if (LOADS_TOGETHER(groups, type)) vec_load_groups(x, at, type);
            for (int g = 0; g < groups; g++) {
                vec *own = x + g * GROUP_VECS;
                if (!LOADS_TOGETHER(groups, type)) load_values(own, at, g, type);
                for (int v = 0; groups == 1 && v < GROUP_VECS; v++)
                    own[v] = scaled(own[v], type);
                for (int r = 0; r < rows; r++) {
                    if (groups == 1) weight[r] = vec_set(p[r * BLOCK + j]);
                    for (int v = 0; v < GROUP_VECS; v++) {
                        vec *to = &a[r][g * GROUP_VECS + v];
                        *to = vec_fma(weight[r], own[v], *to);
                    }
                }
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int g = 0; g < groups; g++)
            vec_store_acc(acc + r * stride + i + g * GROUP, &a[r][g * GROUP_VECS], type);
    }
}

/* All lanes of `rows` rows; d is a multiple of 16. */
static OCTAVO_ALWAYS_INLINE void value_rows(float *acc, int64_t stride, const float *rescale,
                                            const float *p, const value_block *block, int d,
                                            const int rows, const int type) {
    const int most = tile_groups(rows);
    int i = 0;
    for (; most == 4 && i + 4 * GROUP <= d; i += 4 * GROUP)
        value_tile(acc, stride, rescale, p, block, i, rows, 4, type);
    for (; most >= 2 && i + 2 * GROUP <= d; i += 2 * GROUP)
        value_tile(acc, stride, rescale, p, block, i, rows, 2, type);
    for (; i < d; i += GROUP)
        value_tile(acc, stride, rescale, p, block, i, rows, 1, type);
}

static OCTAVO_ALWAYS_INLINE void values(float *acc, int64_t stride, const float *rescale,
                                        const float *p, int n_rows, const value_block *block, int d,
                                        const int type) {
    d = (d + GROUP - 1) / GROUP * GROUP;
    for (; n_rows >= TILE_ROWS;
         n_rows -= TILE_ROWS, acc += TILE_ROWS * stride, p += TILE_ROWS * BLOCK) {
        value_rows(acc, stride, rescale, p, block, d, TILE_ROWS, type);
        if (rescale) rescale += TILE_ROWS;
    }
    switch (n_rows) {
    case 5:
        value_rows(acc, stride, rescale, p, block, d, 5, type);
        break;
    case 4:
        value_rows(acc, stride, rescale, p, block, d, 4, type);
        break;
    case 3:
        value_rows(acc, stride, rescale, p, block, d, 3, type);
        break;
    case 2:
        value_rows(acc, stride, rescale, p, block, d, 2, type);
        break;
    case 1:
        value_rows(acc, stride, rescale, p, block, d, 1, type);
        break;
    default:
        break;
    }
}

static OCTAVO_ALWAYS_INLINE void widen_values(float *panels, const uint8_t *const *slots,
                                              size_t offset, int begin, int end, int d,
                                              const int type) {
    for (int j = begin; j < end; j++) {
        for (int i = 0; i < d; i += GROUP) {
            vec x[GROUP_VECS];
            vec_load_group(x, slots[j] + offset, i, type);
            for (int v = 0; v < GROUP_VECS; v++)
                x[v] = scaled(x[v], type);
            vec_store_acc(panels + (size_t)i * BLOCK + j * GROUP, x, type);
        }
    }
}
