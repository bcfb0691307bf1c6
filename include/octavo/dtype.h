/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types of activations and caches.
 */
#ifndef OCTAVO_DTYPE_H
#define OCTAVO_DTYPE_H

#include "octavo/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum octavo_dtype {
    OCTAVO_DTYPE_F32 = 0,
    OCTAVO_DTYPE_F16 = 1,      /* IEEE 754 binary16 */
    OCTAVO_DTYPE_BF16 = 2,     /* the upper half of a binary32 */
    OCTAVO_DTYPE_FP8_E4M3 = 3, /* OCP 8-bit float e4m3fn: no infinity, largest 448 */
    OCTAVO_DTYPE_FP8_E5M2 = 4, /* OCP 8-bit float e5m2: largest 57344 */
    OCTAVO_DTYPE_INT8 = 5,
    OCTAVO_DTYPE_I32 = 6,
} octavo_dtype;

/* Bytes of one element; 0 for a value that is no dtype. Any thread. */
OCTAVO_API size_t octavo_dtype_size(octavo_dtype dtype);

/* "f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "i32"; "?" for no dtype. Lives forever. */
OCTAVO_API const char *octavo_dtype_name(octavo_dtype dtype);

/* The dtype of a name as above. OCTAVO_ERROR_NOT_FOUND lists the names. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_dtype_parse(const char *name, octavo_dtype *dtype,
                                                              octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
