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

/* Which experts ranks have; gives the choices by which rows go there or come from there. */
static int find_experts(octavo_local_maker *maker, octavo_reshard *reshard,
                        const octavo_reshard_desc *desc, const octavo_partition_step *step,
                        octavo_router *router) {
    const octavo_tensor *tensor = &maker->whole->tensors[desc->tensor];
    const int route = maker->values[step->choices].tensor;
    reshard->is_to_experts = octavo_is_routed(tensor, &desc->to);
    reshard->is_from_experts = octavo_is_routed(tensor, &desc->from);
    reshard->expert_split = reshard->is_to_experts ? desc->to.experts : desc->from.experts;
    const int n = octavo_split_degree(&reshard->expert_split, &desc->mesh);
    reshard->experts = octavo_alloc_zero((size_t)n, sizeof *reshard->experts);
    for (int i = 0; reshard->experts && i < n; i++)
        reshard->experts[i] = octavo_local_expert_range(maker, route, &reshard->expert_split, i);
    if (!reshard->experts) octavo_local_no_memory(maker);
    *router = octavo_local_router(maker, route)->params.router;
    return octavo_local_tensor(maker, step->choices);
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
    if (!octavo_reshard_is_slice(desc) || desc->only_rank) {
        const int *processes = maker->options->processes;
        params.is_wire = true;
        if (processes && !octavo_reshard_add_sends(reshard, desc, processes))
            octavo_local_no_memory(maker);
        /* what is never written needs nobody to wait */
        params.is_meeting = local->tensors[from].kind == OCTAVO_TENSOR_ACTIVATION;
        if (step) reshard->collective = step->transfer.collective;
    }
    if (reshard->is_owned) ids = find_owners(maker, reshard, desc->tensor);
    if (step && step->kind == OCTAVO_STEP_RESHARD && step->choices != OCTAVO_NO_TENSOR)
        ids = find_experts(maker, reshard, desc, step, &params.router);
    if (step && step->kind == OCTAVO_STEP_RESHARD && step->summed >= 0) {
        bias = octavo_local_tensor(maker, step->bias);
        weight = factors_of(maker, step);
    }
    params.is_for_trace = maker->is_for_trace;
    octavo_add_op(&maker->builder, OCTAVO_OP_RESHARD, to, params, from, bias, weight, ids);
}

int octavo_local_bring(octavo_local_maker *maker, int value) {
    if (value == OCTAVO_NO_TENSOR || !maker->options->processes)
        return octavo_local_tensor(maker, value);
    octavo_reshard_desc desc = octavo_local_reshard_desc(maker, value, value);
    const octavo_tensor *whole = &maker->whole->tensors[desc.tensor];
    octavo_tensor all = {.name = whole->name, .kind = whole->kind};
    memcpy(all.axes, whole->axes, sizeof all.axes);
    desc.to = (octavo_layout){0};
    desc.only_rank = 1;
    if (maker->options->rank == 0) all.extent[1] = whole->extent[1];
    const int from = octavo_local_tensor(maker, value);
    const int to = octavo_add_tensor(&maker->builder, all);
    if (maker->builder.status == OCTAVO_OK) octavo_local_reshard(maker, &desc, from, to, NULL);
    return to;
}

/* Only the first axes of outputs and inputs are split, the others are whole. */
static bool has_whole_lanes(const octavo_reshard_desc *desc, const octavo_layout *layout,
                            int inputs_at) {
    for (int i = 0; i < OCTAVO_TENSOR_AXES; i++)
        if (layout->split[i].n > 0 && i != desc->outputs_at && i != inputs_at &&
            !(i == 0 && desc->program->tensors[desc->tensor].weight->stack > 0))
            return false;
    return true;
}

/* A weight that a step takes otherwise than it is placed: the panels' records move. */
static void move_weight(octavo_local_maker *maker, const octavo_partition_step *step,
                        octavo_reshard_desc desc) {
    const octavo_program *whole = maker->whole;
    const octavo_op *op = &whole->ops[step->op];
    const int stack = op->kind == OCTAVO_OP_EXPERT_MATMUL;
    const int n_inputs = (int)strlen(whole->tensors[op->in[0]].axes) - 1;
    octavo_program *local = maker->local;
    if (op->kind != OCTAVO_OP_MATMUL && op->kind != OCTAVO_OP_EXPERT_MATMUL) {
        octavo_local_reject(maker, desc.tensor, "it cannot be moved in a step; place it otherwise");
        return;
    }
    desc.outputs_at = stack ? stack + n_inputs : octavo_weight_outputs_at(whole, op);
    desc.n_outputs = (int)strlen(whole->tensors[desc.tensor].axes) - stack - n_inputs;
    const int inputs_at = desc.outputs_at == stack ? stack + desc.n_outputs : stack;
    octavo_weight *weight = octavo_alloc_zero(1, sizeof *weight);
    if (!weight) {
        octavo_local_no_memory(maker);
        return;
    }
    if (!has_whole_lanes(&desc, &desc.from, inputs_at) ||
        !has_whole_lanes(&desc, &desc.to, inputs_at))
        octavo_local_reject(maker, desc.tensor, "lanes of its heads cannot be moved in a step");
    const int from = octavo_local_tensor(maker, step->in[0]);
    const int to = octavo_local_matrix(maker, step->out, &desc, weight);
    const int n = local->n_reshards;
    if (maker->builder.status == OCTAVO_OK) octavo_local_reshard(maker, &desc, from, to, step);
    if (local->n_reshards > n)
        local->reshards[n].weight = weight; /* whose end comes with the program's */
    else
        octavo_free(weight);
}

void octavo_local_step_reshard(octavo_local_maker *maker, const octavo_partition_step *step) {
    const octavo_reshard_desc desc = octavo_local_reshard_desc(maker, step->in[0], step->out);
    const octavo_tensor *tensor = &maker->whole->tensors[desc.tensor];
    if (octavo_is_records(maker->whole, desc.tensor, &desc.from)) {
        maker->records = step; /* the merge itself reads them */
        return;
    }
    if (tensor->kind == OCTAVO_TENSOR_INPUT) return; /* all have it */
    if (tensor->kind == OCTAVO_TENSOR_WEIGHT) {
        move_weight(maker, step, desc);
        return;
    }
    if (tensor->kind == OCTAVO_TENSOR_CACHE) {
        octavo_local_reject(maker, desc.tensor, "a cache cannot be moved in a step");
        return;
    }
    const int from = octavo_local_tensor(maker, step->in[0]);
    const int to = tensor->kind == OCTAVO_TENSOR_VECTOR ? octavo_local_row(maker, step->out)
                                                        : octavo_local_tensor(maker, step->out);
    if (maker->builder.status == OCTAVO_OK) octavo_local_reshard(maker, &desc, from, to, step);
}
