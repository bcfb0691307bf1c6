/* SPDX-License-Identifier: Apache-2.0
 *
 * The partitioner: costs, what is the same in all layers, and the decisions layer by layer.
 */
#include "program/partition.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/partition_search.h"

#include <math.h>
#include <string.h>

/* ---- costs ---- */

double octavo_element_bytes(const octavo_tensor *tensor) {
    const octavo_weight *w = tensor->weight;
    if (tensor->kind == OCTAVO_TENSOR_WEIGHT)
        return (double)octavo_weight_bytes(w->type, OCTAVO_PANEL, w->k) /
               ((double)OCTAVO_PANEL * (double)w->k);
    if (!tensor->is_q8) return sizeof(float);
    return (double)sizeof(octavo_q8_block) / OCTAVO_BLOCK;
}

int octavo_axes_of_tensor(const octavo_partitioner *p, int tensor, octavo_axis *pairs,
                          const octavo_axis *axes[OCTAVO_TENSOR_AXES]) {
    const octavo_tensor *t = &p->program->tensors[tensor];
    int n = 0;
    for (; t->axes[n]; n++)
        axes[n] = octavo_axis_of(p->axes, tensor, n);
    if (t->kind != OCTAVO_TENSOR_ACTIVATION) return n;
    if (t->axes[0] == 'p') {
        *pairs = p->pairs;
        pairs->extent *= t->extent[0];
        axes[0] = pairs;
    } else {
        axes[0] = t->axes[0] == 'r' ? &p->head : &p->rows;
    }
    return n;
}

double octavo_routed_share(const octavo_program *program, int layer, int degree) {
    double none = 1.0;
    for (int i = 0; i < program->n_ops; i++) {
        const octavo_op *op = &program->ops[i];
        if (op->kind != OCTAVO_OP_ROUTE || op->layer != layer) continue;
        const double n = (double)op->params.slices.cut[op->params.slices.n],
                     others = n - n / degree;
        for (int c = 0; c < op->params.router.n_chosen; c++)
            none *= others > c ? (others - c) / (n - c) : 0.0;
        return 1.0 - none;
    }
    return 1.0;
}

/* Of the rows of tokens only those move that are for an expert of a rank. Choices are all there;
 * the op that numbers pairs decides whether rows go by them. */
static void route_rows(const octavo_partitioner *p, int tensor, const octavo_layout *from,
                       const octavo_layout *to, octavo_route *route) {
    const octavo_tensor *t = &p->program->tensors[tensor];
    /* what lacks rows is no source of anything */
    const bool lacks_rows = octavo_is_routed(t, from) && from->partial.n == 0;
    if (lacks_rows || (t->axes[1] == 'c' && !octavo_split_equal(&from->experts, &to->experts))) {
        route->wire_bytes = (double)INFINITY;
        return;
    }
    if (route->n == 0 || t->axes[1] == 'c') return;
    octavo_transfer *step =
        octavo_is_routed(t, from) ? &route->step[0] : &route->step[route->n - 1];
    const octavo_split *experts = octavo_is_routed(t, from) ? &from->experts : &to->experts;
    route->to[route->n - 1].experts = to->experts;
    if (step->collective != OCTAVO_COLLECTIVE_NONE &&
        (octavo_is_routed(t, from) || octavo_is_routed(t, to))) {
        const double share =
            octavo_routed_share(p->program, t->layer, octavo_split_degree(experts, &p->mesh));
        step->collective = OCTAVO_COLLECTIVE_ALL_TO_ALL;
        step->bytes *= share;
        step->wire_bytes *= share;
    }
    route->wire_bytes = 0.0;
    for (int i = 0; i < route->n; i++)
        route->wire_bytes += route->step[i].wire_bytes;
}

octavo_route octavo_route_of(const octavo_partitioner *p, int tensor, const octavo_layout *from,
                             const octavo_layout *to) {
    const octavo_axis *axes[OCTAVO_TENSOR_AXES];
    octavo_axis pairs;
    const int n = octavo_axes_of_tensor(p, tensor, &pairs, axes);
    octavo_layout source = *from, target = *to;
    const bool has_rows = p->program->tensors[tensor].axes[0] == 't';
    if (has_rows) source.experts = target.experts = (octavo_split){0};
    octavo_route route = octavo_route_between(&p->mesh, axes, n, &source, &target,
                                              octavo_element_bytes(&p->program->tensors[tensor]));
    if (has_rows && !octavo_layout_equal(from, to)) route_rows(p, tensor, from, to, &route);
    return route;
}

