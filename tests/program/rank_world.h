/* SPDX-License-Identifier: Apache-2.0
 *
 * A small model with random weights, run whole and on meshes of ranks that are teams of one pool.
 */
#ifndef OCTAVO_TESTS_RANK_WORLD_H
#define OCTAVO_TESTS_RANK_WORLD_H

#include "../unit.h"
#include "program/local.h"
#include "program/run.h"

enum {
    WORLD_LAYERS = 2,
    WORLD_SEQUENCES = 4,
    WORLD_TOKENS = 40,
    WORLD_ROWS = 5,
    WORLD_PAGE = 16,
    WORLD_POSITIONS = 80
};

/* What the model is like; 0: none of it. */
typedef struct world_desc {
    int d, n_heads, n_kv_heads, head_dim, ffw, vocab;
    int n_pages;             /* of a sequence; 0: 5 */
    int n_experts, n_chosen; /* in layers but the first */
    octavo_weight_type type; /* of all matrices but the embedding */
    bool is_exact, is_layer_norm, has_bias, has_whole_qk_norm, has_head_norm, is_tied;
    bool has_positions; /* added to the embedding, from tables */
} world_desc;

typedef struct world_matrix {
    octavo_weight weight;
    uint8_t *blocks; /* [stack or 1, n] rows as in a file */
    size_t row_bytes;
    uint8_t *data;
} world_matrix;

enum { WORLD_MATRICES = 64, WORLD_VECTORS = 64 };

typedef struct world {
    world_desc desc;
    octavo_program program;
    octavo_program_axes axes;
    world_matrix matrices[WORLD_MATRICES];
    int n_matrices;
    float *vectors[WORLD_VECTORS];
    int n_vectors;
} world;

void world_make(world *w, const world_desc *desc);
void world_free(world *w);

/* Packs rows as in a file into `data`, which the weight then has. */
void world_pack(octavo_weight *weight, uint8_t *data, const uint8_t *blocks, size_t row_bytes);

/* So many new tokens of each sequence, which lie in the data groups one behind the other:
 * sequences [first[g], first[g + 1]) in group g. First they get as long as `begins` says, if they
 * are not: keys and values there are 0. */
typedef struct world_step {
    int new_tokens[WORLD_SEQUENCES];
    int begins[WORLD_SEQUENCES];
} world_step;

typedef struct world_results {
    float *logits, *hidden, *traces; /* of all steps, one behind the other */
    size_t n_logits, n_hidden, n_traces;
} world_results;

void world_results_free(world_results *results);

/* Steps on one rank. */
void world_run_whole(const world *w, const world_step *steps, int n_steps, int n_threads,
                     world_results *results);

typedef struct world_mesh {
    octavo_mesh mesh;
    const octavo_rules *rules; /* NULL: the defaults */
    bool can_move_weights;
    int kv_length;                      /* that is planned for; 0: 64 */
    int n_processes;                    /* that the ranks are of; 0: one */
    int n_threads;                      /* of a rank */
    int group_begin[9];                 /* first sequence of each data group, and their number */
    octavo_traffic traffic;             /* of all ranks together: a result */
    double planned[OCTAVO_COLLECTIVES]; /* bytes as planned for the steps' sizes; a result */
    double routed;                      /* of these by choices of experts; a result */
} world_mesh;

/* Steps on a mesh. False, and *error filled, where the rules cannot be honoured. */
bool world_run_ranks(const world *w, world_mesh *mesh, const world_step *steps, int n_steps,
                     world_results *results, octavo_error *error);

uint32_t world_random(void);
void world_seed(uint32_t seed);

#endif
