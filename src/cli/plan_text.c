/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as text: what it is of, then tables.
 */
#include "base/compiler.h"
#include "cli/plan_tables.h"
#include "cli/plan_view.h"
#include "cli/plan_words.h"

#include <string.h>

static void put_table(octavo_buffer *out, octavo_view_table *table) {
    octavo_view_table_text(table, out);
    octavo_view_table_deinit(table);
}

/* A label and words that may go over several lines. */
static void put_line(octavo_buffer *out, const char *label, octavo_buffer *words) {
    octavo_buffer line = {0};
    octavo_buffer_printf(&line, "%s %s", label, words->data ? words->data : "");
    if (words->failed || line.failed)
        out->failed = true;
    else
        octavo_view_put_wrapped(out, line.data, 0);
    octavo_buffer_deinit(&line);
    octavo_buffer_deinit(words);
}

static void put_head(octavo_buffer *out, const json_t *document) {
    const octavo_view_mesh mesh = octavo_view_mesh_of(document);
    octavo_buffer words = {0};
    octavo_view_put_model(&words, document);
    put_line(out, "Model:", &words);
    octavo_view_put_mesh(&words, &mesh);
    put_line(out, "Mesh:", &words);
    octavo_view_put_setting(&words, document);
    put_line(out, "Step:", &words);
}

/* In a line, or where the document has columns of them, as they are. */
static void put_rules(octavo_buffer *out, const char *label, const json_t *plan) {
    const json_t *rules = json_object_get(plan, "rules");
    octavo_buffer words = {0};
    size_t i;
    json_t *line;
    if (json_array_size(rules) < 2) {
        octavo_view_put_rules(&words, rules, "; ");
        put_line(out, label, &words);
        return;
    }
    octavo_buffer_printf(out, "%s\n", label);
    json_array_foreach(rules, i, line) {
        const char *text = json_is_string(line) ? json_string_value(line) : "";
        octavo_view_put_plain(&words, text);
        if (strlen(text) > OCTAVO_VIEW_WIDTH - 2) {
            put_line(out, " ", &words);
            continue;
        }
        octavo_buffer_printf(out, "  %s\n", words.data && !words.failed ? words.data : "");
        octavo_buffer_deinit(&words);
    }
}

static void put_warnings(octavo_buffer *out, const json_t *plan) {
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(plan, "warnings"), i, warning) {
        octavo_buffer words = {0};
        octavo_view_put_plain(&words, json_is_string(warning) ? json_string_value(warning) : "");
        put_line(out, "Warning:", &words);
    }
}

static void put_plan(octavo_buffer *out, const json_t *plan) {
    static const char *const titles[OCTAVO_VIEW_PHASES] = {"Collectives of a prefill step",
                                                           "Collectives of a generate step"};
    octavo_view_table table;
    put_head(out, plan);
    put_rules(out, "Rules:", plan);
    put_warnings(out, plan);
    octavo_view_fill_times(plan, &table);
    put_table(out, &table);
    octavo_view_fill_memory(plan, &table);
    put_table(out, &table);
    octavo_view_fill_tensors(plan, &table);
    put_table(out, &table);
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        octavo_view_fill_collectives(json_object_get(plan, octavo_view_phase_name(i)), titles[i],
                                     &table);
        put_table(out, &table);
    }
}

static void put_compare(octavo_buffer *out, const json_t *document) {
    static const char *const titles[OCTAVO_VIEW_PHASES] = {"Collectives of prefill that differ",
                                                           "Collectives of generate that differ"};
    const json_t *compare = json_object_get(document, "compare");
    const json_t *difference = json_object_get(document, "difference");
    octavo_view_table table;
    put_head(out, json_object_get(json_array_get(compare, 0), "plan"));
    for (size_t i = 0; i < 2; i++) {
        const json_t *side = json_array_get(compare, i);
        octavo_buffer label = {0};
        octavo_buffer_printf(&label, "%c, ", (int)('A' + i));
        octavo_view_put_plain(&label, octavo_view_text(side, "name"));
        octavo_buffer_putc(&label, ':');
        if (!label.failed) put_rules(out, label.data, json_object_get(side, "plan"));
        if (label.failed) out->failed = true;
        octavo_buffer_deinit(&label);
        put_warnings(out, json_object_get(side, "plan"));
    }
    octavo_view_fill_differences(document, &table);
    put_table(out, &table);
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        const char *phase = octavo_view_phase_name(i);
        const json_t *of_phase = json_object_get(difference, phase);
        octavo_view_fill_phase_differences(of_phase, titles[i], &table);
        put_table(out, &table);
        if (of_phase && json_array_size(json_object_get(of_phase, "collectives")) == 0)
            octavo_buffer_printf(out, "\nThe collectives of %s are the same.\n", phase);
    }
}

void octavo_view_put_text(octavo_buffer *out, const json_t *document) {
    octavo_view_table table;
    if (octavo_view_is_compare(document)) {
        put_compare(out, document);
    } else if (octavo_view_is_search(document)) {
        put_head(out, document);
        put_warnings(out, document);
        octavo_view_fill_search(document, &table);
        put_table(out, &table);
    } else {
        put_plan(out, document);
    }
}
