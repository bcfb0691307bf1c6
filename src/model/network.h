/* SPDX-License-Identifier: Apache-2.0
 *
 * A loaded model: configuration and weights, and the step program made of them.
 */
#ifndef OCTAVO_MODEL_NETWORK_H
#define OCTAVO_MODEL_NETWORK_H

#include "model/config.h"
#include "model/weights.h"

typedef struct octavo_network {
    octavo_model_config config;
    octavo_model_weights weights;
    octavo_slices d_slices;                     /* model width */
    octavo_slices nh_slices;                    /* heads x head width */
    octavo_slices kh_slices;                    /* kv heads x head width */
    octavo_slices f_slices;                     /* feed-forward width */
    octavo_slices expert_slices, shared_slices; /* those of experts */
    octavo_slices q_slices, kv_slices;          /* latents of queries, of keys and values */
    octavo_slices key_slices;                   /* lanes of a head's key that do not rotate */
} octavo_network;

/* Reads configuration and weights. On failure *network is empty. */
OCTAVO_MUST_CHECK octavo_status octavo_network_load(octavo_network *network,
                                                    const octavo_checkpoint *checkpoint,
                                                    const octavo_weights_options *options,
                                                    octavo_error *error);
/* The same from the configuration alone: shapes of weights of a type, no data. */
OCTAVO_MUST_CHECK octavo_status octavo_network_shape(octavo_network *network,
                                                     const octavo_checkpoint *checkpoint,
                                                     octavo_weight_type type, octavo_error *error);
void octavo_network_deinit(octavo_network *network);

/* Builds the program of one step; it points into the network, which must outlive it. */
OCTAVO_MUST_CHECK octavo_status octavo_network_build(const octavo_network *network,
                                                     octavo_program *program, int max_tokens,
                                                     int max_rows, bool is_exact,
                                                     octavo_error *error);

#endif
