/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of op kinds: one row each.
 */
#ifndef OCTAVO_PROGRAM_OP_H
#define OCTAVO_PROGRAM_OP_H

#include "program/program.h"

typedef struct octavo_run octavo_run; /* run.h */

typedef struct octavo_op_cost {
    double weight_bytes;     /* read once a step */
    double activation_bytes; /* read and written, for the given tokens */
    double operations;       /* multiplications and additions, two to a multiply-add */
} octavo_op_cost;

typedef struct octavo_op_info {
    const char *name; /* "matmul" */
    /* Axes like an einsum. Letters are bound by the operands: x and y stand for any one axis or
     * more axes that the operand has ("x" the one summed over). For people and for the partitioner.
     */
    const char *axes;
    /* What one thread of n does of the op, for the step at hand. Ops are separated by a barrier. */
    void (*run)(octavo_run *run, const octavo_op *op, int thread, int n_threads);
    octavo_op_cost (*cost)(const octavo_program *program, const octavo_op *op, int64_t rows);
} octavo_op_info;

/* The row of a kind. Lives forever. */
const octavo_op_info *octavo_op_info_of(octavo_op_kind kind);

#endif
