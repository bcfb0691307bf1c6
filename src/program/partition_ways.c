/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways in which each op kind runs on shards. Each follows from the op's axes (op.c): an axis
 * that operands share is split alike in all of them; one that is summed over leaves a partial sum.
 * Here those of ops on rows.
 */
#include "program/partition_way.h"

/* The heads or lanes of a row are together. */
static bool has_whole_lanes(const octavo_layout *layout) {
    return layout->split[2].n == 0;
}

static bool can_norm_split(const octavo_way_list *list, const octavo_layout *layout) {
    const int x = list->op->in[0];
    if (layout->split[1].n == 0) return true;
    if (octavo_way_axes(list, x) > 2 && layout->split[2].n > 0) return false;
    return octavo_axis_of(list->p->axes, x, 1)->readers == 0 &&
           octavo_way_is_exact(list, x, &layout->split[1]);
}

static void ways_norm(octavo_way_list *list, const octavo_held *held) {
    octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    octavo_forms_add_whole(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        const unsigned free = list->p->active & ~octavo_layout_axes(form);
        if (!can_norm_split(list, form)) continue;
        unsigned more = 0;
        do {
            octavo_layout out = *form;
            out.split[0] = octavo_split_join_rows(out.split[0], more);
            octavo_way *way = octavo_way_add(list, &out);
            if (!way) return;
            octavo_way_set_in(way, 0, &out);
            octavo_way_set_vectors(list, way, 1, &out);
            way->seconds = octavo_way_row_seconds(list, &out, 3);
            if (out.split[1].n > 0) { /* the ranks' sums are exchanged */
                const double n = octavo_split_degree(&out.split[1], &list->p->mesh);
                const double rows = octavo_way_widest(list, list->op->in[0], 0, &out.split[0]);
                way->seconds += 8.0 * rows * (n - 1.0) / list->p->options->machine.link_bytes_s +
                                list->p->options->machine.latency_s;
            }
            more = octavo_subset_next(more, free);
        } while (more != 0);
    }
}

/* Everything that works on each element or each head by itself. */
static void ways_rowwise(octavo_way_list *list, const octavo_held *held, bool needs_lanes) {
    octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    if (needs_lanes) octavo_forms_add_whole(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        if (needs_lanes && octavo_way_axes(list, list->op->in[0]) > 2 && !has_whole_lanes(form))
            continue;
        octavo_way *way = octavo_way_add(list, form);
        if (!way) return;
        octavo_way_set_in(way, 0, form);
        if (octavo_way_is_vector(list, 1))
            octavo_way_set_in(way, 1, &(octavo_layout){0}); /* of a head's lanes */
        way->seconds = octavo_way_row_seconds(list, form, 2);
    }
}

/* Blocks of lanes are not cut. */
static void ways_quantise(octavo_way_list *list, const octavo_held *held) {
    const octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    octavo_held whole = {.n = 0};
    for (int i = 0; i < forms.n; i++) {
        octavo_layout form = forms.layout[i];
        if (octavo_way_axes(list, list->op->in[0]) > 2) form.split[2] = (octavo_split){0};
        octavo_form_add(&whole, &form);
    }
    for (int i = 0; i < whole.n; i++) {
        octavo_way *way = octavo_way_add(list, &whole.layout[i]);
        if (!way) return;
        octavo_way_set_in(way, 0, &whole.layout[i]);
        way->seconds = octavo_way_row_seconds(list, &whole.layout[i], 2);
    }
}

static void ways_rope(octavo_way_list *list, const octavo_held *held) {
    ways_rowwise(list, held, true);
    for (int i = 0; i < list->n; i++) {
        const octavo_layout table = {.split = {list->ways[i].out.split[0]}};
        octavo_way_set_in(&list->ways[i], 1, &table);
    }
}

/* Of both operands' forms. */
static void ways_pairwise(octavo_way_list *list, const octavo_held *held) {
    octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    const bool has_both = list->op->in[1] != OCTAVO_NO_TENSOR;
    if (has_both) {
        const octavo_held other = octavo_forms_of(list, list->op->in[1], &held[1]);
        for (int i = 0; i < other.n; i++)
            octavo_form_add(&forms, &other.layout[i]);
    }
    octavo_form_add(&forms, &list->p->ruled[list->op->out]);
    for (int i = 0; i < forms.n; i++) {
        octavo_way *way = octavo_way_add(list, &forms.layout[i]);
        if (!way) return;
        octavo_way_set_in(way, 0, &forms.layout[i]);
        if (has_both) octavo_way_set_in(way, 1, &forms.layout[i]);
        way->seconds = octavo_way_row_seconds(list, &forms.layout[i], 3);
    }
}

