/* SPDX-License-Identifier: Apache-2.0
 *
 * A device mesh: ranks on four named axes, outermost first. Pure data.
 */
#ifndef OCTAVO_SHARDING_MESH_H
#define OCTAVO_SHARDING_MESH_H

#include <stdbool.h>
#include <stdint.h>

typedef enum octavo_mesh_axis {
    OCTAVO_MESH_DATA, /* sequences: each group has its own, and its own pages */
    OCTAVO_MESH_EXPERT,
    OCTAVO_MESH_SEQ,   /* tokens, or positions of the cache */
    OCTAVO_MESH_MODEL, /* heads, feed-forward width, vocabulary */
    OCTAVO_MESH_AXES,
} octavo_mesh_axis;

/* Most ranks of a mesh. */
#define OCTAVO_MAX_RANKS (1 << 20)

typedef struct octavo_mesh {
    int degree[OCTAVO_MESH_AXES]; /* each at least 1; their product at most OCTAVO_MAX_RANKS */
} octavo_mesh;

/* Where a rank stands on each axis. */
typedef struct octavo_place {
    int at[OCTAVO_MESH_AXES];
} octavo_place;

/* Ranks are numbered with `model` fastest. */
int octavo_mesh_ranks(const octavo_mesh *mesh);
octavo_place octavo_mesh_place(const octavo_mesh *mesh, int rank);
int octavo_mesh_rank(const octavo_mesh *mesh, const octavo_place *place);

#endif
