/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the partitioner share: ways, the search, costs.
 */
#ifndef OCTAVO_PROGRAM_PARTITION_SEARCH_H
#define OCTAVO_PROGRAM_PARTITION_SEARCH_H

#include "program/operand.h"
#include "program/partition.h"

/* A way to run an op: how its operands lie and what comes of it. Operands without rows (weights,
 * vectors, caches) lie as they are placed unless they are listed. */
typedef struct octavo_way {
    octavo_layout in[OCTAVO_OP_INPUTS];
    bool has_in[OCTAVO_OP_INPUTS];
    octavo_layout out;
    double seconds; /* on one rank, without what moves */
} octavo_way;

enum { OCTAVO_MAX_WAYS = 1024, OCTAVO_MAX_HELD = 24 };

/* A tensor's layouts at some place of the search. */
typedef struct octavo_held {
    octavo_layout layout[OCTAVO_MAX_HELD];
    int n;
} octavo_held;

typedef struct octavo_partitioner {
    const octavo_program *program;
    const octavo_program_axes *axes;
    const octavo_partition_options *options;
    octavo_mesh mesh;
    unsigned active;       /* mesh axes of more than one rank */
    octavo_layout *placed; /* [n_tensors] of weights, vectors, caches */
    octavo_layout *ruled;  /* [n_tensors] of activations: what their rule says; of weights that of
                              prefill, if they are kept so */
    bool *is_kept;         /* [n_tensors] kept exactly as ruled */
    int *last_use;         /* [n_tensors] last op that takes it */
    int *last_write;       /* [n_tensors] last op that makes it, or works on it in place; not
                              the one that numbers pairs, which lie by its layout */
    octavo_way *decisions; /* [n_ops] */
    octavo_axis rows, head, pairs; /* axes of t, r and p in the step that is estimated */
    octavo_error *error;
} octavo_partitioner;

/* The axes of a tensor, for layout.h. */
int octavo_axes_of_tensor(const octavo_partitioner *p, int tensor, octavo_axis *pairs,
                          const octavo_axis *axes[OCTAVO_TENSOR_AXES]);
double octavo_element_bytes(const octavo_tensor *tensor);

/* The cheapest way from one layout of a tensor to another. */
octavo_route octavo_route_of(const octavo_partitioner *p, int tensor, const octavo_layout *from,
                             const octavo_layout *to);
double octavo_route_seconds(const octavo_partitioner *p, const octavo_route *route);

bool octavo_is_layer_sparse(const octavo_program *program, int layer);
/* Sets what is placed, or what is ruled and kept. UNSUPPORTED for what cannot be split so. */
OCTAVO_MUST_CHECK octavo_status octavo_place_tensor(octavo_partitioner *p, int tensor);
/* When all are placed. */
OCTAVO_MUST_CHECK octavo_status octavo_check_experts(octavo_partitioner *p);
OCTAVO_MUST_CHECK octavo_status octavo_rule_tensor(octavo_partitioner *p, int tensor,
                                                   bool is_sparse);

/* The op's operand at `index` has to be kept by another tensor's rule first (the input of the q
 * projection by activation_q_td). */
bool octavo_input_is_ruled(const octavo_partitioner *p, const octavo_op *op, int index,
                           octavo_layout *layout);

/* Can a matmul take the weight so? As a part of what a rank has, always; else packed panels move,
 * so that outputs have to be cut between panels. `outputs`: the first of its axes that are. */
bool octavo_weight_can_move(const octavo_partitioner *p, int tensor, int outputs,
                            const octavo_layout *to);

/* How ops take a weight if they can: as rules for the phase oblige, else as it is placed. */
static inline const octavo_layout *octavo_weight_base(const octavo_partitioner *p, int tensor) {
    return p->is_kept[tensor] ? &p->ruled[tensor] : &p->placed[tensor];
}

/* ---- what rules oblige (partition_oblige.c) ---- */

/* Tokens and experts of the pairs of a choice, if rules of their tensors say that. */
bool octavo_pairs_are_ruled(const octavo_partitioner *p, int choice, octavo_layout *ruled);
/* Whose experts the pairs of a choice are of. */
octavo_split octavo_experts_of(const octavo_partitioner *p, int choice);
/* How an expert's product takes its weight where these ranks have the experts and the tokens. */
octavo_layout octavo_expert_weight(const octavo_partitioner *p, const octavo_op *op,
                                   const octavo_split *experts, const octavo_split *tokens);
/* UNSUPPORTED for obligations that ops cannot meet. After all tensors are placed and ruled. */
OCTAVO_MUST_CHECK octavo_status octavo_check_obligations(const octavo_partitioner *p);

/* Kv splits that the rows of a sequence see together in the step that is estimated, and how records
 * of them get to where an ATTENTION_MERGE takes them; `from` is octavo_is_records. */
int64_t octavo_seen_splits(const octavo_partitioner *p, const octavo_op *op);
octavo_transfer octavo_records_transfer(const octavo_partitioner *p, const octavo_op *op,
                                        const octavo_layout *from, const octavo_layout *to);

/* Ways of op `index` where the tensors lie as held[i] says of operand i (n 0: it does not vary).
 * Gives their number. */
int octavo_ways_of(const octavo_partitioner *p, int index, const octavo_held *held,
                   octavo_way ways[OCTAVO_MAX_WAYS]);

/* Is it made wherever it is needed, without anything that moves? */
bool octavo_is_made_anywhere(const octavo_partitioner *p, int tensor);

/* The steps that follow from all decisions. */
OCTAVO_MUST_CHECK octavo_status octavo_partition_write(const octavo_partitioner *p,
                                                       octavo_partition *partition);

/* Decides ops [begin, end). */
OCTAVO_MUST_CHECK octavo_status octavo_partition_search(octavo_partitioner *p, int begin, int end);

#endif
