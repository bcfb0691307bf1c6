/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/mesh.h"

int octavo_mesh_ranks(const octavo_mesh *mesh) {
    int ranks = 1;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        ranks *= mesh->degree[a];
    return ranks;
}

octavo_place octavo_mesh_place(const octavo_mesh *mesh, int rank) {
    octavo_place place;
    for (int a = OCTAVO_MESH_AXES - 1; a >= 0; a--) {
        place.at[a] = rank % mesh->degree[a];
        rank /= mesh->degree[a];
    }
    return place;
}

int octavo_mesh_rank(const octavo_mesh *mesh, const octavo_place *place) {
    int rank = 0;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        rank = rank * mesh->degree[a] + place->at[a];
    return rank;
}
