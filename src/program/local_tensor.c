/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's tensors: values with the extents of the rank's part.
 */
#include "program/local_maker.h"

#include <string.h>

static bool has_rows(const octavo_tensor *tensor) {
    return tensor->kind == OCTAVO_TENSOR_ACTIVATION;
}

/* `data` first, since rows lie group behind group. */
static int row_split(octavo_local_maker *maker, int tensor, const octavo_split *split) {
    octavo_program *local = maker->local;
    octavo_split rows = {0};
    if (octavo_split_has(split, OCTAVO_MESH_DATA)) rows = octavo_split_add(rows, OCTAVO_MESH_DATA);
    for (int i = 0; i < split->n; i++)
        if (split->axis[i] != OCTAVO_MESH_DATA) rows = octavo_split_add(rows, split->axis[i]);
    for (int i = 0; i < local->n_row_splits; i++)
        if (octavo_split_equal(&local->row_splits[i], &rows)) return i;
    if (local->n_row_splits == OCTAVO_MAX_ROW_SPLITS) {
        octavo_local_reject(maker, tensor, "rows are split in too many ways in one program");
        return 0;
    }
    local->row_splits[local->n_row_splits] = rows;
    return local->n_row_splits++;
}

/* Extents and begins from axis `first` on. */
static void cut_axes(const octavo_local_maker *maker, octavo_tensor *part, int id,
                     const octavo_layout *layout, int first) {
    for (int i = first; part->axes[i]; i++) {
        const octavo_range range =
            octavo_shard_of(maker->whole, maker->options->axes, &maker->partition->mesh,
                            &maker->place, layout, id, i);
        part->begin[i] = range.begin;
        part->extent[i] = range.end - range.begin;
    }
}

/* Not the lowest rank that has this part: the axes that split nothing of it count. */
static bool is_copy(const octavo_local_maker *maker, const octavo_layout *layout) {
    for (int axis = 0; axis < OCTAVO_MESH_AXES; axis++) {
        bool splits = octavo_split_has(&layout->partial, axis);
        for (int i = 0; i < OCTAVO_SPEC_AXES; i++)
            splits = splits || octavo_split_has(&layout->split[i], axis);
        if (!splits && maker->place.at[axis] != 0) return true;
    }
    return false;
}

static int64_t elements_of(const octavo_tensor *tensor) {
    int64_t n = 1;
    for (int i = 0; tensor->axes[i]; i++)
        n *= tensor->extent[i];
    return n;
}

/* What the rank has of it. */
static void bind_weight(octavo_local_maker *maker, int id, octavo_tensor *part) {
    part->weight = maker->options->bindings[id].weight;
    const octavo_weight *w = part->weight;
    /* of a stack a rank may have none */
    const bool is_stack = maker->whole->tensors[id].weight->stack > 0;
    if (!w || w->n * w->k * (is_stack ? w->stack : 1) != elements_of(part))
        octavo_local_reject(maker, id, "the rank's weight is not its part of the tensor");
}

int octavo_local_input(const octavo_local_maker *maker, int id) {
    if (id == maker->whole->positions) return maker->local->positions;
    return id == maker->whole->types ? maker->local->types : maker->local->ids;
}

static int make_tensor(octavo_local_maker *maker, const octavo_value *value) {
    const octavo_tensor *tensor = &maker->whole->tensors[value->tensor];
    octavo_tensor part = {
        .name = tensor->name, .kind = tensor->kind, .is_q8 = tensor->is_q8, .order = tensor->order};
    memcpy(part.axes, tensor->axes, sizeof part.axes);
    if (tensor->kind == OCTAVO_TENSOR_INPUT) return octavo_local_input(maker, value->tensor);
    part.is_copy = is_copy(maker, &value->layout);
    if (tensor->axes[0] == 'p' && has_rows(tensor)) part.extent[0] = tensor->extent[0];
    if (has_rows(tensor)) part.rows = row_split(maker, value->tensor, &value->layout.split[0]);
    cut_axes(maker, &part, value->tensor, &value->layout,
             has_rows(tensor) || tensor->kind == OCTAVO_TENSOR_CACHE);
    if (tensor->kind == OCTAVO_TENSOR_CACHE)
        part.rows = row_split(maker, value->tensor, &value->layout.split[0]);
    if (tensor->kind == OCTAVO_TENSOR_VECTOR)
        part.vector = maker->options->bindings[value->tensor].vector;
    if (tensor->kind == OCTAVO_TENSOR_WEIGHT) bind_weight(maker, value->tensor, &part);
    if (octavo_is_records(maker->whole, value->tensor, &value->layout))
        part.extent[1] = 0; /* they have memory of their own */
    const int layer = maker->builder.layer;
    maker->builder.layer = tensor->layer;
    const int id = octavo_add_tensor(&maker->builder, part);
    maker->builder.layer = layer;
    return id;
}