/* A permutation of columns takes them whole; what comes of it may be any shard. */
static void ways_reorder(octavo_way_list *list, const octavo_held *held) {
    octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    octavo_forms_add_whole(list, list->op->in[0], &forms);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        if (form->split[1].n > 0 || form->split[2].n > 0) continue;
        const unsigned free = list->p->active & ~octavo_layout_axes(form);
        unsigned columns = 0;
        do {
            octavo_layout out = *form;
            out.split[1] = octavo_split_join(out.split[1], columns);
            octavo_way *way = octavo_way_add(list, &out);
            if (!way) return;
            octavo_way_set_in(way, 0, form);
            way->seconds = octavo_way_row_seconds(list, &out, 2);
            columns = octavo_subset_next(columns, free);
        } while (columns != 0);
    }
}

static void ways_select(octavo_way_list *list, const octavo_held *held) {
    octavo_held forms = octavo_forms_of(list, list->op->in[0], &held[0]);
    for (int i = 0; i < forms.n; i++) {
        const octavo_layout *form = &forms.layout[i];
        octavo_layout out = *form;
        out.split[0] = octavo_split_without(&out.split[0], ~(1u << OCTAVO_MESH_DATA));
        octavo_way *way = octavo_way_add(list, &out);
        if (!way) return;
        octavo_way_set_in(way, 0, form);
        const double n = octavo_split_degree(&form->split[0], &list->p->mesh) /
                         octavo_split_degree(&out.split[0], &list->p->mesh);
        way->seconds = octavo_way_row_seconds(list, &out, 2);
        if (n > 1)
            way->seconds += octavo_way_bytes(list, list->op->out, &out) * (n - 1.0) / n /
                            list->p->options->machine.link_bytes_s;
    }
}

/* Rows are looked up by the ranks that have them. */
static void ways_embed(octavo_way_list *list) {
    const octavo_layout *table = &list->p->placed[list->op->in[1]];
    octavo_layout out = {.split = {{0}, table->split[1]}, .partial = table->split[0]};
    out.is_owned = out.partial.n > 0;
    const unsigned used = octavo_layout_axes(&out);
    const unsigned data = list->p->active & (1u << OCTAVO_MESH_DATA) & ~used;
    for (int i = 0; i < 2; i++) {
        out.split[0] = i == 0 ? octavo_split_join_rows((octavo_split){0}, data)
                              : octavo_split_without(&list->p->ruled[list->op->out].split[0], used);
        octavo_way *way = octavo_way_add(list, &out);
        if (way) way->seconds = octavo_way_row_seconds(list, &out, 1);
    }
}

int octavo_ways_of(const octavo_partitioner *p, int index, const octavo_held *held,
                   octavo_way ways[OCTAVO_MAX_WAYS]) {
    octavo_way_list list = {.p = p, .op = &p->program->ops[index], .index = index, .ways = ways};
    switch (list.op->kind) {
    case OCTAVO_OP_EMBED:
        ways_embed(&list);
        break;
    case OCTAVO_OP_NORM:
        ways_norm(&list, held);
        break;
    case OCTAVO_OP_HEAD_NORM:
    case OCTAVO_OP_TEMPERATURE:
        ways_rowwise(&list, held, true);
        break;
    case OCTAVO_OP_ROPE:
        ways_rope(&list, held);
        break;
    case OCTAVO_OP_QUANTISE:
        ways_quantise(&list, held);
        break;
    case OCTAVO_OP_SCALE:
        ways_rowwise(&list, held, false);
        break;
    case OCTAVO_OP_REORDER:
        ways_reorder(&list, held);
        break;
    case OCTAVO_OP_GATE:
    case OCTAVO_OP_ADD:
        ways_pairwise(&list, held);
        break;
    case OCTAVO_OP_SELECT:
        ways_select(&list, held);
        break;
    case OCTAVO_OP_MATMUL:
        octavo_ways_matmul(&list, held);
        break;
    case OCTAVO_OP_HEAD_MATMUL:
        octavo_ways_head_matmul(&list, held);
        break;
    case OCTAVO_OP_CACHE_UPDATE:
        octavo_ways_cache_update(&list);
        break;
    case OCTAVO_OP_ATTENTION:
        octavo_ways_attention(&list, held);
        break;
    case OCTAVO_OP_ATTENTION_MERGE:
        octavo_ways_attention_merge(&list, held);
        break;
    case OCTAVO_OP_ROUTE:
        octavo_ways_route(&list, held);
        break;
    case OCTAVO_OP_GROUP:
        octavo_ways_group(&list, held);
        break;
    case OCTAVO_OP_GATHER:
        octavo_ways_gather(&list, held);
        break;
    case OCTAVO_OP_EXPERT_MATMUL:
        octavo_ways_expert_matmul(&list, held);
        break;
    case OCTAVO_OP_COMBINE:
        octavo_ways_combine(&list, held);
        break;
    case OCTAVO_OP_ROW_GATE:
        octavo_ways_row_gate(&list, held);
        break;
    case OCTAVO_OP_ROPE_TABLE:
    case OCTAVO_OP_NORM_SUM: /* in programs of ranks only */
    case OCTAVO_OP_NORM_APPLY:
    case OCTAVO_OP_RESHARD:
    case OCTAVO_OP_KINDS:
        break;
    }
    return list.n;
}
