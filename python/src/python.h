/* SPDX-License-Identifier: Apache-2.0
 *
 * CPython's stable ABI, from 3.10 on: one binary for every later version.
 */
#ifndef OCTAVO_PYTHON_PYTHON_H
#define OCTAVO_PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#endif
