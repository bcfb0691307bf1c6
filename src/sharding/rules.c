/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/rules.h"

#include "base/compiler.h"
#include "base/error.h"
#include "sharding/rules_part.h"

#include <string.h>

void octavo_rules_init(octavo_rules *rules) {
    *rules = (octavo_rules){.degrees = {1, 1, 1, 1}};
    for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++) {
        const octavo_named_tensor *tensor = octavo_named_tensor_at(i);
        const char *const texts[OCTAVO_PHASES] = {tensor->prefill, tensor->generate};
        for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
            octavo_spec *spec = &rules->base[phase][i];
            octavo_status status =
                octavo_spec_parse(texts[phase], tensor->axes, tensor->name, spec, NULL);
            octavo_assert(status == OCTAVO_OK); /* a test reads the whole table */
            if (status) *spec = octavo_spec_whole((int)strlen(tensor->axes));
        }
    }
}

void octavo_rules_deinit(octavo_rules *rules) {
    octavo_free(rules->overrides);
    octavo_arena_deinit(&rules->arena);
    *rules = (octavo_rules){.overrides = NULL};
}

/* The last override of a tensor in a phase, or NULL. */
static const octavo_override *override_of(const octavo_rules *rules, octavo_phase phase, int tensor,
                                          int layer, octavo_block_kind kind) {
    for (int i = rules->n_overrides - 1; i >= 0; i--) {
        const octavo_override *override = &rules->overrides[i];
        if (override->tensor != tensor || !override->is_in[phase]) continue;
        const octavo_rules_part *part = override->part;
        if (!part) return override;
        if (part->block != OCTAVO_BLOCK_ANY && part->block != kind) continue;
        if (octavo_rules_part_has_layer(part, layer)) return override;
    }
    return NULL;
}

bool octavo_rules_find(const octavo_rules *rules, octavo_phase phase, const char *tensor, int layer,
                       octavo_block_kind kind, octavo_spec *spec, bool *is_override) {
    const int index = octavo_named_tensor_find(tensor);
    if (index < 0) return false;
    const octavo_override *override = override_of(rules, phase, index, layer, kind);
    if (!override && octavo_named_tensor_at(index)->is_weight) {
        phase = OCTAVO_PHASE_GENERATE;
        override = override_of(rules, phase, index, layer, kind);
    }
    *spec = override ? override->spec : rules->base[phase][index];
    if (is_override) *is_override = override != NULL;
    return true;
}

octavo_status octavo_rules_add(octavo_rules *rules, const octavo_override *override,
                               octavo_error *error) {
    if (rules->n_overrides == rules->capacity) {
        const int wanted = rules->capacity ? rules->capacity * 2 : 16;
        const size_t bytes = (size_t)wanted * sizeof *override;
        octavo_override *moved = octavo_realloc(rules->overrides, bytes);
        if (!moved) return octavo_fail_memory(error, "sharding rules", bytes);
        rules->overrides = moved;
        rules->capacity = wanted;
    }
    rules->overrides[rules->n_overrides++] = *override;
    return OCTAVO_OK;
}
