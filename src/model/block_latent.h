/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention of the transformer block, see octavo_latent_desc.
 */
#ifndef OCTAVO_MODEL_BLOCK_LATENT_H
#define OCTAVO_MODEL_BLOCK_LATENT_H

#include "model/block.h"

/* What each head attended of x [t, d] and made of it: [t, n, value_dim]. */
int octavo_latent_attention(octavo_builder *builder, const octavo_block_desc *desc, int x);

#endif
