/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch of `octavo bench attention`: its text, and what attention over it must read and compute
 * at least, whoever does it.
 */
#ifndef OCTAVO_CLI_BENCH_BATCH_H
#define OCTAVO_CLI_BENCH_BATCH_H

#include "octavo/dtype.h"

#include <stddef.h>
#include <stdint.h>

typedef struct octavo_bench_sequence {
    int64_t q_len;  /* new tokens, at least 1 */
    int64_t kv_len; /* context with them */
} octavo_bench_sequence;

typedef struct octavo_bench_batch {
    octavo_bench_sequence *sequences; /* [n] */
    size_t n;
} octavo_bench_batch;

/* Sums over a batch. */
typedef struct octavo_bench_totals {
    int64_t queries;   /* new tokens */
    int64_t positions; /* context */
    double visible;    /* positions that some query of their sequence sees */
    double pairs;      /* of a query and a position that it sees */
} octavo_bench_totals;

/* Reads "Q:KV,NxQ:KV,...", the value of --batch: N sequences (1 where it is left out) of Q new
 * tokens and KV positions. Returns -1, and octavo_bench_batch_deinit frees the batch, or the exit
 * status after saying what is wrong. */
int octavo_bench_batch_parse(const char *text, octavo_bench_batch *batch);
void octavo_bench_batch_deinit(octavo_bench_batch *batch);

/* Causal attention; `window` as octavo_attention_args.sliding_window, 0: none. */
octavo_bench_totals octavo_bench_batch_totals(const octavo_bench_batch *batch, int64_t window);

#endif
