/* SPDX-License-Identifier: Apache-2.0
 *
 * From decisions to steps: each op behind what brings its operands to where it takes them.
 */
#include "base/error.h"
#include "base/memory.h"
#include "program/partition_search.h"

#include <string.h>

typedef struct writer {
    const octavo_partitioner *p;
    octavo_partition *partition;
    int *newest;   /* [n_tensors] its last value, or -1 */
    int *previous; /* [capacity_values] another value of the same tensor that holds, or -1 */
    bool has_no_memory;
} writer;

static int add_value(writer *w, int tensor, const octavo_layout *layout) {
    octavo_partition *partition = w->partition;
    if (partition->n_values == partition->capacity_values) {
        const int wanted = partition->capacity_values ? partition->capacity_values * 2 : 512;
        octavo_value *values =
            octavo_realloc(partition->values, (size_t)wanted * sizeof *partition->values);
        if (values) partition->values = values;
        int *previous = octavo_realloc(w->previous, (size_t)wanted * sizeof *w->previous);
        if (previous) w->previous = previous;
        if (!values || !previous) {
            w->has_no_memory = true;
            return 0;
        }
        partition->capacity_values = wanted;
    }
    const int value = partition->n_values++;
    partition->values[value] = (octavo_value){tensor, *layout};
    w->previous[value] = w->newest[tensor];
    w->newest[tensor] = value;
    return value;
}

static octavo_partition_step *add_step(writer *w, octavo_step_kind kind, int op) {
    octavo_partition *partition = w->partition;
    if (partition->n_steps == partition->capacity_steps) {
        const int wanted = partition->capacity_steps ? partition->capacity_steps * 2 : 512;
        octavo_partition_step *steps =
            octavo_realloc(partition->steps, (size_t)wanted * sizeof *partition->steps);
        if (!steps) {
            w->has_no_memory = true;
            return NULL;
        }
        partition->steps = steps;
        partition->capacity_steps = wanted;
    }
    octavo_partition_step *step = &partition->steps[partition->n_steps++];
    *step = (octavo_partition_step){.kind = kind,
                                    .op = op,
                                    .layer = w->p->program->ops[op].layer,
                                    .out = OCTAVO_NO_TENSOR,
                                    .summed = -1,
                                    .bias = OCTAVO_NO_TENSOR,
                                    .choices = OCTAVO_NO_TENSOR};
    for (int i = 0; i < OCTAVO_OP_INPUTS; i++)
        step->in[i] = OCTAVO_NO_TENSOR;
    return step;
}

static int find_value(const writer *w, int tensor, const octavo_layout *layout) {
    for (int v = w->newest[tensor]; v >= 0; v = w->previous[v])
        if (octavo_layout_equal(&w->partition->values[v].layout, layout)) return v;
    return -1;
}

static int need(writer *w, int tensor, const octavo_layout *layout, int op,
                octavo_reshard_cause cause);

/* The op that left a partial sum, with its factor and bias still to come. */
static void finish_sum(writer *w, octavo_partition_step *step, int tensor, int producer) {
    const octavo_op *op = &w->p->program->ops[producer];
    const octavo_layout *out = &w->partition->values[step->out].layout;
    const int bias = op->kind == OCTAVO_OP_MATMUL          ? op->in[2]
                     : op->kind == OCTAVO_OP_EXPERT_MATMUL ? op->in[3]
                                                           : OCTAVO_NO_TENSOR;
    (void)tensor;
    if (op->kind != OCTAVO_OP_MATMUL && op->kind != OCTAVO_OP_EXPERT_MATMUL) return;
    step->summed = producer;
    if (bias == OCTAVO_NO_TENSOR) return;
    octavo_layout layout = {0};
    const octavo_tensor *tensors = w->p->program->tensors;
    const bool is_stack = op->kind == OCTAVO_OP_EXPERT_MATMUL;
    /* their last axes are the same: a latent's bias has no heads */
    const int n = (int)strlen(tensors[bias].axes), skip = (int)strlen(tensors[op->out].axes) - n;
    if (is_stack) layout.split[0] = out->experts;
    for (int i = is_stack; i < n; i++)
        layout.split[i] = out->split[i + skip];
    const int at = (int)(step - w->partition->steps);
    const int value = need(w, bias, &layout, step->op, OCTAVO_CAUSE_OPERAND);
    w->partition->steps[at].bias = value;
}

