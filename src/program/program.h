/* SPDX-License-Identifier: Apache-2.0
 *
 * The step program: one forward step as a flat array of ops over tensors whose axes have names.
 *
 *     builder (build.h) -> program -> memory plan (plan.c) -> run (run.h)
 *
 * or, over ranks, with a partition (partition.h) and the program of each rank (local.h) between
 * program and memory plan.
 *
 * A program is data. It is built once for a model, holds no weights' bytes itself (it points to
 * them) and does not change while steps run. The same table of op kinds (op.h) serves building,
 * running, `inspect
 * --program` and the tests.
 *
 * Axis letters, those of the sharding rules:
 *   t tokens of the step   d model width   n query heads   k kv heads   h head width
 *   f feed-forward width   e experts       v vocabulary    s cache slots
 *   l width of a latent
 * and r, rows of the step that need logits; c, what the router says of a token's experts; p, pairs
 * of a token and an expert of its choice, by expert; 1, one row (of a vector on its way).
 */
#ifndef OCTAVO_PROGRAM_PROGRAM_H
#define OCTAVO_PROGRAM_PROGRAM_H

#include "base/memory.h"
#include "kernels/order.h"
#include "kernels/weight.h"
#include "sharding/layout.h"

#include "octavo/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OCTAVO_TENSOR_AXES = 4,
    OCTAVO_OP_INPUTS = 6,
    OCTAVO_NO_TENSOR = -1,
    OCTAVO_NO_LAYER = -1,
    OCTAVO_MAX_ROW_SPLITS = 16,
};

typedef enum octavo_tensor_kind {
    OCTAVO_TENSOR_ACTIVATION, /* f32 or q8 rows in the arena of the step */
    OCTAVO_TENSOR_WEIGHT,     /* packed matrix */
    OCTAVO_TENSOR_VECTOR,     /* f32 weight of few values: norm scales, biases */
    OCTAVO_TENSOR_CACHE,      /* keys and values of one layer */
    OCTAVO_TENSOR_INPUT,      /* handed in with the step: ids, positions, token types */
} octavo_tensor_kind;

/* A matrix of weights in packed form; owned by whoever bound it (the model). */
typedef struct octavo_weight {
    octavo_weight_type type;
    int64_t n, k;  /* outputs, inputs */
    int64_t stack; /* so many matrices one behind the other, those of experts; 0: one alone */
    const uint8_t
        *data; /* [ceil(n / 32)] panels, see kernels/weight.h; NULL in a program without data */
    const float *factors; /* [stack, or 1] of each matrix's products; NULL: 1 */
    const int32_t *order; /* [stack, or 1][k] which input stands at each place; NULL: in order */
} octavo_weight;

typedef struct octavo_tensor {
    const char *name; /* of the sharding rules' form: "query_tnh" */
    int layer;        /* or OCTAVO_NO_LAYER */
    octavo_tensor_kind kind;
    char axes[OCTAVO_TENSOR_AXES + 1];
    int64_t extent[OCTAVO_TENSOR_AXES]; /* 0 where the step decides: t and r; of p, experts that a
                                           token chooses */
    /* Of a rank's program: where its part begins, and how rows are split (program.row_splits). */
    int64_t begin[OCTAVO_TENSOR_AXES];
    int rows;
    bool is_copy;         /* another rank, whose rank comes before, has the same */
    bool is_q8;           /* rows of octavo_q8_block instead of f32 */
    const int32_t *order; /* of an activation's row, as that of a weight */

    const octavo_weight *weight; /* OCTAVO_TENSOR_WEIGHT */
    const float *vector;         /* OCTAVO_TENSOR_VECTOR: [extent[0], ...] */

    /* The memory plan of activations. */
    size_t row_bytes; /* one t or r, rounded up to OCTAVO_ALIGN */
    size_t offset;    /* of row 0 in the arena */
    int first_op, last_op;
} octavo_tensor;

