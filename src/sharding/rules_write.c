/* SPDX-License-Identifier: Apache-2.0
 *
 * Overrides back to JSON. Of each tensor what holds in the end is written, in the first group that
 * says it: what was overridden again is gone, and what both phases took from one place is in "all".
 */
#include "sharding/rules.h"
#include "sharding/rules_part.h"

typedef enum group { ALL, PREFILL, GENERATE, GROUPS } group;

static void put_rule(const octavo_spec *spec, octavo_buffer *out) {
    for (int i = 0; i < spec->n; i++) {
        const octavo_split *split = &spec->split[i];
        octavo_buffer_puts(out, i ? ", " : "[");
        if (split->n == 0) octavo_buffer_puts(out, "null");
        for (int j = 0; j < split->n; j++)
            octavo_buffer_printf(out, "%s\"%s\"",
                                 j              ? ", "
                                 : split->n > 1 ? "["
                                                : "",
                                 octavo_mesh_axis_name(split->axis[j]));
        if (split->n > 1) octavo_buffer_putc(out, ']');
    }
    octavo_buffer_putc(out, ']');
}

/* The last override for just this part, or NULL. */
static const octavo_override *last_of(const octavo_rules *rules, const octavo_rules_part *part,
                                      int tensor, octavo_phase phase) {
    for (int i = rules->n_overrides - 1; i >= 0; i--) {
        const octavo_override *override = &rules->overrides[i];
        if (override->tensor == tensor && override->part == part && override->is_in[phase])
            return override;
    }
    return NULL;
}

static const octavo_override *in_group(const octavo_rules *rules, const octavo_rules_part *part,
                                       int tensor, group which) {
    const octavo_override *prefill = last_of(rules, part, tensor, OCTAVO_PHASE_PREFILL),
                          *generate = last_of(rules, part, tensor, OCTAVO_PHASE_GENERATE);
    if (prefill == generate) return which == ALL ? prefill : NULL;
    if (which == ALL) return NULL;
    return which == PREFILL ? prefill : generate;
}

/* "all": {...}, "prefill": {...}, as far as there is something in them. */
static void put_groups(const octavo_rules *rules, const octavo_rules_part *part, bool *is_first,
                       octavo_buffer *out) {
    static const char *const names[GROUPS] = {"all", "prefill", "generate"};
    for (int which = 0; which < GROUPS; which++) {
        bool is_open = false;
        for (int tensor = 0; tensor < OCTAVO_NAMED_TENSORS; tensor++) {
            const octavo_override *override = in_group(rules, part, tensor, (group)which);
            if (!override) continue;
            if (is_open)
                octavo_buffer_puts(out, ", ");
            else
                octavo_buffer_printf(out, "%s\"%s\": {", *is_first ? "" : ", ", names[which]);
            is_open = true;
            *is_first = false;
            octavo_buffer_printf(out, "\"%s\": ", octavo_named_tensor_at(tensor)->name);
            put_rule(&override->spec, out);
        }
        if (is_open) octavo_buffer_putc(out, '}');
    }
}

void octavo_rules_dump_json(const octavo_rules *rules, octavo_buffer *out) {
    const octavo_rules_part *last = NULL;
    bool is_first = true;
    octavo_buffer_putc(out, '{');
    put_groups(rules, NULL, &is_first, out);
    for (int i = 0; i < rules->n_overrides; i++) { /* those of a part lie next to one another */
        const octavo_rules_part *part = rules->overrides[i].part;
        if (!part || part == last) continue;
        bool is_bare = part->n_ranges == 0 && part->block == OCTAVO_BLOCK_ANY;
        octavo_buffer_puts(out, last ? ", {" : is_first ? "\"parts\": [{" : ", \"parts\": [{");
        octavo_rules_part_print_json(part, out);
        put_groups(rules, part, &is_bare, out);
        octavo_buffer_putc(out, '}');
        last = part;
    }
    octavo_buffer_puts(out, last ? "]}" : "}");
}