static int producer_of(const octavo_program *program, int tensor) {
    for (int i = program->tensors[tensor].first_op; i < program->n_ops; i++)
        if (program->ops[i].out == tensor) return i;
    return -1;
}

/* A vector for a sum's end has to be there before the step that ends it: moves the steps that
 * bring it, which were added behind, to the front. */
static void move_behind(writer *w, int at) {
    octavo_partition_step *steps = w->partition->steps;
    const octavo_partition_step step = steps[at];
    const int n = w->partition->n_steps - at - 1;
    if (n <= 0) return;
    memmove(&steps[at], &steps[at + 1], (size_t)n * sizeof *steps);
    steps[at + n] = step;
}

/* By which rows of tokens are sent to their experts, or what these gave is sent back. */
static int choices_of(const writer *w, int from, const octavo_layout *to, int op) {
    const octavo_program *program = w->p->program;
    const octavo_value *value = &w->partition->values[from];
    const octavo_tensor *tensor = &program->tensors[value->tensor];
    if (octavo_is_routed(tensor, &value->layout))
        return w->newest[program->ops[producer_of(program, value->tensor)].in[1]];
    return octavo_is_routed(tensor, to) ? w->newest[program->ops[op].in[1]] : OCTAVO_NO_TENSOR;
}

static int reshard(writer *w, int from, const octavo_layout *to, const octavo_transfer *transfer,
                   int op, octavo_reshard_cause cause) {
    const int tensor = w->partition->values[from].tensor;
    const bool is_sum = w->partition->values[from].layout.partial.n > 0 &&
                        !w->partition->values[from].layout.is_owned;
    const octavo_machine_model *machine = &w->p->options->machine;
    octavo_partition_step *step = add_step(w, OCTAVO_STEP_RESHARD, op);
    if (!step) return 0;
    const int out = add_value(w, tensor, to);
    if (w->has_no_memory) return 0;
    step->in[0] = from;
    step->out = out;
    step->transfer = *transfer;
    step->cause = cause;
    step->choices = choices_of(w, from, to, op);
    if (transfer->collective != OCTAVO_COLLECTIVE_NONE)
        step->seconds = transfer->wire_bytes / machine->link_bytes_s + machine->latency_s;
    if (!is_sum) return out;
    const int at = (int)(step - w->partition->steps);
    finish_sum(w, step, tensor, producer_of(w->p->program, tensor));
    move_behind(w, at);
    return out;
}

static int make_table(writer *w, int tensor, const octavo_layout *layout) {
    const octavo_program *program = w->p->program;
    octavo_partition_step *step = add_step(w, OCTAVO_STEP_OP, producer_of(program, tensor));
    if (!step) return 0;
    const int value = add_value(w, tensor, layout);
    step->out = value;
    return value;
}

/* The value of a tensor in a layout, made from the nearest one if it is not there. */
static int need(writer *w, int tensor, const octavo_layout *layout, int op,
                octavo_reshard_cause cause) {
    const octavo_partitioner *p = w->p;
    const bool is_activation = p->program->tensors[tensor].kind == OCTAVO_TENSOR_ACTIVATION;
    if (w->has_no_memory) return 0;
    int value = find_value(w, tensor, layout);
    if (value >= 0) return value;
    if (octavo_is_made_anywhere(p, tensor)) return make_table(w, tensor, layout);
    if (!is_activation && w->newest[tensor] < 0) {
        value = add_value(w, tensor, &p->placed[tensor]);
        if (w->has_no_memory || octavo_layout_equal(&p->placed[tensor], layout)) return value;
    }
    int from = -1;
    double best = 0.0;
    octavo_route route = {0};
    for (int v = w->newest[tensor]; v >= 0; v = w->previous[v]) {
        const octavo_route way =
            octavo_route_of(p, tensor, &w->partition->values[v].layout, layout);
        const double seconds = octavo_route_seconds(p, &way);
        if (from >= 0 && seconds >= best) continue;
        from = v;
        best = seconds;
        route = way;
    }
    for (int i = 0; i < route.n && !w->has_no_memory; i++)
        from = reshard(w, from, &route.to[i], &route.step[i], op, cause);
    return from;
}