double octavo_route_seconds(const octavo_partitioner *p, const octavo_route *route) {
    const octavo_machine_model *machine = &p->options->machine;
    double seconds = 0.0;
    if (isinf(route->wire_bytes)) return route->wire_bytes;
    for (int i = 0; i < route->n; i++) {
        seconds += route->step[i].bytes / machine->memory_bytes_s * 1e-3; /* a copy is not free */
        if (route->step[i].collective == OCTAVO_COLLECTIVE_NONE) continue;
        seconds += route->step[i].wire_bytes / machine->link_bytes_s + machine->latency_s;
    }
    return seconds;
}

/* Shards of a split of outputs begin at panels. */
static bool is_cut_at_panels(const octavo_partitioner *p, int tensor, int axis, int64_t lanes,
                             const octavo_split *split) {
    const octavo_axis *cut = octavo_axis_of(p->axes, tensor, axis);
    const int degree = octavo_split_degree(split, &p->mesh);
    if (degree == 1) return true;
    if (cut->readers > 0) return false;
    const bool is_even = degree > cut->n_slices && cut->extent % (degree * cut->unit) == 0;
    for (int i = 1; i < (is_even ? 2 : degree); i++)
        if (octavo_axis_shard(cut, degree, i).begin * lanes % OCTAVO_PANEL != 0) return false;
    return true;
}

bool octavo_weight_can_move(const octavo_partitioner *p, int tensor, int outputs,
                            const octavo_layout *to) {
    const octavo_tensor *t = &p->program->tensors[tensor];
    const octavo_route route = octavo_route_of(p, tensor, &p->placed[tensor], to);
    if (route.wire_bytes == 0.0) return true;
    /* inputs in an order of their own, and factors of experts, stay where they are */
    if (t->weight->order || (t->weight->stack > 0 && t->weight->factors)) return false;
    const bool has_lanes = outputs > 0 && t->axes[outputs + 1];
    const int64_t lanes = has_lanes ? t->extent[outputs + 1] : 1;
    return p->options->can_move_weights &&
           is_cut_at_panels(p, tensor, outputs, lanes, &p->placed[tensor].split[outputs]) &&
           is_cut_at_panels(p, tensor, outputs, lanes, &to->split[outputs]);
}

/* ---- set-up ---- */

static void find_last_uses(octavo_partitioner *p) {
    const octavo_program *program = p->program;
    for (int i = 0; i < program->n_tensors; i++)
        p->last_use[i] = -1;
    for (int i = 0; i < program->n_ops; i++) /* numbering pairs changes no choice */
        if (program->ops[i].kind != OCTAVO_OP_GROUP) p->last_write[program->ops[i].out] = i;
    for (int i = 0; i < program->n_ops; i++)
        for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
            if (program->ops[i].in[k] != OCTAVO_NO_TENSOR) p->last_use[program->ops[i].in[k]] = i;
    if (program->logits != OCTAVO_NO_TENSOR) p->last_use[program->logits] = program->n_ops;
    if (program->hidden != OCTAVO_NO_TENSOR && p->last_use[program->hidden] < program->logits_begin)
        p->last_use[program->hidden] = program->logits_begin;
}

static octavo_status set_up(octavo_partitioner *p) {
    const octavo_program *program = p->program;
    const size_t n = (size_t)program->n_tensors;
    p->placed = octavo_alloc_zero(n + 1, sizeof *p->placed);
    p->ruled = octavo_alloc_zero(n + 1, sizeof *p->ruled);
    p->is_kept = octavo_alloc_zero(n + 1, sizeof *p->is_kept);
    p->last_use = octavo_alloc_zero(n + 1, sizeof *p->last_use);
    p->last_write = octavo_alloc_zero(n + 1, sizeof *p->last_write);
    p->decisions = octavo_alloc_zero((size_t)program->n_ops + 1, sizeof *p->decisions);
    if (!p->placed || !p->ruled || !p->is_kept || !p->last_use || !p->last_write || !p->decisions)
        return octavo_fail_memory(p->error, "partition", (uint64_t)n);
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (p->mesh.degree[a] > 1) p->active |= 1u << a;
    p->rows =
        (octavo_axis){.letter = 't', .extent = p->options->n_tokens, .unit = 1, .n_slices = 1};
    p->head = (octavo_axis){.letter = 'r', .extent = p->options->n_rows, .unit = 1, .n_slices = 1};
    p->pairs = p->rows;
    p->pairs.letter = 'p';
    find_last_uses(p);
    int layer = OCTAVO_NO_LAYER;
    bool is_sparse = false;
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *tensor = &program->tensors[i];
        if (tensor->layer != layer)
            is_sparse = octavo_is_layer_sparse(program, layer = tensor->layer);
        octavo_status status = OCTAVO_OK;
        if (tensor->kind == OCTAVO_TENSOR_ACTIVATION)
            status = octavo_rule_tensor(p, i, is_sparse);
        else if (tensor->kind != OCTAVO_TENSOR_INPUT)
            status = octavo_place_tensor(p, i);
        if (status) return status;
    }
    octavo_status status = octavo_check_experts(p);
    return status ? status : octavo_check_obligations(p);
}

