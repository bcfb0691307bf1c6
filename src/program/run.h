/* SPDX-License-Identifier: Apache-2.0
 *
 * Running programs: every thread of a rank's team walks the ops of the rank, with a barrier of the
 * team between them. The ranks of a process are the teams of one pool; they read one another's
 * arenas where a value changes its layout, after a barrier of all. Nothing is allocated in a step.
 */
#ifndef OCTAVO_PROGRAM_RUN_H
#define OCTAVO_PROGRAM_RUN_H

#include "attention/attention.h"
#include "base/thread.h"
#include "cache/kv_cache.h"
#include "kernels/matmul.h"
#include "kernels/vector.h"
#include "program/op.h"
#include "program/reshard.h"

/* One step's input: sequences with their new tokens, decode rows first. Borrowed during the step.
 */
typedef struct octavo_step {
    int n_tokens;             /* t */
    const int32_t *ids;       /* [t] */
    const int32_t *positions; /* [t] absolute */
    const int32_t *types;     /* [t] token types, where the program reads them */
    int n_sequences;
    const int32_t *query_start_loc; /* [n_sequences + 1] */
    const int32_t *kv_lens;         /* [n_sequences], after the step */
    const int32_t *lengths;         /* [n_sequences] by which ropes choose their speeds */
    const int32_t *block_tables;    /* [n_sequences, pages_per_sequence] */
    int64_t pages_per_sequence;
    int n_rows;                /* rows that need a result */
    const int32_t *logit_rows; /* [n_rows] rows of t */
    float *const *logits;      /* [n_rows] -> [v]: where each row's logits go; NULL: not wanted */
    float *const *hidden;      /* [n_rows] -> [d]: likewise what they are made of */
    int n_traced;              /* rows whose traces are wanted */
    const int32_t *trace_rows; /* [n_traced] rows of t */
    float *const *traces;      /* [n_traced] -> [n_traces, d] */
    /* Where there are data groups: [groups + 1] the first token, sequence and row of each, which
     * lie one group behind the other; pages are numbered in each group by itself. A group may have
     * none. NULL: one group. */
    const int32_t *group_tokens, *group_sequences, *group_rows;
} octavo_step;

enum { OCTAVO_COLLECTIVES = OCTAVO_COLLECTIVE_PERMUTE + 1 };

/* What a rank got from others since it was made: messages and bytes of each kind of collective;
 * under NONE what plans do not list, sums of norms and rows that are selected. */
typedef struct octavo_traffic {
    int64_t messages[OCTAVO_COLLECTIVES];
    int64_t bytes[OCTAVO_COLLECTIVES];
} octavo_traffic;

typedef struct octavo_exchange octavo_exchange;

enum { OCTAVO_RUN_PROGRAMS = 2 };

typedef struct octavo_run_options {
    octavo_cpu_flags cpu;
    int max_sequences; /* in a step */
    /* The rest for programs of ranks. */
    const octavo_program *generate; /* runs steps in which every sequence has one new token; NULL:
                                       the same as others */
    int team;                       /* of the pool, that is this rank */
    int64_t pages_per_sequence;     /* most in a step; 0 where no cache is of all groups */
    int64_t max_length;             /* of a sequence; 0 where no kv splits are dealt to ranks */
    octavo_run *const *peers;  /* [ranks] the runs of the ranks of this process, this one too; NULL
                                  for those elsewhere; may be filled in until the first step */
    octavo_exchange *exchange; /* with those elsewhere (exchange.h); NULL: there are none */
} octavo_run_options;

/* How attention of one kind cuts a step into work. */
typedef struct octavo_run_plan {
    octavo_attention_plan plan;
    octavo_attention_limits limits;
    void *memory;
    int64_t first_row;           /* of the step, that is the batch's first */
    int32_t *starts, *positions; /* [max_sequences + 1], [max_sequences] of the rank's rows */
} octavo_run_plan;

/* What a rank needs to run steps. Shared by its threads during a step, and where it says so read by
 * other ranks':
 *   field                      written by
 *   program, step, plans, and  the caller, before the threads start (others: program)
 *   all of rows and batches
 *   row_*, r_rows, wants_*     the team's thread 0, between two barriers
 *   n_pairs, *_expert*         likewise, in the group op
 *   traffic                    the team's thread 0
 *   records                    all threads of the team, in attention (others: records)
 *   arena, workspace           all threads, each op its own share; ops are parted by barriers
 *                              (others: arena, see octavo_program_plan_memory)
 *   expert_begin, expert_pair  thread 0, in the group op
 *   kv_tops                    each thread its own, in the cache update
 *   everything else            nobody */
struct octavo_run {
    const octavo_program *program;                       /* of the step at hand */
    const octavo_program *programs[OCTAVO_RUN_PROGRAMS]; /* prefill, generate; may be the same */
    int rank;
    octavo_place place;
    int team, n_threads; /* threads of the team */
    octavo_run *const *peers;
    octavo_exchange *exchange;
    const uint8_t **received; /* [n_received] parts of the reshard at hand from elsewhere */
    octavo_pool *pool;
    const octavo_kv_cache *cache;
    octavo_matmul_kernels matmul;
    octavo_vector_kernels vector;
    octavo_attention_kernels attention;

