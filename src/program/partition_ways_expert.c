/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways of experts: whose pairs a rank has, and how tokens get there.
 */
#include "program/partition_way.h"

/* Mesh axes of the weights of the experts that a choice is for. */
static unsigned axes_of_experts(const octavo_way_list *list, int choice) {
    const octavo_program *program = list->p->program;
    unsigned bits = 0;
    for (int i = list->index; i < program->n_ops && program->ops[i].layer == list->op->layer; i++)
        if (program->ops[i].kind == OCTAVO_OP_EXPERT_MATMUL && program->ops[i].in[2] == choice)
            bits |= octavo_layout_axes(octavo_weight_base(list->p, program->ops[i].in[1]));
    return bits;
}

void octavo_ways_route(octavo_way_list *list, const octavo_held *held) {
    octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    octavo_forms_add_whole(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        if (forms.layout[i].split[1].n > 0) continue;
        octavo_way *way = octavo_way_add(list, &forms.layout[i]);
        if (!way) return;
        octavo_way_set_in(way, 0, &forms.layout[i]);
        octavo_way_set_vectors(list, way, 1, &forms.layout[i]);
        way->seconds = octavo_way_row_seconds(list, &forms.layout[i], 4);
    }
}

/* Pairs are numbered where their tokens and experts are: no rank of the experts' weights may have
 * other tokens. Choices say their experts where tokens' rows go only to the ranks that have one of
 * their experts: all ranks get the choices, by which each knows who sends it which rows. */
void octavo_ways_group(octavo_way_list *list, const octavo_held *held) {
    const octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    octavo_row_splits rows = octavo_way_rows(list, &forms, axes_of_experts(list, list->op->in[0]));
    const octavo_split experts = octavo_experts_of(list->p, list->op->in[0]);
    octavo_layout ruled;
    if (octavo_pairs_are_ruled(list->p, list->op->in[0], &ruled))
        rows = (octavo_row_splits){.split = {ruled.split[0]}, .n = 1};
    for (int i = 0; i < rows.n; i++) {
        const octavo_layout choice = {.split = {rows.split[i]}};
        octavo_layout routed = choice;
        octavo_way *way = octavo_way_add(list, &choice);
        if (way) octavo_way_set_in(way, 0, &choice);
        /* who sends has to know the choices of who takes: those of its data group */
        if (experts.n == 0 || rows.split[i].n > octavo_split_has(&rows.split[i], OCTAVO_MESH_DATA))
            continue;
        routed.experts = experts;
        way = octavo_way_add(list, &routed);
        if (way) octavo_way_set_in(way, 0, &choice);
    }
}

/* A choice, whose columns all that use it take whole. */
static octavo_layout choice_of(const octavo_held *held) {
    octavo_layout choice = held->layout[0];
    choice.split[1] = (octavo_split){0};
    return choice;
}

/* Columns of the pairs: as tokens have them or as the experts' weights take them. */
void octavo_ways_gather(octavo_way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_layout choice = choice_of(&held[1]);
    octavo_held forms = octavo_forms_of(list, op->in[0], &held[0]);
    octavo_layout inputs = {0};
    for (int i = list->index; i < list->p->program->n_ops; i++) {
        const octavo_op *later = &list->p->program->ops[i];
        if (later->kind != OCTAVO_OP_EXPERT_MATMUL || later->in[2] != op->in[1]) continue;
        inputs.split[1] = octavo_weight_base(list->p, later->in[1])->split[1];
        break;
    }
    octavo_form_add(&forms, &inputs);
    octavo_forms_add_whole(list, op->in[0], &forms);
    const octavo_split experts = octavo_experts_of(list->p, op->in[1]);
    const unsigned used = octavo_split_bits(&choice.split[0]) | octavo_split_bits(&experts);
    octavo_held columns = {.n = 0};
    for (int i = 0; i < forms.n; i++) {
        octavo_layout x = {.split = {choice.split[0], forms.layout[i].split[1]},
                           .experts = choice.experts};
        if ((octavo_split_bits(&x.split[1]) & used) == 0) octavo_form_add(&columns, &x);
    }
    for (int i = 0; i < columns.n; i++) {
        const octavo_layout *x = &columns.layout[i];
        octavo_layout out = *x;
        out.experts = experts;
        octavo_way *way = octavo_way_add(list, &out);
        if (!way) return;
        octavo_way_set_in(way, 0, x);
        octavo_way_set_in(way, 1, &choice);
        way->seconds = octavo_way_row_seconds(list, &out, 2);
    }
}

/* Of a weight the experts that the pairs are of; where it is not placed so it moves. */
void octavo_ways_expert_matmul(octavo_way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_layout choice = choice_of(&held[2]);
    const octavo_weight *weight = list->p->program->tensors[op->in[1]].weight;
    const octavo_split split = octavo_experts_of(list->p, op->in[2]);
    const octavo_layout w = octavo_expert_weight(list->p, op, &split, &choice.split[0]);
    if (list->p->is_kept[op->in[1]] && !octavo_layout_equal(&w, &list->p->ruled[op->in[1]])) return;
    if (!octavo_weight_can_move(list->p, op->in[1], 2, &w)) return;
    const octavo_layout x = {.split = {choice.split[0], w.split[1]}, .experts = split};
    octavo_layout out = {.split = {choice.split[0], w.split[2]}, .experts = split};
    out.partial = w.split[1];
    octavo_way *way = octavo_way_add(list, &out);
    octavo_way_set_in(way, 0, &x);
    octavo_way_set_in(way, 1, &w);
    octavo_way_set_in(way, 2, &choice);
    if (op->in[3] != OCTAVO_NO_TENSOR) {
        const octavo_layout bias = {.split = {split, w.split[2]}};
        octavo_way_set_in(way, 3, &bias);
    }
    const double experts = octavo_split_degree(&split, &list->p->mesh);
    const double pairs = octavo_way_widest(list, op->out, 0, &out.split[0]) / experts;
    const double matrices = (double)weight->stack / experts;
    way->seconds = octavo_way_matmul_seconds(list, pairs, octavo_way_columns(list, op->in[0], &x),
                                             octavo_way_columns(list, op->out, &out), weight,
                                             pairs < matrices ? pairs : matrices);
}

/* Each rank adds its own experts; of routed tokens it has nothing for the others. */
void octavo_ways_combine(octavo_way_list *list, const octavo_held *held) {
    const octavo_layout choice = choice_of(&held[1]);
    const octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    for (int i = 0; i < forms.n; i++) {
        octavo_layout out = forms.layout[i];
        out.partial = out.experts;
        out.experts = choice.experts;
        octavo_way *way = octavo_way_add(list, &out);
        if (!way) return;
        octavo_way_set_in(way, 0, &forms.layout[i]);
        octavo_way_set_in(way, 1, &choice);
        way->seconds = octavo_way_row_seconds(list, &out, 4);
    }
}

void octavo_ways_row_gate(octavo_way_list *list, const octavo_held *held) {
    const octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout gate = {.split = {forms.layout[i].split[0]}};
        octavo_way *way = octavo_way_add(list, &forms.layout[i]);
        if (!way) return;
        octavo_way_set_in(way, 0, &forms.layout[i]);
        octavo_way_set_in(way, 1, &gate);
        way->seconds = octavo_way_row_seconds(list, &forms.layout[i], 2);
    }
}
