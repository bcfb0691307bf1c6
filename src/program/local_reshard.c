/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's exchanges: the ops that bring a value into another layout.
 */
#include "program/local_maker.h"

#include <string.h>

octavo_reshard_desc octavo_local_reshard_desc(const octavo_local_maker *maker, int from_value,
                                              int to_value) {
    const octavo_value *from = &maker->values[from_value], *to = &maker->values[to_value];
    const octavo_tensor *tensor = &maker->whole->tensors[from->tensor];
    return (octavo_reshard_desc){
        .program = maker->whole,
        .axes = maker->options->axes,
        .mesh = maker->partition->mesh,
        .place = maker->place,
        .tensor = from->tensor,
        .from = from->layout,
        .to = to->layout,
        .letter = tensor->kind == OCTAVO_TENSOR_ACTIVATION ? tensor->axes[0] : '\0',
    };
}

/* The look-up that made a tensor, or NULL. */
static const octavo_op *embedding_of(const octavo_program *whole, int tensor) {
    for (int i = 0; i < whole->n_ops; i++)
        if (whole->ops[i].out == tensor)
            return whole->ops[i].kind == OCTAVO_OP_EMBED ? &whole->ops[i] : NULL;
    return NULL;
}

/* Who has which rows of the table; gives the input that chooses among them. */
static int find_owners(octavo_local_maker *maker, octavo_reshard *reshard, int tensor) {
    const octavo_op *op = embedding_of(maker->whole, tensor);
    if (!op) {
        octavo_local_reject(maker, tensor, "rows have owners, but come from no table");
        return OCTAVO_NO_TENSOR;
    }
    const octavo_axis *axis = octavo_axis_of(maker->options->axes, op->in[1], 0);
    reshard->owned = octavo_alloc_zero((size_t)reshard->n_parts, sizeof *reshard->owned);
    for (int i = 0; reshard->owned && i < reshard->n_parts; i++)
        reshard->owned[i] = octavo_axis_shard(axis, reshard->n_parts, i).end;
    if (!reshard->owned) octavo_local_no_memory(maker);
    return octavo_local_input(maker, op->in[0]);
}

/* The local weight whose factors the completed sum is multiplied by. */
static int factors_of(octavo_local_maker *maker, const octavo_partition_step *step) {
    for (int i = 0; i < maker->partition->n_steps; i++) {
        const octavo_partition_step *s = &maker->partition->steps[i];
        if (s->kind == OCTAVO_STEP_OP && s->op == step->summed)
            return octavo_local_tensor(maker, s->in[1]);
    }
    return OCTAVO_NO_TENSOR;
}

void octavo_local_reshard(octavo_local_maker *maker, const octavo_reshard_desc *desc, int from,
                          int to, const octavo_partition_step *step) {
    octavo_program *local = maker->local;
    octavo_op_params params = {.reshard = local->n_reshards};
    int bias = OCTAVO_NO_TENSOR, weight = OCTAVO_NO_TENSOR, ids = OCTAVO_NO_TENSOR;
    void *array = local->reshards;
    if (!octavo_build_grow(&maker->builder, &array, local->n_reshards, &maker->capacity_reshards,
                           sizeof *local->reshards))
        return;
    local->reshards = array;
    octavo_reshard *reshard = &local->reshards[local->n_reshards];
    if (!octavo_reshard_init(reshard, desc)) {
        octavo_local_no_memory(maker);
        return;
    }
    local->n_reshards++;
    if (reshard->n_parts > OCTAVO_MAX_PARTS)
        octavo_local_reject(maker, desc->tensor, "a sum over more than 256 ranks");
    if (!octavo_reshard_is_slice(desc)) {
        /* what is never written needs nobody to wait */
        params.is_meeting = local->tensors[from].kind == OCTAVO_TENSOR_ACTIVATION;
        if (step) reshard->collective = step->transfer.collective;
    }
    if (reshard->is_owned) ids = find_owners(maker, reshard, desc->tensor);
    if (step && step->kind == OCTAVO_STEP_RESHARD && step->summed >= 0) {
        bias = octavo_local_tensor(maker, step->bias);
        weight = factors_of(maker, step);
    }
    octavo_add_op(&maker->builder, OCTAVO_OP_RESHARD, to, params, from, bias, weight, ids);
}

void octavo_local_step_reshard(octavo_local_maker *maker, const octavo_partition_step *step) {
    const octavo_reshard_desc desc = octavo_local_reshard_desc(maker, step->in[0], step->out);
    const octavo_tensor *tensor = &maker->whole->tensors[desc.tensor];
    if (tensor->kind == OCTAVO_TENSOR_INPUT) return; /* all have it */
    if (tensor->kind == OCTAVO_TENSOR_WEIGHT || tensor->kind == OCTAVO_TENSOR_CACHE) {
        octavo_local_reject(maker, desc.tensor, "its rule asks to move it in every step");
        return;
    }
    const int from = octavo_local_tensor(maker, step->in[0]);
    const int to = tensor->kind == OCTAVO_TENSOR_VECTOR ? octavo_local_row(maker, step->out)
                                                        : octavo_local_tensor(maker, step->out);
    if (maker->builder.status == OCTAVO_OK) octavo_local_reshard(maker, &desc, from, to, step);
}
