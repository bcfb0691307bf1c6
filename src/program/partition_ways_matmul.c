/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways of products: what splits tokens, outputs and the sum.
 */
#include "program/partition_way.h"

/* Mesh axes of `split` that are among the bits, in its order, then the others of the bits. */
static octavo_split ordered(const octavo_split *split, unsigned bits) {
    octavo_split kept = octavo_split_without(split, ~bits);
    return octavo_split_join(kept, bits & ~octavo_split_bits(&kept));
}

static void add_matmul(octavo_way_list *list, const octavo_split *rows, unsigned inputs,
                       unsigned outputs, int outputs_at) {
    const octavo_op *op = list->op;
    const octavo_layout *placed = octavo_weight_base(list->p, op->in[1]);
    const int n_outputs = octavo_way_axes(list, op->in[1]) - octavo_way_axes(list, op->in[0]) + 1;
    const int inputs_at = outputs_at == 0 ? n_outputs : 0;
    octavo_layout weight = {0};
    weight.split[inputs_at] = ordered(&placed->split[inputs_at], inputs);
    weight.split[outputs_at] = ordered(&placed->split[outputs_at], outputs);
    if (list->p->is_kept[op->in[1]] && !octavo_layout_equal(&weight, placed)) return;
    if (!octavo_weight_can_move(list->p, op->in[1], outputs_at, &weight)) return;
    if (inputs != octavo_split_bits(&placed->split[inputs_at]) &&
        !octavo_way_is_exact(list, op->in[0], &weight.split[inputs_at]))
        return;
    const octavo_layout x = {.split = {*rows, weight.split[inputs_at]}};
    octavo_layout out = {.split = {*rows}, .partial = weight.split[inputs_at]};
    const int columns_at =
        octavo_way_axes(list, op->out) - n_outputs; /* a latent has one head, and lanes */
    out.split[columns_at] = weight.split[outputs_at];
    octavo_way *way = octavo_way_add(list, &out);
    if (!way) return;
    octavo_way_set_in(way, 0, &x);
    octavo_way_set_in(way, 1, &weight);
    const octavo_layout bias = octavo_columns_as_vector(&out, columns_at);
    if (octavo_way_is_vector(list, 2)) octavo_way_set_in(way, 2, &bias);
    way->seconds = octavo_way_matmul_seconds(
        list, octavo_way_widest(list, op->in[0], 0, rows), octavo_way_columns(list, op->in[0], &x),
        octavo_way_columns(list, op->out, &out), list->p->program->tensors[op->in[1]].weight, 1.0);
}

/* Each mesh axis splits the tokens, the outputs, the sum or nothing; the weight moves where it is
 * placed otherwise, unless what is wanted is a part of what a rank has. */
void octavo_ways_matmul(octavo_way_list *list, const octavo_held *held) {
    const int at = octavo_weight_outputs_at(list->p->program, list->op);
    const unsigned active = list->p->active;
    const octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    unsigned tokens = 0;
    do {
        octavo_held rows = {.n = 0};
        for (int i = 0; i < forms.n; i++) {
            const octavo_split kept = octavo_split_without(&forms.layout[i].split[0], ~tokens);
            const octavo_layout form = {
                .split = {octavo_split_join_rows(kept, tokens & ~octavo_split_bits(&kept))}};
            octavo_form_add(&rows, &form);
        }
        const unsigned others = active & ~tokens;
        unsigned outputs = 0;
        do {
            const unsigned left = others & ~outputs;
            unsigned inputs = 0;
            do {
                for (int i = 0; i < rows.n; i++)
                    add_matmul(list, &rows.layout[i].split[0], inputs, outputs, at);
                inputs = octavo_subset_next(inputs, left);
            } while (inputs != 0);
            outputs = octavo_subset_next(outputs, others);
        } while (outputs != 0);
        tokens = octavo_subset_next(tokens, active);
    } while (tokens != 0);
}

void octavo_ways_head_matmul(octavo_way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_split *heads = &list->p->placed[op->in[1]].split[0];
    const octavo_held forms = octavo_forms_of(list, op->in[0], &held[0]);
    const octavo_row_splits rows = octavo_way_rows(list, &forms, octavo_split_bits(heads));
    const octavo_weight *weight = list->p->program->tensors[op->in[1]].weight;
    for (int i = 0; i < rows.n; i++) {
        const unsigned free =
            list->p->active & ~octavo_split_bits(heads) & ~octavo_split_bits(&rows.split[i]);
        unsigned more = 0;
        do {
            const octavo_layout x = {.split = {rows.split[i], octavo_split_join(*heads, more)}};
            octavo_way *way = octavo_way_add(list, &x);
            if (!way) return;
            octavo_way_set_in(way, 0, &x);
            octavo_way_set_in(way, 2, &x);
            const double n = octavo_way_widest(list, op->out, 1, &x.split[1]);
            way->seconds = octavo_way_matmul_seconds(
                list, n * octavo_way_widest(list, op->out, 0, &x.split[0]), (double)weight->k,
                (double)weight->n, weight, n);
            more = octavo_subset_next(more, free);
        } while (more != 0);
    }
}
