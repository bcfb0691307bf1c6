/* SPDX-License-Identifier: Apache-2.0
 *
 * What a description says about embedding texts: whether a position sees later ones, and how the
 * rows of a text become one.
 */
#ifndef OCTAVO_MODEL_CONFIG_ENCODER_H
#define OCTAVO_MODEL_CONFIG_ENCODER_H

#include "model/config.h"
#include "model/config_read.h"

/* Sets is_encoder, which a family is or is not by nature, and pooling. */
OCTAVO_MUST_CHECK octavo_status octavo_config_encoder(const octavo_config_reader *reader,
                                                      octavo_model_config *config, bool is_encoder);

#endif
