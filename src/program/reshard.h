/* SPDX-License-Identifier: Apache-2.0
 *
 * A value of a program of ranks in another layout: what of it comes from where. Every rank takes
 * what it needs: from itself, else from the nearest ranks that have it; of partial values all
 * parts, which it adds in the order of the contract (kernels/order.h, rule 2). Nothing is pushed,
 * so a rank's result is written by its own threads alone.
 */
#ifndef OCTAVO_PROGRAM_RESHARD_H
#define OCTAVO_PROGRAM_RESHARD_H

#include "program/axes.h"

enum { OCTAVO_MAX_PARTS = 256 }; /* ranks whose parts of a sum are added, or that own rows */

/* Of each row some columns that one shard has: n_runs runs of bytes. A weight is one row, whose
 * runs are records of panels; n_matrices such lots are matrices of a stack. */
typedef struct octavo_piece {
    size_t from, to; /* bytes before the first run, in the source's row and in the result's */
    size_t bytes;    /* of a run */
    int n_runs, n_matrices;
    size_t from_stride, to_stride; /* bytes from run to run */
    size_t from_matrix, to_matrix; /* bytes from matrix to matrix */
} octavo_piece;

/* What a rank elsewhere takes from this one. */
typedef struct octavo_send {
    int rank;
    octavo_piece piece; /* of that rank */
    int row_shard, part;
} octavo_send;

struct octavo_reshard {
    octavo_collective
        collective;       /* as planned; NONE: nothing moves, or nothing that a plan names */
    bool is_selection;    /* the result's rows r are those rows t that need a result */
    octavo_piece *pieces; /* [n_pieces] */
    int n_pieces;
    octavo_split rows; /* that split the source's rows, `data` first; of p and 1 none do */
    int n_row_shards;
    int n_parts;    /* of a sum, or owners of rows */
    bool is_owned;  /* a row comes from the owner of its id: */
    int64_t *owned; /* [n_parts] ids below are of this or of an earlier owner */
    /* Rows of tokens that go only where one of their experts is, or come from there: in `experts`
     * numbered as the split's shards are; NULL where all rows move. */
    octavo_split expert_split;
    octavo_range *experts;
    bool is_to_experts, is_from_experts; /* those of who takes; those of the part */
    octavo_place *row_places; /* [n_row_shards] who has them, but for axes that split no rows */
    octavo_weight *weight;    /* that the result is, its data in the arena */
    int *sources;             /* [n_pieces][n_row_shards][n_parts] ranks */
    /* Of records of kv splits, which have no pieces: `sources` are the ranks that share the splits,
     * by part, and each of them merges these query heads, counted from the first of the plan. */
    octavo_range *heads; /* [n_parts] */
    octavo_send *sends; /* [n_sends] to ranks of other processes, by rank, then as they have them */
    int n_sends;
};

/* From a value of the program's tensor `tensor` to another, for the rank of the mesh at `place`;
 * `bytes` for every `elements` columns, as they lie in memory. Layouts name no axis of degree 1.
 * With `width` > 0 the columns are so many that nothing splits. False: no memory. */
typedef struct octavo_reshard_desc {
    const octavo_program *program; /* the whole one */
    const octavo_program_axes *axes;
    octavo_mesh mesh;
    octavo_place place;
    int tensor;
    octavo_layout from, to;
    int64_t width;
    char letter; /* of the source's rows; 0: a vector or a weight */
    bool is_selection;
    int only_rank;             /* the only one that gets something, plus 1; 0: all do */
    int outputs_at, n_outputs; /* of a weight (n_outputs > 0): its axes of outputs */
} octavo_reshard_desc;

OCTAVO_MUST_CHECK bool octavo_reshard_init(octavo_reshard *reshard,
                                           const octavo_reshard_desc *desc);
void octavo_reshard_deinit(octavo_reshard *reshard);
/* Adds what the rank at desc->place sends to ranks of other processes than its own. */
OCTAVO_MUST_CHECK bool octavo_reshard_add_sends(octavo_reshard *reshard,
                                                const octavo_reshard_desc *desc,
                                                const int *processes);

/* Does every rank have all that it needs, whichever it is? */
bool octavo_reshard_is_slice(const octavo_reshard_desc *desc);

/* Columns of a tensor that a place has under a layout: of axis i (rows have none) in *range. The
 * tensor's own elements, of which the axis may count several as one. */
octavo_range octavo_shard_of(const octavo_program *program, const octavo_program_axes *axes,
                             const octavo_mesh *mesh, const octavo_place *place,
                             const octavo_layout *layout, int tensor, int i);

#endif
