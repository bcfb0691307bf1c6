/* SPDX-License-Identifier: Apache-2.0
 *
 * What an open model is made of.
 */
#ifndef OCTAVO_ENGINE_MODEL_H
#define OCTAVO_ENGINE_MODEL_H

#include "cache/block_table.h"
#include "engine/job.h"
#include "engine/rank.h"
#include "model/network.h"
#include "program/run.h"

#include "octavo/model.h"

/* Memory of one step's arrays (octavo_step), filled anew by each. */
typedef struct octavo_step_arrays {
    int32_t *ids;             /* [chunk] */
    int32_t *positions;       /* [chunk] */
    int32_t *types;           /* [chunk] */
    int32_t *logit_rows;      /* [chunk + max_sequences] */
    float **logits, **hidden; /* [chunk + max_sequences] */
    int32_t *trace_rows;      /* [max_sequences] */
    float **traces;           /* [max_sequences] */
    int32_t *query_start_loc; /* [max_sequences + 1] */
    int32_t *kv_lens;         /* [max_sequences] */
    int32_t *lengths;         /* [max_sequences] */
    int32_t *block_tables;    /* [max_sequences, table_entries] */
    int32_t *order;           /* [max_sequences] inputs, decode rows first */
    int32_t *group_tokens, *group_sequences, *group_rows; /* [groups + 1] */
} octavo_step_arrays;

/* Everything is the owner's; the pool's threads see it only inside octavo_run_step. */
struct octavo_model {
    octavo_cpu_flags cpu;
    octavo_pool *pool;
    octavo_network network;
    octavo_program program;
    octavo_kv_cache cache;    /* of a model that is not split; else its shape alone */
    octavo_page_pool **pages; /* [n_groups] */
    int n_groups;             /* of ranks, that have sequences of their own: data groups */
    octavo_run run;           /* of a model that is not split */
    octavo_ranks ranks;       /* else these */
    octavo_comm *comm;        /* with other processes; NULL: there are none */
    octavo_job job;           /* what they are told */
    octavo_step_arrays arrays;
    octavo_tokenizer *tokenizer;
    char *chat_template; /* or NULL */

    octavo_weights weights; /* as asked for */
    int64_t context;
    int64_t table_entries; /* pages of a full context */
    int cache_parts;       /* to which kv splits of a sequence are dealt; 1: none are */
    int64_t short_length;  /* ropes turn otherwise in sequences longer than this; 0: they do not */
    int chunk, max_sequences, page_size;
    int n_sequences;     /* alive */
    uint64_t step_count; /* of steps run: marks the sequences of the step at hand */
};

struct octavo_sequence {
    octavo_model *model;
    octavo_block_table table;
    int group;        /* whose pages it has */
    uint64_t in_step; /* step_count of the last step it was in */
    int64_t target;   /* the length that it is being fed to in several steps; 0: none */
    bool is_long;     /* its keys are those of a sequence longer than short_length */
    int32_t *ids;     /* [context] with short_length, else NULL */
    int32_t row[];    /* [table_entries] the table's memory, then ids */
};

#endif
