/* SPDX-License-Identifier: Apache-2.0
 *
 * The custom call that JAX programs make.
 */
#ifndef OCTAVO_PYTHON_XLA_H
#define OCTAVO_PYTHON_XLA_H

#include "xla_abi.h"

typedef xla_error *octavo_py_xla_handler(xla_call_frame *frame);

/* Operands: the arrays that are there, in the order of octavo_py_array, the output not among them.
 * Results: the output, then, if the cache is updated, the cache, which aliases its operand.
 * Attributes: the scalars that are given, by name; `operands`, bit i set if array i is there;
 * `threads`, `isa`, `pin`. */
octavo_py_xla_handler octavo_py_xla_attention;

/* Before the call is registered: the minor version of XLA's interface. */
void octavo_py_xla_claim(int minor);

#endif
