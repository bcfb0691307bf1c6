/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile's accumulators with AVX-512: words of attention_entries_tmpl.h that its levels share.
 */
#ifndef OCTAVO_KERNELS_X86_ATTENTION_TILE_AVX512_H
#define OCTAVO_KERNELS_X86_ATTENTION_TILE_AVX512_H

#include "kernels/attention_types.h"
#include "kernels/x86/vector_ops_avx512.h"

static OCTAVO_ALWAYS_INLINE void vec_load_acc(vec a[1], const float *acc, const int type) {
    (void)type;
    a[0] = _mm512_loadu_ps(acc);
}

static OCTAVO_ALWAYS_INLINE void vec_store_acc(float *acc, const vec a[1], const int type) {
    (void)type;
    _mm512_storeu_ps(acc, a[0]);
}

/* Up to 24 accumulators. */
static inline int tile_groups(int rows) {
    (void)rows;
    return 4;
}

#endif