typedef enum octavo_op_kind {
    OCTAVO_OP_EMBED,
    OCTAVO_OP_ROPE_TABLE,
    OCTAVO_OP_NORM,
    OCTAVO_OP_HEAD_NORM,
    OCTAVO_OP_REORDER,
    OCTAVO_OP_QUANTISE,
    OCTAVO_OP_MATMUL,
    OCTAVO_OP_HEAD_MATMUL,
    OCTAVO_OP_ROPE,
    OCTAVO_OP_TEMPERATURE,
    OCTAVO_OP_CACHE_UPDATE,
    OCTAVO_OP_ATTENTION,
    OCTAVO_OP_ATTENTION_MERGE,
    OCTAVO_OP_GATE,
    OCTAVO_OP_ADD,
    OCTAVO_OP_SCALE,
    OCTAVO_OP_SELECT,
    OCTAVO_OP_ROUTE,
    OCTAVO_OP_GROUP,
    OCTAVO_OP_GATHER,
    OCTAVO_OP_EXPERT_MATMUL,
    OCTAVO_OP_COMBINE,
    OCTAVO_OP_ROW_GATE,
    OCTAVO_OP_NORM_SUM, /* from here on in programs of ranks only */
    OCTAVO_OP_NORM_APPLY,
    OCTAVO_OP_RESHARD,
    OCTAVO_OP_KINDS,
} octavo_op_kind;

typedef enum octavo_norm {
    OCTAVO_NORM_RMS,
    OCTAVO_NORM_LAYER, /* the mean is taken away first; may have a bias */
} octavo_norm;

typedef enum octavo_activation {
    OCTAVO_ACTIVATION_SILU,
    OCTAVO_ACTIVATION_GELU_TANH,
    OCTAVO_ACTIVATION_GELU,   /* by erf */
    OCTAVO_ACTIVATION_RELU2,  /* squared */
    OCTAVO_ACTIVATION_SWIGLU, /* of gate and up together, within a limit: see kernels/vector.h */
} octavo_activation;

typedef enum octavo_rope_pairing {
    OCTAVO_ROPE_HALF,     /* dimensions i and i + pairs (NeoX) */
    OCTAVO_ROPE_PAIRWISE, /* dimensions 2i and 2i + 1 (GPT-J) */
} octavo_rope_pairing;

/* Queries at position p are multiplied by 1 + scale * ln(1 + floor((p + first) / period)). */
typedef struct octavo_temperature {
    float scale, period; /* period 0: they are not */
    int first;           /* what the first position counts as, 0 or 1 */
} octavo_temperature;

/* How a token's experts follow from its logits. Scores are the softmax or the sigmoids of all
 * logits; the experts of the highest scores are chosen (of equal ones the first), and their scores
 * are the weights of what they give. A bias is added to the scores for the choice only. Where
 * experts lie in groups, of as many one behind the other, first the groups of the highest scores
 * are chosen: by their best score, or by the sum of the two best where scores are sigmoids. */
typedef struct octavo_router {
    bool is_sigmoid;
    int n_groups, n_chosen_groups; /* 0: none */
    bool is_normalised;            /* weights are divided by their sum */
    bool is_for_input;             /* weights are of what experts take, not of what they give */
    float scale;                   /* of the weights, at last */
    int n_chosen;                  /* experts of a token */
} octavo_router;

enum { OCTAVO_MAX_EXPERTS = 1024 };

/* What a row of a router's result holds, n_chosen times, by ascending expert. */
typedef struct octavo_choice {
    int32_t expert;
    float weight;
} octavo_choice;

/* How fast pairs turn. The arrays live as long as the program. */
typedef struct octavo_rope_speeds {
    const float *frequencies;      /* [pairs] radians per position */
    const float *long_frequencies; /* [pairs] in sequences longer than `short_length`; NULL: the
                                      same in all */
    int64_t short_length;
    float scale; /* of cos and sin */
} octavo_rope_speeds;

/* Numbers of an op; which are meant is said at the op's row in op.c. */
typedef struct octavo_op_params {
    octavo_slices slices;        /* MATMUL, NORM, HEAD_NORM: of the axis summed over; of a rank's
                                    MATMUL from the first of its inputs on; GROUP, GATHER, COMBINE:
                                    of experts, those of the rank */
    bool is_partial;             /* MATMUL: what comes after the sum (factor, bias) is not done;
                                    COMBINE: rows of tokens without an expert here are not written */
    octavo_norm norm;            /* NORM */
    float eps;                   /* NORM, HEAD_NORM */
    float scale;                 /* EMBED, SCALE: multiplier; ADD: of b; ATTENTION: of the logits */
    octavo_activation act;       /* GATE */
    float limit;                 /* GATE by SWIGLU */
    octavo_rope_pairing pairing; /* ROPE */
    int64_t first_lane;          /* ROPE: of each head that it rotates */
    octavo_rope_speeds speeds;   /* ROPE_TABLE */
    float soft_cap;              /* ATTENTION, SCALE: 0 none */
    int plan;                    /* ATTENTION: index into the program's plans */
    int reshard;                 /* RESHARD, ATTENTION_MERGE of records: index into the program's */
    bool is_meeting;             /* the threads of all ranks meet before it */
    bool is_wire;                /* likewise: something may come from other ranks */
    bool is_for_trace;           /* only in steps of which traces are wanted */
    int64_t width;               /* NORM_SUM, NORM_APPLY: of the whole row */
    /* MATMUL, EXPERT_MATMUL of a rank whose weight is wider than x or the result, or narrower: */
    int64_t first_input;            /* of the weight, counted from the first of x */
    int64_t first_output;           /* of the result, counted from the weight's */
    octavo_router router;           /* ROUTE, GROUP, GATHER, COMBINE; RESHARD by choices */
    octavo_temperature temperature; /* TEMPERATURE */
    const int32_t *order;           /* REORDER */
} octavo_op_params;

