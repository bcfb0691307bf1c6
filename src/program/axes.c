/* SPDX-License-Identifier: Apache-2.0 */
#include "program/axes.h"

#include "base/memory.h"
#include "program/operand.h"

#include <string.h>

/* While axes are tied together each tensor axis is a node that points to another of its set. */
typedef struct ties {
    const octavo_program *program;
    int *parent;       /* [n_tensors * OCTAVO_TENSOR_AXES] */
    int *router_of;    /* [n_tensors] of choices: the logits whose e they are of */
    octavo_axis *axis; /* of the sets, by their root */
} ties;

static int root_of(const ties *t, int node) {
    while (t->parent[node] != node)
        node = t->parent[node] = t->parent[t->parent[node]];
    return node;
}

static int node_of(int tensor, int i) {
    return tensor * OCTAVO_TENSOR_AXES + i;
}

static void tie(ties *t, int a, int i, int b, int j) {
    if (a == OCTAVO_NO_TENSOR || b == OCTAVO_NO_TENSOR) return;
    t->parent[root_of(t, node_of(a, i))] = root_of(t, node_of(b, j));
}

static int n_axes_of(const ties *t, int id) {
    return id == OCTAVO_NO_TENSOR ? 0 : (int)strlen(t->program->tensors[id].axes);
}

/* All axes but the rows. */
static void tie_columns(ties *t, int a, int b) {
    for (int i = 1; i < n_axes_of(t, a) && i < n_axes_of(t, b); i++)
        tie(t, a, i, b, i);
}

/* A vector's axes are the columns of x. */
static void tie_vector(ties *t, int vector, int x) {
    for (int i = 0; i < n_axes_of(t, vector); i++)
        tie(t, vector, i, x, i + 1);
}

int octavo_weight_outputs_at(const octavo_program *program, const octavo_op *op) {
    const octavo_tensor *x = &program->tensors[op->in[0]], *w = &program->tensors[op->in[1]];
    const octavo_tensor *out = &program->tensors[op->out];
    const size_t inputs = strlen(x->axes) - 1, outputs = strlen(out->axes) - 1;
    /* tied embeddings are kept outputs first */
    const bool is_first = outputs == 1 && w->axes[0] == out->axes[1] && w->axes[0] != x->axes[1] &&
                          w->extent[0] == out->extent[1];
    return is_first ? 0 : (int)inputs;
}

static void tie_matmul(ties *t, const octavo_op *op) {
    const int outputs = octavo_weight_outputs_at(t->program, op);
    const int n_in = n_axes_of(t, op->in[0]) - 1, n_out = n_axes_of(t, op->in[1]) - n_in;
    const int first = n_axes_of(t, op->out) - n_out; /* a latent has one head, and its lanes */
    for (int i = 0; i < n_in; i++)
        tie(t, op->in[1], (outputs == 0 ? n_out : 0) + i, op->in[0], 1 + i);
    for (int i = 0; i < n_out; i++)
        tie(t, op->in[1], outputs + i, op->out, first + i);
    for (int i = 0; i < n_axes_of(t, op->in[2]); i++)
        tie(t, op->in[2], i, op->out, first + i);
}

static void tie_op(ties *t, const octavo_op *op) {
    const int *in = op->in;
    switch (op->kind) {
    case OCTAVO_OP_EMBED:
        tie(t, in[1], 1, op->out, 1);
        break;
    case OCTAVO_OP_NORM:
        tie_columns(t, in[0], op->out);
        tie_vector(t, in[1], op->out);
        tie_vector(t, in[2], op->out);
        break;
    case OCTAVO_OP_REORDER:
    case OCTAVO_OP_QUANTISE:
    case OCTAVO_OP_SCALE:
    case OCTAVO_OP_SELECT:
    case OCTAVO_OP_COMBINE:
    case OCTAVO_OP_GATHER:
        tie_columns(t, in[0], op->out);
        break;
    case OCTAVO_OP_GATE:
    case OCTAVO_OP_ADD:
        tie_columns(t, in[0], op->out);
        tie_columns(t, in[1], op->out);
        break;
    case OCTAVO_OP_MATMUL:
        tie_matmul(t, op);
        break;
    case OCTAVO_OP_HEAD_MATMUL:
        tie_columns(t, in[0], in[2]);
        tie(t, in[1], 0, op->out, 1);
        tie(t, in[0], 1, op->out, 1);
        break;
    case OCTAVO_OP_CACHE_UPDATE:
        tie_columns(t, in[0], in[2]);
        tie_columns(t, in[1], in[2]);
        break;
    case OCTAVO_OP_ATTENTION:
        tie(t, in[0], 1, op->out, 1);
        tie_vector(t, in[2], op->out);
        break;
    case OCTAVO_OP_ROUTE:
        t->router_of[op->out] = in[0];
        tie_vector(t, in[1], in[0]);
        break;
    case OCTAVO_OP_EXPERT_MATMUL:
        tie(t, in[1], 0, t->router_of[in[2]], 1);
        tie(t, in[1], 1, in[0], 1);
        tie(t, in[1], 2, op->out, 1);
        tie(t, in[3], 0, in[1], 0);
        tie(t, in[3], 1, op->out, 1);
        break;
    default:
        break; /* in place, or nothing to tie */
    }
}

