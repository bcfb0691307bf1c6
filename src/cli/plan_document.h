/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the document of octavo_plan (octavo/plan.h). What it lacks reads as nothing: 0, "" or a
 * split of no axes, so that a renderer shows what there is.
 */
#ifndef OCTAVO_CLI_PLAN_DOCUMENT_H
#define OCTAVO_CLI_PLAN_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OCTAVO_VIEW_AXES = 4, OCTAVO_VIEW_MAX_RANKS = 1 << 20 };

const char *octavo_view_text(const json_t *object, const char *key);
double octavo_view_number(const json_t *object, const char *key);

/* "data", "expert", "seq", "model": ranks are numbered with the last one fastest. */
const char *octavo_view_axis_name(int axis);

typedef struct octavo_view_mesh {
    int64_t degree[OCTAVO_VIEW_AXES]; /* each at least 1 */
    int64_t ranks;                    /* their product, at most OCTAVO_VIEW_MAX_RANKS */
} octavo_view_mesh;

/* A mesh that no plan has is read as one rank. */
octavo_view_mesh octavo_view_mesh_of(const json_t *plan);
/* Where a rank stands on an axis. */
int64_t octavo_view_place(const octavo_view_mesh *mesh, int64_t rank, int axis);

/* The mesh axes that split an axis of a tensor, outermost first. */
typedef struct octavo_view_split {
    int n;
    int axis[OCTAVO_VIEW_AXES]; /* [n], none twice */
    unsigned seen;              /* a bit for each */
} octavo_view_split;

/* From an entry of a spec: null, a name, or an array of names. */
octavo_view_split octavo_view_split_of(const json_t *entry);
/* Into how many shards, and which of them a rank has. */
int64_t octavo_view_split_degree(const octavo_view_split *split, const octavo_view_mesh *mesh);
int64_t octavo_view_split_index(const octavo_view_split *split, const octavo_view_mesh *mesh,
                                int64_t rank);

/* The layer of a collective or op; -1 outside of layers. */
int64_t octavo_view_layer(const json_t *op);

/* "prefill" and "generate". */
enum { OCTAVO_VIEW_PHASES = 2 };
const char *octavo_view_phase_name(int phase);

/* Collectives of a phase that differ in nothing but their layer. */
typedef struct octavo_view_group {
    const json_t *first;
    int64_t count;
    int64_t from, to, n_layers; /* layers; from is -1 outside of them */
} octavo_view_group;

typedef struct octavo_view_groups {
    octavo_view_group *items; /* [n], those of the same layers stand together */
    size_t n;
} octavo_view_groups;

/* False without memory. The items are views into the document. */
bool octavo_view_groups_make(const json_t *phase, octavo_view_groups *groups);
void octavo_view_groups_deinit(octavo_view_groups *groups);
/* Whether two groups are of the same layers. */
bool octavo_view_same_layers(const octavo_view_group *a, const octavo_view_group *b);

/* How many tensors an entry of "tensors" is of. */
int64_t octavo_view_count(const json_t *tensor);
/* How many layers "0-29" or "3" names; 1 for none. */
int64_t octavo_view_layers_count(const char *layers);
/* What a tensor is shown under: weights, the cache, activations of both phases or of one; any other
 * kind with these. */
enum { OCTAVO_VIEW_SECTIONS = 5 };
int octavo_view_section_of(const json_t *tensor);
const char *octavo_view_section_name(int section);

/* The sum of "memory_per_rank" of a plan or summary. */
double octavo_view_memory(const json_t *plan);
/* The kinds of a document that are no plan. */
bool octavo_view_is_search(const json_t *document);
bool octavo_view_is_compare(const json_t *document);

#endif
