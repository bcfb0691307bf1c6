/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's part of a world's weights, as the rules place them.
 */
#ifndef OCTAVO_TESTS_RANK_WEIGHTS_H
#define OCTAVO_TESTS_RANK_WEIGHTS_H

#include "rank_world.h"

typedef struct rank_weights {
    octavo_binding *bindings; /* [n_tensors] */
    world_matrix *matrices;   /* [n_tensors] */
    float **vectors;          /* [n_tensors] */
} rank_weights;

void rank_weights_cut(rank_weights *parts, const world *w, const octavo_mesh *mesh,
                      const octavo_rules *rules, int rank);
void rank_weights_free(rank_weights *parts, const world *w); /* takes empty ones too */

#endif