static void tear_down(octavo_partitioner *p) {
    octavo_free(p->placed);
    octavo_free(p->ruled);
    octavo_free(p->is_kept);
    octavo_free(p->last_use);
    octavo_free(p->last_write);
    octavo_free(p->decisions);
}

/* ---- layers ---- */

static int end_of_layer(const octavo_program *program, int begin) {
    int end = begin;
    while (end < program->n_ops && program->ops[end].layer == program->ops[begin].layer)
        end++;
    return end;
}

static bool is_same_tensor(const octavo_partitioner *p, int a, int b) {
    if (a == OCTAVO_NO_TENSOR || b == OCTAVO_NO_TENSOR) return a == b;
    const octavo_tensor *x = &p->program->tensors[a], *y = &p->program->tensors[b];
    if (x->name != y->name || x->kind != y->kind || strcmp(x->axes, y->axes) != 0 ||
        x->is_q8 != y->is_q8 || p->is_kept[a] != p->is_kept[b] ||
        !octavo_layout_equal(&p->placed[a], &p->placed[b]) ||
        !octavo_layout_equal(&p->ruled[a], &p->ruled[b]))
        return false;
    if (x->kind == OCTAVO_TENSOR_WEIGHT && x->weight->type != y->weight->type) return false;
    for (int i = 0; x->axes[i]; i++) {
        const octavo_axis *u = octavo_axis_of(p->axes, a, i), *v = octavo_axis_of(p->axes, b, i);
        if (x->extent[i] != y->extent[i] || u->unit != v->unit || u->n_slices != v->n_slices ||
            u->readers != v->readers ||
            memcmp(u->cut, v->cut, ((size_t)u->n_slices + 1) * sizeof *u->cut) != 0)
            return false;
    }
    return true;
}

/* Ops of two layers that do the same with tensors that are alike. */
static bool is_same_layer(const octavo_partitioner *p, int a, int b, int n) {
    for (int i = 0; i < n; i++) {
        const octavo_op *x = &p->program->ops[a + i], *y = &p->program->ops[b + i];
        octavo_layout u = {0}, v = {0};
        if (x->kind != y->kind || !is_same_tensor(p, x->out, y->out)) return false;
        for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
            if (!is_same_tensor(p, x->in[k], y->in[k])) return false;
        if (octavo_input_is_ruled(p, x, 0, &u) != octavo_input_is_ruled(p, y, 0, &v) ||
            !octavo_layout_equal(&u, &v))
            return false;
    }
    return true;
}

enum { MOST_KINDS = 64 };

static octavo_status decide(octavo_partitioner *p) {
    const octavo_program *program = p->program;
    int kinds[MOST_KINDS], lengths[MOST_KINDS], n_kinds = 0;
    for (int begin = 0, end; begin < program->n_ops; begin = end) {
        int k = 0;
        end = end_of_layer(program, begin);
        while (k < n_kinds &&
               (lengths[k] != end - begin || !is_same_layer(p, kinds[k], begin, end - begin)))
            k++;
        if (k < n_kinds) {
            memcpy(&p->decisions[begin], &p->decisions[kinds[k]],
                   (size_t)(end - begin) * sizeof *p->decisions);
            continue;
        }
        octavo_status status = octavo_partition_search(p, begin, end);
        if (status) return status;
        if (n_kinds == MOST_KINDS) continue;
        kinds[n_kinds] = begin;
        lengths[n_kinds++] = end - begin;
    }
    return OCTAVO_OK;
}

octavo_status octavo_partition_make(octavo_partition *partition, const octavo_program *program,
                                    const octavo_program_axes *axes,
                                    const octavo_partition_options *options, octavo_error *error) {
    octavo_partitioner p = {.program = program,
                            .axes = axes,
                            .options = options,
                            .mesh = options->mesh,
                            .error = error};
    *partition = (octavo_partition){.mesh = options->mesh, .phase = options->phase};
    octavo_status status = set_up(&p);
    if (!status) status = decide(&p);
    if (!status) status = octavo_partition_write(&p, partition);
    tear_down(&p);
    if (status) octavo_partition_deinit(partition);
    return status;
}

void octavo_partition_deinit(octavo_partition *partition) {
    octavo_free(partition->values);
    octavo_free(partition->steps);
    octavo_free(partition->trace_values);
    octavo_free(partition->trace_steps);
    *partition = (octavo_partition){0};
}
