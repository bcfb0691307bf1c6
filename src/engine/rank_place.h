/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of each weight a rank holds, and where the program finds it.
 */
#ifndef OCTAVO_ENGINE_RANK_PLACE_H
#define OCTAVO_ENGINE_RANK_PLACE_H

#include "engine/rank.h"

typedef struct octavo_rank_placed {
    int tensor; /* of the whole program */
    octavo_weight_member member;
    octavo_weight_part part;
} octavo_rank_placed;

typedef struct octavo_rank_places {
    octavo_rank_placed *placed; /* [n] */
    int n;
    const octavo_program *program;
} octavo_rank_places;

OCTAVO_MUST_CHECK octavo_status octavo_rank_places_init(octavo_rank_places *places,
                                                        const octavo_ranks_options *options,
                                                        const octavo_program_axes *axes,
                                                        const octavo_mesh *mesh, int rank,
                                                        octavo_error *error);
void octavo_rank_places_deinit(octavo_rank_places *places);

/* The callback of octavo_weights_options; the cookie are the places. */
void octavo_rank_place(void *places, const octavo_weight_member *member, octavo_weight_part *part);

/* bindings [n_tensors]: what the rank has of each. */
void octavo_rank_bind(const octavo_rank_places *places, const octavo_model_weights *weights,
                      octavo_binding *bindings);

#endif
