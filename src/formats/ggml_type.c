/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of GGUF tensor types. Ascending by number: the lookup is a binary search.
 */
#include "formats/ggml_type.h"

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"

/* clang-format off */
static const octavo_ggml_type_info types[] = {
    {OCTAVO_GGML_F32,       1,   4, "F32"},
    {OCTAVO_GGML_F16,       1,   2, "F16"},
    {OCTAVO_GGML_Q4_0,     32,  18, "Q4_0"},
    {OCTAVO_GGML_Q4_1,     32,  20, "Q4_1"},
    {OCTAVO_GGML_Q5_0,     32,  22, "Q5_0"},
    {OCTAVO_GGML_Q5_1,     32,  24, "Q5_1"},
    {OCTAVO_GGML_Q8_0,     32,  34, "Q8_0"},
    {OCTAVO_GGML_Q8_1,     32,  40, "Q8_1"},
    {OCTAVO_GGML_Q2_K,    256,  84, "Q2_K"},
    {OCTAVO_GGML_Q3_K,    256, 110, "Q3_K"},
    {OCTAVO_GGML_Q4_K,    256, 144, "Q4_K"},
    {OCTAVO_GGML_Q5_K,    256, 176, "Q5_K"},
    {OCTAVO_GGML_Q6_K,    256, 210, "Q6_K"},
    {OCTAVO_GGML_Q8_K,    256, 292, "Q8_K"},
    {OCTAVO_GGML_IQ2_XXS, 256,  66, "IQ2_XXS"},
    {OCTAVO_GGML_IQ2_XS,  256,  74, "IQ2_XS"},
    {OCTAVO_GGML_IQ3_XXS, 256,  98, "IQ3_XXS"},
    {OCTAVO_GGML_IQ1_S,   256,  50, "IQ1_S"},
    {OCTAVO_GGML_IQ4_NL,   32,  18, "IQ4_NL"},
    {OCTAVO_GGML_IQ3_S,   256, 110, "IQ3_S"},
    {OCTAVO_GGML_IQ2_S,   256,  82, "IQ2_S"},
    {OCTAVO_GGML_IQ4_XS,  256, 136, "IQ4_XS"},
    {OCTAVO_GGML_I8,        1,   1, "I8"},
    {OCTAVO_GGML_I16,       1,   2, "I16"},
    {OCTAVO_GGML_I32,       1,   4, "I32"},
    {OCTAVO_GGML_I64,       1,   8, "I64"},
    {OCTAVO_GGML_F64,       1,   8, "F64"},
    {OCTAVO_GGML_IQ1_M,   256,  56, "IQ1_M"},
    {OCTAVO_GGML_BF16,      1,   2, "BF16"},
    {OCTAVO_GGML_TQ1_0,   256,  54, "TQ1_0"},
    {OCTAVO_GGML_TQ2_0,   256,  66, "TQ2_0"},
    {OCTAVO_GGML_MXFP4,    32,  17, "MXFP4"},
    {OCTAVO_GGML_NVFP4,    64,  36, "NVFP4"},
    {OCTAVO_GGML_Q1_0,    128,  18, "Q1_0"},
};
/* clang-format on */

const octavo_ggml_type_info *octavo_ggml_types(size_t *count) {
    *count = OCTAVO_COUNT(types);
    return types;
}

const octavo_ggml_type_info *octavo_ggml_type_lookup(uint32_t id) {
    size_t low = 0, high = OCTAVO_COUNT(types);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uint32_t)types[middle].type < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < OCTAVO_COUNT(types) && (uint32_t)types[low].type == id ? &types[low] : NULL;
}

const char *octavo_ggml_type_name(octavo_ggml_type type) {
    const octavo_ggml_type_info *info = octavo_ggml_type_lookup((uint32_t)type);
    return info != NULL ? info->name : "?";
}

/* ASCII only: type names must not depend on the locale. */
static bool equal_ignoring_case(const char *a, const char *upper) {
    for (; *a != 0 && *upper != 0; a++, upper++) {
        char c = *a >= 'a' && *a <= 'z' ? (char)(*a - 'a' + 'A') : *a;
        if (c != *upper) return false;
    }
    return *a == *upper;
}

octavo_status octavo_ggml_type_parse(const char *name, octavo_ggml_type *type,
                                     octavo_error *error) {
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        if (equal_ignoring_case(name, types[i].name)) {
            *type = types[i].type;
            return OCTAVO_OK;
        }
    }
    octavo_buffer names = {0};
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        if (i > 0) octavo_buffer_putc(&names, ' ');
        octavo_buffer_puts(&names, types[i].name);
    }
    octavo_status status =
        octavo_fail(error, OCTAVO_ERROR_NOT_FOUND, "tensor type \"%.40s\": no such type; one of %s",
                    name, names.failed ? "those of GGUF" : names.data);
    octavo_buffer_deinit(&names);
    return status;
}

bool octavo_ggml_row_bytes(const octavo_ggml_type_info *info, uint64_t values, uint64_t *bytes) {
    if (values % info->block_values != 0) return false;
    uint64_t blocks = values / info->block_values;
    if (blocks > UINT64_MAX / info->block_bytes) return false;
    *bytes = blocks * info->block_bytes;
    return true;
}
