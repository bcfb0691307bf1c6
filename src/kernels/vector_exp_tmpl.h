/* SPDX-License-Identifier: Apache-2.0
 *
 * exp in vectors: included after a level's vec_ operations. The maths is at scalar/vector_scalar.h.
 */
#include "base/compiler.h"
#include "kernels/scalar/vector_scalar.h"

/* x in [OCTAVO_EXP_LOW, OCTAVO_EXP_HIGH]; means nothing elsewhere. */
static OCTAVO_ALWAYS_INLINE vec exp_within_limits(vec x) {
    vec magic = vec_set(OCTAVO_ROUND_MAGIC);
    vec shifted = vec_fma(x, vec_set(OCTAVO_EXP_LOG2E), magic);
    vec n = vec_sub(shifted, magic);
    vec r = vec_fnma(n, vec_set(OCTAVO_EXP_LN2_HIGH), x);
    r = vec_fnma(n, vec_set(OCTAVO_EXP_LN2_LOW), r);
    vec p = vec_set(OCTAVO_EXP_C3);
    p = vec_fma(p, r, vec_set(OCTAVO_EXP_C2));
    p = vec_fma(p, r, vec_set(OCTAVO_EXP_C1));
    p = vec_fma(p, r, vec_set(OCTAVO_EXP_C0));
    p = vec_fma(p, vec_mul(r, r), r);
    p = vec_add(p, vec_set(1.0f));
    return vec_add_exponent(p, shifted);
}
