/* SPDX-License-Identifier: Apache-2.0
 *
 * From the steps of a partition to the ops of a rank, and where the threads of all ranks meet.
 */
#include "program/local.h"

#include "base/error.h"
#include "program/local_maker.h"

#include <string.h>

void octavo_local_reject(octavo_local_maker *maker, int tensor, const char *why) {
    octavo_builder *builder = &maker->builder;
    const octavo_tensor *t = &maker->whole->tensors[tensor];
    if (builder->status == OCTAVO_OK)
        builder->status = octavo_fail(&builder->error, OCTAVO_ERROR_INVALID,
                                      "tensor \"%s\" (layer %d): %s", t->name, t->layer, why);
}

void octavo_local_no_memory(octavo_local_maker *maker) {
    octavo_builder *builder = &maker->builder;
    if (builder->status == OCTAVO_OK)
        builder->status = octavo_fail_memory(&builder->error, "program of a rank",
                                             (uint64_t)maker->whole->n_tensors);
}

octavo_slices octavo_local_slices(const octavo_slices *slices, int64_t begin, int64_t end,
                                  int64_t unit) {
    octavo_slices part = {0};
    int first = 0, last = 0;
    while (first < slices->n && slices->cut[first] < begin)
        first++;
    while (last < slices->n && slices->cut[last] < end)
        last++;
    part.n = last - first;
    if (begin >= end || slices->cut[first] != begin || slices->cut[last] != end ||
        (part.n & (part.n - 1)) != 0)
        return octavo_slices_make(end - begin, unit);
    for (int i = 0; i <= part.n; i++)
        part.cut[i] = slices->cut[first + i] - begin;
    return part;
}

/* ---- where all meet ---- */

/* Does the op write what a peer may still be reading? */
static bool writes(const octavo_op *op, const bool *is_read) {
    if (is_read[op->out]) return true;
    /* these use their input up */
    return (op->kind == OCTAVO_OP_COMBINE || op->kind == OCTAVO_OP_ROUTE) && is_read[op->in[0]];
}

/* An exchange reads what peers have written, so all have to be done with that; and nobody may write
 * again what another one reads before all have met once more. */
static bool mark_meetings(octavo_program *local) {
    bool *is_read = octavo_alloc_zero((size_t)local->n_tensors + 1, sizeof *is_read);
    bool are_records_read = false; /* all layers' lie in one place */
    if (!is_read) return false;
    for (int i = 0; i < local->n_ops; i++) {
        octavo_op *op = &local->ops[i];
        if (writes(op, is_read)) op->params.is_meeting = true;
        if (op->kind == OCTAVO_OP_ATTENTION && are_records_read &&
            local->plans[op->params.plan].parts.n > 0)
            op->params.is_meeting = true;
        if (op->params.is_meeting || i == local->head_begin) {
            memset(is_read, 0, (size_t)local->n_tensors * sizeof *is_read);
            are_records_read = false;
        }
        if (op->kind == OCTAVO_OP_ATTENTION_MERGE && op->params.is_meeting) are_records_read = true;
        if (op->kind == OCTAVO_OP_RESHARD && op->params.is_meeting) is_read[op->in[0]] = true;
    }
    octavo_free(is_read);
    return true;
}

/* ---- steps ---- */

static octavo_layout reduce_layout(const octavo_layout *layout, const octavo_mesh *mesh) {
    octavo_layout less = *layout;
    for (int i = 0; i < OCTAVO_SPEC_AXES; i++)
        less.split[i] = octavo_split_reduce(&layout->split[i], mesh);
    less.experts = octavo_split_reduce(&layout->experts, mesh);
    less.partial = octavo_split_reduce(&layout->partial, mesh);
    less.is_owned = layout->is_owned && less.partial.n > 0;
    return less;
}

