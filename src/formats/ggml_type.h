/* SPDX-License-Identifier: Apache-2.0
 *
 * The element types of tensors in GGUF files: numbers, names and sizes. The numbers are those of
 * the files and never change. Values are stored in blocks along a tensor's contiguous rows; a
 * plain type has blocks of one value. What the bytes of a block mean is the kernels' business.
 */
#ifndef OCTAVO_FORMATS_GGML_TYPE_H
#define OCTAVO_FORMATS_GGML_TYPE_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum octavo_ggml_type {
    OCTAVO_GGML_F32 = 0,
    OCTAVO_GGML_F16 = 1,
    OCTAVO_GGML_Q4_0 = 2,
    OCTAVO_GGML_Q4_1 = 3,
    OCTAVO_GGML_Q5_0 = 6,
    OCTAVO_GGML_Q5_1 = 7,
    OCTAVO_GGML_Q8_0 = 8,
    OCTAVO_GGML_Q8_1 = 9,
    OCTAVO_GGML_Q2_K = 10,
    OCTAVO_GGML_Q3_K = 11,
    OCTAVO_GGML_Q4_K = 12,
    OCTAVO_GGML_Q5_K = 13,
    OCTAVO_GGML_Q6_K = 14,
    OCTAVO_GGML_Q8_K = 15,
    OCTAVO_GGML_IQ2_XXS = 16,
    OCTAVO_GGML_IQ2_XS = 17,
    OCTAVO_GGML_IQ3_XXS = 18,
    OCTAVO_GGML_IQ1_S = 19,
    OCTAVO_GGML_IQ4_NL = 20,
    OCTAVO_GGML_IQ3_S = 21,
    OCTAVO_GGML_IQ2_S = 22,
    OCTAVO_GGML_IQ4_XS = 23,
    OCTAVO_GGML_I8 = 24,
    OCTAVO_GGML_I16 = 25,
    OCTAVO_GGML_I32 = 26,
    OCTAVO_GGML_I64 = 27,
    OCTAVO_GGML_F64 = 28,
    OCTAVO_GGML_IQ1_M = 29,
    OCTAVO_GGML_BF16 = 30,
    OCTAVO_GGML_TQ1_0 = 34,
    OCTAVO_GGML_TQ2_0 = 35,
    OCTAVO_GGML_MXFP4 = 39,
    OCTAVO_GGML_NVFP4 = 40,
    OCTAVO_GGML_Q1_0 = 41,
} octavo_ggml_type;

typedef struct octavo_ggml_type_info {
    octavo_ggml_type type;
    uint32_t block_values; /* values per block, along extent[0] */
    uint32_t block_bytes;
    const char *name; /* "F32", "Q4_K", ... */
} octavo_ggml_type_info;

/* All types, by ascending number. Lives forever. Any thread, as all here. */
const octavo_ggml_type_info *octavo_ggml_types(size_t *count);

/* The entry of a number as found in a file, or NULL if there is no such type. Lives forever. */
const octavo_ggml_type_info *octavo_ggml_type_lookup(uint32_t id);

/* The name, or "?" for a value that is no type. Lives forever. */
const char *octavo_ggml_type_name(octavo_ggml_type type);

/* The type of a name, in upper or lower case. OCTAVO_ERROR_NOT_FOUND lists the names. */
OCTAVO_MUST_CHECK octavo_status octavo_ggml_type_parse(const char *name, octavo_ggml_type *type,
                                                       octavo_error *error);

/* Bytes of a row of `values` values. False (and *bytes untouched) when the values do not fill whole
 * blocks or the size does not fit. */
bool octavo_ggml_row_bytes(const octavo_ggml_type_info *info, uint64_t values, uint64_t *bytes);

#endif
