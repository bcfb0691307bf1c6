/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays as Python hands them over: a tuple with an entry for each octavo_py_array, None or
 * (address, dtype, shape, strides in elements or None for dense, owner). The owner is not looked
 * at; it keeps the memory alive.
 */
#ifndef OCTAVO_PYTHON_ARRAYS_H
#define OCTAVO_PYTHON_ARRAYS_H

#include "arguments.h"
#include "python.h"

/* Sets the arrays of *args. False with ValueError set for what octavo_array cannot hold: no axis,
 * too many, elements that share memory (by strides of 0) or are not aligned. */
bool octavo_py_arrays_read(PyObject *arrays, octavo_attention_args *args);

/* False with ValueError set if memory that the call writes is also that of another array. */
bool octavo_py_arrays_apart(octavo_attention_args *args);

#endif