typedef struct octavo_op {
    octavo_op_kind kind;
    int layer;
    int in[OCTAVO_OP_INPUTS]; /* tensors, or OCTAVO_NO_TENSOR */
    int out;
    octavo_op_params params;
} octavo_op;

/* How attention ops cut a step into work: layers that agree on these share a plan. */
typedef struct octavo_plan_key {
    int64_t n_heads, n_kv_heads, head_dim;
    int64_t group, first;  /* of a rank's heads, see octavo_attention_heads; 0 in whole programs */
    int rows;              /* how the queries' rows are split */
    bool is_of_all;        /* the cache is that of all data groups, not the rank's own */
    int64_t value_lanes;   /* values are the first lanes of their keys; 0: apart, as wide as keys */
    int64_t window, chunk; /* 0 none */
    bool is_encoder;       /* positions see later ones too */
    octavo_split parts;    /* whose ranks share the kv splits; of none each rank has all */
    bool is_dealt;         /* they have different positions in their caches */
} octavo_plan_key;

/* A tensor [t, d] that is to be handed out on request: before op `op` runs, which reads it. */
typedef struct octavo_trace {
    int op, tensor;
    int64_t width; /* of whole rows */
} octavo_trace;

/* Are only those rows there whose token chose an expert of the rank? Choices always are. */
static inline bool octavo_is_routed(const octavo_tensor *tensor, const octavo_layout *layout) {
    return layout->experts.n > 0 && tensor->axes[0] == 't' && tensor->axes[1] != 'c';
}

enum { OCTAVO_MAX_PLANS = 16 };

typedef struct octavo_reshard octavo_reshard; /* reshard.h */

typedef struct octavo_program {
    octavo_tensor *tensors;
    int n_tensors;
    octavo_op *ops;
    int n_ops;
    int head_begin;   /* ops from here on work on rows that need a result, in groups of max_rows */
    int logits_begin; /* those from here on only where logits are wanted */

    octavo_plan_key plans[OCTAVO_MAX_PLANS];
    int n_plans;

    int n_experts, n_chosen; /* the most of any router, 0 without one */

    /* Of a rank: what it is part of, and which rows its tensors have. A whole program has one rank
     * and one split, none. */
    octavo_mesh mesh;
    int rank;
    octavo_split row_splits[OCTAVO_MAX_ROW_SPLITS];
    int n_row_splits;
    octavo_reshard *reshards;
    int n_reshards;

    octavo_trace *traces; /* inputs of the blocks */
    int n_traces;

    int max_tokens;            /* t of the largest step */
    int max_group_tokens;      /* of these of one data group */
    int max_rows;              /* r that go through the head at once, of each data group */
    int ids, positions, types; /* the inputs' tensors */
    int hidden;                /* [r, d]: what logits are made of */
    int logits; /* the last op's result, of an encoder its pooler's; or OCTAVO_NO_TENSOR */

    size_t arena_bytes;                                  /* of a step */
    int capacity_tensors, capacity_ops, capacity_traces; /* while building */
} octavo_program;

/* Frees what the program owns; takes an empty one too. */
void octavo_program_deinit(octavo_program *program);

/* Rows of an activation in the largest step. */
size_t octavo_most_rows(const octavo_program *program, const octavo_tensor *tensor);

/* Gives every activation its place in one arena of `arena_bytes`, from the lifetimes, for the
 * largest step. False when there is no memory for its own book-keeping. */
OCTAVO_MUST_CHECK bool octavo_program_plan_memory(octavo_program *program);

#endif