int octavo_local_tensor(octavo_local_maker *maker, int value) {
    if (value == OCTAVO_NO_TENSOR) return value;
    int *id = &maker->tensors[maker->same[value]];
    if (*id == OCTAVO_NO_TENSOR) *id = make_tensor(maker, &maker->values[value]);
    return *id;
}

int octavo_local_row(octavo_local_maker *maker, int value) {
    const octavo_value *v = &maker->values[value];
    const octavo_tensor *tensor = &maker->whole->tensors[v->tensor];
    int *id = &maker->tensors[maker->same[value]];
    octavo_tensor part = {.name = tensor->name, .kind = OCTAVO_TENSOR_ACTIVATION};
    if (*id != OCTAVO_NO_TENSOR) return *id;
    memcpy(part.axes, tensor->axes, sizeof part.axes);
    cut_axes(maker, &part, v->tensor, &v->layout, 0);
    for (int i = OCTAVO_TENSOR_AXES - 1; i > 0; i--) {
        part.axes[i] = part.axes[i - 1];
        part.begin[i] = part.begin[i - 1];
        part.extent[i] = part.extent[i - 1];
    }
    part.axes[0] = '1';
    part.begin[0] = 0;
    part.extent[0] = 1;
    return *id = octavo_add_tensor(&maker->builder, part);
}

int octavo_local_matrix(octavo_local_maker *maker, int value, const octavo_reshard_desc *desc,
                        octavo_weight *weight) {
    const octavo_value *v = &maker->values[value];
    const octavo_tensor *tensor = &maker->whole->tensors[v->tensor];
    const octavo_weight *bound = maker->options->bindings[v->tensor].weight;
    octavo_tensor part = {.name = tensor->name, .kind = tensor->kind, .weight = weight};
    if (!bound || (bound->factors && bound->stack > 0) || bound->order) {
        octavo_local_reject(maker, v->tensor, "it cannot be moved in a step; place it otherwise");
        return OCTAVO_NO_TENSOR;
    }
    memcpy(part.axes, tensor->axes, sizeof part.axes);
    cut_axes(maker, &part, v->tensor, &v->layout, 0);
    *weight = (octavo_weight){.type = bound->type, .n = 1, .k = 1, .factors = bound->factors};
    if (bound->stack > 0) weight->stack = part.extent[0];
    for (int i = bound->stack > 0; part.axes[i]; i++) {
        const bool is_output = i >= desc->outputs_at && i < desc->outputs_at + desc->n_outputs;
        *(is_output ? &weight->n : &weight->k) *= part.extent[i];
    }
    part.row_bytes = octavo_weight_bytes(weight->type, weight->n, weight->k) *
                     (size_t)(bound->stack > 0 ? weight->stack : 1);
    return maker->tensors[maker->same[value]] = octavo_add_tensor(&maker->builder, part);
}

int octavo_local_column(octavo_local_maker *maker, const char *name, int x) {
    octavo_tensor part = {
        .name = name, .kind = OCTAVO_TENSOR_ACTIVATION, .rows = maker->local->tensors[x].rows};
    part.axes[0] = maker->local->tensors[x].axes[0];
    part.axes[1] = '1';
    part.extent[0] = maker->local->tensors[x].extent[0];
    part.extent[1] = 1;
    return octavo_add_tensor(&maker->builder, part);
}

const octavo_op *octavo_local_router(const octavo_local_maker *maker, int route) {
    const octavo_program *whole = maker->whole;
    int i = 0;
    while (i < whole->n_ops - 1 &&
           (whole->ops[i].kind != OCTAVO_OP_ROUTE || whole->ops[i].out != route))
        i++;
    return &whole->ops[i];
}

octavo_range octavo_local_expert_range(const octavo_local_maker *maker, int route,
                                       const octavo_split *experts, int shard) {
    const octavo_op *router = octavo_local_router(maker, route);
    const octavo_axis *axis = octavo_axis_of(maker->options->axes, router->in[0], 1);
    return octavo_axis_shard(axis, octavo_split_degree(experts, &maker->partition->mesh), shard);
}

octavo_slices octavo_local_experts(octavo_local_maker *maker, int route,
                                   const octavo_split *experts) {
    const int shard = octavo_split_index(experts, &maker->partition->mesh, &maker->place);
    const octavo_range range = octavo_local_expert_range(maker, route, experts, shard);
    octavo_slices part = octavo_local_slices(&octavo_local_router(maker, route)->params.slices,
                                             range.begin, range.end, 1);
    for (int k = 0; k <= part.n; k++)
        part.cut[k] += range.begin;
    return part;
}
