/* SPDX-License-Identifier: Apache-2.0
 *
 * How a tensor is split: for each of its axes the mesh axes that split it, major first. "a+b" is
 * split over a, then b inside a.
 */
#ifndef OCTAVO_SHARDING_SPEC_H
#define OCTAVO_SHARDING_SPEC_H

#include "sharding/mesh.h"

enum { OCTAVO_SPEC_AXES = 4 };

/* Compared with octavo_split_equal; axis[i >= n] is 0. */
typedef struct octavo_split {
    uint8_t n; /* 0: whole */
    uint8_t axis[OCTAVO_MESH_AXES];
} octavo_split;

typedef struct octavo_spec {
    int n; /* axes of the tensor */
    octavo_split split[OCTAVO_SPEC_AXES];
} octavo_spec;

bool octavo_split_equal(const octavo_split *a, const octavo_split *b);
bool octavo_split_has(const octavo_split *split, int axis);
octavo_split octavo_split_add(octavo_split split, int axis); /* inside the others */
/* Into how many shards, and which of them is at this place. */
int octavo_split_degree(const octavo_split *split, const octavo_mesh *mesh);
int octavo_split_index(const octavo_split *split, const octavo_mesh *mesh,
                       const octavo_place *place);
/* Without axes of degree 1, which split nothing. */
octavo_split octavo_split_reduce(const octavo_split *split, const octavo_mesh *mesh);

#endif
