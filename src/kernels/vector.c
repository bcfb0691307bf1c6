/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of row arithmetic, and what is built from its entries.
 */
#include "kernels/vector.h"

#include "kernels/scalar/vector_scalar.h"

void octavo_vector_kernels_init(octavo_vector_kernels *kernels, octavo_cpu_flags flags) {
    octavo_vector_kernels_scalar(kernels);
#if OCTAVO_HAVE_AVX2
    if (flags & OCTAVO_CPU_AVX2) octavo_vector_kernels_avx2(kernels);
#endif
#if OCTAVO_HAVE_AVX512
    if (flags & OCTAVO_CPU_AVX512) octavo_vector_kernels_avx512(kernels);
#endif
#if OCTAVO_HAVE_NEON
    if (flags & OCTAVO_CPU_NEON) octavo_vector_kernels_neon(kernels);
#endif
    (void)flags;
}

typedef float sum_fn(const float *x, int64_t begin, int64_t end);

static float mean_of(sum_fn *sum, const float *x, const octavo_slices *slices) {
    float parts[OCTAVO_MAX_SLICES];
    for (int s = 0; s < slices->n; s++)
        parts[s] = sum(x, slices->cut[s], slices->cut[s + 1]);
    octavo_tree_add(parts, slices->n, 1, 1);
    return parts[0] / (float)slices->cut[slices->n];
}

void octavo_rms_norm(const octavo_vector_kernels *kernels, float *out, const float *x,
                     const float *weight, const octavo_slices *slices, float eps) {
    float scale = 1.0f / sqrtf(mean_of(kernels->sum_squares, x, slices) + eps);
    kernels->scale_mul(out, x, scale, weight, slices->cut[slices->n]);
}

void octavo_layer_norm(const octavo_vector_kernels *kernels, float *out, const float *x,
                       const float *weight, const float *bias, const octavo_slices *slices,
                       float eps) {
    const int64_t n = slices->cut[slices->n];
    kernels->shift(out, x, mean_of(kernels->sum, x, slices), n);
    float scale = 1.0f / sqrtf(mean_of(kernels->sum_squares, out, slices) + eps);
    kernels->scale_mul(out, out, scale, weight, n);
    if (bias) kernels->add(out, out, bias, n);
}
