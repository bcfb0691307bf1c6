/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of octavo/calibrate.h, as a model that is being opened reads it.
 */
#ifndef OCTAVO_ENGINE_CALIBRATION_H
#define OCTAVO_ENGINE_CALIBRATION_H

#include "cache/kv_cache.h"
#include "model/config.h"

/* The scales that bring what was measured into the range of an 8-bit type. The caller ends *scales
 * with octavo_kv_scales_deinit; untouched on failure. Statuses: NOT_FOUND, IO, MEMORY; FORMAT: no
 * such file; INVALID: of another model. */
OCTAVO_MUST_CHECK octavo_status octavo_calibration_read(const char *path, octavo_dtype dtype,
                                                        const octavo_model_config *config,
                                                        octavo_kv_scales *scales,
                                                        octavo_error *error);

#endif
