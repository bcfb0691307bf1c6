/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/spec.h"

#include <string.h>

bool octavo_split_equal(const octavo_split *a, const octavo_split *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

bool octavo_split_has(const octavo_split *split, int axis) {
    for (int i = 0; i < split->n; i++)
        if (split->axis[i] == axis) return true;
    return false;
}

unsigned octavo_split_bits(const octavo_split *split) {
    unsigned bits = 0;
    for (int i = 0; i < split->n; i++)
        bits |= 1u << split->axis[i];
    return bits;
}

octavo_split octavo_split_add(octavo_split split, int axis) {
    split.axis[split.n++] = (uint8_t)axis;
    return split;
}

int octavo_split_degree(const octavo_split *split, const octavo_mesh *mesh) {
    int degree = 1;
    for (int i = 0; i < split->n; i++)
        degree *= mesh->degree[split->axis[i]];
    return degree;
}

int octavo_split_index(const octavo_split *split, const octavo_mesh *mesh,
                       const octavo_place *place) {
    int index = 0;
    for (int i = 0; i < split->n; i++)
        index = index * mesh->degree[split->axis[i]] + place->at[split->axis[i]];
    return index;
}

octavo_split octavo_split_reduce(const octavo_split *split, const octavo_mesh *mesh) {
    octavo_split reduced = {0};
    for (int i = 0; i < split->n; i++)
        if (mesh->degree[split->axis[i]] > 1) reduced = octavo_split_add(reduced, split->axis[i]);
    return reduced;
}
