/* SPDX-License-Identifier: Apache-2.0
 *
 * What rules must not ask for, whatever the model: checks that need a mesh or a number of layers.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "sharding/rules.h"
#include "sharding/rules_part.h"

#include <stdio.h>
#include <string.h>

octavo_status octavo_rules_check_layers(const octavo_rules *rules, int n_layers,
                                        octavo_error *error) {
    for (int i = 0; i < rules->n_overrides; i++) {
        const octavo_rules_part *part = rules->overrides[i].part;
        for (int j = 0; part && j < part->n_ranges; j++)
            if (part->ranges[j].last >= n_layers)
                return octavo_fail(error, OCTAVO_ERROR_INVALID,
                                   "rules (sharding.logical_rules.parts): layer %d for \"%s\" is "
                                   "not there; the model's are 0 to %d",
                                   part->ranges[j].last,
                                   octavo_named_tensor_at(rules->overrides[i].tensor)->name,
                                   n_layers - 1);
    }
    return OCTAVO_OK;
}

/* ---- norms ---- */

#define NORM "norm_scale"

/* What norms read or give, tokens first. */
static const char *const normed[] = {"activation_td", "activation_attention_td",
                                     "activation_ffw_td", "prelogit_td"};

/* Whether a tensor can stand outside of layers (-1), or in a layer's block. */
static bool stands_at(const char *name, int layer, octavo_block_kind kind) {
    const int blocks = octavo_named_tensor_at(octavo_named_tensor_find(name))->blocks;
    const int all = OCTAVO_BLOCK_ATTENTION | OCTAVO_BLOCK_DENSE | OCTAVO_BLOCK_MOE;
    return layer < 0 ? blocks == 0 || blocks == all : (blocks & (int)kind) != 0;
}

static bool is_split(const octavo_spec *spec, const octavo_mesh *mesh) {
    return octavo_split_degree(&spec->split[0], mesh) > 1;
}

/* Whether any rule splits norm scales at all: mostly none does, and nothing else is to be done. */
static bool splits_norms(const octavo_rules *rules, const octavo_mesh *mesh) {
    const int norm = octavo_named_tensor_find(NORM);
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        if (is_split(&rules->base[phase][norm], mesh)) return true;
    for (int i = 0; i < rules->n_overrides; i++)
        if (rules->overrides[i].tensor == norm && is_split(&rules->overrides[i].spec, mesh))
            return true;
    return false;
}

/* A mesh axis that splits both the scale and the tokens, or -1. */
static int common_axis(const octavo_spec *scale, const octavo_spec *tokens,
                       const octavo_mesh *mesh) {
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (mesh->degree[a] > 1 && octavo_split_has(&scale->split[0], a) &&
            octavo_split_has(&tokens->split[0], a))
            return a;
    return -1;
}

/* Whether layers differ at all, and are worth naming. */
static bool has_ranges(const octavo_rules *rules) {
    for (int i = 0; i < rules->n_overrides; i++)
        if (rules->overrides[i].part && rules->overrides[i].part->n_ranges > 0) return true;
    return false;
}

static octavo_status check_norm(const octavo_rules *rules, const octavo_mesh *mesh,
                                octavo_phase phase, int layer, octavo_block_kind kind,
                                octavo_error *error) {
    octavo_spec scale, tokens;
    if (!octavo_rules_find(rules, phase, NORM, layer, kind, &scale, NULL)) return OCTAVO_OK;
    for (size_t i = 0; i < OCTAVO_COUNT(normed); i++) {
        if (!stands_at(normed[i], layer, kind) ||
            !octavo_rules_find(rules, phase, normed[i], layer, kind, &tokens, NULL))
            continue;
        const int axis = common_axis(&scale, &tokens, mesh);
        if (axis < 0) continue;
        char split[OCTAVO_SPEC_TEXT], with[OCTAVO_SPEC_TEXT], where[32] = "";
        octavo_spec_print(&scale, split);
        octavo_spec_print(&tokens, with);
        if (layer >= 0 && has_ranges(rules)) snprintf(where, sizeof where, ", layer %d", layer);
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "rules (%s%s): " NORM " %s cuts a norm's sum over \"%s\", which already "
                           "splits the tokens of %s %s, so that ranks with different tokens would "
                           "be added; split " NORM " over another axis or leave it whole (null)",
                           phase == OCTAVO_PHASE_PREFILL ? "prefill" : "generate", where, split,
                           octavo_mesh_axis_name(axis), normed[i], with);
    }
    return OCTAVO_OK;
}

/* Layers at which what holds can change: the begin of each range, and what is behind it. */
static void mark_changes(const octavo_rules *rules, bool *is_change) {
    is_change[0] = true;
    for (int i = 0; i < rules->n_overrides; i++) {
        const octavo_rules_part *part = rules->overrides[i].part;
        for (int j = 0; part && j < part->n_ranges; j++)
            is_change[part->ranges[j].first] = is_change[part->ranges[j].last + 1] = true;
    }
}

octavo_status octavo_rules_check_norms(const octavo_rules *rules, const octavo_mesh *mesh,
                                       octavo_error *error) {
    static const octavo_block_kind kinds[] = {OCTAVO_BLOCK_ATTENTION, OCTAVO_BLOCK_DENSE,
                                              OCTAVO_BLOCK_MOE};
    bool is_change[OCTAVO_RULES_MAX_LAYERS + 1] = {false};
    octavo_status status = OCTAVO_OK;
    if (!splits_norms(rules, mesh)) return OCTAVO_OK;
    mark_changes(rules, is_change);
    for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++) {
        status = check_norm(rules, mesh, (octavo_phase)phase, -1, OCTAVO_BLOCK_ANY, error);
        for (int layer = 0; layer <= OCTAVO_RULES_MAX_LAYERS && !status; layer++)
            for (size_t i = 0; is_change[layer] && i < OCTAVO_COUNT(kinds) && !status; i++)
                status = check_norm(rules, mesh, (octavo_phase)phase, layer, kinds[i], error);
    }
    return status;
}
