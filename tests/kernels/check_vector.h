/* SPDX-License-Identifier: Apache-2.0
 *
 * What the checks of row arithmetic share: data of every length and fill.
 */
#ifndef OCTAVO_TESTS_KERNELS_CHECK_VECTOR_H
#define OCTAVO_TESTS_KERNELS_CHECK_VECTOR_H

#include "kernels/vector.h"
#include "tester.h"

#include <string.h>

typedef struct vector_pair {
    const octavo_vector_kernels *scalar, *level;
} vector_pair;

enum {
    SMALL = 70,   /* all lengths up to this: every tail of every vector width */
    LONG = 1500,  /* a random length up to this */
    BENCH = 4096, /* length of a benchmark's row */
    FLOAT = sizeof(float),
};

#define ULP  0x1p-24  /* relative error of one rounding */
#define TINY 0x1p-149 /* absolute error of one rounding among the denormals */

static inline float *vector_floats(tester *t, const char *name, int64_t n) {
    return tester_buffer(t, name, (size_t)n * FLOAT, FLOAT);
}

static inline double *vector_doubles(tester *t, const char *name, int64_t n) {
    return tester_buffer(t, name, (size_t)n * sizeof(double), sizeof(double));
}

static inline float *vector_filled(tester *t, const char *name, int64_t n, tester_fill fill) {
    float *x = vector_floats(t, name, n);
    tester_fill_f32(t, x, n, fill);
    return x;
}

static inline float *vector_copied(tester *t, const char *name, const float *from, int64_t n) {
    float *x = vector_floats(t, name, n);
    if (n > 0) memcpy(x, from, (size_t)n * FLOAT);
    return x;
}

/* Calls `one` for every small length and a longer one, with every fill. */
static inline void vector_for_shapes(tester *t, const vector_pair *k,
                                     void (*one)(tester *t, const vector_pair *k, int64_t n,
                                                 tester_fill fill)) {
    for (int fill = 0; fill <= TESTER_FILL_NONFINITE; fill++) {
        for (int64_t i = 0; i <= SMALL + 1; i++) {
            int64_t n = i <= SMALL ? i : tester_between(t, SMALL, LONG);
            tester_context(t, "n=%d fill=%s", (int)n, tester_fill_name((tester_fill)fill));
            one(t, k, n, (tester_fill)fill);
            tester_release(t);
        }
    }
    tester_context(t, "bench");
}

/* Of an entry each, with a vector_pair: check_vector_sums.c, check_vector_gates.c. */
void check_sum_squares(tester *t, const void *arg);
void check_sum(tester *t, const void *arg);
void check_rms_norm(tester *t, const void *arg);
void check_layer_norm(tester *t, const void *arg);
void check_gate_silu(tester *t, const void *arg);
void check_gate_gelu_tanh(tester *t, const void *arg);
void check_gate_gelu(tester *t, const void *arg);
void check_gate_relu2(tester *t, const void *arg);
void check_gate_swiglu(tester *t, const void *arg);

#endif
