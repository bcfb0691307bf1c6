/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of local.h share: the program of a rank while it is made.
 */
#ifndef OCTAVO_PROGRAM_LOCAL_MAKER_H
#define OCTAVO_PROGRAM_LOCAL_MAKER_H

#include "program/build_op.h"
#include "program/local.h"
#include "program/reshard.h"

typedef struct octavo_local_maker {
    const octavo_local_options *options;
    const octavo_program *whole;
    const octavo_partition *partition;
    octavo_builder builder; /* keeps the first failure */
    octavo_program *local;
    octavo_place place;
    octavo_value *values; /* [n_values] layouts without axes of degree 1 */
    int *same;            /* [n_values] the first value that is equal */
    int *tensors;         /* [n_values] of the local program, of the first of equals; -1: not yet */
    int update;           /* the cache update whose plan the next attention decides; -1: none */
    const octavo_partition_step *records; /* that the next merge takes; NULL: none */
    int grouped; /* choices whose pairs are numbered, and for which rows and experts */
    octavo_layout grouped_as;
    int capacity_reshards;
    bool is_for_trace; /* what is added is */
} octavo_local_maker;

/* Keeps a mistake of the partition. */
void octavo_local_reject(octavo_local_maker *maker, int tensor, const char *why);
void octavo_local_no_memory(octavo_local_maker *maker);

/* The local tensor of a value or OCTAVO_NO_TENSOR, made if need be (local_tensor.c). */
int octavo_local_tensor(octavo_local_maker *maker, int value);
int octavo_local_input(const octavo_local_maker *maker, int id); /* of the whole program's inputs */
/* One number for each row of x. */
int octavo_local_column(octavo_local_maker *maker, const char *name, int x);
/* The one row that a vector becomes on its way to another layout. */
int octavo_local_row(octavo_local_maker *maker, int value);
/* The matrix that a weight becomes there: fills *weight in, all but its data. */
int octavo_local_matrix(octavo_local_maker *maker, int value, const octavo_reshard_desc *desc,
                        octavo_weight *weight);
/* Experts that a rank has of a tensor of pairs. */
octavo_slices octavo_local_experts(octavo_local_maker *maker, int route,
                                   const octavo_split *experts);
/* Those of one shard of the split. */
octavo_range octavo_local_expert_range(const octavo_local_maker *maker, int route,
                                       const octavo_split *experts, int shard);
/* The op that makes choices. */
const octavo_op *octavo_local_router(const octavo_local_maker *maker, int route);

/* How the records of kv splits get to the merge at hand (local_records.c). */
void octavo_local_records(octavo_local_maker *maker, int query, octavo_op_params *params);

/* An op of the partition (local_op.c). */
void octavo_local_op(octavo_local_maker *maker, const octavo_partition_step *step);

/* An exchange between two local tensors (local_reshard.c). `step`: which asks for it, or NULL. */
void octavo_local_reshard(octavo_local_maker *maker, const octavo_reshard_desc *desc, int from,
                          int to, const octavo_partition_step *step);
/* All of a value [rows, columns] on rank 0, where there are several processes; else the value. */
int octavo_local_bring(octavo_local_maker *maker, int value);
void octavo_local_step_reshard(octavo_local_maker *maker, const octavo_partition_step *step);
octavo_reshard_desc octavo_local_reshard_desc(const octavo_local_maker *maker, int from_value,
                                              int to_value);

/* Slices [begin, end) of those of an axis, counted from `begin`; where they are cut otherwise such
 * a range's own, of that unit. */
octavo_slices octavo_local_slices(const octavo_slices *slices, int64_t begin, int64_t end,
                                  int64_t unit);

#endif
