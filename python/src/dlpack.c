/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of DLPack's structures, as far as it is read here: version 1, and what came before it.
 */
#include "dlpack.h"

#include <stdint.h>

#define DLPACK_MAJOR     1
#define DLPACK_READ_ONLY 1u

typedef struct dl_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t n_axes;
    uint8_t type_code;
    uint8_t type_bits;
    uint16_t type_lanes;
    int64_t *extents;
    int64_t *strides; /* in elements; NULL: dense */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed_versioned {
    uint32_t major;
    uint32_t minor;
    void *context;
    void (*deleter)(struct dl_managed_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed_versioned;

static PyObject *tuple_of(const int64_t *numbers, int32_t n) {
    PyObject *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL || PyTuple_SetItem(tuple, i, number) != 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

PyObject *octavo_py_dlpack(PyObject *module, PyObject *capsule) {
    (void)module;
    const dl_tensor *tensor = NULL;
    int read_only = 0;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const dl_managed_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed->major != DLPACK_MAJOR)
            return PyErr_Format(PyExc_ValueError, "DLPack version %u.%u is not understood; want %d",
                                (unsigned)managed->major, (unsigned)managed->minor, DLPACK_MAJOR);
        read_only = (managed->flags & DLPACK_READ_ONLY) != 0;
        tensor = &managed->tensor;
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        tensor = PyCapsule_GetPointer(capsule, "dltensor");
    } else {
        PyErr_SetString(PyExc_ValueError, "no DLPack capsule, or one that was consumed");
        return NULL;
    }
    if (tensor->n_axes < 0 || (tensor->n_axes > 0 && tensor->extents == NULL)) {
        PyErr_SetString(PyExc_ValueError, "a DLPack tensor without a shape");
        return NULL;
    }
    const uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    PyObject *shape = tuple_of(tensor->extents, tensor->n_axes);
    PyObject *strides = NULL;
    if (shape != NULL && tensor->strides != NULL)
        strides = tuple_of(tensor->strides, tensor->n_axes);
    else if (shape != NULL)
        strides = Py_NewRef(Py_None);
    PyObject *result = NULL;
    if (strides != NULL)
        result = Py_BuildValue("KiiiOOi", (unsigned long long)address, (int)tensor->type_code,
                               (int)tensor->type_bits, (int)tensor->type_lanes, shape, strides,
                               read_only);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return result;
}
