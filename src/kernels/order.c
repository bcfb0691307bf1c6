/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic-free part of the order contract (cuts) and its tree.
 */
#include "kernels/order.h"

#include "base/compiler.h"

int64_t octavo_slices_unit(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static octavo_slices cut_into(int64_t extent, int64_t unit, int n) {
    octavo_slices slices = {.n = n};
    int64_t units = (extent + unit - 1) / unit;
    for (int i = 0; i < n; i++)
        slices.cut[i] = i * units / n * unit;
    slices.cut[n] = extent;
    return slices;
}

octavo_slices octavo_slices_make(int64_t extent, int64_t unit) {
    octavo_assert(extent >= 0 && unit >= 1);
    for (int n = OCTAVO_MAX_SLICES; n > 1; n /= 2) {
        octavo_slices slices = cut_into(extent, unit, n);
        int i = 0;
        while (i < n && slices.cut[i + 1] - slices.cut[i] >= OCTAVO_MIN_SLICE)
            i++;
        if (i == n) return slices;
    }
    return cut_into(extent, unit, 1);
}

octavo_slices octavo_slices_of_experts(int64_t n_experts) {
    int n = OCTAVO_MAX_SLICES;
    while (n > 1 && n > n_experts)
        n /= 2;
    return cut_into(n_experts, 1, n);
}

void octavo_tree_add(float *parts, int n, int64_t stride, int64_t width) {
    octavo_assert(n >= 1 && (n & (n - 1)) == 0);
    for (int step = 1; step < n; step *= 2) {
        for (int i = 0; i < n; i += 2 * step) {
            float *restrict to = parts + i * stride;
            const float *restrict from = parts + (i + step) * stride;
            for (int64_t j = 0; j < width; j++)
                to[j] += from[j];
        }
    }
}
