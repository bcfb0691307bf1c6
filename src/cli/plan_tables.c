/* SPDX-License-Identifier: Apache-2.0
 *
 * A row for each thing of the document, in its order.
 */
#include "cli/plan_tables.h"

#include "base/compiler.h"
#include "cli/plan_words.h"

static void put_bytes(octavo_view_table *table, double bytes) {
    octavo_view_put_bytes(octavo_view_cell(table), bytes);
    octavo_view_cell_end(table);
}

static void put_seconds(octavo_view_table *table, double seconds) {
    octavo_view_put_seconds(octavo_view_cell(table), seconds);
    octavo_view_cell_end(table);
}

static void put_count(octavo_view_table *table, double count) {
    octavo_view_put_count(octavo_view_cell(table), count);
    octavo_view_cell_end(table);
}

void octavo_view_fill_times(const json_t *plan, octavo_view_table *table) {
    static const char *const columns[] = {"<Phase",    ">Compute",     ">Wire",          ">Step",
                                          ">Tokens/s", ">Collectives", ">Sent by a rank"};
    *table = (octavo_view_table){
        .title = "Time of a step", .columns = columns, .n = OCTAVO_COUNT(columns)};
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        const json_t *phase = json_object_get(plan, octavo_view_phase_name(i));
        const json_t *time = json_object_get(phase, "time");
        if (!phase) continue;
        octavo_view_cell_put(table, octavo_view_phase_name(i));
        put_seconds(table, octavo_view_number(time, "compute_s"));
        put_seconds(table, octavo_view_number(time, "wire_s"));
        put_seconds(table, octavo_view_number(time, "total_s"));
        put_count(table, octavo_view_number(time, "tokens_per_s"));
        put_count(table, (double)json_array_size(json_object_get(phase, "collectives")));
        put_bytes(table, octavo_view_number(phase, "wire_bytes_per_rank"));
    }
}

void octavo_view_fill_memory(const json_t *plan, octavo_view_table *table) {
    static const char *const columns[] = {"<Holds", ">Bytes", ">Share"};
    static const char *const kinds[] = {"weights", "cache", "activations"};
    const json_t *memory = json_object_get(plan, "memory_per_rank");
    const double total = octavo_view_memory(plan);
    *table = (octavo_view_table){
        .title = "Memory of a rank", .columns = columns, .n = OCTAVO_COUNT(columns)};
    if (!memory) return;
    for (size_t i = 0; i <= OCTAVO_COUNT(kinds); i++) {
        const bool is_total = i == OCTAVO_COUNT(kinds);
        const double bytes = is_total ? total : octavo_view_number(memory, kinds[i]);
        octavo_view_cell_put(table, is_total ? "in all" : kinds[i]);
        put_bytes(table, bytes);
        octavo_buffer_printf(octavo_view_cell(table), "%.1f %%",
                             total > 0.0 ? 100.0 * bytes / total : 0.0);
        octavo_view_cell_end(table);
    }
}

static void put_tensor(const json_t *tensor, octavo_view_table *table) {
    octavo_view_cell_put(table, octavo_view_text(tensor, "name"));
    octavo_view_put_spec(octavo_view_cell(table), json_object_get(tensor, "spec"));
    octavo_view_cell_end(table);
    octavo_view_put_shape(octavo_view_cell(table), json_object_get(tensor, "shape"));
    octavo_view_cell_end(table);
    octavo_view_put_shape(octavo_view_cell(table), json_object_get(tensor, "shard_shape"));
    octavo_view_cell_end(table);
    put_bytes(table, octavo_view_number(tensor, "bytes_per_rank"));
    octavo_view_put_where(octavo_view_cell(table), tensor);
    octavo_view_cell_end(table);
}

