/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a program on one rank: every thread of the pool walks the ops, with a barrier between
 * them. Nothing is allocated in a step.
 */
#ifndef OCTAVO_PROGRAM_RUN_H
#define OCTAVO_PROGRAM_RUN_H

#include "attention/attention.h"
#include "base/thread.h"
#include "cache/kv_cache.h"
#include "kernels/matmul.h"
#include "kernels/vector.h"
#include "program/op.h"

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
} octavo_step;

typedef struct octavo_run_options {
    octavo_cpu_flags cpu;
    int max_sequences; /* in a step */
} octavo_run_options;

/* What a rank needs to run steps. Shared by the pool's threads during a step:
 *   field                      written by
 *   step, row_begin, row_end,  thread 0, before the threads start or between two barriers
 *   wants_*, plans
 *   arena, workspace           all threads, each op its own share; ops are parted by barriers
 *   expert_begin, expert_pair  thread 0, in the group op
 *   kv_tops                    each thread its own, in the cache update
 *   everything else            nobody */
struct octavo_run {
    const octavo_program *program;
    octavo_pool *pool;
    const octavo_kv_cache *cache;
    octavo_matmul_kernels matmul;
    octavo_vector_kernels vector;
    octavo_attention_kernels attention;

    uint8_t *arena; /* program->arena_bytes */
    octavo_attention_plan plans[OCTAVO_MAX_PLANS];
    octavo_attention_limits limits[OCTAVO_MAX_PLANS];
    void *plan_memory[OCTAVO_MAX_PLANS];
    void *workspace;
    int32_t *expert_begin; /* [n_experts + 1] first pair of each expert */
    int32_t *expert_pair;  /* [max_tokens, n_chosen] the pair of each choice */
    /* While a model is calibrated: [threads, layers, 2, n_kv_heads], the largest magnitudes of keys
     * and values so far. NULL: they are not looked at. Whoever calibrates owns it. */
    float *kv_tops;
    int32_t n_kv_heads;

    const octavo_step *step;
    int row_begin, row_end; /* the group of rows at hand, and what any of it needs */
    bool wants_logits, wants_hidden;
};

/* Borrows program, pool and cache until deinit. On failure *run is empty. */
OCTAVO_MUST_CHECK octavo_status octavo_run_init(octavo_run *run, const octavo_program *program,
                                                octavo_pool *pool, const octavo_kv_cache *cache,
                                                const octavo_run_options *options,
                                                octavo_error *error);
void octavo_run_deinit(octavo_run *run); /* takes an empty one too */

/* Runs one step (1 <= n_tokens <= max_tokens). The caller has checked ids, positions and tables. */
void octavo_run_step(octavo_run *run, const octavo_step *step);

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
