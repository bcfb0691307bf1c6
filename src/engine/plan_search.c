/* SPDX-License-Identifier: Apache-2.0
 *
 * A search for rules that cost less time: from the rules in force it tries each change of one mesh
 * axis in one tensor's rule, keeps what is better, and stops when nothing is, or after so many
 * tries that it stays a matter of seconds. The same model, mesh and options always find the same.
 */
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan_json.h"

#include <math.h>
#include <string.h>

enum {
    TRIES = 100000,   /* divided by what grows with the mesh and the program */
    STATES = 24,      /* that the partitioner keeps while it is only asked what something costs */
    MOST_FOUND = 100, /* as octavo_plan_options says */
    MOST_TENSORS = OCTAVO_NAMED_TENSORS,
};

#define BETTER 0.999 /* of the time: less is not worth a rule */
#define SAME   1e-3  /* of the time: two sets of rules that differ by less come to the same */
#define MEMORY 1.1   /* of the given rules' weights and cache: what a set of rules may take */

/* Rules as far as they differ from those given. */
typedef struct choice {
    bool is_set[OCTAVO_PHASES][MOST_TENSORS];
    octavo_spec spec[OCTAVO_PHASES][MOST_TENSORS];
    double seconds[OCTAVO_PHASES]; /* of each phase asked for, else 0 */
} choice;

typedef struct plan_search {
    octavo_planner *planner;
    int n_given;                    /* overrides of the given rules */
    int used[MOST_TENSORS], n_used; /* tensors of the program, in the order of trying */
    bool is_placed[MOST_TENSORS];   /* a weight or a cache: its rule of generate counts in both */
    choice at;                      /* the best so far */
    choice *found;                  /* [n_found], the best first */
    int n_found, most_found;
    int n_left;        /* tries */
    double most_bytes; /* of weights and cache */
} plan_search;

static double seconds_of(const choice *c) {
    double seconds = 0.0;
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        seconds += c->seconds[phase];
    return seconds;
}

/* The planner's rules become the given ones and those of a choice. */
static octavo_status install(plan_search *s, const choice *c, octavo_error *error) {
    octavo_rules *rules = &s->planner->rules;
    octavo_status status = OCTAVO_OK;
    rules->n_overrides = s->n_given;
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        for (int tensor = 0; tensor < MOST_TENSORS && !status; tensor++) {
            if (!c->is_set[phase][tensor]) continue;
            octavo_override override = {
                .tensor = tensor, .is_of_program = true, .spec = c->spec[phase][tensor]};
            override.is_in[phase] = true;
            status = octavo_rules_add(rules, &override, error);
        }
    }
    return status;
}

/* Fills c->seconds of a phase; INVALID where the rules cannot be honoured. */
static octavo_status estimate(plan_search *s, choice *c, int phase, octavo_error *error) {
    octavo_partition partition = {0};
    octavo_status status =
        octavo_planner_partition(s->planner, (octavo_phase)phase, &partition, error);
    s->n_left--;
    if (status) return status;
    c->seconds[phase] = partition.seconds;
    octavo_partition_deinit(&partition);
    return OCTAVO_OK;
}

/* Keeps a choice if it is one of the best. Of those that come to the same the first, which has the
 * fewest rules, is enough. */
static void keep(plan_search *s, const choice *c) {
    const double seconds = seconds_of(c);
    int at = s->n_found;
    for (int i = 0; i < s->n_found; i++)
        if (fabs(seconds_of(&s->found[i]) - seconds) <= SAME * seconds) return;
    while (at > 0 && seconds_of(&s->found[at - 1]) > seconds)
        at--;
    if (at == s->most_found) return;
    if (s->n_found < s->most_found) s->n_found++;
    memmove(&s->found[at + 1], &s->found[at], (size_t)(s->n_found - 1 - at) * sizeof *s->found);
    s->found[at] = *c;
}

/* What holds for a tensor in all layers, parts aside; without axes that split nothing. */
static octavo_spec spec_in(const plan_search *s, const choice *c, int phase, int tensor) {
    octavo_spec spec = {0};
    if (c->is_set[phase][tensor]) return c->spec[phase][tensor];
    octavo_rules_find(&s->planner->rules, (octavo_phase)phase, octavo_named_tensor_at(tensor)->name,
                      -1, OCTAVO_BLOCK_ANY, &spec, NULL);
    for (int i = 0; i < spec.n; i++)
        spec.split[i] = octavo_split_reduce(&spec.split[i], &s->planner->mesh);
    return spec;
}

/* `mesh_axis` splits axis `to` of the tensor, inside the others, or none (-1). */
static octavo_spec moved(octavo_spec spec, int mesh_axis, int to) {
    for (int i = 0; i < spec.n; i++) {
        octavo_split kept = {0};
        for (int k = 0; k < spec.split[i].n; k++)
            if (spec.split[i].axis[k] != mesh_axis)
                kept = octavo_split_add(kept, spec.split[i].axis[k]);
        spec.split[i] = kept;
    }
    if (to >= 0) spec.split[to] = octavo_split_add(spec.split[to], mesh_axis);
    return spec;
}

