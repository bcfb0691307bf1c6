/* SPDX-License-Identifier: Apache-2.0
 *
 * What rules oblige ops to, beyond how a tensor lies: whose pairs of tokens and experts are where,
 * and how weights are taken in prefill. What no op can do is refused before the search.
 */
#include "base/error.h"
#include "program/partition_search.h"

#include <string.h>

static octavo_split without(const octavo_split *split, unsigned bits) {
    octavo_split left = {0};
    for (int i = 0; i < split->n; i++)
        if (!(bits >> split->axis[i] & 1)) left = octavo_split_add(left, split->axis[i]);
    return left;
}

static void print_split(const octavo_split *split, char text[OCTAVO_SPEC_TEXT]) {
    const octavo_spec spec = {.n = 1, .split = {*split}};
    octavo_spec_print(&spec, text);
}

/* ---- pairs ---- */

/* A kept tensor of pairs of the layer that lies behind `after`, or OCTAVO_NO_TENSOR. */
static int next_kept_pairs(const octavo_partitioner *p, int layer, int after) {
    for (int i = after + 1; i < p->program->n_tensors; i++)
        if (p->program->tensors[i].layer == layer && p->program->tensors[i].axes[0] == 'p' &&
            p->is_kept[i])
            return i;
    return OCTAVO_NO_TENSOR;
}

bool octavo_pairs_are_ruled(const octavo_partitioner *p, int choice, octavo_layout *ruled) {
    const int i = next_kept_pairs(p, p->program->tensors[choice].layer, -1);
    if (i == OCTAVO_NO_TENSOR) return false;
    *ruled = (octavo_layout){.split = {p->ruled[i].split[0]}, .experts = p->ruled[i].experts};
    return true;
}

/* What rules of pairs or of weights oblige to; else of the products the finest split. */
octavo_split octavo_experts_of(const octavo_partitioner *p, int choice) {
    const octavo_program *program = p->program;
    octavo_split finest = {0};
    octavo_layout ruled;
    if (octavo_pairs_are_ruled(p, choice, &ruled)) return ruled.experts;
    for (int i = 0; i < program->n_ops; i++) {
        const octavo_op *op = &program->ops[i];
        if (op->kind != OCTAVO_OP_EXPERT_MATMUL || op->in[2] != choice) continue;
        if (p->is_kept[op->in[1]]) return p->ruled[op->in[1]].split[0];
        const octavo_split *split = &p->placed[op->in[1]].split[0];
        if (split->n > finest.n) finest = *split;
    }
    return finest;
}

octavo_layout octavo_expert_weight(const octavo_partitioner *p, const octavo_op *op,
                                   const octavo_split *experts, const octavo_split *tokens) {
    const unsigned used = octavo_split_bits(experts) | octavo_split_bits(tokens);
    octavo_layout w = *octavo_weight_base(p, op->in[1]);
    w.split[0] = *experts;
    w.split[1] = without(&w.split[1], used);
    w.split[2] = without(&w.split[2], used);
    return w;
}

static octavo_status check_pairs(const octavo_partitioner *p, int choice) {
    const octavo_program *program = p->program;
    const int layer = program->tensors[choice].layer;
    const int first = next_kept_pairs(p, layer, -1);
    char text[OCTAVO_SPEC_TEXT];
    if (first == OCTAVO_NO_TENSOR) return OCTAVO_OK;
    const octavo_layout *ruled = &p->ruled[first];
    for (int i = first; i != OCTAVO_NO_TENSOR; i = next_kept_pairs(p, layer, i)) {
        const octavo_layout *other = &p->ruled[i];
        const bool is_token = !octavo_split_equal(&other->split[0], &ruled->split[0]);
        if (!is_token && octavo_split_equal(&other->experts, &ruled->experts)) continue;
        print_split(is_token ? &ruled->split[0] : &ruled->experts, text);
        return octavo_fail(
            p->error, OCTAVO_ERROR_UNSUPPORTED,
            "rule of %s (axis %c, degree %d): pairs of a layer are the same in all their "
            "tensors; give it %s, as %s has it, or leave one of the rules out",
            program->tensors[i].name, is_token ? 't' : 'e',
            octavo_split_degree(is_token ? &other->split[0] : &other->experts, &p->mesh), text,
            program->tensors[first].name);
    }
    return OCTAVO_OK;
}

/* ---- weights ---- */

