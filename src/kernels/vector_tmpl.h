/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic in vectors of VEC_WIDTH (a divisor of OCTAVO_SUM_LANES) floats: included once by
 * each level's file after the header with its vec_ operations; makes the table `entries`. Tails run
 * through the same operations as whole vectors, so an element's bits do not depend on where it
 * stands in its row. The maths is at scalar/vector_scalar.h.
 */
#include "kernels/order.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/vector_exp_tmpl.h"

enum { SUM_VECS = OCTAVO_SUM_LANES / VEC_WIDTH };

static inline vec exp_vec(vec x) {
    return vec_limit(exp_within_limits(x), x, OCTAVO_EXP_LOW, OCTAVO_EXP_HIGH);
}

/* Lanes of the sum from the vectors that hold them, added by the tree. */
static float add_lanes(const vec *sums) {
    float lanes[OCTAVO_SUM_LANES];
    for (int v = 0; v < SUM_VECS; v++)
        vec_store(lanes + v * VEC_WIDTH, sums[v]);
    octavo_tree_add(lanes, OCTAVO_SUM_LANES, 1, 1);
    return lanes[0];
}

static int part_of(int64_t n) {
    return n < 0 ? 0 : n < VEC_WIDTH ? (int)n : VEC_WIDTH;
}

static float sum_squares(const float *x, int64_t begin, int64_t end) {
    vec sums[SUM_VECS];
    for (int v = 0; v < SUM_VECS; v++)
        sums[v] = vec_set(0.0f);
    int64_t i = begin;
    for (; i + OCTAVO_SUM_LANES <= end; i += OCTAVO_SUM_LANES) {
        for (int v = 0; v < SUM_VECS; v++) {
            vec a = vec_load(x + i + v * VEC_WIDTH);
            sums[v] = vec_add(sums[v], vec_mul(a, a));
        }
    }
    /* An absent element adds +0 to a lane that is never -0. */
    for (int v = 0; v < SUM_VECS && i < end; v++, i += VEC_WIDTH) {
        vec a = vec_load_part(x + i, part_of(end - i), vec_set(0.0f));
        sums[v] = vec_add(sums[v], vec_mul(a, a));
    }
    return add_lanes(sums);
}

static float sum(const float *x, int64_t begin, int64_t end) {
    vec sums[SUM_VECS], zero = vec_set(0.0f);
    for (int v = 0; v < SUM_VECS; v++)
        sums[v] = zero;
    int64_t i = begin;
    for (; i + OCTAVO_SUM_LANES <= end; i += OCTAVO_SUM_LANES)
        for (int v = 0; v < SUM_VECS; v++)
            sums[v] = vec_add(sums[v], vec_load(x + i + v * VEC_WIDTH));
    for (int v = 0; v < SUM_VECS && i < end; v++, i += VEC_WIDTH)
        sums[v] = vec_add(sums[v], vec_load_part(x + i, part_of(end - i), zero));
    return add_lanes(sums);
}

static void scale_mul(float *out, const float *x, float scale, const float *weight, int64_t n) {
    vec s = vec_set(scale), one = vec_set(1.0f);
    int64_t i = 0;
    if (weight) {
        for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
            vec_store(out + i, vec_mul(vec_mul(vec_load(x + i), s), vec_load(weight + i)));
    } else {
        for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
            vec_store(out + i, vec_mul(vec_load(x + i), s));
    }
    if (i == n) return;
    int part = part_of(n - i);
    vec w = weight ? vec_load_part(weight + i, part, one) : one;
    vec_store_part(out + i, vec_mul(vec_mul(vec_load_part(x + i, part, one), s), w), part);
}

static void add(float *out, const float *a, const float *b, int64_t n) {
    vec zero = vec_set(0.0f);
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(out + i, vec_add(vec_load(a + i), vec_load(b + i)));
    if (i == n) return;
    int part = part_of(n - i);
    vec_store_part(
        out + i, vec_add(vec_load_part(a + i, part, zero), vec_load_part(b + i, part, zero)), part);
}

static void shift(float *out, const float *x, float by, int64_t n) {
    vec b = vec_set(by);
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(out + i, vec_sub(vec_load(x + i), b));
    if (i == n) return;
    int part = part_of(n - i);
    vec_store_part(out + i, vec_sub(vec_load_part(x + i, part, b), b), part);
}

