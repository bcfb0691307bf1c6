/* SPDX-License-Identifier: Apache-2.0 */
#include "octavo/dtype.h"

#include "base/compiler.h"
#include "base/error.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [OCTAVO_DTYPE_F32] = {"f32", 4},           [OCTAVO_DTYPE_F16] = {"f16", 2},
    [OCTAVO_DTYPE_BF16] = {"bf16", 2},         [OCTAVO_DTYPE_FP8_E4M3] = {"fp8_e4m3", 1},
    [OCTAVO_DTYPE_FP8_E5M2] = {"fp8_e5m2", 1}, [OCTAVO_DTYPE_INT8] = {"int8", 1},
    [OCTAVO_DTYPE_I32] = {"i32", 4},
};

size_t octavo_dtype_size(octavo_dtype dtype) {
    return (size_t)dtype < OCTAVO_COUNT(dtypes) ? dtypes[dtype].size : 0;
}

const char *octavo_dtype_name(octavo_dtype dtype) {
    return (size_t)dtype < OCTAVO_COUNT(dtypes) ? dtypes[dtype].name : "?";
}

octavo_status octavo_dtype_parse(const char *name, octavo_dtype *dtype, octavo_error *error) {
    if (name == NULL || dtype == NULL) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "cannot read element type: no name given");
    }
    for (size_t i = 0; i < OCTAVO_COUNT(dtypes); i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtype = (octavo_dtype)i;
            return OCTAVO_OK;
        }
    }
    return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                       "element type (%.60s): no such type; "
                       "use f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8 or i32",
                       name);
}
