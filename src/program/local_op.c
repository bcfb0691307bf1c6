/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's ops: those of the program, cut to the rank's part. Products may have a weight, an input
 * and a result of different parts; what they have in common is computed.
 */
#include "program/local_maker.h"

#include <string.h>

/* A rank's part of some axes of a tensor, flattened. */
typedef struct part {
    int64_t begin, width; /* begin -1: no run of the whole */
    int n;
    octavo_range range[OCTAVO_TENSOR_AXES];
} part;

static part part_of(const octavo_tensor *local, const octavo_tensor *whole, int first, int n) {
    part p = {.width = 1, .n = n};
    bool is_run = true;
    for (int i = 0; i < n; i++) {
        const int64_t begin = local->begin[first + i], extent = local->extent[first + i];
        p.range[i] = (octavo_range){begin, begin + extent};
        /* behind an axis of more than one, only whole axes leave a run */
        if (p.width > 1 && extent != whole->extent[first + i]) is_run = false;
        p.begin = p.begin * whole->extent[first + i] + begin;
        p.width *= extent;
    }
    if (!is_run) p.begin = -1;
    return p;
}

static bool is_same(const part *a, const part *b) {
    if (a->begin >= 0 && a->begin == b->begin && a->width == b->width) return true;
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->range[i].begin != b->range[i].begin || a->range[i].end != b->range[i].end)
            return false;
    return true;
}

static int count_axes(const octavo_tensor *tensor) {
    return (int)strlen(tensor->axes);
}

static const octavo_tensor *local_at(const octavo_local_maker *maker, int id) {
    return &maker->local->tensors[id];
}

/* Slices of the inputs that x and the weight both have, counted from the weight's first. */
static void cut_inputs(octavo_local_maker *maker, const octavo_op *op, octavo_op_params *params,
                       const part *x, const part *w, const octavo_weight *weight) {
    const octavo_slices *slices = &op->params.slices;
    const int64_t unit = octavo_weight_info_of(weight->type)->record_inputs;
    if (is_same(x, w)) {
        params->slices = w->begin >= 0
                             ? octavo_local_slices(slices, w->begin, w->begin + w->width, unit)
                             : octavo_slices_make(w->width, unit);
        return;
    }
    if (x->begin < 0 || w->begin < 0) {
        octavo_local_reject(maker, op->in[1], "its inputs are cut otherwise than what it takes");
        return;
    }
    const int64_t begin = x->begin > w->begin ? x->begin : w->begin;
    const int64_t x_end = x->begin + x->width, w_end = w->begin + w->width;
    const int64_t end = x_end < w_end ? x_end : w_end;
    params->first_input = w->begin - x->begin;
    params->slices = (octavo_slices){.n = 1};
    if (begin >= end) return;
    params->slices = octavo_local_slices(slices, begin, end, unit);
    for (int i = 0; i <= params->slices.n; i++)
        params->slices.cut[i] += begin - w->begin;
}

static void cut_outputs(octavo_local_maker *maker, const octavo_op *op, octavo_op_params *params,
                        const part *out, const part *w) {
    if (out->width == 0 || is_same(out, w)) return;
    if (out->begin < 0 || w->begin < 0 || out->begin < w->begin ||
        out->begin + out->width > w->begin + w->width) {
        octavo_local_reject(maker, op->in[1], "it has not the outputs of the result");
        return;
    }
    params->first_output = out->begin - w->begin;
}

/* MATMUL, EXPERT_MATMUL. */
static void cut_product(octavo_local_maker *maker, const octavo_partition_step *step,
                        const octavo_op *op, const int *in, int out, octavo_op_params *params) {
    const octavo_tensor *whole = maker->whole->tensors;
    const octavo_tensor *w = &whole[op->in[1]], *x = &whole[op->in[0]], *y = &whole[op->out];
    const int stack = op->kind == OCTAVO_OP_EXPERT_MATMUL;
    const int n_inputs = count_axes(x) - 1, n_outputs = count_axes(w) - stack - n_inputs;
    const int at = stack ? stack + n_inputs : octavo_weight_outputs_at(maker->whole, op);
    const octavo_tensor *local = local_at(maker, in[1]);
    const part inputs = part_of(local, w, at == 0 ? n_outputs : stack, n_inputs);
    const part outputs = part_of(local, w, at, n_outputs);
    const part from = part_of(local_at(maker, in[0]), x, 1, n_inputs);
    const part to = part_of(local_at(maker, out), y, 1, count_axes(y) - 1);
    cut_inputs(maker, op, params, &from, &inputs, local->weight);
    cut_outputs(maker, op, params, &to, &outputs);
    params->is_partial = maker->values[step->out].layout.partial.n > 0;
}

/* ---- norms of split rows ---- */

