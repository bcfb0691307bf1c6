/* SPDX-License-Identifier: Apache-2.0
 *
 * The measuring loops in portable C: what the compiler makes of plain loops at the baseline.
 */
#include "kernels/scalar/machine_scalar.h"

enum { CHAINS = 32, DATA = OCTAVO_MACHINE_SCRATCH / 4 };

static uint64_t read_words(const void *buffer, size_t bytes) {
    const uint64_t *words = buffer;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < bytes / 8; i += 8) {
        for (int j = 0; j < 8; j++)
            sum[j] += words[i + (size_t)j];
    }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* One factor comes from memory, or the compiler would multiply once and for all. */
static double f32(int64_t iterations, void *scratch) {
    float *data = scratch, acc[CHAINS] = {0};
    for (int64_t i = 0; i < iterations; i++) {
        const float *x = data + i * CHAINS % DATA;
        for (int j = 0; j < CHAINS; j++)
            acc[j] += x[j] * 0.5f;
    }
    for (int j = 0; j < CHAINS; j++)
        data[j] = acc[j] * 0x1p-64f;
    return 2.0 * CHAINS * (double)iterations;
}

static double int8(int64_t iterations, void *scratch) {
    int8_t *data = scratch;
    uint32_t acc[CHAINS] = {0};
    for (int64_t i = 0; i < iterations; i++) {
        const int8_t *x = data + i * CHAINS % OCTAVO_MACHINE_SCRATCH;
        for (int j = 0; j < CHAINS; j++)
            acc[j] += (uint32_t)(x[j] * 3);
    }
    for (int j = 0; j < CHAINS; j++)
        data[j] = (int8_t)(acc[j] & 1u);
    return 2.0 * CHAINS * (double)iterations;
}

static double absent(int64_t iterations, void *scratch) {
    (void)iterations;
    (void)scratch;
    return 0.0;
}

void octavo_machine_kernels_scalar(octavo_machine_kernels *kernels) {
    *kernels =
        (octavo_machine_kernels){.read = read_words, .f32 = f32, .bf16 = absent, .int8 = int8};
}
