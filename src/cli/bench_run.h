/* SPDX-License-Identifier: Apache-2.0
 *
 * The measured part of `octavo bench MODEL`: streams of made-up ids through octavo_model_step.
 */
#ifndef OCTAVO_CLI_BENCH_RUN_H
#define OCTAVO_CLI_BENCH_RUN_H

#include "cli/measure.h"

#include "octavo/model.h"

/* What to measure. */
typedef struct octavo_bench_load {
    int64_t prompt, generate; /* tokens of each stream; 0: that phase is left out */
    int64_t depth;            /* tokens in each stream's cache before either phase */
    int64_t streams;
    int64_t shared_prefix; /* tokens that all streams begin with */
    int64_t repeat;
} octavo_bench_load;

/* Tokens per second of all streams together; zeros for a phase that is left out. */
typedef struct octavo_bench_speeds {
    octavo_spread prefill, decode;
} octavo_bench_speeds;

/* Slots that the load needs in each stream. */
int64_t octavo_bench_slots(const octavo_bench_load *load);

/* Runs the load. Statuses: LIMIT (more streams than a step takes, too long for the context or the
 * cache), MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_bench_run(octavo_model *model, const octavo_bench_load *load,
                                                 octavo_bench_speeds *speeds, octavo_error *error);

#endif
