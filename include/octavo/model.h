/* SPDX-License-Identifier: Apache-2.0
 *
 * A model and its sequences: load weights, feed token ids, get logits.
 *
 * A sequence is one text in the making: it owns pages of the model's paged key/value cache. A step
 * feeds new ids to any number of sequences at once. The logits of a sequence are the same bits
 * whatever else is in its steps, however its ids were cut into steps, however many threads run and
 * wherever its pages lie.
 *
 * Threads: a model and its sequences have one owner at a time: no two calls on them may overlap,
 * except where a function says "any thread".
 */
#ifndef OCTAVO_MODEL_H
#define OCTAVO_MODEL_H

#include "octavo/dtype.h"
#include "octavo/log.h"
#include "octavo/sharding.h"
#include "octavo/status.h"
#include "octavo/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_model octavo_model;
typedef struct octavo_sequence octavo_sequence;

typedef enum octavo_precision {
    OCTAVO_PRECISION_FAST = 0,  /* activations are quantised for quantised weights */
    OCTAVO_PRECISION_EXACT = 1, /* f32 activations and arithmetic everywhere */
} octavo_precision;

/* What matrices are packed as while they are loaded. Norms, biases, routers and matrices of less
 * than 1024 values keep their type; where rows do not fill whole blocks a wider type is taken. */
typedef enum octavo_weights {
    OCTAVO_WEIGHTS_FILE = 0, /* as in the file */
    OCTAVO_WEIGHTS_F32 = 1,
    OCTAVO_WEIGHTS_BF16 = 2,
    OCTAVO_WEIGHTS_Q8 = 3, /* Q8_0 */
    OCTAVO_WEIGHTS_Q4 = 4, /* Q4_K, embedding and output Q8_0; four bits or less stay */
} octavo_weights;

/* "file", "f32", "bf16", "q8", "q4"; "?" for none of them. Lives forever. Any thread. */
OCTAVO_API const char *octavo_weights_name(octavo_weights weights);

/* kv_dtype: f16 or bf16, whichever the processor does faster (f16 where they are equal); f32 in
 * exact precision. */
#define OCTAVO_KV_DTYPE_AUTO (-1)

/* How the ranks of a model run. */
typedef enum octavo_ranks_kind {
    OCTAVO_RANKS_THREAD = 0, /* as threads of this process */
    OCTAVO_RANKS_MPI = 1,    /* in the processes of an MPI job, as many in each */
} octavo_ranks_kind;

typedef struct octavo_model_options {
    size_t size; /* sizeof(octavo_model_options) */
    int threads; /* of a rank; 0: of the physical cores that the process may use as many as there
                    are for each rank */
    const char *isa; /* instruction set: "scalar", "avx2", ...; NULL: the best there is */
    octavo_precision precision; /* OCTAVO_PRECISION_FAST */
    octavo_weights weights;     /* OCTAVO_WEIGHTS_FILE */
    int kv_dtype;               /* OCTAVO_KV_DTYPE_AUTO, or an octavo_dtype: f32, f16, bf16, or
                                   fp8_e4m3, fp8_e5m2, int8: keys and values are then divided by
                                   scales. Those are the file's below, else for fp8 the
                                   checkpoint's, else each slot keeps one of each head's key and
                                   one of its value */
    const char *kv_scales;      /* a file of octavo/calibrate.h for an 8-bit cache; NULL: none */
    int page_size;              /* 16: slots in a page of the cache, 1 to 1024 */
    uint64_t kv_memory;         /* bytes for the cache; 0: what one full context needs */
    int64_t context;   /* longest sequence; 0: the model's own; more than that is refused */
    int chunk;         /* 512: most ids in a step; of encoders at least the context */
    int max_sequences; /* 64: most sequences in a step */
    bool pin;          /* true: bind each thread to a core of its own where possible */
    /* How the model is split over ranks; NULL: it is not. Read
     * while the model is opened, not kept. The bits of logits do not depend on it, as long as no
     * axis has more ranks than slices (docs/sharding.md). */
    const octavo_sharding *sharding;
    octavo_ranks_kind ranks; /* OCTAVO_RANKS_THREAD. With MPI all processes of the job open the
                                model alike, once; all but process 0 then call octavo_model_follow
                                and close it. Where one of them fails the open fails in all */
    /* Called while loading, on the calling thread, with bytes done and in all. Another value than 0
     * stops the load with OCTAVO_ERROR_CANCELLED. NULL: not called. */
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *progress_cookie;
    octavo_log log; /* level ERROR, no sink */
} octavo_model_options;

/* Fills in the defaults named above. */
OCTAVO_API void octavo_model_options_init(octavo_model_options *options);

/* Loads a GGUF file (of a split one, the first part), or the folder of a Hugging Face checkpoint:
 * config.json, safetensors, and where it has them tokenizer and chat template.
 *   path     the file or folder; not kept
 *   options  NULL: the defaults; not kept
 *   model    receives the handle; the caller closes it. Untouched on failure
 * Statuses: NOT_FOUND, IO, FORMAT (a file is malformed or contradicts itself), UNSUPPORTED (an
 * architecture, a tensor type or an instruction set that this build or machine does not have),
 * INVALID (an option out of range), LIMIT (a cache too small for one page), MEMORY, CANCELLED. Any
 * thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_model_open(const char *path,
                                                             const octavo_model_options *options,
                                                             octavo_model **model,
                                                             octavo_error *error);

/* Frees the model and sets the handle to NULL; takes NULL. Its sequences must be destroyed before.
 */
OCTAVO_API void octavo_model_close(octavo_model **model);

