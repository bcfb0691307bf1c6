/* SPDX-License-Identifier: Apache-2.0
 *
 * Which type each tensor of a model is to get.
 */
#ifndef OCTAVO_ENGINE_QUANTIZE_PLAN_H
#define OCTAVO_ENGINE_QUANTIZE_PLAN_H

#include "engine/quantize_source.h"
#include "kernels/weight.h"

#include "octavo/quantize.h"

typedef struct octavo_tensor_plan {
    octavo_ggml_type type;
    bool is_copied;              /* the type it has */
    octavo_weight_type from, to; /* unless it is copied */
    const char *note;            /* may be NULL; lives forever */
} octavo_tensor_plan;

typedef struct octavo_quantize_plan {
    octavo_tensor_plan *tensors; /* [tensors of the source], in its order */
    uint32_t file_type;          /* what general.file_type says of the type asked for */
    bool has_quantized;          /* some tensor is of blocks */
} octavo_quantize_plan;

/* Statuses INVALID, UNSUPPORTED, MEMORY; on failure there is nothing to end. */
OCTAVO_MUST_CHECK octavo_status octavo_quantize_plan_make(octavo_quantize_plan *plan,
                                                          const octavo_quantize_source *source,
                                                          const octavo_quantize_options *options,
                                                          octavo_error *error);
void octavo_quantize_plan_deinit(octavo_quantize_plan *plan);

#endif
