/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention does with a cache's rows and words, and an entry of each function of the table for
 * one number type. Included once by a level's file, after
 *   vec_load_type               VEC_WIDTH elements of a type as f32
 *   vec_load_group              16 of them, in an order of the type's own; of e4m3 2^8 times too
 *                               small, unless E4M3_IS_EXACT
 *   vec_load_acc, vec_store_acc 16 floats into and out of that order
 *   vec_word_lane               a lane of VEC_WIDTH keys from their words
 *   tile_groups                 how many groups of 16 keys or lanes a tile of so many rows takes:
 *                               1, 2 or 4, less for more rows, as many accumulators as stay in
 *                               registers
 * How rows, keys and lanes are cut into tiles changes speed only.
 */
#include "base/compiler.h"
#include "base/number.h"
#include "kernels/attention.h"

#define BLOCK OCTAVO_SOFTMAX_BLOCK
#define GROUP OCTAVO_KEY_GROUP

#ifndef E4M3_IS_EXACT
#define E4M3_IS_EXACT false
#endif

enum { TILE_ROWS = 6, GROUP_VECS = GROUP / VEC_WIDTH, BLOCK_VECS = BLOCK / VEC_WIDTH };

/* --- rows of each number type --- */

static OCTAVO_ALWAYS_INLINE float load_one(const void *x, int64_t i, const int type) {
    switch (type) {
    case F32:
        return ((const float *)x)[i];
    case F16:
        return octavo_f16_to_f32(((const uint16_t *)x)[i]);
    case BF16:
        return octavo_bf16_to_f32(((const uint16_t *)x)[i]);
    case FP8_E4M3:
        return octavo_fp8_e4m3_to_f32(((const uint8_t *)x)[i]);
    case FP8_E5M2:
        return octavo_fp8_e5m2_to_f32(((const uint8_t *)x)[i]);
    default:
        return ((const int8_t *)x)[i];
    }
}

static OCTAVO_ALWAYS_INLINE void load_row(float *out, const void *x, int64_t n, const int type) {
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(out + i, vec_load_type(x, i, type));
    for (; i < n; i++)
        out[i] = load_one(x, i, type);
}

#include "kernels/attention_scores_tmpl.h"
#include "kernels/attention_values_tmpl.h"

/* --- one entry per type for what depends on it --- */

#define ENTRIES(name, type)                                                                        \
    static void load_##name(float *out, const void *x, int64_t n) {                                \
        load_row(out, x, n, type);                                                                 \
    }                                                                                              \
    static void widen_keys_##name(float *columns, const uint32_t *words, int d) {                  \
        widen_keys(columns, words, d, type);                                                       \
    }                                                                                              \
    static void scores_##name(float *s, const float *q, int64_t q_stride, int n_rows,              \
                              const uint32_t *const *groups, int first, int last, int d,           \
                              octavo_ahead *ahead) {                                               \
        scores(s, q, q_stride, n_rows, groups, first, last, d, ahead, type);                       \
    }                                                                                              \
    static void values_##name(float *acc, int64_t acc_stride, const float *rescale,                \
                              const float *p, int n_rows, const uint8_t *const *slots,             \
                              size_t offset, int begin, int end, int d, octavo_ahead *ahead) {     \
        const value_block block = {slots, NULL, offset, begin, end, ahead};                        \
        values(acc, acc_stride, rescale, p, n_rows, &block, d, type);                              \
    }                                                                                              \
    static void widen_values_##name(float *panels, const uint8_t *const *slots, size_t offset,     \
                                    int begin, int end, int d) {                                   \
        widen_values(panels, slots, offset, begin, end, d, type);                                  \
    }                                                                                              \
    static void set_##name(octavo_attention_kernels *kernels) {                                    \
        kernels->load[type] = load_##name;                                                         \
        kernels->widen_keys[type] = widen_keys_##name;                                             \
        kernels->scores[type] = scores_##name;                                                     \
        kernels->values[type] = values_##name;                                                     \
        kernels->widen_values[type] = widen_values_##name;                                         \
    }
