/* SPDX-License-Identifier: Apache-2.0
 *
 * Forms of tensors and estimates, for the ways of all op kinds.
 */
#include "program/partition_way.h"

void octavo_form_add(octavo_held *forms, const octavo_layout *layout) {
    for (int i = 0; i < forms->n; i++)
        if (octavo_layout_equal(&forms->layout[i], layout)) return;
    if (forms->n < OCTAVO_MAX_HELD) forms->layout[forms->n++] = *layout;
}

octavo_held octavo_forms_of(const octavo_way_list *list, int tensor, const octavo_held *held) {
    octavo_held forms = {.n = 0};
    const octavo_tensor *t = &list->p->program->tensors[tensor];
    for (int i = 0; i < held->n; i++) {
        octavo_layout whole = held->layout[i];
        const unsigned partial = octavo_split_bits(&whole.partial);
        whole.partial = (octavo_split){0};
        whole.is_owned = false;
        if (octavo_is_routed(t, &whole)) {
            if (partial == 0) continue; /* it lacks rows */
            whole.experts = (octavo_split){0};
        }
        octavo_form_add(&forms, &whole);
        if (partial == 0) continue;
        octavo_layout rows = whole, columns = whole;
        rows.split[0] = octavo_split_join_rows(rows.split[0], partial);
        columns.split[1] = octavo_split_join(columns.split[1], partial);
        if (t->axes[0] != 'p') octavo_form_add(&forms, &rows);
        octavo_form_add(&forms, &columns);
    }
    if (t->axes[0] != 'p') octavo_form_add(&forms, &list->p->ruled[tensor]);
    return forms;
}

void octavo_forms_add_whole(const octavo_way_list *list, int tensor, octavo_held *forms) {
    const int n = forms->n, columns = octavo_way_axes(list, tensor);
    for (int i = 0; i < n; i++) {
        octavo_layout whole = forms->layout[i];
        for (int j = 1; j < columns; j++)
            whole.split[j] = (octavo_split){0};
        octavo_form_add(forms, &whole);
    }
}

double octavo_way_widest(const octavo_way_list *list, int tensor, int axis,
                         const octavo_split *split) {
    const octavo_axis *axes[OCTAVO_TENSOR_AXES];
    octavo_axis pairs;
    octavo_axes_of_tensor(list->p, tensor, &pairs, axes);
    return (double)octavo_axis_widest(axes[axis], octavo_split_degree(split, &list->p->mesh));
}

double octavo_way_bytes(const octavo_way_list *list, int tensor, const octavo_layout *layout) {
    const octavo_tensor *t = &list->p->program->tensors[tensor];
    double box = octavo_element_bytes(t);
    for (int i = 0; t->axes[i]; i++)
        box *= octavo_way_widest(list, tensor, i, &layout->split[i]);
    return box / octavo_split_degree(&layout->experts, &list->p->mesh);
}

octavo_way *octavo_way_add(octavo_way_list *list, const octavo_layout *out) {
    if (list->n == OCTAVO_MAX_WAYS) return NULL;
    octavo_way *way = &list->ways[list->n++];
    *way = (octavo_way){.out = *out};
    return way;
}

double octavo_way_row_seconds(const octavo_way_list *list, const octavo_layout *out, int passes) {
    return passes * octavo_way_bytes(list, list->op->out, out) /
           list->p->options->machine.memory_bytes_s;
}

void octavo_way_set_vectors(octavo_way_list *list, octavo_way *way, int first,
                            const octavo_layout *columns) {
    const octavo_layout vector = octavo_columns_as_vector(columns, 1);
    for (int i = first; i < OCTAVO_OP_INPUTS; i++)
        if (octavo_way_is_vector(list, i)) octavo_way_set_in(way, i, &vector);
}

bool octavo_way_is_exact(const octavo_way_list *list, int x, const octavo_split *split) {
    return octavo_axis_is_exact(octavo_axis_of(list->p->axes, x, 1),
                                octavo_split_degree(split, &list->p->mesh));
}

static void add_rows(octavo_row_splits *rows, const octavo_split *split) {
    for (int i = 0; i < rows->n; i++)
        if (octavo_split_equal(&rows->split[i], split)) return;
    if (rows->n < 64) rows->split[rows->n++] = *split;
}

octavo_row_splits octavo_way_rows(const octavo_way_list *list, const octavo_held *forms,
                                  unsigned used) {
    octavo_row_splits rows = {.n = 0};
    for (int i = 0; i < forms->n; i++) {
        const octavo_split base = octavo_split_without(&forms->layout[i].split[0], used);
        const unsigned free = list->p->active & ~used & ~octavo_split_bits(&base);
        unsigned more = 0;
        do {
            const octavo_split split = octavo_split_join_rows(base, more);
            add_rows(&rows, &split);
            more = octavo_subset_next(more, free);
        } while (more != 0);
    }
    return rows;
}

double octavo_way_matmul_seconds(const octavo_way_list *list, double rows, double inputs,
                                 double outputs, const octavo_weight *weight, double matrices) {
    const octavo_machine_model *machine = &list->p->options->machine;
    const double bytes = matrices * inputs * outputs *
                         (double)octavo_weight_bytes(weight->type, OCTAVO_PANEL, weight->k) /
                         ((double)OCTAVO_PANEL * (double)weight->k);
    const double operations = 2.0 * rows * inputs * outputs / machine->operations_s;
    const double reading = bytes / machine->memory_bytes_s;
    return operations > reading ? operations : reading;
}

double octavo_way_columns(const octavo_way_list *list, int tensor, const octavo_layout *layout) {
    double width = 1.0;
    for (int i = 1; i < octavo_way_axes(list, tensor); i++)
        width *= octavo_way_widest(list, tensor, i, &layout->split[i]);
    return width;
}