    uint8_t *arena; /* of the larger program */
    octavo_run_plan all_plans[OCTAVO_RUN_PROGRAMS][OCTAVO_MAX_PLANS];
    octavo_run_plan *plans;   /* [OCTAVO_MAX_PLANS] those of the program of the step at hand */
    int32_t *sequence_starts; /* [max_sequences + 1] of the rank's group */
    int32_t *block_tables;    /* [max_sequences, pages_per_sequence] with pages of all groups */
    void *workspace;
    void *records;         /* of kv splits that are dealt to ranks, of the layer at hand */
    int32_t *expert_begin; /* [n_experts + 1] first pair of each of the rank's experts */
    int32_t *expert_pair;  /* [max_tokens, n_chosen] the pair of each choice; -1: not here */
    int64_t n_pairs;       /* of the rank's tokens and experts */
    int32_t first_expert, n_experts; /* that the rank has */
    /* While a model is calibrated: [threads, layers, 2, n_kv_heads], the largest magnitudes of keys
     * and values so far. NULL: they are not looked at. Whoever calibrates owns it. */
    float *kv_tops;
    int32_t n_kv_heads;

    const octavo_step *step;
    octavo_traffic traffic;
    /* Rows that the rank has by each split of the program: of t in the step, and of r among those
     * at hand, which are so many of each data group, one group behind the other. */
    octavo_range t_rows[OCTAVO_MAX_ROW_SPLITS], r_rows[OCTAVO_MAX_ROW_SPLITS];
    int32_t *token_offsets; /* [groups + 1] of t */
    int32_t *row_offsets;   /* [groups + 1] of r at hand */
    int32_t *row_numbers;   /* [groups * max_rows] in the step, of each r at hand */
    bool wants_logits, wants_hidden;
};

/* Borrows program, pool and cache until deinit. On failure *run is empty.
 *
 * A whole program has one rank, the pool's only team. For programs of ranks there is one run for
 * each rank of the process, all of one pool; the cache is the rank's own, its kv heads and the
 * pages of its data group. */
OCTAVO_MUST_CHECK octavo_status octavo_run_init(octavo_run *run, const octavo_program *program,
                                                octavo_pool *pool, const octavo_kv_cache *cache,
                                                const octavo_run_options *options,
                                                octavo_error *error);
void octavo_run_deinit(octavo_run *run); /* takes an empty one too */

/* Runs one step (1 <= n_tokens <= max_tokens) on all ranks of the process; `run` is any of theirs.
 * The caller has checked ids, positions and tables. */
void octavo_run_step(octavo_run *run, const octavo_step *step);

/* How many rows, before row `end` of the result, a rank at `place` takes of a shard of the source's
 * rows, of a part that owns rows only those; and the source's row (counted from its first) of the
 * next such row of the result from *row on, which moves behind it, or -1. */
int64_t octavo_rows_taken(octavo_run *run, const octavo_op *op, const octavo_place *place,
                          int row_shard, int part, int64_t end);
int64_t octavo_next_taken(octavo_run *run, const octavo_op *op, const octavo_place *place,
                          int row_shard, int part, int64_t *row);

/* Most bytes of records of kv splits, of so many query heads of plan `index`, where a step has
 * `rows` rows of sequences of at most max_length positions. *bytes is 0 where no splits are dealt.
 * False: it does not fit. */
bool octavo_records_room(const octavo_program *program, int index, int64_t heads, int64_t rows,
                         int64_t max_length, size_t *bytes);
/* What a part of the group merges, by its place. */
octavo_attention_piece octavo_records_piece(octavo_run *run, const octavo_op *op, int part);
/* Bytes of the records of a part, for the piece of another. */
size_t octavo_records_bytes(octavo_run *run, const octavo_op *op, int part,
                            const octavo_attention_piece *piece);
int octavo_own_part(const octavo_run *run, const octavo_op *op);

/* The ops that only programs of ranks have (reshard_op.c, norm_op.c). */
void octavo_run_reshard(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_norm_sum(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_norm_apply(octavo_run *run, const octavo_op *op, int thread, int n_threads);

/* A matrix for each head (head_op.c). */
void octavo_run_head_matmul(octavo_run *run, const octavo_op *op, int thread, int n_threads);

/* The experts' ops' run functions (expert_op.c). */
void octavo_run_route(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_group(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_gather(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_expert_matmul(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_combine(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_row_gate(octavo_run *run, const octavo_op *op, int thread, int n_threads);

/* The attention ops' run functions (attention_op.c). */
void octavo_run_cache_update(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_attention(octavo_run *run, const octavo_op *op, int thread, int n_threads);
void octavo_run_attention_merge(octavo_run *run, const octavo_op *op, int thread, int n_threads);

#endif
