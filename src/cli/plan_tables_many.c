/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of documents that hold several plans: what --compare and --search found.
 */
#include "base/compiler.h"
#include "cli/plan_tables.h"
#include "cli/plan_words.h"

typedef void put_function(octavo_buffer *out, double value);

/* A row of --compare: one number of both plans, which stands under `key` in both objects. */
static void put_numbers(octavo_view_table *table, const char *prefix, const char *label,
                        const json_t *const objects[2], const char *key, put_function *put,
                        put_function *put_more) {
    double values[2];
    octavo_buffer_printf(octavo_view_cell(table), "%s%s%s", prefix, *prefix ? ": " : "", label);
    octavo_view_cell_end(table);
    for (int i = 0; i < 2; i++) {
        values[i] = octavo_view_number(objects[i], key);
        put(octavo_view_cell(table), values[i]);
        octavo_view_cell_end(table);
    }
    put_more(octavo_view_cell(table), values[1] - values[0]);
    octavo_view_cell_end(table);
}

void octavo_view_fill_differences(const json_t *document, octavo_view_table *table) {
    static const char *const columns[] = {"<", ">A", ">B", ">B - A"};
    static const char *const kinds[] = {"weights", "cache", "activations"};
    const json_t *compare = json_object_get(document, "compare"), *plans[2], *objects[2];
    *table = (octavo_view_table){
        .title = "A and B for one rank", .columns = columns, .n = OCTAVO_COUNT(columns)};
    for (int side = 0; side < 2; side++) {
        plans[side] = json_object_get(json_array_get(compare, (size_t)side), "plan");
        objects[side] = json_object_get(plans[side], "memory_per_rank");
    }
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++)
        put_numbers(table, "", kinds[i], objects, kinds[i], octavo_view_put_bytes,
                    octavo_view_put_more_bytes);
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        const char *phase = octavo_view_phase_name(i);
        const json_t *times[2];
        for (int side = 0; side < 2; side++) {
            objects[side] = json_object_get(plans[side], phase);
            times[side] = json_object_get(objects[side], "time");
        }
        if (!objects[0] || !objects[1]) continue;
        put_numbers(table, phase, "sent", objects, "wire_bytes_per_rank", octavo_view_put_bytes,
                    octavo_view_put_more_bytes);
        put_numbers(table, phase, "compute", times, "compute_s", octavo_view_put_seconds,
                    octavo_view_put_more_seconds);
        put_numbers(table, phase, "wire", times, "wire_s", octavo_view_put_seconds,
                    octavo_view_put_more_seconds);
        put_numbers(table, phase, "step", times, "total_s", octavo_view_put_seconds,
                    octavo_view_put_more_seconds);
    }
}

void octavo_view_fill_phase_differences(const json_t *difference, const char *title,
                                        octavo_view_table *table) {
    static const char *const columns[] = {"<Collective", "<Tensor",  "<Over",    ">A times",
                                          ">A sends",    ">B times", ">B sends", ">B - A"};
    static const char *const sides[2] = {"a", "b"};
    size_t i;
    json_t *row;
    *table = (octavo_view_table){.title = title, .columns = columns, .n = OCTAVO_COUNT(columns)};
    json_array_foreach(json_object_get(difference, "collectives"), i, row) {
        double sent[2];
        octavo_view_cell_put(table, octavo_view_text(row, "op"));
        octavo_view_cell_put(table, octavo_view_text(row, "tensor"));
        octavo_view_put_split(octavo_view_cell(table), json_object_get(row, "axes"));
        octavo_view_cell_end(table);
        for (int side = 0; side < 2; side++) {
            const json_t *of_side = json_object_get(row, sides[side]);
            sent[side] = octavo_view_number(of_side, "wire_bytes");
            octavo_view_put_count(octavo_view_cell(table), octavo_view_number(of_side, "count"));
            octavo_view_cell_end(table);
            octavo_view_put_bytes(octavo_view_cell(table), sent[side]);
            octavo_view_cell_end(table);
        }
        octavo_view_put_more_bytes(octavo_view_cell(table), sent[1] - sent[0]);
        octavo_view_cell_end(table);
    }
}

void octavo_view_fill_search(const json_t *document, octavo_view_table *table) {
    static const char *const columns[] = {">No",   ">Prefill step",     ">Sent", ">Generate step",
                                          ">Sent", ">Memory of a rank", "~Rules"};
    size_t i;
    json_t *found;
    *table = (octavo_view_table){
        .title = "The best rules found", .columns = columns, .n = OCTAVO_COUNT(columns)};
    json_array_foreach(json_object_get(document, "search"), i, found) {
        const json_t *summary = json_object_get(found, "summary");
        octavo_view_put_count(octavo_view_cell(table), (double)i + 1.0);
        octavo_view_cell_end(table);
        for (int p = 0; p < OCTAVO_VIEW_PHASES; p++) {
            const json_t *phase = json_object_get(summary, octavo_view_phase_name(p));
            if (phase)
                octavo_view_put_seconds(
                    octavo_view_cell(table),
                    octavo_view_number(json_object_get(phase, "time"), "total_s"));
            octavo_view_cell_end(table);
            if (phase)
                octavo_view_put_bytes(octavo_view_cell(table),
                                      octavo_view_number(phase, "wire_bytes_per_rank"));
            octavo_view_cell_end(table);
        }
        octavo_view_put_bytes(octavo_view_cell(table), octavo_view_memory(summary));
        octavo_view_cell_end(table);
        octavo_view_put_rules(octavo_view_cell(table), json_object_get(found, "rules"), ", ");
        octavo_view_cell_end(table);
    }
}