/* How the hidden states of a text become one vector (octavo/embed.h). */
typedef enum octavo_pooling {
    OCTAVO_POOLING_AUTO = 0, /* what the model was trained for */
    OCTAVO_POOLING_MEAN = 1, /* their mean */
    OCTAVO_POOLING_CLS = 2,  /* the first */
    OCTAVO_POOLING_LAST = 3,
    OCTAVO_POOLING_POOLER = 4, /* the first, behind the pooler of an encoder that has one */
    OCTAVO_POOLING_NONE = 5,   /* all of them, one after the other */
} octavo_pooling;

/* Facts about an open model, as it runs. Texts live as long as the model. */
typedef struct octavo_model_facts {
    const char *architecture; /* "llama" */
    const char *isa;          /* "avx2" */
    int threads;              /* of a rank */
    int ranks;                /* 1: the model is not split */
    int groups;               /* of ranks, that have sequences of their own */
    int processes, process;   /* that the ranks are in, and which of them this is; 1 and 0 */
    int32_t vocabulary;       /* token ids; logits in a row */
    int64_t context;          /* longest sequence here */
    int64_t layers, width, heads, kv_heads, head_width;
    octavo_weights weights; /* as asked for */
    octavo_dtype kv_dtype;
    int page_size;
    int64_t pages;         /* of a group, all positions of a sequence counted */
    int chunk;             /* most ids in a step */
    int max_sequences;     /* most sequences in a step */
    uint64_t weight_bytes; /* of the tensors in the file */
    uint64_t packed_bytes; /* of the weights in memory */
    uint64_t step_bytes;   /* of packed weights read by a step of one token */
    uint64_t kv_bytes;     /* of the cache */
    uint64_t
        position_bytes; /* of the cache read for each earlier position by a step of one token */
    bool is_encoder;    /* takes a text whole and gives no logits */
    bool has_pooler;
    int32_t token_types;    /* 0: the model knows none */
    octavo_pooling pooling; /* the model's own; AUTO: one that this version does not have */
} octavo_model_facts;

/* Any thread. */
OCTAVO_API octavo_model_facts octavo_model_describe(const octavo_model *model);

/* The model's tokenizer; it lives as long as the model. NULL for a folder without one that can be
 * read: such a model runs on ids. Any thread. */
OCTAVO_API const octavo_tokenizer *octavo_model_tokenizer(const octavo_model *model);

/* The model's chat template, terminated, or NULL when it has none. Lives as long as the model. Any
 * thread. */
OCTAVO_API const char *octavo_model_chat_template(const octavo_model *model);

/* What the processes of an MPI job do, all but process 0, which leads: runs its steps until it
 * closes the model. Statuses: INVALID in process 0, or outside of a job. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_model_follow(octavo_model *model,
                                                               octavo_error *error);

/* An empty sequence. It takes pages as it grows, none yet. Statuses: MEMORY. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_sequence_create(octavo_model *model,
                                                                  octavo_sequence **sequence,
                                                                  octavo_error *error);

/* Gives its pages back and sets the handle to NULL; takes NULL. */
OCTAVO_API void octavo_sequence_destroy(octavo_sequence **sequence);

/* Ids fed so far. */
OCTAVO_API int64_t octavo_sequence_length(const octavo_sequence *sequence);

/* Forgets all ids from `length` on; nothing happens when it is shorter. */
OCTAVO_API void octavo_sequence_truncate(octavo_sequence *sequence, int64_t length);

typedef enum octavo_logits {
    OCTAVO_LOGITS_NONE = 0,
    OCTAVO_LOGITS_LAST = 1,  /* after the last of the ids: [vocabulary] */
    OCTAVO_LOGITS_ALL = 2,   /* after each of the ids: [n_ids, vocabulary] */
    OCTAVO_LOGITS_FIRST = 3, /* after the first of the ids: [vocabulary] */
} octavo_logits;

/* What one sequence gets in a step. */
typedef struct octavo_step_input {
    octavo_sequence *sequence;
    const int32_t *ids; /* [n_ids], each in 0..vocabulary - 1 */
    int n_ids;          /* at least 1 */
    /* [n_ids] types of the ids, each below facts.token_types; NULL: 0 */
    const int32_t *types;
    /* After which ids something is wanted; what it is has a place here, the rest is NULL. */
    octavo_logits want;
    float *logits; /* rows [vocabulary]; not of encoders */
    float *hidden; /* rows [width] of hidden states: what logits are made of */
    float *pooled; /* rows [width] of the pooler, of encoders that have one */
    /* [layers + 1, width] after the last of the ids: what each layer takes, then the hidden state;
     * whatever is wanted else. May be NULL. */
    float *trace;
} octavo_step_input;

/* One forward step. All or nothing: on failure every sequence is as it was. An encoder takes each
 * text whole: its sequences must be empty before the step.
 *   inputs  [n_inputs], each sequence at most once; together at most `chunk` ids
 * Allocates nothing. Where a model's rope depends on the length of a sequence (longrope), the step
 * in which a sequence passes the limit computes its keys again, which takes as long as its prompt
 * did. Statuses: INVALID (a bad id or type, a sequence twice or of another model), UNSUPPORTED
 * (what the model does not have is wanted), LIMIT (too many ids or sequences for a step, a sequence
 * past the context, no free pages). */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_model_step(octavo_model *model,
                                                             const octavo_step_input *inputs,
                                                             int n_inputs, octavo_error *error);

/* Feeds any number of ids to one sequence in as many steps as it takes. On failure the sequence is
 * as it was. Statuses as octavo_model_step, and CANCELLED when *cancel (may be NULL) became
 * non-zero between two steps. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_sequence_feed(octavo_sequence *sequence,
                                                                const int32_t *ids, size_t n_ids,
                                                                octavo_logits want, float *logits,
                                                                const volatile int *cancel,
                                                                octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
