/* SPDX-License-Identifier: Apache-2.0
 *
 * Row arithmetic for AArch64. What vector.h calls the same at every level uses no fused operation.
 */
#include "base/compiler.h"
#include "kernels/arm/vector_ops_neon.h"
#include "kernels/scalar/vector_scalar.h"
#include "kernels/vector.h"

/* The largest of |x|, as bits: see the scalar version. */
static inline uint32_t max_bits_of(const float *x) {
    uint32x4_t m = vdupq_n_u32(0);
    for (int v = 0; v < OCTAVO_BLOCK; v += 4)
        m = vmaxq_u32(m, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + v))));
    return vmaxvq_u32(m);
}

/* 8 numbers to the nearest integer. */
static inline int8x8_t round_eight(const float *x, float by) {
    int16x4_t low = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), by)));
    int32x4_t high = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4), by));
    return vqmovn_s16(vqmovn_high_s32(low, high));
}

static inline void round_block(octavo_q8_block *out, const float *x, float inverse) {
    for (int half = 0; half < 2; half++) {
        const float *from = x + 16 * half;
        int8x16_t bytes = vcombine_s8(round_eight(from, inverse), round_eight(from + 8, inverse));
        out->sum[half] = vaddlvq_s8(bytes);
        vst1q_s8(out->q + 16 * half, bytes);
    }
}

#include "kernels/vector_tmpl.h"

void octavo_vector_kernels_neon(octavo_vector_kernels *kernels) {
    *kernels = entries;
}
