/* SPDX-License-Identifier: Apache-2.0
 *
 * The partitioner: a program, a mesh and rules become a partition, which says for each op how its
 * operands lie over the ranks and what moves between ops. It is the same for all ranks; local.h
 * makes the program of one rank of it.
 *
 * How: each op kind has a few ways to run on shards (partition_ways.c). The search goes through the
 * ops in order and keeps, for each different set of layouts that live values may have, the cheapest
 * way to get there; between two layers the residual stream lies as its rule says, so layers are
 * decided one by one, and equal ones once. Cost is the estimated time of a step.
 */
#ifndef OCTAVO_PROGRAM_PARTITION_H
#define OCTAVO_PROGRAM_PARTITION_H

#include "program/axes.h"
#include "program/program.h"
#include "sharding/rules.h"

/* A tensor of the program in one layout. */
typedef struct octavo_value {
    int tensor;
    octavo_layout layout;
} octavo_value;

typedef enum octavo_step_kind {
    OCTAVO_STEP_OP,      /* op `op` of the program on the rank's shards */
    OCTAVO_STEP_RESHARD, /* in[0] becomes out, the same tensor in another layout */
} octavo_step_kind;

typedef enum octavo_reshard_cause {
    OCTAVO_CAUSE_OPERAND, /* op `op` takes it so */
    OCTAVO_CAUSE_RULE,    /* the tensor is kept so by its rule */
    OCTAVO_CAUSE_INPUT,   /* by the rule of what op `op` takes */
} octavo_reshard_cause;

typedef struct octavo_partition_step {
    octavo_step_kind kind;
    int op;    /* that it is, or that it is for */
    int layer; /* of that op */
    /* Values, in the order of the op's tensors, or OCTAVO_NO_TENSOR. */
    int in[OCTAVO_OP_INPUTS];
    int out;
    /* RESHARD. A partial sum's factor and bias come after it: `summed` is the op whose they are, or
     * -1; `bias` a value (of the op's bias, laid as out's columns) or OCTAVO_NO_TENSOR. */
    int summed, bias;
    int choices; /* RESHARD: a value, by which rows go only where they are for an expert, or
                    OCTAVO_NO_TENSOR */
    octavo_transfer transfer;   /* of RESHARD, and of a selection of rows from other ranks */
    octavo_reshard_cause cause; /* why there is a RESHARD */
    double seconds;             /* estimated */
} octavo_partition_step;

typedef struct octavo_partition {
    octavo_mesh mesh;
    octavo_phase phase;
    octavo_value *values;
    int n_values, capacity_values;
    octavo_partition_step *steps;
    int n_steps, capacity_steps;
    int head_begin, logits_begin; /* steps, as those of the program */
    int hidden, logits;           /* values, or OCTAVO_NO_TENSOR */
    int *trace_values;            /* [n_traces] values of the traces' tensors */
    int *trace_steps;             /* [n_traces] steps before which they are handed out */
    int n_traces;
    double seconds;
} octavo_partition;

/* What costs are estimated by. */
typedef struct octavo_machine_model {
    double link_bytes_s;   /* that a rank sends */
    double latency_s;      /* of a collective */
    double memory_bytes_s; /* that a rank reads */
    double operations_s;   /* of a rank */
} octavo_machine_model;

typedef struct octavo_partition_options {
    octavo_mesh mesh;
    octavo_phase phase;
    const octavo_rules *rules;
    octavo_machine_model machine;
    int64_t n_tokens, n_rows; /* of the step that is estimated, of all data groups */
    int64_t kv_length;        /* positions that its attention reads */
    double cache_bytes;       /* of an element of the cache */
    bool can_move_weights;    /* in a step, where that is cheapest */
    int most_states;          /* that the search keeps; 0: a default */
} octavo_partition_options;

/* Statuses: INVALID (the rules cannot be honoured: the message names tensor, axis, extent and
 * degree and the nearest legal one), MEMORY. On failure *partition is empty. */
OCTAVO_MUST_CHECK octavo_status octavo_partition_make(octavo_partition *partition,
                                                      const octavo_program *program,
                                                      const octavo_program_axes *axes,
                                                      const octavo_partition_options *options,
                                                      octavo_error *error);
void octavo_partition_deinit(octavo_partition *partition); /* takes an empty one too */

/* Of a token's row, how likely it is for a rank that has one of `degree` parts of the experts of a
 * layer, if all experts are chosen alike. */
double octavo_routed_share(const octavo_program *program, int layer, int degree);

/* Mesh axes over which the positions of each sequence are dealt, of a cache that lies so. */
octavo_split octavo_cache_deal(const octavo_layout *cache);

/* Is the value what attention has left of some kv splits on each rank, `partial` saying who shares
 * them? It is no sum: only ATTENTION_MERGE makes something of it. */
bool octavo_is_records(const octavo_program *program, int tensor, const octavo_layout *layout);

/* How a tensor is to lie by the rules. Weights, vectors and caches are placed by those of generate,
 * in either phase. */
octavo_layout octavo_layout_by_rules(const octavo_program *program, int tensor, octavo_phase phase,
                                     const octavo_mesh *mesh, const octavo_rules *rules);

#endif
