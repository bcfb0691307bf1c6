/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of random weights as a file holds them, for the tests of packing and of matmul.
 */
#ifndef OCTAVO_TESTS_KERNELS_WEIGHT_SAMPLES_H
#define OCTAVO_TESTS_KERNELS_WEIGHT_SAMPLES_H

#include "kernels/matmul.h"
#include "kernels/weight.h"

typedef enum weight_sample {
    WEIGHT_SAMPLE_NORMAL,    /* random codes, scales of usual size, a quarter of them negative */
    WEIGHT_SAMPLE_ALL_ONES,  /* every code bit set: the largest codes and inner scales */
    WEIGHT_SAMPLE_ALL_ZEROS, /* no code bit set */
    WEIGHT_SAMPLE_FLAT,      /* random codes, all f16 scales 0 */
    WEIGHT_SAMPLE_TINY,      /* random codes, all f16 scales subnormal */
    WEIGHT_SAMPLES_FINITE,
    WEIGHT_SAMPLE_NONFINITE = WEIGHT_SAMPLES_FINITE, /* row 5 has infinite and NaN scales */
} weight_sample;

const char *weight_sample_name(weight_sample sample);

/* Bytes of a row of k inputs. */
size_t weight_row_bytes(octavo_weight_type type, int64_t k);

/* Fills n_rows rows; *state is the generator's, any number but 0. Float types: values between -1
 * and 1, of that size in every sample. */
void weight_sample_fill(octavo_weight_type type, weight_sample sample, uint8_t *rows,
                        int64_t n_rows, int64_t k, uint64_t *state);

/* Quantises 32 values as octavo_q8_block says, plainly. */
void q8_sample_block(octavo_q8_block *block, const float *x);

uint32_t sample_random(uint64_t *state);
float sample_uniform(uint64_t *state); /* -1 .. 1 */

#endif