static octavo_status refuse_weight(const octavo_partitioner *p, const octavo_op *op, int axis,
                                   const octavo_layout *wanted, const char *why) {
    const octavo_tensor *t = &p->program->tensors[op->in[1]];
    char text[OCTAVO_SPEC_TEXT];
    print_split(&p->placed[op->in[1]].split[axis], text);
    return octavo_fail(
        p->error, OCTAVO_ERROR_UNSUPPORTED,
        "rule of %s for prefill (axis %c, degree %d): %s; give it %s, as in generate", t->name,
        t->axes[axis], octavo_split_degree(&wanted->split[axis], &p->mesh), why, text);
}

/* The first axis that the rule for prefill has otherwise than generate. */
static int differing_axis(const octavo_partitioner *p, int tensor, const octavo_layout *to) {
    for (int i = 0; p->program->tensors[tensor].axes[i]; i++)
        if (!octavo_split_equal(&p->placed[tensor].split[i], &to->split[i])) return i;
    return 0;
}

static octavo_status check_matmul(const octavo_partitioner *p, const octavo_op *op) {
    const octavo_layout *ruled = &p->ruled[op->in[1]];
    const int n_axes = (int)strlen(p->program->tensors[op->in[1]].axes);
    const int n_outputs = n_axes - (int)strlen(p->program->tensors[op->in[0]].axes) + 1;
    const int outputs_at = octavo_weight_outputs_at(p->program, op);
    const int inputs_at = outputs_at == 0 ? n_outputs : 0;
    for (int i = 0; i < n_axes; i++)
        if (ruled->split[i].n > 0 && i != outputs_at && i != inputs_at)
            return refuse_weight(p, op, i, ruled, "of heads only the number is split in a product");
    if (octavo_weight_can_move(p, op->in[1], outputs_at, ruled)) return OCTAVO_OK;
    return refuse_weight(p, op, differing_axis(p, op->in[1], ruled), ruled,
                         "it cannot be moved so in a step, which cuts no panels of 32 outputs");
}

static octavo_status check_expert_matmul(const octavo_partitioner *p, const octavo_op *op) {
    const int weight = op->in[1];
    octavo_layout ruled = {0};
    char text[OCTAVO_SPEC_TEXT];
    const bool are_ruled = octavo_pairs_are_ruled(p, op->in[2], &ruled);
    const octavo_split experts = octavo_experts_of(p, op->in[2]);
    const octavo_layout w = octavo_expert_weight(p, op, &experts, &ruled.split[0]);
    const bool is_kept = p->is_kept[weight] && !octavo_layout_equal(&w, &p->ruled[weight]);
    if (is_kept)
        return refuse_weight(p, op, differing_axis(p, weight, &p->ruled[weight]), &p->ruled[weight],
                             "other rules of the layer have its experts or tokens otherwise");
    if (octavo_weight_can_move(p, weight, 2, &w)) return OCTAVO_OK;
    if (!are_ruled)
        return refuse_weight(p, op, differing_axis(p, weight, &w), &w,
                             "it cannot be moved so in a step, which cuts no panels of 32 outputs");
    const int pairs = next_kept_pairs(p, op->layer, -1);
    const bool is_token = octavo_split_equal(&experts, &p->placed[weight].split[0]);
    print_split(is_token ? &(octavo_split){0} : &p->placed[weight].split[0], text);
    return octavo_fail(p->error, OCTAVO_ERROR_UNSUPPORTED,
                       "rule of %s (axis %c, degree %d): %s would have to move in the step and "
                       "cannot, since that cuts no panels of 32 outputs; give the axis %s",
                       p->program->tensors[pairs].name, is_token ? 't' : 'e',
                       octavo_split_degree(is_token ? &ruled.split[0] : &experts, &p->mesh),
                       p->program->tensors[weight].name, text);
}

octavo_status octavo_check_obligations(const octavo_partitioner *p) {
    const octavo_program *program = p->program;
    octavo_status status = OCTAVO_OK;
    for (int i = 0; i < program->n_ops && !status; i++) {
        const octavo_op *op = &program->ops[i];
        if (op->kind == OCTAVO_OP_GROUP) status = check_pairs(p, op->in[0]);
        if (op->kind == OCTAVO_OP_EXPERT_MATMUL && !status) status = check_expert_matmul(p, op);
        if (op->in[1] == OCTAVO_NO_TENSOR || !p->is_kept[op->in[1]] ||
            program->tensors[op->in[1]].kind != OCTAVO_TENSOR_WEIGHT)
            continue;
        if (op->kind == OCTAVO_OP_MATMUL)
            status = check_matmul(p, op);
        else if (op->kind != OCTAVO_OP_EXPERT_MATMUL)
            status = refuse_weight(p, op, differing_axis(p, op->in[1], &p->ruled[op->in[1]]),
                                   &p->ruled[op->in[1]],
                                   "tables and matrices of heads are used where they lie");
    }
    return status;
}
