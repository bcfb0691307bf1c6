/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses everything that an open safetensors model offers, and aborts where a promise of
 * safetensors.h or safetensors_scale.h is broken: for files that were accepted although a test had
 * damaged them, and for fuzzing.
 */
#ifndef OCTAVO_TESTS_FORMATS_SAFETENSORS_WALK_H
#define OCTAVO_TESTS_FORMATS_SAFETENSORS_WALK_H

#include "formats/safetensors.h"
#include "formats/safetensors_scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void safetensors_walk_check(bool promise, const char *text) {
    if (promise) return;
    fprintf(stderr, "broken promise: %s\n", text);
    abort();
}

static inline void safetensors_walk_metadata(const octavo_safetensors *safetensors, size_t part) {
    for (size_t i = 0; i < octavo_safetensors_n_metadata(safetensors, part); i++) {
        const octavo_safetensors_text *text = octavo_safetensors_metadata_at(safetensors, part, i);
        const char *value = octavo_safetensors_metadata(safetensors, part, text->key);
        safetensors_walk_check(value == text->value, "metadata keys are unique");
    }
}

static inline uint64_t safetensors_walk_index(const octavo_safetensors_scale *scale, uint64_t m,
                                              uint64_t r, uint64_t c) {
    return m * scale->matrix_stride + r / scale->block_rows * scale->row_stride +
           c / scale->block_columns;
}

static inline void safetensors_walk_scale(const octavo_safetensors *safetensors,
                                          const octavo_safetensors_tensor *weight) {
    octavo_safetensors_scale scale = {0};
    octavo_error error = {0};
    octavo_status status = octavo_safetensors_find_scale(safetensors, weight, NULL, &scale, &error);
    if (status != OCTAVO_OK) {
        safetensors_walk_check(scale.tensor == NULL, "scale untouched on failure");
        safetensors_walk_check(error.status == status && error.message[0] != 0, "a reason");
        return;
    }
    safetensors_walk_check(scale.block_rows > 0 && scale.block_columns > 0, "blocks of something");
    int stacked = weight->n_dims - 2;
    uint64_t m = stacked == 1 ? weight->extent[0] - 1 : 0;
    uint64_t r = weight->extent[stacked] - 1, c = weight->extent[stacked + 1] - 1;
    uint64_t last = safetensors_walk_index(&scale, m, r, c);
    safetensors_walk_check(last == scale.tensor->n_values - 1,
                           "the last element has the last scale");
    volatile float value = octavo_safetensors_scale_value(&scale, last);
    value = octavo_safetensors_scale_value(&scale, 0);
    (void)value;
}

/* `size` is that of the file of the tensor. */
static inline void safetensors_walk_tensor(const octavo_safetensors *safetensors, size_t index,
                                           size_t size) {
    const octavo_safetensors_tensor *tensor = octavo_safetensors_tensor_at(safetensors, index);
    safetensors_walk_check(octavo_safetensors_tensor_find(safetensors, tensor->name) ==
                               (ptrdiff_t)index,
                           "tensor names are unique");
    safetensors_walk_check(tensor->data != NULL && tensor->offset <= size &&
                               tensor->bytes <= size - tensor->offset,
                           "data inside the file");
    uint64_t values = 1;
    for (int i = 0; i < OCTAVO_SAFETENSORS_MAX_DIMS; i++) {
        values *= tensor->extent[i];
        safetensors_walk_check(i < tensor->n_dims || tensor->extent[i] == 1, "1 from n_dims on");
    }
    safetensors_walk_check(values == tensor->n_values, "count of the extents");
    const octavo_safetensors_tensor *same = NULL;
    octavo_status status = octavo_safetensors_get_tensor(safetensors, tensor->name, &same, NULL);
    unsigned bits = octavo_safetensors_dtype_bits(tensor->dtype);
    if (tensor->dtype == OCTAVO_SAFETENSORS_UNKNOWN) {
        safetensors_walk_check(status == OCTAVO_ERROR_UNSUPPORTED, "an unknown type is not used");
    } else {
        safetensors_walk_check(status == OCTAVO_OK && same == tensor, "what is found is got");
        safetensors_walk_check(values * bits == (uint64_t)tensor->bytes * 8, "bytes of the values");
        safetensors_walk_check(octavo_safetensors_dtype_lookup(tensor->dtype_name) == tensor->dtype,
                               "type names");
        safetensors_walk_check(tensor->aligned == (bits < 16 || tensor->offset % (bits / 8) == 0),
                               "alignment");
    }
    octavo_safetensors_will_need(safetensors, tensor, 0, tensor->bytes);
    if (tensor->bytes > 0) {
        volatile uint8_t byte = tensor->data[0];
        byte = tensor->data[tensor->bytes - 1];
        (void)byte;
    }
    octavo_safetensors_drop(safetensors, tensor, 0, tensor->bytes);
    safetensors_walk_scale(safetensors, tensor);
}

/* For a model of one file of `size` bytes. */
static inline void safetensors_walk(const octavo_safetensors *safetensors, size_t size) {
    safetensors_walk_check(octavo_safetensors_n_parts(safetensors) == 1, "one part");
    safetensors_walk_metadata(safetensors, 0);
    uint64_t reached = 0;
    for (size_t i = 0; i < octavo_safetensors_n_tensors(safetensors); i++) {
        const octavo_safetensors_tensor *tensor = octavo_safetensors_tensor_at(safetensors, i);
        safetensors_walk_tensor(safetensors, i, size);
        safetensors_walk_check(i == 0 || tensor->offset == reached, "one behind the other");
        reached = tensor->offset + tensor->bytes;
    }
    safetensors_walk_check(reached == 0 || reached == size, "the last ends with the file");
    /* control characters are in no name */
    safetensors_walk_check(octavo_safetensors_tensor_find(safetensors, "no such\ntensor") == -1,
                           "absent tensor");
}

#endif
