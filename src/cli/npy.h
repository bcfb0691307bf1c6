/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing NumPy's .npy files (format version 1.0) row by row.
 */
#ifndef OCTAVO_CLI_NPY_H
#define OCTAVO_CLI_NPY_H

#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A float32 matrix in the making. Zero-initialised is closed. */
typedef struct octavo_npy {
    FILE *stream;
    const char *path; /* not owned */
} octavo_npy;

/* Opens the file ("-": standard output) and writes the header of [rows, columns]. */
OCTAVO_MUST_CHECK octavo_status octavo_npy_open(octavo_npy *npy, const char *path, int64_t rows,
                                                int64_t columns, octavo_error *error);
/* Appends values [n], in row-major order. */
OCTAVO_MUST_CHECK octavo_status octavo_npy_write(octavo_npy *npy, const float *values, size_t n,
                                                 octavo_error *error);
/* Finishes the file. On failure, and by octavo_npy_discard, a file in the making is removed. */
OCTAVO_MUST_CHECK octavo_status octavo_npy_close(octavo_npy *npy, octavo_error *error);
void octavo_npy_discard(octavo_npy *npy); /* takes a closed one */

#endif
