/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of latent attention for weights.c.
 */
#ifndef OCTAVO_MODEL_WEIGHTS_LATENT_H
#define OCTAVO_MODEL_WEIGHTS_LATENT_H

#include "model/weights_load.h"

/* All of a layer's but attn_o. Statuses as octavo_weights_load. */
OCTAVO_MUST_CHECK octavo_status octavo_load_latent(octavo_loader *load, int layer);

#endif
