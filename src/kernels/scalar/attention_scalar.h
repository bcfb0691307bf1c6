/* SPDX-License-Identifier: Apache-2.0
 *
 * The readable reference of octavo_attention_kernels.
 *
 * For one query row with logits s_j, over the blocks b of a kv split, ascending:
 *
 *     m' = max(m, max of b's s_j)        p_j = exp(s_j - m')        r = exp(m - m')
 *     l  = r l + sum p_j                 a   = r a + sum p_j v_j    m = m'
 *
 * starting from m = -inf, l = 0, a = 0; splits join by the same formula, and a sink is one more
 * logit without a value. The result is a / l. Where m' is -inf (all logits seen are -inf) 0 stands
 * for it in the differences, so that a later finite logit still counts alone.
 */
#ifndef OCTAVO_KERNELS_SCALAR_ATTENTION_SCALAR_H
#define OCTAVO_KERNELS_SCALAR_ATTENTION_SCALAR_H

#include "kernels/attention.h"

#include <math.h>

/* max as the vector instructions have it: b if either is NaN. */
static inline float octavo_attention_max(float a, float b) {
    return a > b ? a : b;
}

/* What stands for a maximum in the differences. */
static inline float octavo_attention_base(float max) {
    return max == -INFINITY ? 0.0f : max;
}

void octavo_attention_kernels_scalar(octavo_attention_kernels *kernels);

#endif
