/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.json says of how a folder's weights are coded: quantization_config. Which tensors are
 * coded is seen from the tensors; what cannot be seen from them is read here, and what cannot be
 * read is refused by name.
 */
#ifndef OCTAVO_MODEL_CONFIG_QUANT_H
#define OCTAVO_MODEL_CONFIG_QUANT_H

#include "model/config_read.h"

typedef enum octavo_quant_kind {
    OCTAVO_QUANT_NONE,
    OCTAVO_QUANT_F8,   /* fp8, fbgemm_fp8, compressed-tensors, modelopt: see weights_f8.h */
    OCTAVO_QUANT_GPTQ, /* see weights_groups.h */
    OCTAVO_QUANT_AWQ,
    OCTAVO_QUANT_PACKED, /* compressed-tensors, pack-quantized */
    OCTAVO_QUANT_OWN,    /* the family's */
} octavo_quant_kind;

typedef struct octavo_quant {
    octavo_quant_kind kind;
    int64_t bits;          /* of codes of integers */
    int64_t group;         /* inputs that share a scale; -1: all */
    bool has_lesser_zeros; /* of GPTQ: those written are one less than those meant */
    int64_t f8_block[2];   /* rows and columns that share a scale where scales are of blocks */
} octavo_quant;

/* `reader` is of the text model; `own` the method that its family knows, or NULL. */
OCTAVO_MUST_CHECK octavo_status octavo_config_quant(const octavo_config_reader *reader,
                                                    const char *own, octavo_quant *quant);

#endif
