/* SPDX-License-Identifier: Apache-2.0
 *
 * What benchmarks share: statistics of repeated runs, and the machine's limits as JSON and text.
 */
#ifndef OCTAVO_CLI_MEASURE_H
#define OCTAVO_CLI_MEASURE_H

#include "base/buffer.h"

#include "octavo/machine.h"

#include <stddef.h>

typedef struct octavo_spread {
    double best, median, least;
} octavo_spread;

/* Of speeds [n], n > 0, which are sorted in place. */
octavo_spread octavo_spread_of(double *speeds, size_t n);
/* {"best": ..., "median": ..., "min": ...} */
void octavo_spread_print(const octavo_spread *spread, octavo_buffer *out);

/* One row of limits as a JSON object. */
void octavo_limits_print(const octavo_machine_limits *limits, octavo_buffer *out);

#endif