static void rope_half(float *x, const float *cs, int64_t n_pairs) {
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n_pairs; i += VEC_WIDTH) {
        vec c, s, a = vec_load(x + i), b = vec_load(x + i + n_pairs);
        vec_load_pairs(cs + 2 * i, &c, &s);
        vec_store(x + i, vec_sub(vec_mul(a, c), vec_mul(b, s)));
        vec_store(x + i + n_pairs, vec_add(vec_mul(b, c), vec_mul(a, s)));
    }
    for (; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[i], &x[i + n_pairs], &cs[2 * i]);
}

static void rope_pairwise(float *x, const float *cs, int64_t n_pairs) {
    int64_t i = 0;
    for (; i + VEC_WIDTH / 2 <= n_pairs; i += VEC_WIDTH / 2)
        vec_store(x + 2 * i, vec_rotate_pairs(vec_load(x + 2 * i), vec_load(cs + 2 * i)));
    for (; i < n_pairs; i++)
        octavo_rope_pair_scalar(&x[2 * i], &x[2 * i + 1], &cs[2 * i]);
}

static inline vec silu(vec g) {
    vec e = exp_vec(vec_sub(vec_set(-0.0f), g));
    return vec_div(g, vec_add(vec_set(1.0f), e));
}

static inline vec gelu_tanh(vec g) {
    vec z = vec_fma(vec_set(OCTAVO_GELU_Z3), vec_mul(g, g), vec_set(OCTAVO_GELU_Z1));
    vec e = exp_vec(vec_sub(vec_set(-0.0f), vec_mul(g, z)));
    return vec_div(g, vec_add(vec_set(1.0f), e));
}

static inline vec gelu(vec g) {
    static const float c[] = {OCTAVO_GELU_C8, OCTAVO_GELU_C7, OCTAVO_GELU_C6,
                              OCTAVO_GELU_C5, OCTAVO_GELU_C4, OCTAVO_GELU_C3,
                              OCTAVO_GELU_C2, OCTAVO_GELU_C1, OCTAVO_GELU_C0};
    vec size = vec_abs(g), one = vec_set(1.0f), h = vec_set(c[0]);
    vec u = vec_div(one, vec_fma(vec_set(OCTAVO_GELU_U), size, one));
    for (size_t i = 1; i < OCTAVO_COUNT(c); i++)
        h = vec_fma(h, u, vec_set(c[i]));
    h = vec_mul(vec_mul(h, u), exp_vec(vec_mul(vec_set(-0.5f), vec_mul(g, g))));
    return vec_sub(vec_max(g, vec_set(0.0f)), vec_mul(vec_min(size, vec_set(OCTAVO_GELU_END)), h));
}

/* out = act(gate) * up, one loop for all activations. */
static OCTAVO_ALWAYS_INLINE void gate_by(vec (*act)(vec g), float *out, const float *gate,
                                         const float *up, int64_t n) {
    vec zero = vec_set(0.0f), one = vec_set(1.0f);
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(out + i, vec_mul(act(vec_load(gate + i)), up ? vec_load(up + i) : one));
    if (i == n) return;
    int part = part_of(n - i);
    vec u = up ? vec_load_part(up + i, part, zero) : one;
    vec_store_part(out + i, vec_mul(act(vec_load_part(gate + i, part, zero)), u), part);
}

static void gate_silu(float *out, const float *gate, const float *up, int64_t n) {
    gate_by(silu, out, gate, up, n);
}

static void gate_gelu_tanh(float *out, const float *gate, const float *up, int64_t n) {
    gate_by(gelu_tanh, out, gate, up, n);
}

static void gate_gelu(float *out, const float *gate, const float *up, int64_t n) {
    gate_by(gelu, out, gate, up, n);
}

static inline vec relu2(vec g) {
    vec above = vec_max(vec_set(0.0f), g); /* in this order NaN comes through */
    return vec_mul(above, above);
}

static void gate_relu2(float *out, const float *gate, const float *up, int64_t n) {
    gate_by(relu2, out, gate, up, n);
}