static octavo_split columns_of(const octavo_layout *layout) {
    octavo_split split = layout->split[1];
    for (int i = 0; i < layout->split[2].n; i++)
        split = octavo_split_add(split, layout->split[2].axis[i]);
    return split;
}

/* The sum over the whole rows of x, on every rank. */
static int add_sum(octavo_local_maker *maker, const octavo_partition_step *step, int x,
                   octavo_op_params params, octavo_norm norm) {
    const octavo_layout *layout = &maker->values[step->in[0]].layout;
    octavo_reshard_desc desc = octavo_local_reshard_desc(maker, step->in[0], step->in[0]);
    const int own = octavo_local_column(maker, "norm_sum_t", x);
    const int all = octavo_local_column(maker, "norm_sum_t", x);
    if (all == OCTAVO_NO_TENSOR) return all;
    params.norm = norm;
    octavo_add_op(&maker->builder, OCTAVO_OP_NORM_SUM, own, params, x, OCTAVO_NO_TENSOR,
                  OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
    desc.width = 1;
    desc.from = (octavo_layout){.split = {layout->split[0]}, .partial = columns_of(layout)};
    desc.to = (octavo_layout){.split = {layout->split[0]}};
    octavo_local_reshard(maker, &desc, own, all, NULL);
    return all;
}

static void add_split_norm(octavo_local_maker *maker, const octavo_partition_step *step,
                           const octavo_op *op, const int *in, int out) {
    const octavo_tensor *whole = &maker->whole->tensors[op->out];
    const part columns = part_of(local_at(maker, out), whole, 1, count_axes(whole) - 1);
    octavo_op_params params = op->params;
    int x = in[0], none = OCTAVO_NO_TENSOR;
    params.width = op->params.slices.cut[op->params.slices.n];
    params.slices = columns.begin >= 0 ? octavo_local_slices(&op->params.slices, columns.begin,
                                                             columns.begin + columns.width, 1)
                                       : octavo_slices_make(columns.width, 1);
    if (op->params.norm == OCTAVO_NORM_LAYER) {
        const int sum = add_sum(maker, step, x, params, OCTAVO_NORM_LAYER);
        octavo_add_op(&maker->builder, OCTAVO_OP_NORM_APPLY, out, params, x, none, none, sum);
        x = out;
    }
    const int sum = add_sum(maker, step, x, params, OCTAVO_NORM_RMS);
    params.norm = OCTAVO_NORM_RMS;
    octavo_add_op(&maker->builder, OCTAVO_OP_NORM_APPLY, out, params, x, in[1], in[2], sum);
}

/* ---- attention ---- */

static int plan_of(octavo_local_maker *maker, const octavo_partition_step *step,
                   const octavo_op *op, const int *in) {
    const octavo_split deal = octavo_cache_deal(&maker->values[step->in[1]].layout);
    const int records = op->kind == OCTAVO_OP_ATTENTION ? step->out
                        : maker->records                ? maker->records->in[0]
                                                        : OCTAVO_NO_TENSOR;
    const octavo_tensor *query = local_at(maker, in[0]), *cache = local_at(maker, in[1]);
    octavo_plan_key key = maker->whole->plans[op->params.plan];
    key.group = key.n_heads / key.n_kv_heads;
    key.n_heads = query->extent[1];
    key.n_kv_heads = cache->extent[1];
    key.first = key.n_heads > 0 ? query->begin[1] - cache->begin[1] * key.group : 0;
    key.rows = query->rows;
    key.is_of_all = maker->partition->mesh.degree[OCTAVO_MESH_DATA] > 1 &&
                    !octavo_split_has(&maker->local->row_splits[cache->rows], OCTAVO_MESH_DATA);
    if (records != OCTAVO_NO_TENSOR) key.parts = maker->values[records].layout.partial;
    key.is_dealt = deal.n > 0;
    const int plan = octavo_find_plan(maker->local, &key);
    if (plan < 0) octavo_local_reject(maker, op->in[0], "too many kinds of attention");
    if (query->extent[1] == 0) return plan < 0 ? 0 : plan;
    if (query->begin[1] < cache->begin[1] * key.group ||
        query->begin[1] + query->extent[1] > (cache->begin[1] + cache->extent[1]) * key.group)
        octavo_local_reject(maker, op->in[0], "its heads read others than the rank's cache has");
    return plan < 0 ? 0 : plan;
}

static void set_plan(octavo_local_maker *maker, const octavo_partition_step *step,
                     const octavo_op *op, const int *in, octavo_op_params *params) {
    params->plan = plan_of(maker, step, op, in);
    if (op->kind == OCTAVO_OP_ATTENTION_MERGE && maker->records)
        octavo_local_records(maker, in[0], params);
    if (op->kind != OCTAVO_OP_ATTENTION || maker->update < 0) return;
    maker->local->ops[maker->update].params.plan = params->plan;
    maker->update = -1;
}

/* ---- experts ---- */

/* Numbers the pairs of the rank's tokens and experts, unless that is done. */
static void add_group(octavo_local_maker *maker, const octavo_partition_step *step,
                      const octavo_op *op, int route) {
    const octavo_layout *layout = &maker->values[step->out].layout;
    const octavo_layout as = {.split = {layout->split[0]}, .experts = layout->experts};
    if (maker->grouped == route && octavo_layout_equal(&maker->grouped_as, &as)) return;
    maker->grouped = route;
    maker->grouped_as = as;
    octavo_add_op(
        &maker->builder, OCTAVO_OP_GROUP, route,
        (octavo_op_params){.router = op->params.router,
                           .slices = octavo_local_experts(maker, op->in[1], &layout->experts)},
        route, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

/* ---- any op ---- */

static bool is_in_place(const octavo_op *op, const octavo_tensor *tensors) {
    return op->out == op->in[0] && tensors[op->out].kind == OCTAVO_TENSOR_ACTIVATION;
}

static void add_select(octavo_local_maker *maker, const octavo_partition_step *step, int in,
                       int out) {
    octavo_reshard_desc desc = octavo_local_reshard_desc(maker, step->in[0], step->out);
    desc.is_selection = true;
    if (octavo_reshard_is_slice(&desc) &&
        octavo_split_equal(&desc.from.split[1], &desc.to.split[1]))
        octavo_add_op(&maker->builder, OCTAVO_OP_SELECT, out, (octavo_op_params){0}, in,
                      OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
    else
        octavo_local_reshard(maker, &desc, in, out, step);
}

static bool is_split(const octavo_layout *layout) {
    return layout->split[1].n > 0 || layout->split[2].n > 0;
}

/* Parameters of an op that has its local tensors; false where it was added in another way. */
static bool cut_op(octavo_local_maker *maker, const octavo_partition_step *step,
                   const octavo_op *op, int *in, int out, octavo_op_params *params) {
    switch (op->kind) {
    case OCTAVO_OP_MATMUL:
    case OCTAVO_OP_EXPERT_MATMUL:
        cut_product(maker, step, op, in, out, params);
        if (params->is_partial) in[op->kind == OCTAVO_OP_MATMUL ? 2 : 3] = OCTAVO_NO_TENSOR;
        return true;
    case OCTAVO_OP_NORM:
        if (!is_split(&maker->values[step->in[0]].layout)) return true;
        add_split_norm(maker, step, op, in, out);
        return false;
    case OCTAVO_OP_CACHE_UPDATE:
        maker->update = maker->local->n_ops;
        return true;
    case OCTAVO_OP_ATTENTION:
    case OCTAVO_OP_ATTENTION_MERGE:
        set_plan(maker, step, op, in, params);
        return true;
    case OCTAVO_OP_SELECT:
        add_select(maker, step, in[0], out);
        return false;
    case OCTAVO_OP_GROUP: /* before the first that needs it, which says for whom */
        return false;
    case OCTAVO_OP_GATHER:
        add_group(maker, step, op, in[1]);
        return true;
    case OCTAVO_OP_COMBINE:
        params->slices =
            octavo_local_experts(maker, op->in[1], &maker->values[step->in[0]].layout.experts);
        params->is_partial = maker->values[step->out].layout.experts.n > 0;
        return true;
    default:
        return true;
    }
}

static bool is_input(const octavo_program *whole, int id) {
    return id != OCTAVO_NO_TENSOR && whole->tensors[id].kind == OCTAVO_TENSOR_INPUT;
}

void octavo_local_op(octavo_local_maker *maker, const octavo_partition_step *step) {
    const octavo_op *op = &maker->whole->ops[step->op];
    octavo_op_params params = op->params;
    int in[OCTAVO_OP_INPUTS];
    for (int i = 0; i < OCTAVO_OP_INPUTS; i++)
        in[i] = is_input(maker->whole, op->in[i]) ? octavo_local_input(maker, op->in[i])
                                                  : octavo_local_tensor(maker, step->in[i]);
    const int out = octavo_local_tensor(maker, step->out);
    if (maker->builder.status) return;
    if (is_in_place(op, maker->whole->tensors) && in[0] != out) {
        const octavo_reshard_desc desc = octavo_local_reshard_desc(maker, step->in[0], step->out);
        octavo_local_reshard(maker, &desc, in[0], out, step);
        in[0] = out;
    }
    if (!cut_op(maker, step, op, in, out, &params) || maker->builder.status) return;
    octavo_add_op(&maker->builder, op->kind, out, params, in[0], in[1], in[2], in[3]);
}
