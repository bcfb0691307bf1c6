/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of one rank: the steps of a partition, on tensors of the rank's own extents. All
 * ranks of a partition get the same ops over the same tensors' numbers; only extents, begins and
 * places in the arena differ, so a rank finds its peers' parts by its own numbers.
 *
 * What a partition leaves open is settled here: a norm over a split row becomes sum, exchange and
 * the rest; a matmul whose weight is kept wider than it needs gets the part that it needs; and ops
 * before which the threads of all ranks must have met are marked.
 */
#ifndef OCTAVO_PROGRAM_LOCAL_H
#define OCTAVO_PROGRAM_LOCAL_H

#include "program/partition.h"

/* What a rank has of a weight or a vector of the program, as octavo_layout_by_rules says: of a
 * weight its rows (outputs), inputs and experts or heads, packed like any; without data where the
 * program is only looked at. Caches need none: their kv heads follow from the program. */
typedef struct octavo_binding {
    const octavo_weight *weight;
    const float *vector;
} octavo_binding;

typedef struct octavo_local_options {
    const octavo_program *program; /* the whole one */
    const octavo_program_axes *axes;
    const octavo_partition *partition;
    int rank;
    const octavo_binding *bindings; /* [program->n_tensors] borrowed like the weights themselves */
    int max_tokens;                 /* of a step, if it has fewer than the whole program's; or 0 */
    int max_group_tokens;           /* of one data group; 0: one may have all max_tokens */
    /* [ranks] the process of each, where there are several: logits, hidden rows and traces are then
     * brought to rank 0. NULL: all ranks are of this one. */
    const int *processes;
} octavo_local_options;

/* Plans its memory too. Statuses: INVALID (the partition asks for what no op can do, or a weight is
 * not the rank's part), MEMORY. On failure *local is empty. End with octavo_program_deinit. */
OCTAVO_MUST_CHECK octavo_status octavo_local_make(octavo_program *local,
                                                  const octavo_local_options *options,
                                                  octavo_error *error);

#endif
