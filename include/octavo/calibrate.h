/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring how large a model's keys and values become, and the file that keeps it: by it an 8-bit
 * cache has fixed scales (octavo_model_options.kv_scales).
 */
#ifndef OCTAVO_CALIBRATE_H
#define OCTAVO_CALIBRATE_H

#include "octavo/model.h"
#include "octavo/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest magnitudes of each layer's and kv head's keys (turned by their rope) and values. */
typedef struct octavo_calibration octavo_calibration;

/* From here until it is destroyed the steps of the model are measured. A model has one at a time
 * (INVALID), which is destroyed before it. Statuses: INVALID, MEMORY. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_calibration_create(
    octavo_model *model, octavo_calibration **calibration, octavo_error *error);

/* Sets the handle to NULL; takes NULL. */
OCTAVO_API void octavo_calibration_destroy(octavo_calibration **calibration);

/* Writes what was measured so far as a JSON file, in place of what stood there. Statuses: INVALID
 * (no step was measured), FORMAT (a magnitude that is not finite: the model computes nonsense), IO,
 * MEMORY. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_calibration_write(
    const octavo_calibration *calibration, const char *path, octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