/* The limit is the first operand, so that a NaN in the second comes through at every level. */
static inline vec swiglu(vec gate, vec up, vec limit, vec low) {
    vec g = vec_min(limit, gate), u = vec_max(low, vec_min(limit, up)), one = vec_set(1.0f);
    vec z = vec_mul(vec_set(-OCTAVO_SWIGLU_ALPHA), g);
    return vec_mul(vec_div(g, vec_add(one, exp_vec(z))), vec_add(u, one));
}

static void gate_swiglu(float *out, const float *gate, const float *up, float limit, int64_t n) {
    vec high = vec_set(limit), low = vec_set(-limit), zero = vec_set(0.0f);
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(out + i, swiglu(vec_load(gate + i), vec_load(up + i), high, low));
    if (i == n) return;
    int part = part_of(n - i);
    vec g = vec_load_part(gate + i, part, zero), u = vec_load_part(up + i, part, zero);
    vec_store_part(out + i, swiglu(g, u, high, low), part);
}

static void exp_row(float *out, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(out + i, exp_vec(vec_load(x + i)));
    if (i == n) return;
    int part = part_of(n - i);
    vec_store_part(out + i, exp_vec(vec_load_part(x + i, part, vec_set(0.0f))), part);
}

static float max_of(const float *x, int64_t n) {
    vec low = vec_set(-INFINITY), max = low;
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        max = vec_max(vec_load(x + i), max);
    if (i < n) max = vec_max(vec_load_part(x + i, part_of(n - i), low), max);
    return vec_reduce_max(max);
}

static void softmax(float *x, int64_t n) {
    vec max = vec_set(max_of(x, n)), sums[SUM_VECS];
    for (int v = 0; v < SUM_VECS; v++)
        sums[v] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + OCTAVO_SUM_LANES <= n; i += OCTAVO_SUM_LANES) {
        for (int v = 0; v < SUM_VECS; v++) {
            vec e = exp_vec(vec_sub(vec_load(x + i + v * VEC_WIDTH), max));
            vec_store(x + i + v * VEC_WIDTH, e);
            sums[v] = vec_add(sums[v], e);
        }
    }
    for (int v = 0; v < SUM_VECS && i < n; v++, i += VEC_WIDTH) {
        int part = part_of(n - i);
        vec e = exp_vec(vec_sub(vec_load_part(x + i, part, max), max));
        vec_store_part(x + i, e, part);
        sums[v] = vec_add(sums[v], vec_keep_part(e, part));
    }
    vec sum = vec_set(add_lanes(sums));
    for (i = 0; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(x + i, vec_div(vec_load(x + i), sum));
    if (i < n) {
        int part = part_of(n - i);
        vec_store_part(x + i, vec_div(vec_load_part(x + i, part, sum), sum), part);
    }
}

static inline vec cap_vec(vec x, vec cap) {
    vec y = vec_div(x, cap), one = vec_set(1.0f);
    vec t = exp_vec(vec_mul(vec_set(-2.0f), vec_abs(y)));
    vec tanh_abs = vec_div(vec_sub(one, t), vec_add(one, t));
    return vec_mul(cap, vec_with_sign_of(tanh_abs, y));
}

static void soft_cap(float *x, float cap, int64_t n) {
    vec c = vec_set(cap);
    int64_t i = 0;
    for (; i + VEC_WIDTH <= n; i += VEC_WIDTH)
        vec_store(x + i, cap_vec(vec_load(x + i), c));
    if (i == n) return;
    int part = part_of(n - i);
    vec_store_part(x + i, cap_vec(vec_load_part(x + i, part, c), c), part);
}

/* The level's file has the two halves: the largest of |x| as bits, and all of a block but d. */
static void quantise_block(octavo_q8_block *out, const float *x) {
    uint32_t max_bits = max_bits_of(x);
    float max = octavo_f32_from_bits(max_bits), inverse = 127.0f / max;
    if (max_bits >= 0x7f800000u || !isfinite(inverse)) {
        *out = (octavo_q8_block){.d = max_bits >= 0x7f800000u ? NAN : 0.0f};
        return;
    }
    round_block(out, x, inverse);
    out->d = max / 127.0f;
}

#include "kernels/vector_entries_tmpl.h"
