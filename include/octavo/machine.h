/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine can do at most: the limits that speeds are held against.
 */
#ifndef OCTAVO_MACHINE_H
#define OCTAVO_MACHINE_H

#include "octavo/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of all threads together; 0 for what the processor has no instruction for. */
typedef struct octavo_machine_limits {
    int threads;
    double read_gbps;  /* reading memory in ascending order, 10^9 bytes a second */
    double f32_gflops; /* multiply-adds count two */
    double bf16_gflops;
    double int8_gops;
    double fork_join_seconds; /* an empty run of the thread pool, threads awake */
} octavo_machine_limits;

/* Measures with this many threads (0: one for each physical core). Takes about `seconds` (0: 2
 * seconds), and 256 MiB of memory a thread, at most 4 GiB. `isa` as in octavo_model_options.
 * Statuses: INVALID, UNSUPPORTED, MEMORY. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_machine_measure(int threads, const char *isa,
                                                                  double seconds,
                                                                  octavo_machine_limits *limits,
                                                                  octavo_error *error);

/* Highest resident memory of the process so far, in bytes; 0 where the system does not tell. Any
 * thread. */
OCTAVO_API unsigned long long octavo_machine_peak_rss(void);

/* Physical cores that the process may use. Any thread. */
OCTAVO_API int octavo_machine_cores(void);

#ifdef __cplusplus
}
#endif
#endif