static octavo_axis *axis_at(ties *t, int tensor, int i) {
    return &t->axis[root_of(t, node_of(tensor, i))];
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* What is summed over: the columns of x, of which the first may be heads of several lanes. */
static void set_slices(ties *t, int x, const octavo_slices *slices, int64_t block) {
    const octavo_tensor *tensor = &t->program->tensors[x];
    octavo_axis *axis = axis_at(t, x, 1);
    const int64_t lanes = n_axes_of(t, x) > 2 ? tensor->extent[2] : 1;
    axis->n_slices = slices->n;
    for (int i = 0; i <= slices->n; i++)
        axis->cut[i] = slices->cut[i] / lanes;
    axis->unit = later(axis->unit, octavo_slices_unit(lanes, block) / lanes);
}

static int64_t block_of(const octavo_weight *weight) {
    const octavo_weight_info *info = octavo_weight_info_of(weight->type);
    const int64_t records = info->record_inputs;
    return info->is_quantised && records < OCTAVO_BLOCK ? OCTAVO_BLOCK : records;
}

static void slice_experts(octavo_axis *axis) {
    axis->n_slices = OCTAVO_MAX_SLICES;
    while (axis->n_slices > axis->extent)
        axis->n_slices /= 2;
    for (int i = 0; i <= axis->n_slices; i++)
        axis->cut[i] = i * axis->extent / axis->n_slices;
}

static void slice_op(ties *t, const octavo_op *op) {
    const octavo_tensor *tensors = t->program->tensors;
    switch (op->kind) {
    case OCTAVO_OP_NORM:
        set_slices(t, op->in[0], &op->params.slices, 1);
        break;
    case OCTAVO_OP_MATMUL:
    case OCTAVO_OP_EXPERT_MATMUL:
        set_slices(t, op->in[0], &op->params.slices, block_of(tensors[op->in[1]].weight));
        break;
    case OCTAVO_OP_ROUTE:
        slice_experts(axis_at(t, op->in[0], 1));
        break;
    default:
        break;
    }
}

/* Key/value heads follow the query heads that read them. */
static void follow_readers(ties *t, const octavo_op *op) {
    if (op->kind != OCTAVO_OP_ATTENTION) return;
    const octavo_axis *q = axis_at(t, op->in[0], 1);
    octavo_axis *k = axis_at(t, op->in[1], 1);
    const char letter = k->letter;
    const int64_t extent = k->extent;
    *k = *q;
    k->letter = letter;
    k->extent = extent;
    k->readers = q->extent;
}

static bool init_ties(ties *t, const octavo_program *program) {
    const size_t nodes = (size_t)program->n_tensors * OCTAVO_TENSOR_AXES;
    *t = (ties){.program = program};
    t->parent = octavo_alloc_zero(nodes + 1, sizeof *t->parent);
    t->router_of = octavo_alloc_zero((size_t)program->n_tensors + 1, sizeof *t->router_of);
    t->axis = octavo_alloc_zero(nodes + 1, sizeof *t->axis);
    if (!t->parent || !t->router_of || !t->axis) return false;
    for (size_t i = 0; i < nodes; i++)
        t->parent[i] = (int)i;
    for (int i = 0; i < program->n_tensors; i++)
        t->router_of[i] = OCTAVO_NO_TENSOR;
    return true;
}

static void deinit_ties(ties *t) {
    octavo_free(t->parent);
    octavo_free(t->router_of);
    octavo_free(t->axis);
}

static void describe_sets(ties *t) {
    const octavo_program *program = t->program;
    for (int i = 0; i < program->n_ops; i++)
        tie_op(t, &program->ops[i]);
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *tensor = &program->tensors[i];
        for (int j = 0; tensor->axes[j]; j++) {
            octavo_axis *axis = axis_at(t, i, j);
            axis->letter = tensor->axes[j];
            axis->extent = tensor->extent[j];
            axis->unit = 1;
            axis->n_slices = 1;
            axis->cut[1] = axis->extent;
        }
    }
    for (int i = 0; i < program->n_ops; i++)
        slice_op(t, &program->ops[i]);
    for (int i = 0; i < program->n_ops; i++)
        follow_readers(t, &program->ops[i]);
}

/* Sets get numbers in the order in which tensors have them. */
static bool number_sets(octavo_program_axes *axes, ties *t) {
    const octavo_program *program = t->program;
    const size_t nodes = (size_t)program->n_tensors * OCTAVO_TENSOR_AXES;
    int *number = octavo_alloc_zero(nodes + 1, sizeof *number);
    if (!number) return false;
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *tensor = &program->tensors[i];
        for (int j = 0; tensor->axes[j]; j++) {
            const int root = root_of(t, node_of(i, j));
            if (number[root] == 0) {
                axes->axes[axes->n++] = t->axis[root];
                number[root] = axes->n;
            }
            axes->of[i][j] = number[root] - 1;
        }
    }
    octavo_free(number);
    return true;
}

bool octavo_program_axes_init(octavo_program_axes *axes, const octavo_program *program) {
    const size_t nodes = (size_t)program->n_tensors * OCTAVO_TENSOR_AXES;
    ties t;
    *axes = (octavo_program_axes){.n_tensors = program->n_tensors};
    bool is_done = init_ties(&t, program);
    axes->axes = octavo_alloc_zero(nodes + 1, sizeof *axes->axes);
    axes->of = octavo_alloc_zero((size_t)program->n_tensors + 1, sizeof *axes->of);
    if (is_done && axes->axes && axes->of) {
        describe_sets(&t);
        is_done = number_sets(axes, &t);
    } else {
        is_done = false;
    }
    deinit_ties(&t);
    if (!is_done) octavo_program_axes_deinit(axes);
    return is_done;
}

void octavo_program_axes_deinit(octavo_program_axes *axes) {
    octavo_free(axes->axes);
    octavo_free(axes->of);
    *axes = (octavo_program_axes){0};
}