/* An operand without rows that the way does not speak of lies as it is placed. */
static int placed_value(writer *w, int tensor) {
    if (w->newest[tensor] >= 0) {
        const int value = find_value(w, tensor, &w->p->placed[tensor]);
        if (value >= 0) return value;
    }
    return add_value(w, tensor, &w->p->placed[tensor]);
}

/* Only this value of the tensor holds from here on. */
static void keep_only(writer *w, int tensor, int value) {
    w->newest[tensor] = value;
    w->previous[value] = -1;
}

static int operand(writer *w, int index, int k) {
    const octavo_partitioner *p = w->p;
    const octavo_op *op = &p->program->ops[index];
    const octavo_way *way = &p->decisions[index];
    const int tensor = op->in[k];
    octavo_layout ruled;
    if (tensor == OCTAVO_NO_TENSOR || p->program->tensors[tensor].kind == OCTAVO_TENSOR_INPUT)
        return OCTAVO_NO_TENSOR;
    if (!way->has_in[k]) return placed_value(w, tensor);
    /* a partial sum's bias comes after it */
    if (p->program->tensors[tensor].kind == OCTAVO_TENSOR_VECTOR && way->out.partial.n > 0 &&
        (op->kind == OCTAVO_OP_MATMUL || op->kind == OCTAVO_OP_EXPERT_MATMUL))
        return OCTAVO_NO_TENSOR;
    if (octavo_input_is_ruled(p, op, k, &ruled)) {
        const int value = need(w, tensor, &ruled, index, OCTAVO_CAUSE_INPUT);
        if (!w->has_no_memory) keep_only(w, tensor, value);
    }
    /* of a weight that a rank has the op takes a part by itself */
    if (p->program->tensors[tensor].kind == OCTAVO_TENSOR_WEIGHT &&
        octavo_route_of(p, tensor, &p->placed[tensor], &way->in[k]).wire_bytes == 0.0)
        return placed_value(w, tensor);
    const bool is_ruled =
        p->program->tensors[tensor].kind == OCTAVO_TENSOR_WEIGHT && p->is_kept[tensor];
    return need(w, tensor, &way->in[k], index, is_ruled ? OCTAVO_CAUSE_RULE : OCTAVO_CAUSE_OPERAND);
}

/* Records go to where they are merged: a step of its own, since something moves. */
static int gather_records(writer *w, int index, int from) {
    const octavo_partitioner *p = w->p;
    const octavo_op *op = &p->program->ops[index];
    const octavo_way *way = &p->decisions[index];
    const octavo_transfer transfer =
        octavo_records_transfer(p, op, &w->partition->values[from].layout, &way->out);
    octavo_partition_step *step = add_step(w, OCTAVO_STEP_RESHARD, index);
    if (!step) return 0;
    const int out = add_value(w, op->out, &way->out);
    if (w->has_no_memory) return 0;
    step->in[0] = from;
    step->out = out;
    step->transfer = transfer;
    step->cause = OCTAVO_CAUSE_OPERAND;
    step->seconds = way->seconds;
    return out;
}

