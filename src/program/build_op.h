/* SPDX-License-Identifier: Apache-2.0
 *
 * What the builder's parts (build.c, build_expert.c) append with, and how they look at operands.
 */
#ifndef OCTAVO_PROGRAM_BUILD_OP_H
#define OCTAVO_PROGRAM_BUILD_OP_H

#include "program/build.h"
#include "program/op.h"
#include "program/operand.h"

#include <string.h>

/* These give OCTAVO_NO_TENSOR once something has failed. */
int octavo_add_tensor(octavo_builder *builder, octavo_tensor tensor);
/* A tensor of a step: [rows, extent[1], ...] on these axes; with 'p' first also extent[0]. */
int octavo_add_activation(octavo_builder *builder, const char *name, const char *axes,
                          const int64_t *extent, bool is_q8);
/* An op whose result is `out`; inputs beyond those given are none. */
int octavo_add_op(octavo_builder *builder, octavo_op_kind kind, int out, octavo_op_params params,
                  int in0, int in1, int in2, int in3);
/* Index of the plan for such attention, added if need be; -1 when there are too many. */
int octavo_find_plan(octavo_program *program, const octavo_plan_key *key);
/* Room for one more element of `size` bytes in *array; false once something has failed. */
bool octavo_build_grow(octavo_builder *builder, void **array, int n, int *capacity, size_t size);

static inline const octavo_tensor *octavo_built_tensor(const octavo_builder *builder, int id) {
    return id == OCTAVO_NO_TENSOR ? NULL : &builder->program->tensors[id];
}

static inline bool octavo_is_activation(const octavo_tensor *tensor, bool is_q8) {
    return tensor && tensor->kind == OCTAVO_TENSOR_ACTIVATION && tensor->is_q8 == is_q8;
}

/* Is it the order of the weight's inputs? */
static inline bool octavo_has_order(const int32_t *order, const octavo_weight *weight) {
    const size_t n = (size_t)(weight->stack ? weight->stack : 1) * (size_t)weight->k;
    if (!order || !weight->order) return order == weight->order;
    return memcmp(order, weight->order, n * sizeof *order) == 0;
}

#endif
