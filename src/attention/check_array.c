/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be wrong with one array, whatever it is for.
 */
#include "attention/check_array.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>

#define CALL OCTAVO_ATTENTION_CALL

attention_shape_text attention_shape_of(const octavo_array *array) {
    attention_shape_text shape = {"["};
    size_t at = 1;
    for (int32_t i = 0; i < array->n_axes && i < OCTAVO_ARRAY_MAX_AXES; i++)
        at += (size_t)snprintf(shape.text + at, sizeof shape.text - at, "%s%lld", i > 0 ? ", " : "",
                               (long long)array->extents[i]);
    shape.text[at] = ']';
    return shape;
}

static bool is_dense(const octavo_array *array) {
    for (int32_t i = 0; i < array->n_axes; i++) {
        if (array->strides[i] != 0) return false;
    }
    return true;
}

int64_t attention_stride_of(const octavo_array *array, int32_t axis) {
    if (array->extents[axis] <= 1) return 0; /* of no use, and may be anything */
    if (!is_dense(array)) return array->strides[axis];
    int64_t stride = 1;
    for (int32_t i = array->n_axes - 1; i > axis; i--)
        stride *= array->extents[i];
    return stride;
}

static bool is_empty(const octavo_array *array) {
    for (int32_t i = 0; i < array->n_axes; i++) {
        if (array->extents[i] == 0) return true;
    }
    return false;
}

/* The number of axes, extents that fit the address space, and data. */
octavo_status attention_check_array(const octavo_array *array, const char *name, int32_t n_axes,
                                    const char *axes, bool needs_data, octavo_error *error) {
    if (array->n_axes != n_axes)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): has %d axes; it must be %s",
                           name, (int)array->n_axes, axes);
    size_t elements = 1, reach = 0;
    for (int32_t i = 0; i < n_axes; i++) {
        if (array->extents[i] < 0)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (%s): extent %lld of axis %d is negative; it must be %s",
                               name, (long long)array->extents[i], (int)i, axes);
        if (!octavo_size_mul(elements, (size_t)array->extents[i], &elements) ||
            elements > INT64_MAX / 8)
            return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                               CALL " (%s): %s does not fit the address space; are the extents "
                                    "right?",
                               name, attention_shape_of(array).text);
    }
    if (elements == 0) return OCTAVO_OK;
    for (int32_t i = 0; i < n_axes; i++) {
        const int64_t stride = array->strides[i];
        size_t step = stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
        if (!octavo_size_mul(step, (size_t)(array->extents[i] - 1), &step) ||
            !octavo_size_add(reach, step, &reach) || reach > INT64_MAX / 8)
            return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                               CALL " (%s): stride %lld of axis %d does not fit the address "
                                    "space; strides are in elements, not bytes",
                               name, (long long)stride, (int)i);
    }
    if (needs_data && array->data == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): data is NULL; it must be %s",
                           name, axes);
    const size_t size = octavo_dtype_size(array->dtype);
    if (needs_data && size > 0 && (uintptr_t)array->data % size != 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL
                           " (%s): data at %p is not aligned to elements of %zu bytes; make an "
                           "aligned copy",
                           name, array->data, size);
    const int32_t last = n_axes - 1;
    if (!is_dense(array) && array->extents[last] > 1 && array->strides[last] != 1)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (%s): stride %lld of the last axis; it must be 1 (all strides 0 "
                                "mean a dense array)",
                           name, (long long)array->strides[last]);
    return OCTAVO_OK;
}

/* Elements of what is written must not share memory: each stride spans all that is inside it. */
octavo_status attention_check_written(const octavo_array *array, const char *name,
                                      octavo_error *error) {
    int64_t inside = 1;
    for (int32_t i = array->n_axes - 1; i >= 0 && !is_empty(array); i--) {
        const int64_t stride = attention_stride_of(array, i);
        if (array->extents[i] > 1 && stride < inside)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               CALL " (%s): stride %lld of axis %d; it must be at least %lld: what "
                                    "is written may neither overlap nor lie backwards",
                               name, (long long)stride, (int)i, (long long)inside);
        inside = array->extents[i] > 1 ? stride * array->extents[i] : inside;
    }
    return OCTAVO_OK;
}

octavo_status attention_check_index_array(const octavo_array *array, const char *name,
                                          const char *axes, octavo_error *error) {
    octavo_status status = attention_check_array(array, name, 1, axes, true, error);
    if (status != OCTAVO_OK) return status;
    if (array->dtype != OCTAVO_DTYPE_I32)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): dtype is %s; it must be i32",
                           name, octavo_dtype_name(array->dtype));
    return OCTAVO_OK;
}

/* An optional array of one f32 for each head. */
octavo_status attention_check_per_head(const octavo_array *array, const char *name,
                                       const char *axes, int64_t n_heads, octavo_error *error) {
    if (array->n_axes == 0) {
        if (array->data == NULL) return OCTAVO_OK;
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): has 0 axes; it must be %s",
                           name, axes);
    }
    octavo_status status = attention_check_array(array, name, 1, axes, true, error);
    if (status != OCTAVO_OK) return status;
    if (array->dtype != OCTAVO_DTYPE_F32)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, CALL " (%s): dtype is %s; it must be f32",
                           name, octavo_dtype_name(array->dtype));
    if (array->extents[0] != n_heads)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           CALL " (%s): %lld values; it must have one for each of the %lld heads",
                           name, (long long)array->extents[0], (long long)n_heads);
    return OCTAVO_OK;
}
