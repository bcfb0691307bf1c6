/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales of a quantised cache that a checkpoint brings along.
 */
#ifndef OCTAVO_MODEL_KV_SCALES_H
#define OCTAVO_MODEL_KV_SCALES_H

#include "cache/kv_cache.h"
#include "model/config.h"

/* The scales of a Hugging Face folder, by which keys and values are divided before they are rounded
 * to fp8: of a layer one number for all kv heads, or one each. All layers have them or none;
 * without, and for GGUF files, scales->key is NULL. The caller ends *scales with
 * octavo_kv_scales_deinit. FORMAT names the tensor that is missing, or is no scale. */
OCTAVO_MUST_CHECK octavo_status octavo_kv_scales_load(octavo_kv_scales *scales,
                                                      const octavo_checkpoint *checkpoint,
                                                      const octavo_model_config *config,
                                                      octavo_error *error);

#endif
