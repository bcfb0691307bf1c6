/* SPDX-License-Identifier: Apache-2.0
 *
 * From Python's descriptions to octavo_array. What an octavo_array would misread is refused here:
 * an array without axes would be absent, one with all strides 0 dense.
 */
#include "arrays.h"

#include <stdint.h>

#define CALL "ragged paged attention"

static bool read_numbers(PyObject *tuple, int64_t *numbers, Py_ssize_t n, const char *name) {
    for (Py_ssize_t i = 0; i < n; i++) {
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (numbers[i] != -1 || !PyErr_Occurred()) continue;
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError,
                         CALL " (%s): axis %zd; its extent and stride must fit 64 bits", name, i);
        }
        return false;
    }
    return true;
}

/* The number of elements, cut at 2: none, one or several. */
static int n_elements(const octavo_array *array) {
    int n = 1;
    for (int32_t i = 0; i < array->n_axes; i++) {
        if (array->extents[i] == 0) return 0;
        if (array->extents[i] != 1) n = 2;
    }
    return n;
}

static bool check_strides(octavo_array *array, const char *name) {
    bool all_zero = true;
    for (int32_t i = 0; i < array->n_axes; i++) {
        /* an axis of one element may say anything */
        if (array->extents[i] == 1) array->strides[i] = 0;
        all_zero &= array->strides[i] == 0;
    }
    if (!all_zero || n_elements(array) < 2) return true;
    PyErr_Format(PyExc_ValueError,
                 CALL " (%s): every stride is 0, all elements are one; make a dense copy", name);
    return false;
}

static bool read_array(PyObject *description, octavo_py_array which, octavo_array *array) {
    const char *name = octavo_py_array_name(which);
    PyObject *shape = NULL, *strides = NULL, *owner = NULL;
    unsigned long long address = 0;
    int dtype = -1;
    if (!PyArg_ParseTuple(description, "KiO!OO", &address, &dtype, &PyTuple_Type, &shape, &strides,
                          &owner))
        return false;
    const Py_ssize_t n_axes = PyTuple_Size(shape);
    if (n_axes < 1 || n_axes > OCTAVO_ARRAY_MAX_AXES) {
        PyErr_Format(PyExc_ValueError, CALL " (%s): has %zd axes; arrays have 1 to %d", name,
                     n_axes, OCTAVO_ARRAY_MAX_AXES);
        return false;
    }
    octavo_array made = {.data = (void *)(uintptr_t)address,
                         .dtype = (octavo_dtype)dtype,
                         .n_axes = (int32_t)n_axes};
    if (!read_numbers(shape, made.extents, n_axes, name)) return false;
    if (strides != Py_None) {
        if (!PyTuple_Check(strides) || PyTuple_Size(strides) != n_axes) {
            PyErr_Format(PyExc_ValueError, CALL " (%s): as many strides as axes are needed", name);
            return false;
        }
        if (!read_numbers(strides, made.strides, n_axes, name) || !check_strides(&made, name))
            return false;
    }
    const size_t bytes = octavo_dtype_size(made.dtype);
    if (bytes > 1 && address % bytes != 0) {
        PyErr_Format(PyExc_ValueError,
                     CALL " (%s): is not aligned to its elements of %zu bytes; make an aligned "
                          "copy",
                     name, bytes);
        return false;
    }
    *array = made;
    return true;
}

bool octavo_py_arrays_read(PyObject *arrays, octavo_attention_args *args) {
    if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != OCTAVO_PY_N_ARRAYS) {
        PyErr_Format(PyExc_ValueError, "a tuple of %d arrays is needed", OCTAVO_PY_N_ARRAYS);
        return false;
    }
    for (int i = 0; i < OCTAVO_PY_N_ARRAYS; i++) {
        PyObject *description = PyTuple_GetItem(arrays, i);
        const octavo_py_array which = (octavo_py_array)i;
        if (description != Py_None &&
            !read_array(description, which, octavo_py_array_of(args, which)))
            return false;
    }
    return true;
}

/* Bytes [begin, end) from the first to the last element. What does not fit the address space the
 * check has refused. */
static void reach(const octavo_array *array, uintptr_t *begin, uintptr_t *end) {
    const int64_t bytes = (int64_t)octavo_dtype_size(array->dtype);
    *begin = *end = (uintptr_t)array->data;
    if (array->n_axes == 0 || n_elements(array) == 0) return;
    bool is_dense = true;
    int64_t count = 1, below = 0, above = 0;
    for (int32_t i = 0; i < array->n_axes; i++) {
        const int64_t far = array->strides[i] * (array->extents[i] - 1);
        is_dense &= array->strides[i] == 0;
        count *= array->extents[i];
        if (far < 0)
            below -= far;
        else
            above += far;
    }
    if (is_dense) above = count - 1;
    *begin -= (uintptr_t)(below * bytes);
    *end += (uintptr_t)((above + 1) * bytes);
}

bool octavo_py_arrays_apart(octavo_attention_args *args) {
    for (int w = 0; w < OCTAVO_PY_N_ARRAYS; w++) {
        if (w != OCTAVO_PY_OUTPUT && (w != OCTAVO_PY_KV_CACHE || !args->update_kv_cache)) continue;
        uintptr_t begin, end;
        reach(octavo_py_array_of(args, (octavo_py_array)w), &begin, &end);
        for (int i = 0; i < OCTAVO_PY_N_ARRAYS; i++) {
            uintptr_t other_begin, other_end;
            reach(octavo_py_array_of(args, (octavo_py_array)i), &other_begin, &other_end);
            if (i == w || begin >= other_end || other_begin >= end || other_begin == other_end)
                continue;
            PyErr_Format(PyExc_ValueError,
                         CALL " (%s): lies in the same memory as %s; what is written must lie "
                              "apart",
                         octavo_py_array_name((octavo_py_array)w),
                         octavo_py_array_name((octavo_py_array)i));
            return false;
        }
    }
    return true;
}
