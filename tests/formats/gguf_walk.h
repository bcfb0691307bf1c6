/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses everything that an open GGUF file offers, and aborts where a promise of gguf.h is broken:
 * for files that were accepted although a test had damaged them, and for fuzzing.
 */
#ifndef OCTAVO_TESTS_FORMATS_GGUF_WALK_H
#define OCTAVO_TESTS_FORMATS_GGUF_WALK_H

#include "base/buffer.h"
#include "formats/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void gguf_walk_check(bool promise, const char *text) {
    if (promise) return;
    fprintf(stderr, "broken promise: %s\n", text);
    abort();
}

/* Reads every byte of a string. */
static inline size_t gguf_walk_string(octavo_gguf_string string) {
    size_t sum = 0;
    for (size_t i = 0; i < string.size; i++) {
        sum += (unsigned char)string.data[i];
    }
    return sum;
}

/* Arrays inside arrays are looked up by walking: only their first elements, for time's sake. */
static inline size_t gguf_walk_array(const octavo_gguf_array *array, int depth) {
    size_t sum = 0, count = array->count;
    gguf_walk_check(depth <= OCTAVO_GGUF_MAX_DEPTH, "bounded depth");
    if (depth > 1 && count > 8) count = 8;
    for (size_t i = 0; i < count; i++) {
        if (array->type == OCTAVO_GGUF_STRING) {
            sum += gguf_walk_string(octavo_gguf_array_string(array, i));
        } else if (array->type == OCTAVO_GGUF_ARRAY) {
            octavo_gguf_array inner = octavo_gguf_array_array(array, i);
            sum += gguf_walk_array(&inner, depth + 1);
        } else if (array->type == OCTAVO_GGUF_F32 || array->type == OCTAVO_GGUF_F64) {
            float value = octavo_gguf_array_f32(array, i);
            sum += value > 0.0f;
        } else {
            int64_t wide = octavo_gguf_array_i64(array, i);
            int32_t narrow = octavo_gguf_array_i32(array, i);
            gguf_walk_check(wide < INT32_MIN || wide > INT32_MAX || wide == narrow, "i32 of i64");
            sum += (size_t)wide;
        }
    }
    return sum;
}

static inline void gguf_walk_metadata(const octavo_gguf *gguf, size_t index, bool whole) {
    const char *key = octavo_gguf_metadata_key(gguf, index);
    octavo_gguf_type type = octavo_gguf_metadata_type(gguf, index);
    gguf_walk_check(octavo_gguf_metadata_find(gguf, key) == (ptrdiff_t)index, "keys are unique");

    /* each getter either takes the type or says why not */
    octavo_error error = {0};
    uint64_t u64;
    uint32_t u32;
    float f32;
    bool boolean;
    octavo_gguf_string string;
    octavo_gguf_array array;
    bool is_float = type == OCTAVO_GGUF_F32 || type == OCTAVO_GGUF_F64;
    octavo_status wide = octavo_gguf_get_u64(gguf, key, &u64, &error);
    octavo_status narrow = octavo_gguf_get_u32(gguf, key, &u32, &error);
    gguf_walk_check(narrow != OCTAVO_OK || (wide == OCTAVO_OK && u64 == u32), "u32 of u64");
    octavo_status status = octavo_gguf_get_f32(gguf, key, &f32, &error);
    gguf_walk_check(status != OCTAVO_OK || is_float, "f32 of floats");
    status = octavo_gguf_get_bool(gguf, key, &boolean, &error);
    gguf_walk_check((status == OCTAVO_OK) == (type == OCTAVO_GGUF_BOOL), "bool of bools");
    status = octavo_gguf_get_string(gguf, key, &string, &error);
    gguf_walk_check((status == OCTAVO_OK) == (type == OCTAVO_GGUF_STRING), "string of strings");
    if (status == OCTAVO_OK) (void)gguf_walk_string(string);
    status = octavo_gguf_get_array(gguf, key, &array, &error);
    gguf_walk_check((status == OCTAVO_OK) == (type == OCTAVO_GGUF_ARRAY), "array of arrays");
    if (status == OCTAVO_OK) (void)gguf_walk_array(&array, 1);

    octavo_buffer json = {0};
    octavo_gguf_metadata_json(gguf, index, 3, &json);
    if (whole) octavo_gguf_metadata_json(gguf, index, SIZE_MAX, &json);
    gguf_walk_check(json.failed || json.size > 0, "every value has a text");
    octavo_buffer_deinit(&json);
}

/* `size` is that of the file of the tensor. */
static inline void gguf_walk_tensor(const octavo_gguf *gguf, size_t index, size_t size) {
    const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(gguf, index);
    gguf_walk_check(octavo_gguf_tensor_find(gguf, tensor->name) == (ptrdiff_t)index,
                    "tensor names are unique");
    gguf_walk_check(tensor->bytes > 0 && tensor->offset <= size &&
                        tensor->bytes <= size - tensor->offset,
                    "data inside the file");
    const octavo_ggml_type_info *info = octavo_ggml_type_lookup((uint32_t)tensor->type);
    gguf_walk_check(info != NULL, "known types");
    uint64_t bytes = 0;
    gguf_walk_check(octavo_ggml_row_bytes(info, tensor->extent[0], &bytes), "whole blocks");
    for (int i = 1; i < OCTAVO_GGUF_MAX_DIMS; i++) {
        bytes *= tensor->extent[i];
    }
    gguf_walk_check(bytes == tensor->bytes, "size of the extents");
    octavo_gguf_will_need(gguf, tensor, 0, tensor->bytes);
    volatile uint8_t byte = tensor->data[0];
    byte = tensor->data[tensor->bytes - 1];
    (void)byte;
    octavo_gguf_drop(gguf, tensor, 0, tensor->bytes);
}

/* For a file of one part of `size` bytes. */
static inline void gguf_walk(const octavo_gguf *gguf, size_t size) {
    for (size_t i = 0; i < octavo_gguf_n_metadata(gguf); i++) {
        gguf_walk_metadata(gguf, i, size < 65536);
    }
    for (size_t i = 0; i < octavo_gguf_n_tensors(gguf); i++) {
        gguf_walk_tensor(gguf, i, size);
    }
    /* control characters are in no name */
    gguf_walk_check(octavo_gguf_metadata_find(gguf, "no such\nkey") == -1, "absent key");
    gguf_walk_check(octavo_gguf_tensor_find(gguf, "no such\ntensor") == -1, "absent tensor");
}

#endif
