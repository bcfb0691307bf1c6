/* SPDX-License-Identifier: Apache-2.0
 *
 * The element types of safetensors files: names and sizes.
 */
#include "base/compiler.h"
#include "formats/safetensors.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    [OCTAVO_SAFETENSORS_UNKNOWN] = {"?", 0},
    [OCTAVO_SAFETENSORS_F64] = {"F64", 64},
    [OCTAVO_SAFETENSORS_F32] = {"F32", 32},
    [OCTAVO_SAFETENSORS_F16] = {"F16", 16},
    [OCTAVO_SAFETENSORS_BF16] = {"BF16", 16},
    [OCTAVO_SAFETENSORS_F8_E4M3] = {"F8_E4M3", 8},
    [OCTAVO_SAFETENSORS_F8_E5M2] = {"F8_E5M2", 8},
    [OCTAVO_SAFETENSORS_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [OCTAVO_SAFETENSORS_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [OCTAVO_SAFETENSORS_F8_E8M0] = {"F8_E8M0", 8},
    [OCTAVO_SAFETENSORS_F6_E2M3] = {"F6_E2M3", 6},
    [OCTAVO_SAFETENSORS_F6_E3M2] = {"F6_E3M2", 6},
    [OCTAVO_SAFETENSORS_F4] = {"F4", 4},
    [OCTAVO_SAFETENSORS_C64] = {"C64", 64},
    [OCTAVO_SAFETENSORS_I64] = {"I64", 64},
    [OCTAVO_SAFETENSORS_I32] = {"I32", 32},
    [OCTAVO_SAFETENSORS_I16] = {"I16", 16},
    [OCTAVO_SAFETENSORS_I8] = {"I8", 8},
    [OCTAVO_SAFETENSORS_U64] = {"U64", 64},
    [OCTAVO_SAFETENSORS_U32] = {"U32", 32},
    [OCTAVO_SAFETENSORS_U16] = {"U16", 16},
    [OCTAVO_SAFETENSORS_U8] = {"U8", 8},
    [OCTAVO_SAFETENSORS_BOOL] = {"BOOL", 8},
};

unsigned octavo_safetensors_dtype_bits(octavo_safetensors_dtype dtype) {
    return (size_t)dtype < OCTAVO_COUNT(dtypes) ? dtypes[dtype].bits : 0;
}

const char *octavo_safetensors_dtype_name(octavo_safetensors_dtype dtype) {
    return (size_t)dtype < OCTAVO_COUNT(dtypes) ? dtypes[dtype].name : "?";
}

octavo_safetensors_dtype octavo_safetensors_dtype_lookup(const char *name) {
    for (size_t i = 1; i < OCTAVO_COUNT(dtypes); i++) {
        if (strcmp(name, dtypes[i].name) == 0) return (octavo_safetensors_dtype)i;
    }
    return OCTAVO_SAFETENSORS_UNKNOWN;
}
