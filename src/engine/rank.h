/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of a model that is split: how each program is partitioned, and what each rank of this
 * process has of it.
 */
#ifndef OCTAVO_ENGINE_RANK_H
#define OCTAVO_ENGINE_RANK_H

#include "cache/kv_cache.h"
#include "model/network.h"
#include "program/exchange.h"
#include "program/local.h"
#include "program/run.h"

/* Owned by the model's owner; while a step runs by the threads of the rank. */
typedef struct octavo_rank {
    octavo_model_weights weights;
    octavo_binding *bindings; /* [n_tensors of the whole program] */
    octavo_program programs[OCTAVO_PHASES];
    octavo_kv_cache cache; /* its own kv heads */
    octavo_run run;
} octavo_rank;

typedef struct octavo_ranks {
    octavo_mesh mesh;
    octavo_program_axes axes;
    octavo_partition partitions[OCTAVO_PHASES];
    octavo_rank *ranks;       /* [n] those of this process, from `first` on */
    int n, first;             /* 0: the model is not split */
    octavo_run **runs;        /* [ranks of the mesh] theirs, NULL elsewhere */
    int *processes;           /* [ranks of the mesh] */
    octavo_exchange exchange; /* with other processes */
    int64_t cache_bytes;      /* of all */
} octavo_ranks;

typedef struct octavo_ranks_options {
    const octavo_network *network; /* bound without data */
    const octavo_program *program; /* the whole one */
    const octavo_mesh *mesh;
    const octavo_rules *rules;
    const octavo_checkpoint *checkpoint;
    octavo_weights_options loading; /* with the pool, of as many teams as there are ranks */
    octavo_cpu_flags cpu;
    octavo_kv_shape cache;          /* of the whole model: pages of one data group */
    const octavo_kv_scales *scales; /* of the whole model; no keys: none */
    bool has_slot_scales;
    int max_sequences;
    int64_t pages_per_sequence;
    int64_t context;   /* most positions of a sequence */
    int64_t kv_length; /* positions that steps are planned for */
    octavo_comm *comm; /* NULL: all ranks are of this process */
} octavo_ranks_options;

/* On failure *ranks is empty. Statuses as of loading, and INVALID or UNSUPPORTED for rules that
 * cannot be honoured. */
OCTAVO_MUST_CHECK octavo_status octavo_ranks_open(octavo_ranks *ranks,
                                                  const octavo_ranks_options *options,
                                                  octavo_error *error);
void octavo_ranks_close(octavo_ranks *ranks); /* takes an empty one too */

/* To how many ranks the positions of each sequence are dealt by the rules of the caches; 1: all
 * have all. UNSUPPORTED where layers differ in that. */
OCTAVO_MUST_CHECK octavo_status octavo_cache_parts(const octavo_program *program,
                                                   const octavo_mesh *mesh,
                                                   const octavo_rules *rules, int *n_parts,
                                                   octavo_error *error);

/* Elements of a page of so many kv heads, in the layout that suits them. */
int64_t octavo_cache_page_elements(const octavo_model_config *config, const octavo_kv_shape *shape,
                                   int64_t n_kv_heads, bool has_slot_scales);

#endif
