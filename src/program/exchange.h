/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ranks of a process get from ranks of other processes, and give them: before a value
 * changes its layout one thread packs what others need, the transport moves it, and the reshard
 * reads what has come beside the arenas of the process. Sizes follow from the step on both sides.
 */
#ifndef OCTAVO_PROGRAM_EXCHANGE_H
#define OCTAVO_PROGRAM_EXCHANGE_H

#include "program/run.h"
#include "sharding/comm.h"

/* Moves all of them; returns when that is done. */
typedef octavo_status octavo_exchange_fn(void *cookie, const octavo_message *sends, int n_sends,
                                         const octavo_message *receives, int n_receives,
                                         octavo_error *error);

/* One for all ranks of a process. The first field that is not constant after the init is `status`;
 * all are written by the pool's thread 0 alone. */
struct octavo_exchange {
    octavo_exchange_fn *move;
    void *cookie;
    const int *processes; /* [n_ranks] of each rank */
    octavo_run *const *peers;
    int n_ranks;
    octavo_message *sends, *receives; /* [n_parcels] */
    int n_parcels;
    uint8_t *out, *in; /* [bytes] */
    size_t bytes;
    int64_t n_exchanges, n_sent; /* so far, and bytes that this process sent in them */
    double seconds;              /* that they took, waiting for others included */
    octavo_status status; /* the first failure: nothing moves after it, and results are void */
    octavo_error error;
};

typedef struct octavo_exchange_options {
    octavo_exchange_fn *move;
    void *cookie;
    const int *processes;     /* [ranks] borrowed */
    octavo_run *const *peers; /* [ranks] the runs of this process, NULL elsewhere; borrowed */
    int64_t max_length;       /* as that of the runs */
} octavo_exchange_options;

/* Room for the largest step of the programs, which were made with the same processes; before the
 * runs are made, for their options. On failure *exchange is empty. */
OCTAVO_MUST_CHECK octavo_status octavo_exchange_init(octavo_exchange *exchange,
                                                     const octavo_exchange_options *options,
                                                     const octavo_program *const *programs,
                                                     int n_programs, octavo_error *error);
void octavo_exchange_deinit(octavo_exchange *exchange); /* takes an empty one too */

/* What op `index` of the programs at hand needs. On thread 0 of the pool, all others waiting. */
void octavo_exchange_run(octavo_exchange *exchange, int index);

#endif
