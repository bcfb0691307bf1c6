/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block in vectors of VEC_WIDTH (a divisor of OCTAVO_KEY_GROUP) floats. Included
 * once by each level's file, after kernels/attention_types.h, the header with its vec_ operations,
 * what attention_entries_tmpl.h asks for, and
 *   gather_keys                 the entry of the table
 *   vec_round_bf16, vec_count   as named
 *   keep_range                  lanes outside a range of positions become -inf
 * Contracts: kernels/attention.h; maths: kernels/scalar/attention_scalar.h.
 */
#include "kernels/attention_entries_tmpl.h"
#include "kernels/scalar/attention_scalar.h"
#include "kernels/vector_exp_tmpl.h"

#include <math.h>

/* --- softmax --- */

/* exp for x up to 0 or so (at most 88). */
static OCTAVO_ALWAYS_INLINE vec exp_low(vec x) {
    return vec_limit_low(exp_within_limits(x), x, OCTAVO_EXP_LOW);
}

static OCTAVO_ALWAYS_INLINE float exp1(float x) {
    return vec_first(exp_low(vec_set(x)));
}

static OCTAVO_ALWAYS_INLINE vec soft_cap(vec x, vec cap) {
    const vec one = vec_set(1.0f), two = vec_set(2.0f);
    vec y = vec_div(x, cap);
    y = vec_min(vec_set(40.0f), y); /* in this order a NaN passes */
    y = vec_max(vec_set(-40.0f), y);
    vec e = exp_low(vec_mul(two, y));
    return vec_mul(cap, vec_sub(one, vec_div(two, vec_add(e, one))));
}

/* A block's lanes joined by the tree down to one vector. */
static OCTAVO_ALWAYS_INLINE vec fold(vec join(vec, vec), const vec *v) {
    vec part[BLOCK_VECS / 2];
    for (int i = 0; i < BLOCK_VECS / 2; i++)
        part[i] = join(v[i], v[i + BLOCK_VECS / 2]);
    for (int n = BLOCK_VECS / 4; n > 0; n /= 2) {
        for (int i = 0; i < n; i++)
            part[i] = join(part[i], part[i + n]);
    }
    return part[0];
}

static OCTAVO_ALWAYS_INLINE float softmax_row(float *s, int begin, int end,
                                              const octavo_logit *logit, float *max, float *sum) {
    vec v[BLOCK_VECS];
    const vec scale = vec_set(logit->scale);
    for (int i = 0; i < BLOCK_VECS; i++) {
        v[i] = vec_load_aligned(s + i * VEC_WIDTH);
        if (logit->key_scales)
            v[i] = vec_mul(v[i], vec_load_aligned(logit->key_scales + i * VEC_WIDTH));
        v[i] = vec_mul(v[i], scale);
    }
    if (logit->soft_cap != 0.0f) {
        const vec cap = vec_set(logit->soft_cap);
        for (int i = 0; i < BLOCK_VECS; i++)
            v[i] = soft_cap(v[i], cap);
    }
    if (logit->slope != 0.0f) {
        const vec slope = vec_set(logit->slope);
        for (int i = 0; i < BLOCK_VECS; i++)
            v[i] = vec_fnma(slope, vec_abs(vec_count(logit->first, i * VEC_WIDTH)), v[i]);
    }
    if (begin > 0 || end < BLOCK) {
        for (int i = 0; i < BLOCK_VECS; i++)
            v[i] = keep_range(v[i], i * VEC_WIDTH, begin, end);
    }
    const float top = octavo_attention_max(*max, vec_reduce_max(fold(vec_max, v)));
    const float base = octavo_attention_base(top);
    for (int i = 0; i < BLOCK_VECS; i++) {
        v[i] = exp_low(vec_sub(v[i], vec_set(base)));
        if (logit->round_weights) v[i] = vec_round_bf16(v[i]);
        vec p = v[i];
        if (logit->value_scales)
            p = vec_mul(p, vec_load_aligned(logit->value_scales + i * VEC_WIDTH));
        vec_store_aligned(s + i * VEC_WIDTH, p);
    }
    const float rescale = *max == base ? 1.0f : exp1(*max - base);
    *sum = *sum * rescale + vec_reduce_add(fold(vec_add, v));
    *max = top;
    return rescale;
}

static void softmax(float *s, int n_rows, int begin, int end, const octavo_logit *logit, float *max,
                    float *sum, float *rescale) {
    const octavo_logit own = *logit; /* which no store can change */
    for (int r = 0; r < n_rows; r++)
        rescale[r] = softmax_row(s + r * BLOCK, begin, end, &own, max + r, sum + r);
}

/* --- joining --- */

static void merge(float *out, float *max, float *sum, const float *acc, float m, float l,
                  int64_t n) {
    const float top = octavo_attention_max(*max, m);
    const float base = octavo_attention_base(top);
    const float old = exp1(*max - base), new = exp1(m - base);
    for (int64_t i = 0; i < n; i += VEC_WIDTH) {
        vec x = vec_mul(vec_load(out + i), vec_set(old));
        vec_store(out + i, vec_fma(vec_load(acc + i), vec_set(new), x));
    }
    *sum = *sum * old + l * new;
    *max = top;
}

static float sink(float logit, float *max, float *sum) {
    const float top = octavo_attention_max(*max, logit);
    const float base = octavo_attention_base(top);
    const float rescale = exp1(*max - base);
    *sum = *sum * rescale + exp1(logit - base);
    *max = top;
    return rescale;
}

ENTRIES(f32, F32)
ENTRIES(f16, F16)
ENTRIES(bf16, BF16)
ENTRIES(fp8_e4m3, FP8_E4M3)
ENTRIES(fp8_e5m2, FP8_E5M2)
ENTRIES(int8, INT8)

static void panel_values(float *acc, int64_t acc_stride, const float *rescale, const float *p,
                         int n_rows, const float *panels, int begin, int end, int d) {
    const value_block block = {.panels = panels, .begin = begin, .end = end};
    values(acc, acc_stride, rescale, p, n_rows, &block, d, PANEL);
}

/* All of the above. */
static void set_kernels(octavo_attention_kernels *kernels) {
    kernels->tile_rows = TILE_ROWS;
    kernels->tile_groups = TOKEN_GROUPS;
    kernels->many_groups = tile_groups(TILE_ROWS);
    set_f32(kernels);
    set_f16(kernels);
    set_bf16(kernels);
    set_fp8_e4m3(kernels);
    set_fp8_e5m2(kernels);
    set_int8(kernels);
    kernels->gather_keys = gather_keys;
    kernels->softmax = softmax;
    kernels->panel_values = panel_values;
    kernels->merge = merge;
    kernels->sink = sink;
}
