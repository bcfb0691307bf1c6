/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the tensor in a DLPack capsule, versioned or not, without taking it over: its owner frees
 * it when the capsule dies, so the capsule must outlive the use of the data.
 */
#ifndef OCTAVO_PYTHON_DLPACK_H
#define OCTAVO_PYTHON_DLPACK_H

#include "python.h"

/* dlpack(capsule) -> (address, code, bits, lanes, shape, strides or None, read_only), sizes as
 * DLPack counts them: strides in elements. Raises ValueError for what is no such capsule. */
PyObject *octavo_py_dlpack(PyObject *module, PyObject *capsule);

#endif