static void write_op(writer *w, int index) {
    const octavo_partitioner *p = w->p;
    const octavo_op *op = &p->program->ops[index];
    const octavo_way *way = &p->decisions[index];
    int in[OCTAVO_OP_INPUTS];
    for (int k = 0; k < OCTAVO_OP_INPUTS && !w->has_no_memory; k++)
        in[k] = operand(w, index, k);
    const bool has_records =
        op->kind == OCTAVO_OP_ATTENTION_MERGE && !w->has_no_memory && way->in[3].partial.n > 0;
    if (has_records) in[3] = gather_records(w, index, in[3]);
    octavo_partition_step *step = w->has_no_memory ? NULL : add_step(w, OCTAVO_STEP_OP, index);
    if (!step) return;
    memcpy(step->in, in, sizeof in);
    step->seconds = has_records ? 0.0 : way->seconds;
    if (op->kind == OCTAVO_OP_SELECT) /* rows that other ranks have come with it */
        step->transfer = octavo_route_of(p, op->out, &way->in[0], &way->out).step[0];
    const int at = (int)(step - w->partition->steps);
    int out = OCTAVO_NO_TENSOR;
    for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
        if (op->in[k] == op->out) out = in[k]; /* in place */
    if (out == OCTAVO_NO_TENSOR) out = find_value(w, op->out, &way->out);
    if (out < 0) out = add_value(w, op->out, &way->out);
    if (w->has_no_memory) return;
    if (op->kind == OCTAVO_OP_GROUP) w->partition->values[out].layout = way->out;
    w->partition->steps[at].out = out;
    if (p->program->tensors[op->out].kind != OCTAVO_TENSOR_ACTIVATION) return;
    keep_only(w, op->out, out);
    if (!p->is_kept[op->out] || index != p->last_write[op->out]) return;
    const int kept = need(w, op->out, &p->ruled[op->out], index, OCTAVO_CAUSE_RULE);
    if (!w->has_no_memory) keep_only(w, op->out, kept);
}

static void mark(writer *w, int index) {
    const octavo_program *program = w->p->program;
    octavo_partition *partition = w->partition;
    if (index == program->head_begin) partition->head_begin = partition->n_steps;
    if (index == program->logits_begin) {
        partition->logits_begin = partition->n_steps;
        partition->hidden = w->newest[program->hidden];
    }
    for (int i = 0; i < program->n_traces; i++) {
        if (program->traces[i].op != index) continue;
        partition->trace_steps[i] = partition->n_steps;
        partition->trace_values[i] = w->newest[program->traces[i].tensor];
    }
}

octavo_status octavo_partition_write(const octavo_partitioner *p, octavo_partition *partition) {
    const octavo_program *program = p->program;
    writer w = {.p = p, .partition = partition};
    w.newest = octavo_alloc_zero((size_t)program->n_tensors + 1, sizeof *w.newest);
    partition->trace_values =
        octavo_alloc_zero((size_t)program->n_traces + 1, sizeof *partition->trace_values);
    partition->trace_steps =
        octavo_alloc_zero((size_t)program->n_traces + 1, sizeof *partition->trace_steps);
    partition->n_traces = program->n_traces;
    w.has_no_memory = !w.newest || !partition->trace_values || !partition->trace_steps;
    for (int i = 0; w.newest && i < program->n_tensors; i++)
        w.newest[i] = -1;
    partition->head_begin = partition->logits_begin = INT32_MAX;
    partition->hidden = partition->logits = OCTAVO_NO_TENSOR;
    for (int i = 0; i < program->n_ops && !w.has_no_memory; i++) {
        mark(&w, i);
        if (!octavo_is_made_anywhere(p, program->ops[i].out)) write_op(&w, i);
    }
    if (!w.has_no_memory) {
        mark(&w, program->n_ops);
        if (program->logits != OCTAVO_NO_TENSOR) partition->logits = w.newest[program->logits];
        for (int i = 0; i < partition->n_steps; i++)
            partition->seconds += partition->steps[i].seconds;
    }
    octavo_free(w.newest);
    octavo_free(w.previous);
    return w.has_no_memory ? octavo_fail_memory(p->error, "partition", (uint64_t)program->n_ops)
                           : OCTAVO_OK;
}