static bool start(octavo_local_maker *maker) {
    const octavo_partition *partition = maker->partition;
    const size_t n = (size_t)partition->n_values + 1;
    maker->values = octavo_alloc_zero(n, sizeof *maker->values);
    maker->same = octavo_alloc_zero(n, sizeof *maker->same);
    maker->tensors = octavo_alloc_zero(n, sizeof *maker->tensors);
    if (!maker->values || !maker->same || !maker->tensors) return false;
    for (int i = 0; i < partition->n_values; i++) {
        const octavo_value *value = &partition->values[i];
        maker->values[i] =
            (octavo_value){value->tensor, reduce_layout(&value->layout, &partition->mesh)};
        maker->same[i] = 0;
        while (
            maker->values[maker->same[i]].tensor != value->tensor ||
            !octavo_layout_equal(&maker->values[maker->same[i]].layout, &maker->values[i].layout))
            maker->same[i]++;
        maker->tensors[i] = OCTAVO_NO_TENSOR;
    }
    return true;
}

static void add_trace(octavo_local_maker *maker, int i) {
    octavo_program *local = maker->local;
    maker->is_for_trace = true;
    const int id = octavo_local_bring(maker, maker->partition->trace_values[i]);
    maker->is_for_trace = false;
    void *array = local->traces;
    if (!octavo_build_grow(&maker->builder, &array, local->n_traces, &local->capacity_traces,
                           sizeof *local->traces))
        return;
    local->traces = array;
    local->traces[local->n_traces++] =
        (octavo_trace){local->n_ops, id, maker->whole->traces[i].width};
}

static void begin_logits(octavo_local_maker *maker) {
    maker->local->hidden = octavo_local_bring(maker, maker->partition->hidden);
    maker->local->logits_begin = maker->local->n_ops;
}

static void add_steps(octavo_local_maker *maker) {
    const octavo_partition *partition = maker->partition;
    octavo_program *local = maker->local;
    for (int i = 0; i < partition->n_steps; i++) {
        const octavo_partition_step *step = &partition->steps[i];
        if (maker->builder.status) return;
        if (i == partition->head_begin) local->head_begin = local->n_ops;
        if (i == partition->logits_begin) begin_logits(maker);
        for (int k = 0; k < partition->n_traces; k++)
            if (partition->trace_steps[k] == i) add_trace(maker, k);
        maker->builder.layer = step->layer;
        if (step->kind == OCTAVO_STEP_OP)
            octavo_local_op(maker, step);
        else
            octavo_local_step_reshard(maker, step);
    }
    if (partition->logits_begin == partition->n_steps) begin_logits(maker);
    local->logits = octavo_local_bring(maker, partition->logits);
}

octavo_status octavo_local_make(octavo_program *local, const octavo_local_options *options,
                                octavo_error *error) {
    const octavo_program *whole = options->program;
    octavo_local_maker maker = {.options = options,
                                .whole = whole,
                                .partition = options->partition,
                                .local = local,
                                .place =
                                    octavo_mesh_place(&options->partition->mesh, options->rank),
                                .update = -1,
                                .grouped = OCTAVO_NO_TENSOR};
    octavo_builder *builder = &maker.builder;
    const bool is_smaller = options->max_tokens > 0 && options->max_tokens < whole->max_tokens;
    octavo_build_start(builder, local, is_smaller ? options->max_tokens : whole->max_tokens,
                       whole->max_rows, false);
    local->mesh = options->partition->mesh;
    local->rank = options->rank;
    local->n_experts = whole->n_experts;
    local->n_chosen = whole->n_chosen;
    if (options->max_group_tokens > 0) local->max_group_tokens = options->max_group_tokens;
    bool has_memory = start(&maker);
    if (has_memory) add_steps(&maker);
    if (has_memory && builder->status == OCTAVO_OK)
        has_memory = mark_meetings(local) && octavo_program_plan_memory(local);
    if (!has_memory) octavo_local_no_memory(&maker);
    octavo_free(maker.values);
    octavo_free(maker.same);
    octavo_free(maker.tensors);
    if (builder->status) {
        octavo_program_deinit(local);
        if (error) *error = builder->error;
    }
    return builder->status;
}
