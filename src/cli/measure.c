/* SPDX-License-Identifier: Apache-2.0
 *
 * Speeds of several runs. The best is what the machine can do, the median what it did.
 */
#include "cli/measure.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

octavo_spread octavo_spread_of(double *speeds, size_t n) {
    qsort(speeds, n, sizeof *speeds, compare);
    return (octavo_spread){
        .best = speeds[n - 1],
        .median = (speeds[(n - 1) / 2] + speeds[n / 2]) / 2.0,
        .least = speeds[0],
    };
}

void octavo_spread_print(const octavo_spread *spread, octavo_buffer *out) {
    octavo_buffer_printf(out, "{\"best\":%.6g,\"median\":%.6g,\"min\":%.6g}", spread->best,
                         spread->median, spread->least);
}

void octavo_limits_print(const octavo_machine_limits *limits, octavo_buffer *out) {
    octavo_buffer_printf(out,
                         "{\"threads\":%d,\"read_gbps\":%.6g,\"f32_gflops\":%.6g,"
                         "\"bf16_gflops\":%.6g,\"int8_gops\":%.6g,\"fork_join_s\":%.6g}",
                         limits->threads, limits->read_gbps, limits->f32_gflops,
                         limits->bf16_gflops, limits->int8_gops, limits->fork_join_seconds);
}