void octavo_view_fill_tensors(const json_t *plan, octavo_view_table *table) {
    static const char *const columns[] = {"<Tensor",    "<Rule",  "<Whole",
                                          "<On a rank", ">Bytes", "<Layers"};
    *table =
        (octavo_view_table){.title = "Tensors, each with what the fullest rank holds of a layer's",
                            .columns = columns,
                            .n = OCTAVO_COUNT(columns)};
    for (int section = 0; section < OCTAVO_VIEW_SECTIONS; section++) {
        bool is_first = true;
        size_t i;
        json_t *tensor;
        json_array_foreach(json_object_get(plan, "tensors"), i, tensor) {
            if (octavo_view_section_of(tensor) != section) continue;
            if (is_first) {
                octavo_buffer_puts(octavo_view_heading(table), octavo_view_section_name(section));
                octavo_view_cell_end(table);
            }
            is_first = false;
            put_tensor(tensor, table);
        }
    }
}

static void put_axes(octavo_view_table *table, const json_t *collective) {
    octavo_view_put_split(octavo_view_cell(table), json_object_get(collective, "axes"));
    octavo_view_cell_end(table);
}

/* "Layers 0-29: 1.2 MB sent by a rank" */
static void put_layers_heading(const octavo_view_groups *groups, size_t first,
                               octavo_view_table *table) {
    double sent = 0.0;
    for (size_t i = first;
         i < groups->n && octavo_view_same_layers(&groups->items[i], &groups->items[first]); i++)
        sent += octavo_view_number(groups->items[i].first, "wire_bytes") *
                (double)groups->items[i].count;
    octavo_buffer *heading = octavo_view_heading(table);
    octavo_view_put_layers(heading, &groups->items[first]);
    octavo_buffer_puts(heading, ": ");
    octavo_view_put_bytes(heading, sent);
    octavo_buffer_puts(heading, " sent by a rank");
    octavo_view_cell_end(table);
}

void octavo_view_fill_collectives(const json_t *phase, const char *title,
                                  octavo_view_table *table) {
    static const char *const columns[] = {"<Collective", "<Tensor", "<Over",  ">Ranks",
                                          ">Result",     ">Sent",   ">Times", "~Why"};
    octavo_view_groups groups;
    *table = (octavo_view_table){.title = title, .columns = columns, .n = OCTAVO_COUNT(columns)};
    if (!octavo_view_groups_make(phase, &groups)) {
        table->cells.failed = true;
        return;
    }
    for (size_t i = 0; i < groups.n; i++) {
        const octavo_view_group *group = &groups.items[i];
        if (i == 0 || !octavo_view_same_layers(group, group - 1))
            put_layers_heading(&groups, i, table);
        octavo_view_cell_put(table, octavo_view_text(group->first, "op"));
        octavo_view_cell_put(table, octavo_view_text(group->first, "tensor"));
        put_axes(table, group->first);
        put_count(table, octavo_view_number(group->first, "group"));
        put_bytes(table, octavo_view_number(group->first, "bytes"));
        put_bytes(table, octavo_view_number(group->first, "wire_bytes"));
        put_count(table, (double)group->count);
        octavo_view_cell_put(table, octavo_view_text(group->first, "reason"));
    }
    octavo_view_groups_deinit(&groups);
}

void octavo_view_fill_timeline(const json_t *phase, const char *title, octavo_view_table *table) {
    static const char *const columns[] = {"<Op", "<Tensor", "<Kind", ">Starts at", ">Takes"};
    int64_t previous = -2;
    size_t i;
    json_t *op;
    *table = (octavo_view_table){.title = title, .columns = columns, .n = OCTAVO_COUNT(columns)};
    json_array_foreach(json_object_get(phase, "timeline"), i, op) {
        const int64_t layer = octavo_view_layer(op);
        if (layer != previous) {
            octavo_view_put_part(octavo_view_heading(table), layer, i == 0);
            octavo_view_cell_end(table);
        }
        previous = layer;
        octavo_view_cell_put(table, octavo_view_text(op, "op"));
        octavo_view_cell_put(table, octavo_view_text(op, "tensor"));
        octavo_view_cell_put(table, octavo_view_text(op, "kind"));
        put_seconds(table, octavo_view_number(op, "start_s"));
        put_seconds(table, octavo_view_number(op, "seconds"));
    }
}
