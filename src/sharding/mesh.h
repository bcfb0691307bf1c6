/* SPDX-License-Identifier: Apache-2.0
 *
 * A device mesh: ranks on four named axes, outermost first. Pure data.
 */
#ifndef OCTAVO_SHARDING_MESH_H
#define OCTAVO_SHARDING_MESH_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
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

/* "data", "expert", "seq", "model": what rules and the command line call the axes. Lives forever.
 * The axis of a name that need not be terminated, or -1. */
const char *octavo_mesh_axis_name(int axis);
int octavo_mesh_axis_find(const char *name, size_t length);

enum { OCTAVO_MESH_TEXT = 96 };
/* "data=1,expert=1,seq=1,model=4". */
void octavo_mesh_print(const octavo_mesh *mesh, char text[OCTAVO_MESH_TEXT]);

/* The other way: axes that are not named are 1, and one may be -1, as many as the devices leave
 * over. devices 0: as many as the degrees make. OCTAVO_ERROR_INVALID names the culprit: an axis
 * that is none or is named twice, no number, a degree below 1 that is not -1, two of -1, -1 without
 * devices, degrees that do not make the devices, more ranks than OCTAVO_MAX_RANKS. */
OCTAVO_MUST_CHECK octavo_status octavo_mesh_parse(const char *text, int devices, octavo_mesh *mesh,
                                                  octavo_error *error);
/* The same of degrees as numbers. `where` begins the messages: "mesh of FILE". */
OCTAVO_MUST_CHECK octavo_status octavo_mesh_infer(const int64_t degrees[OCTAVO_MESH_AXES],
                                                  int devices, const char *where, octavo_mesh *mesh,
                                                  octavo_error *error);

#endif
