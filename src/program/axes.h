/* SPDX-License-Identifier: Apache-2.0
 *
 * Which axes of a program's tensors are one and the same. Ops tie the axes of their operands
 * together (a matmul its input's columns to its weight's inputs, an addition its operands'); what
 * is tied has one extent, one set of slices and one unit, so it is cut alike everywhere.
 */
#ifndef OCTAVO_PROGRAM_AXES_H
#define OCTAVO_PROGRAM_AXES_H

#include "program/program.h"
#include "sharding/layout.h"

typedef struct octavo_program_axes {
    octavo_axis *axes; /* [n] */
    int n;
    int (*of)[OCTAVO_TENSOR_AXES]; /* [n_tensors] the axis of each axis of each tensor */
    int n_tensors;
} octavo_program_axes;

/* False: no memory. Rows have the extent 0: a step decides. */
OCTAVO_MUST_CHECK bool octavo_program_axes_init(octavo_program_axes *axes,
                                                const octavo_program *program);
void octavo_program_axes_deinit(octavo_program_axes *axes); /* takes an empty one too */

/* Of a matmul's weight: which of its axes is the first one of the outputs; the inputs' are the
 * others. */
int octavo_weight_outputs_at(const octavo_program *program, const octavo_op *op);

static inline const octavo_axis *octavo_axis_of(const octavo_program_axes *axes, int tensor,
                                                int i) {
    return &axes->axes[axes->of[tensor][i]];
}

#endif