/* Tries a rule, and adopts it if it is better. What cannot be honoured is passed over. */
static octavo_status try_rule(plan_search *s, int phase, int tensor, const octavo_spec *spec,
                              bool *is_better, octavo_error *error) {
    choice tried = s->at;
    octavo_error why;
    tried.is_set[phase][tensor] = true;
    tried.spec[phase][tensor] = *spec;
    octavo_status status = install(s, &tried, error);
    if (status) return status;
    if (s->is_placed[tensor] && octavo_plan_placed_bytes(s->planner) > s->most_bytes)
        return OCTAVO_OK;
    status = octavo_rules_check_norms(&s->planner->rules, &s->planner->mesh, &why);
    for (int p = 0; p < OCTAVO_PHASES && !status; p++)
        if (octavo_planner_wants(s->planner, (octavo_phase)p) &&
            (p == phase || s->is_placed[tensor]))
            status = estimate(s, &tried, p, &why);
    if (status == OCTAVO_ERROR_MEMORY) return octavo_fail(error, status, "%s", why.message);
    if (status) return OCTAVO_OK;
    keep(s, &tried);
    if (seconds_of(&tried) >= seconds_of(&s->at) * BETTER) return OCTAVO_OK;
    s->at = tried;
    *is_better = true;
    return OCTAVO_OK;
}

/* All changes of one tensor's rule. */
static octavo_status try_tensor(plan_search *s, int phase, int tensor, bool *is_better,
                                octavo_error *error) {
    const octavo_mesh *mesh = &s->planner->mesh;
    for (int axis = 0; axis < OCTAVO_MESH_AXES; axis++) {
        const int n = (int)strlen(octavo_named_tensor_at(tensor)->axes);
        if (mesh->degree[axis] == 1) continue;
        for (int to = -1; to < n && s->n_left > 0; to++) {
            octavo_status status = install(s, &s->at, error);
            if (status) return status;
            const octavo_spec now = spec_in(s, &s->at, phase, tensor);
            const octavo_spec spec = moved(now, axis, to);
            if (octavo_spec_equal(&spec, &now)) continue;
            status = try_rule(s, phase, tensor, &spec, is_better, error);
            if (status) return status;
        }
    }
    return OCTAVO_OK;
}

static octavo_status climb(plan_search *s, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    bool is_better = true;
    while (is_better && !status && s->n_left > 0) {
        is_better = false;
        for (int i = 0; i < s->n_used && !status; i++) {
            const int tensor = s->used[i];
            for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++) {
                if (s->is_placed[tensor] ? phase != OCTAVO_PHASE_GENERATE
                                         : !octavo_planner_wants(s->planner, (octavo_phase)phase))
                    continue;
                status = try_tensor(s, phase, tensor, &is_better, error);
            }
        }
    }
    return status;
}

/* Values of a tensor of the program, in all. */
static double values_of(const octavo_planner *planner, int tensor) {
    const octavo_tensor *t = &planner->program.tensors[tensor];
    double values = 1.0;
    for (int i = 0; t->axes[i]; i++) {
        octavo_axis rows;
        values *= (double)octavo_plan_axis(planner, tensor, i, &rows)->extent;
    }
    return values;
}

/* The tensors that the program has: activations first, the largest first, since they move in every
 * step. */
static void find_tensors(plan_search *s) {
    const octavo_program *program = &s->planner->program;
    double values[MOST_TENSORS] = {0.0};
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *t = &program->tensors[i];
        const int index = octavo_named_tensor_find(t->name);
        if (index < 0 || t->kind == OCTAVO_TENSOR_INPUT) continue;
        values[index] += values_of(s->planner, i);
        if (t->kind != OCTAVO_TENSOR_ACTIVATION) s->is_placed[index] = true;
    }
    for (int index = 0; index < MOST_TENSORS; index++) {
        int at = s->n_used;
        if (values[index] <= 0.0) continue;
        for (; at > 0; at--) {
            const int before = s->used[at - 1];
            if (s->is_placed[before] != s->is_placed[index] ? s->is_placed[index]
                                                            : values[before] >= values[index])
                break;
            s->used[at] = before;
        }
        s->used[at] = index;
        s->n_used++;
    }
}

/* Fewer tries where each takes long. */
static int tries_of(const octavo_planner *planner) {
    int n_axes = 1;
    for (int axis = 0; axis < OCTAVO_MESH_AXES; axis++)
        n_axes *= planner->mesh.degree[axis] > 1 ? 3 : 1;
    const int tries = TRIES / (n_axes * (1 + planner->program.n_ops / 64));
    return tries < 60 ? 60 : tries > 1500 ? 1500 : tries;
}

