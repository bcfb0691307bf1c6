/* SPDX-License-Identifier: Apache-2.0
 *
 * A golden case of ragged paged attention: a folder with case.txt and .npy files (see
 * tests/data/rpa/README.md). Text lines are "name value", arrays
 * "array name file stored-type type n_axes extents...".
 */
#ifndef OCTAVO_TESTS_RPA_CASE_H
#define OCTAVO_TESTS_RPA_CASE_H

#include "../npy.h"

#include "octavo/attention.h"

#include <stdbool.h>

/* All that args point to belongs to the case. */
typedef struct rpa_case {
    octavo_attention_args args; /* output and kv_cache included */
    double rtol, atol;
    bool has_expectation;
    npy expect_out;   /* [T, Hq, D] */
    npy expect_slots; /* [n] flat page * page_size + slot, ascending or not */
    npy expect_rows;  /* [n, words, pk, Dp] */
    npy arrays[10];
    int n_arrays;
    void *output;
} rpa_case;

void rpa_case_load(rpa_case *c, const char *folder);
void rpa_case_free(rpa_case *c);

/* One element of a raw array as a double. */
double rpa_value(const void *data, octavo_dtype dtype, int64_t i);

#endif
