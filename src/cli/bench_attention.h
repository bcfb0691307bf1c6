/* SPDX-License-Identifier: Apache-2.0
 *
 * The measured part of `octavo bench attention`: one batch of made-up numbers through
 * octavo_ragged_paged_attention, again and again.
 */
#ifndef OCTAVO_CLI_BENCH_ATTENTION_H
#define OCTAVO_CLI_BENCH_ATTENTION_H

#include "cli/bench_batch.h"

#include "octavo/attention.h"

#include <stdbool.h>

/* What to measure. */
typedef struct octavo_bench_attention {
    int64_t heads, kv_heads, head_dim, page_size;
    int64_t window; /* 0: none */
    octavo_dtype q_dtype, kv_dtype;
    octavo_kv_layout layout;
    octavo_attention_precision precision;
    bool has_runs; /* a sequence's pages are neighbours; else all pages are shuffled */
    octavo_bench_batch batch;
    int threads;
    const char *isa; /* NULL: the best */
    int64_t repeat;  /* 0: as often as fits a second, at least three times */
} octavo_bench_attention;

typedef struct octavo_bench_times {
    double best, median; /* seconds of a call */
    int64_t runs;
} octavo_bench_times;

/* Calls once unmeasured, then `repeat` times. Statuses: LIMIT (more memory than the machine has),
 * MEMORY, and those of octavo_attention_context_create and octavo_ragged_paged_attention. */
OCTAVO_MUST_CHECK octavo_status octavo_bench_attention_run(const octavo_bench_attention *bench,
                                                           octavo_bench_times *times,
                                                           octavo_error *error);

#endif