/* The times of those that were found as a plan tells them, and their order. */
static octavo_status settle(plan_search *s, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    s->planner->costs.most_states = 0;
    for (int i = 0; i < s->n_found && !status; i++) {
        choice c = s->found[i];
        int at = i;
        status = install(s, &c, error);
        for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++)
            if (octavo_planner_wants(s->planner, (octavo_phase)phase))
                status = estimate(s, &c, phase, error);
        for (; at > 0 && seconds_of(&s->found[at - 1]) > seconds_of(&c); at--)
            s->found[at] = s->found[at - 1];
        s->found[at] = c;
    }
    return status;
}

/* ---- the document ---- */

static void put_spec(octavo_buffer *out, const octavo_spec *spec) {
    octavo_buffer_putc(out, '[');
    for (int i = 0; i < spec->n; i++) {
        const octavo_split *split = &spec->split[i];
        octavo_buffer_puts(out, i ? "," : "");
        octavo_buffer_puts(out, split->n == 0 ? "null" : split->n > 1 ? "[" : "");
        for (int k = 0; k < split->n; k++)
            octavo_buffer_printf(out, "%s\"%s\"", k ? "," : "",
                                 octavo_mesh_axis_name(split->axis[k]));
        octavo_buffer_puts(out, split->n > 1 ? "]" : "");
    }
    octavo_buffer_putc(out, ']');
}

/* {"prefill": {TENSOR: RULE}, "generate": {...}}, which may stand in a file. */
static void put_rules(octavo_buffer *out, const choice *c) {
    static const char *const phases[OCTAVO_PHASES] = {"prefill", "generate"};
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        bool is_first = true;
        octavo_buffer_printf(out, "%s\"%s\":{", phase ? "," : "{", phases[phase]);
        for (int tensor = 0; tensor < MOST_TENSORS; tensor++) {
            if (!c->is_set[phase][tensor]) continue;
            octavo_buffer_printf(out, "%s\"%s\":", is_first ? "" : ",",
                                 octavo_named_tensor_at(tensor)->name);
            put_spec(out, &c->spec[phase][tensor]);
            is_first = false;
        }
        octavo_buffer_putc(out, '}');
    }
    octavo_buffer_putc(out, '}');
}

/* As a plan with these rules would say it. */
static octavo_status put_found(plan_search *s, const choice *c, octavo_buffer *out,
                               octavo_error *error) {
    octavo_partition partitions[OCTAVO_PHASES];
    memset(partitions, 0, sizeof partitions);
    octavo_status status = install(s, c, error);
    for (int phase = 0; phase < OCTAVO_PHASES && !status; phase++)
        if (octavo_planner_wants(s->planner, (octavo_phase)phase))
            status = octavo_planner_partition(s->planner, (octavo_phase)phase, &partitions[phase],
                                              error);
    if (!status) {
        octavo_buffer_puts(out, "{\"rules\":");
        put_rules(out, c);
        octavo_buffer_puts(out, ",\"summary\":");
        octavo_plan_put_summary(s->planner, partitions, out);
        octavo_buffer_putc(out, '}');
    }
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        octavo_partition_deinit(&partitions[phase]);
    return status;
}

octavo_status octavo_plan_search(octavo_planner *planner, octavo_buffer *out, octavo_error *error) {
    plan_search *s = octavo_alloc_zero(1, sizeof *s);
    if (!s) return octavo_fail_memory(error, "search", sizeof *s);
    s->planner = planner;
    s->n_given = planner->rules.n_overrides;
    s->most_found = planner->options.search < MOST_FOUND ? planner->options.search : MOST_FOUND;
    s->n_left = tries_of(planner);
    s->most_bytes = octavo_plan_placed_bytes(planner) * MEMORY;
    s->found = octavo_alloc_zero((size_t)s->most_found + 1, sizeof *s->found);
    octavo_status status = OCTAVO_OK;
    if (!s->found) status = octavo_fail_memory(error, "search", sizeof *s->found);
    find_tensors(s);
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        if (octavo_planner_wants(planner, (octavo_phase)phase))
            s->at.seconds[phase] = planner->partitions[phase].seconds;
    planner->costs.most_states = STATES;
    if (!status) {
        keep(s, &s->at);
        status = climb(s, error);
    }
    if (!status) status = settle(s, error);
    octavo_buffer_putc(out, '{');
    octavo_plan_put_head(planner, out);
    octavo_buffer_puts(out, "\"search\":[");
    for (int i = 0; i < s->n_found && !status; i++) {
        if (i > 0) octavo_buffer_putc(out, ',');
        status = put_found(s, &s->found[i], out, error);
    }
    octavo_buffer_puts(out, "]}\n");
    octavo_free(s->found);
    octavo_free(s);
    return status;
}
