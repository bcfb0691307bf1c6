/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules as text for people.
 */
#include "sharding/rules.h"
#include "sharding/rules_part.h"

#include <stdio.h>

static const char *phase_of(const octavo_override *override) {
    if (!override->is_in[OCTAVO_PHASE_GENERATE]) return "prefill";
    return override->is_in[OCTAVO_PHASE_PREFILL] ? "all" : "generate";
}

static bool is_bound(const octavo_rules_part *part) {
    return part && (part->n_ranges > 0 || part->block != OCTAVO_BLOCK_ANY);
}

/* Those for parts of a model, or all. */
static void dump(const octavo_rules *rules, bool only_bound, octavo_buffer *out) {
    bool has_title = false;
    for (int i = 0; i < rules->n_overrides; i++) {
        const octavo_override *override = &rules->overrides[i];
        char rule[OCTAVO_SPEC_TEXT];
        if (only_bound && !is_bound(override->part)) continue;
        if (!has_title)
            octavo_buffer_printf(out, "%s%-9s %-28s %-24s %s\n", only_bound ? "\n" : "", "phase",
                                 "tensor", "override", "from");
        has_title = true;
        octavo_spec_print(&override->spec, rule);
        octavo_buffer_printf(out, "%-9s %-28s %-24s %s", phase_of(override),
                             octavo_named_tensor_at(override->tensor)->name, rule,
                             override->is_of_program ? "program" : "file");
        if (is_bound(override->part)) {
            octavo_buffer_puts(out, ": ");
            octavo_rules_part_print(override->part, out);
        }
        octavo_buffer_putc(out, '\n');
    }
    if (!has_title && !only_bound) octavo_buffer_puts(out, "no overrides\n");
}

void octavo_rules_dump_overrides(const octavo_rules *rules, octavo_buffer *out) {
    dump(rules, false, out);
}

void octavo_rules_dump_table(const octavo_rules *rules, octavo_buffer *out) {
    octavo_buffer_printf(out, "%-28s %-10s %-24s %s\n", "tensor", "kind", "prefill", "generate");
    for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++) {
        const octavo_named_tensor *tensor = octavo_named_tensor_at(i);
        char text[OCTAVO_PHASES][OCTAVO_SPEC_TEXT + 2] = {"", ""};
        for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
            octavo_spec spec;
            bool obliges = false;
            if (!octavo_rules_find(rules, (octavo_phase)phase, tensor->name, -1, OCTAVO_BLOCK_ANY,
                                   &spec, &obliges))
                continue;
            char rule[OCTAVO_SPEC_TEXT];
            octavo_spec_print(&spec, rule);
            snprintf(text[phase], sizeof text[phase], "%s%s", rule, obliges ? " *" : "");
        }
        octavo_buffer_printf(out, "%-28s %-10s %-24s %s\n", tensor->name,
                             tensor->is_weight ? "weight" : "activation",
                             text[OCTAVO_PHASE_PREFILL], text[OCTAVO_PHASE_GENERATE]);
    }
    dump(rules, true, out);
}
