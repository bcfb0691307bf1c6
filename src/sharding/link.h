/* SPDX-License-Identifier: Apache-2.0
 *
 * What it costs ranks to exchange data, as a line over the bytes that one of them sends.
 */
#ifndef OCTAVO_SHARDING_LINK_H
#define OCTAVO_SHARDING_LINK_H

#include "base/thread.h"

#include "octavo/status.h"

/* seconds = latency_s + bytes / bytes_per_s */
typedef struct octavo_link {
    double latency_s;
    double bytes_per_s;
} octavo_link;

enum { OCTAVO_LINK_SIZES = 5, OCTAVO_LINK_ROUNDS = 15 };

/* Sizes at which links are measured, ascending: bytes that one rank sends, in all. */
extern const size_t octavo_link_sizes[OCTAVO_LINK_SIZES];

/* A line through the times at n >= 2 sizes, by least relative errors. */
octavo_link octavo_link_fit(const double *bytes, const double *seconds, int n);
/* Adds the value to n that are in ascending order. */
void octavo_link_insert(double *sorted, int n, double value);

/* Between the ranks of one process, the pool's teams: each copies from all others, between two
 * barriers of all threads. One team: latency 0, an infinite rate. Takes a part of a second. */
OCTAVO_MUST_CHECK octavo_status octavo_link_measure_threads(octavo_pool *pool, octavo_link *link,
                                                            octavo_error *error);

#endif
