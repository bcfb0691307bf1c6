/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotation speeds from what families have read.
 */
#ifndef OCTAVO_MODEL_CONFIG_ROPE_H
#define OCTAVO_MODEL_CONFIG_ROPE_H

#include "model/config.h"

/* Makes the frequencies of all tables. */
OCTAVO_MUST_CHECK octavo_status octavo_rope_fill(octavo_model_config *config, octavo_error *error);
void octavo_rope_deinit(octavo_rope_config *rope); /* takes a zeroed one too */

#endif
