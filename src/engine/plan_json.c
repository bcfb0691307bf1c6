/* SPDX-License-Identifier: Apache-2.0
 *
 * The document of a plan: tensors and what a rank holds.
 */
#include "engine/plan_json.h"

#include "attention/attention.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels/matmul.h"

#include <string.h>

/* ---- parts of a value ---- */

const octavo_axis *octavo_plan_axis(const octavo_planner *planner, int tensor, int i,
                                    octavo_axis *rows) {
    const octavo_tensor *t = &planner->program.tensors[tensor];
    const octavo_axis *axis = octavo_axis_of(&planner->axes, tensor, i);
    if (i > 0 || !strchr("trps", t->axes[0])) return axis;
    *rows = *axis;
    rows->unit = 1;
    rows->n_slices = 1;
    rows->readers = 0;
    rows->extent = t->axes[0] == 's' ? planner->context : planner->options.tokens;
    if (t->axes[0] == 'p') rows->extent *= t->extent[0];
    rows->cut[1] = rows->extent;
    return rows;
}

/* How many of a tensor's own axis one of the program's axis is: 1, but where a weight has heads and
 * their lanes as one axis. */
static int64_t scale_of(const octavo_planner *planner, int tensor, int i, const octavo_axis *axis) {
    const octavo_tensor *t = &planner->program.tensors[tensor];
    const bool is_row = i == 0 && strchr("trps", t->axes[0]);
    if (is_row || axis->extent < 1 || t->extent[i] % axis->extent != 0) return 1;
    return t->extent[i] / axis->extent;
}

double octavo_plan_bytes(const octavo_planner *planner, int tensor, const octavo_layout *layout) {
    const octavo_tensor *t = &planner->program.tensors[tensor];
    double bytes = sizeof(float);
    if (t->kind == OCTAVO_TENSOR_ACTIVATION && t->is_q8)
        bytes = (double)sizeof(octavo_q8_block) / OCTAVO_BLOCK;
    if (t->kind == OCTAVO_TENSOR_CACHE)
        bytes = planner->costs.cache_bytes * (planner->network.config.latent.kv_rank > 0 ? 1 : 2);
    if (t->kind == OCTAVO_TENSOR_WEIGHT) {
        const octavo_weight *w = t->weight;
        bytes = (double)octavo_weight_bytes(w->type, OCTAVO_PANEL, w->k) /
                ((double)OCTAVO_PANEL * (double)w->k);
    }
    for (int i = 0; t->axes[i]; i++) {
        octavo_axis rows;
        const octavo_axis *axis = octavo_plan_axis(planner, tensor, i, &rows);
        bytes *= (double)(octavo_axis_widest(
                              axis, octavo_split_degree(&layout->split[i], &planner->mesh)) *
                          scale_of(planner, tensor, i, axis));
    }
    return bytes / octavo_split_degree(&layout->experts, &planner->mesh);
}

static void put_text(octavo_buffer *out, const char *key, const char *text) {
    octavo_buffer_printf(out, "\"%s\":", key);
    octavo_buffer_json_string(out, text, strlen(text));
}

static void put_split(octavo_buffer *out, const octavo_split *split) {
    if (split->n == 0) {
        octavo_buffer_puts(out, "null");
        return;
    }
    if (split->n > 1) octavo_buffer_putc(out, '[');
    for (int i = 0; i < split->n; i++)
        octavo_buffer_printf(out, "%s\"%s\"", i ? "," : "", octavo_mesh_axis_name(split->axis[i]));
    if (split->n > 1) octavo_buffer_putc(out, ']');
}

/* ---- tensors ---- */

static const char *kind_name(octavo_tensor_kind kind) {
    switch (kind) {
    case OCTAVO_TENSOR_WEIGHT:
    case OCTAVO_TENSOR_VECTOR:
        return "weight";
    case OCTAVO_TENSOR_CACHE:
        return "cache";
    case OCTAVO_TENSOR_INPUT:
        return "input";
    default:
        return "activation";
    }
}

enum { MOST_CUTS = 64 };

static void put_cuts(octavo_buffer *out, const octavo_axis *axis, int degree, int64_t scale) {
    if (degree == 1 || degree > MOST_CUTS || axis->readers > 0) {
        octavo_buffer_puts(out, "null");
        return;
    }
    octavo_buffer_puts(out, "[0");
    for (int i = 0; i < degree; i++)
        octavo_buffer_printf(out, ",%lld",
                             (long long)(octavo_axis_shard(axis, degree, i).end * scale));
    octavo_buffer_putc(out, ']');
}

static void put_axes(const octavo_planner *planner, octavo_buffer *out, int tensor,
                     const octavo_layout *layout, const char *key) {
    const octavo_tensor *t = &planner->program.tensors[tensor];
    octavo_buffer_printf(out, ",\"%s\":[", key);
    for (int i = 0; t->axes[i]; i++) {
        octavo_axis rows;
        const octavo_axis *axis = octavo_plan_axis(planner, tensor, i, &rows);
        const int degree = octavo_split_degree(&layout->split[i], &planner->mesh);
        const int64_t scale = scale_of(planner, tensor, i, axis);
        if (i > 0) octavo_buffer_putc(out, ',');
        if (strcmp(key, "shape") == 0)
            octavo_buffer_printf(out, "%lld", (long long)(axis->extent * scale));
        else if (strcmp(key, "spec") == 0)
            put_split(out, &layout->split[i]);
        else if (strcmp(key, "cuts") == 0)
            put_cuts(out, axis, degree, scale);
        else
            octavo_buffer_printf(out, "%lld",
                                 (long long)(octavo_axis_widest(axis, degree) * scale));
    }
    octavo_buffer_putc(out, ']');
}

/* One tensor of several layers. */
static bool is_alike(const octavo_planner *planner, int a, int b, const octavo_layout *x,
                     const octavo_layout *y) {
    const octavo_tensor *s = &planner->program.tensors[a], *t = &planner->program.tensors[b];
    return s->name == t->name && (s->layer < 0) == (t->layer < 0) && s->is_q8 == t->is_q8 &&
           memcmp(s->extent, t->extent, sizeof s->extent) == 0 && octavo_layout_equal(x, y);
}

static void put_layers(octavo_buffer *out, const int *layers, int n) {
    if (n == 0) {
        octavo_buffer_puts(out, ",\"layers\":null");
        return;
    }
    octavo_buffer_puts(out, ",\"layers\":\"");
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && layers[j] == layers[j - 1] + 1;)
            j++;
        octavo_buffer_printf(out, "%s%d", i ? "," : "", layers[i]);
        if (j > i + 1) octavo_buffer_printf(out, "-%d", layers[j - 1]);
    }
    octavo_buffer_putc(out, '"');
}

typedef struct tensor_list {
    const octavo_planner *planner;
    octavo_layout *layouts; /* [n_tensors] */
    bool *is_done;          /* [n_tensors] */
    int *layers;            /* [n_tensors] */
    bool is_first;
} tensor_list;

static void put_tensor(tensor_list *list, octavo_buffer *out, int tensor, const char *phase) {
    const octavo_planner *planner = list->planner;
    const octavo_program *program = &planner->program;
    const octavo_tensor *t = &program->tensors[tensor];
    const octavo_layout *layout = &list->layouts[tensor];
    int n = 0, count = 0;
    for (int i = tensor; i < program->n_tensors; i++) {
        if (list->is_done[i] || !is_alike(planner, tensor, i, layout, &list->layouts[i])) continue;
        list->is_done[i] = true;
        count++;
        const int layer = program->tensors[i].layer;
        if (layer >= 0 && (n == 0 || list->layers[n - 1] != layer)) list->layers[n++] = layer;
    }
    octavo_buffer_puts(out, list->is_first ? "{" : ",{");
    list->is_first = false;
    put_text(out, "name", t->name);
    octavo_buffer_putc(out, ',');
    put_text(out, "kind", kind_name(t->kind));
    if (phase) {
        octavo_buffer_putc(out, ',');
        put_text(out, "phase", phase);
    }
    put_axes(planner, out, tensor, layout, "shape");
    put_axes(planner, out, tensor, layout, "spec");
    put_axes(planner, out, tensor, layout, "shard_shape");
    octavo_buffer_printf(out, ",\"bytes_per_rank\":%.0f",
                         octavo_plan_bytes(planner, tensor, layout));
    put_axes(planner, out, tensor, layout, "cuts");
    octavo_buffer_printf(out, ",\"count\":%d", count);
    put_layers(out, list->layers, n);
    octavo_buffer_putc(out, '}');
}

static bool is_listed(const octavo_tensor *t, bool is_activation) {
    if (t->kind == OCTAVO_TENSOR_INPUT) return false;
    return (t->kind == OCTAVO_TENSOR_ACTIVATION) == is_activation;
}

static void put_kind(tensor_list *list, octavo_buffer *out, octavo_phase phase, const char *name) {
    const octavo_program *program = &list->planner->program;
    for (int i = 0; i < program->n_tensors; i++) {
        list->layouts[i] =
            octavo_layout_by_rules(program, i, phase, &list->planner->mesh, &list->planner->rules);
        list->is_done[i] = !is_listed(&program->tensors[i], name != NULL);
    }
    for (int i = 0; i < program->n_tensors; i++)
        if (!list->is_done[i]) put_tensor(list, out, i, name);
}

/* Weights and the cache once, activations as the rules of each phase say. */
static void put_tensors(const octavo_planner *planner, octavo_buffer *out) {
    const size_t n = (size_t)planner->program.n_tensors + 1;
    tensor_list list = {.planner = planner, .is_first = true};
    list.layouts = octavo_alloc_zero(n, sizeof *list.layouts);
    list.is_done = octavo_alloc_zero(n, sizeof *list.is_done);
    list.layers = octavo_alloc_zero(n, sizeof *list.layers);
    out->failed |= !list.layouts || !list.is_done || !list.layers;
    octavo_buffer_puts(out, "\"tensors\":[");
    if (!out->failed) {
        put_kind(&list, out, OCTAVO_PHASE_GENERATE, NULL);
        if (octavo_planner_wants(planner, OCTAVO_PHASE_PREFILL))
            put_kind(&list, out, OCTAVO_PHASE_PREFILL, "prefill");
        if (octavo_planner_wants(planner, OCTAVO_PHASE_GENERATE))
            put_kind(&list, out, OCTAVO_PHASE_GENERATE, "generate");
    }
    octavo_buffer_puts(out, "],");
    octavo_free(list.layouts);
    octavo_free(list.is_done);
    octavo_free(list.layers);
}

/* ---- memory ---- */

static double placed_bytes(const octavo_planner *planner, bool is_cache) {
    const octavo_program *program = &planner->program;
    double bytes = 0.0;
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor_kind kind = program->tensors[i].kind;
        const bool is_weight = kind == OCTAVO_TENSOR_WEIGHT || kind == OCTAVO_TENSOR_VECTOR;
        if (is_cache ? kind != OCTAVO_TENSOR_CACHE : !is_weight) continue;
        octavo_layout layout = octavo_layout_by_rules(program, i, OCTAVO_PHASE_GENERATE,
                                                      &planner->mesh, &planner->rules);
        /* one sequence of a full context in each group: a rank keeps its group's */
        double groups = 1.0;
        if (is_cache) {
            if (!octavo_split_has(&layout.split[0], OCTAVO_MESH_DATA))
                groups = planner->mesh.degree[OCTAVO_MESH_DATA];
            /* of positions that are dealt out those of the first */
            const octavo_split deal = octavo_cache_deal(&layout);
            const octavo_attention_splits splits = {.n_parts =
                                                        octavo_split_degree(&deal, &planner->mesh)};
            if (splits.n_parts > 1)
                groups *= (double)octavo_attention_local_position(&splits, planner->context) /
                          (double)planner->context;
            layout.split[0] = (octavo_split){0};
        }
        bytes += octavo_plan_bytes(planner, i, &layout) * groups;
    }
    return bytes;
}

double octavo_plan_placed_bytes(const octavo_planner *planner) {
    return placed_bytes(planner, false) + placed_bytes(planner, true);
}

/* The most that values which are alive at once take. */
static double activation_bytes(const octavo_planner *planner, const octavo_partition *partition) {
    const int n = partition->n_steps;
    double *change = octavo_alloc_zero((size_t)n + 2, sizeof *change);
    int *last = octavo_alloc_zero((size_t)partition->n_values + 1, sizeof *last);
    double now = 0.0, most = 0.0;
    for (int s = 0; change && last && s < n; s++)
        for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
            if (partition->steps[s].in[k] >= 0) last[partition->steps[s].in[k]] = s;
    for (int s = 0; change && last && s < n; s++) {
        const int value = partition->steps[s].out;
        const octavo_value *v = &partition->values[value];
        if (planner->program.tensors[v->tensor].kind != OCTAVO_TENSOR_ACTIVATION) continue;
        if (last[value] < s && value != partition->logits) continue;
        const double bytes = octavo_plan_bytes(planner, v->tensor, &v->layout);
        bool is_in_place = false;
        for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
            is_in_place |= partition->steps[s].in[k] == value;
        if (is_in_place) continue;
        change[s] += bytes;
        change[(value == partition->logits ? n : last[value]) + 1] -= bytes;
    }
    for (int s = 0; change && s < n; s++) {
        now += change[s];
        if (now > most) most = now;
    }
    octavo_free(change);
    octavo_free(last);
    return most;
}

static void put_memory(const octavo_planner *planner, const octavo_partition *partitions,
                       octavo_buffer *out) {
    double activations = 0.0;
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        if (!octavo_planner_wants(planner, (octavo_phase)phase)) continue;
        const double bytes = activation_bytes(planner, &partitions[phase]);
        if (bytes > activations) activations = bytes;
    }
    octavo_buffer_printf(
        out, "\"memory_per_rank\":{\"weights\":%.0f,\"cache\":%.0f,\"activations\":%.0f},",
        placed_bytes(planner, false), placed_bytes(planner, true), activations);
}

/* ---- the whole ---- */

void octavo_plan_put_head(const octavo_planner *planner, octavo_buffer *out) {
    const octavo_model_config *c = &planner->network.config;
    const octavo_plan_options *o = &planner->options;
    octavo_buffer_puts(out, "\"model\":{");
    put_text(out, "architecture", c->architecture);
    octavo_buffer_printf(out,
                         ",\"layers\":%d,\"width\":%lld,\"heads\":%lld,\"kv_heads\":%lld,"
                         "\"head_width\":%lld,\"feed_forward\":%lld,\"experts\":%lld,"
                         "\"vocabulary\":%lld,\"context\":%lld},",
                         c->n_layers, (long long)c->d, (long long)c->n_heads,
                         (long long)c->n_kv_heads, (long long)c->head_dim, (long long)c->ffw,
                         (long long)c->n_experts, (long long)c->vocab, (long long)c->context);
    octavo_buffer_puts(out, "\"mesh\":{");
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        octavo_buffer_printf(out, "%s\"%s\":%d", a ? "," : "", octavo_mesh_axis_name(a),
                             planner->mesh.degree[a]);
    octavo_buffer_printf(out, "},\"ranks\":%d,\"tokens\":%lld,", octavo_mesh_ranks(&planner->mesh),
                         (long long)o->tokens);
    put_text(out, "dtype", planner->type_name);
    octavo_buffer_printf(out, ",\"link_gbps\":%g,\"memory_gbps\":%g,", o->link_gbps,
                         o->memory_gbps);
}

static void put_rules(const octavo_planner *planner, octavo_buffer *out) {
    octavo_buffer text = {0};
    octavo_rules_dump_overrides(&planner->rules, &text);
    octavo_buffer_puts(out, "\"rules\":[");
    bool is_first = true;
    for (size_t begin = 0, end; begin < text.size; begin = end + 1) {
        for (end = begin; end < text.size && text.data[end] != '\n';)
            end++;
        if (end == begin) continue;
        if (!is_first) octavo_buffer_putc(out, ',');
        octavo_buffer_json_string(out, text.data + begin, end - begin);
        is_first = false;
    }
    octavo_buffer_puts(out, "],");
    out->failed |= text.failed;
    octavo_buffer_deinit(&text);
}

/* What a step adds up over ranks: the inputs of a product, or the experts of a combination. NULL:
 * it adds nothing. */
static const octavo_axis *summed_axis(const octavo_planner *planner,
                                      const octavo_partition *partition, int step) {
    const octavo_partition_step *s = &partition->steps[step];
    const octavo_program *program = &planner->program;
    if (s->summed >= 0) return octavo_axis_of(&planner->axes, program->ops[s->summed].in[0], 1);
    if (s->kind != OCTAVO_STEP_RESHARD) return NULL;
    const octavo_value *from = &partition->values[s->in[0]];
    if (from->layout.partial.n == 0 || from->layout.is_owned) return NULL;
    int choice = OCTAVO_NO_TENSOR;
    for (int i = 0; i < program->n_ops; i++)
        if (program->ops[i].kind == OCTAVO_OP_COMBINE && program->ops[i].out == from->tensor)
            choice = program->ops[i].in[1];
    for (int i = 0; i < program->n_ops && choice != OCTAVO_NO_TENSOR; i++)
        if (program->ops[i].kind == OCTAVO_OP_EXPERT_MATMUL && program->ops[i].in[2] == choice)
            return octavo_axis_of(&planner->axes, program->ops[i].in[1], 0);
    return NULL;
}

/* Where sums of ranks do not add up in the tree of the slices. */
static void put_warnings(const octavo_planner *planner, octavo_buffer *out) {
    unsigned long long seen[4] = {0}; /* letters told of */
    bool is_first = true;
    octavo_buffer_puts(out, "\"warnings\":[");
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        const octavo_partition *partition = &planner->partitions[phase];
        for (int s = 0; s < partition->n_steps; s++) {
            const octavo_axis *axis = summed_axis(planner, partition, s);
            if (!axis) continue;
            const octavo_value *from = &partition->values[partition->steps[s].in[0]];
            const int degree = octavo_split_degree(&from->layout.partial, &planner->mesh);
            const unsigned char letter = (unsigned char)axis->letter;
            if (octavo_axis_is_exact(axis, degree) || (seen[letter / 64] >> letter % 64 & 1))
                continue;
            seen[letter / 64] |= 1ull << letter % 64;
            octavo_buffer_printf(out,
                                 "%s\"axis %c (%lld, %d slices) is split over %d ranks: sums are "
                                 "right, but not the same bits as on fewer\"",
                                 is_first ? "" : ",", axis->letter, (long long)axis->extent,
                                 axis->n_slices, degree);
            is_first = false;
        }
    }
    octavo_buffer_puts(out, "]");
}

void octavo_plan_put_summary(const octavo_planner *planner, const octavo_partition *partitions,
                             octavo_buffer *out) {
    octavo_buffer_putc(out, '{');
    put_memory(planner, partitions, out);
    octavo_plan_put_times(planner, partitions, out);
    octavo_buffer_putc(out, '}');
}

void octavo_plan_put_document(const octavo_planner *planner, octavo_buffer *out) {
    octavo_buffer_putc(out, '{');
    octavo_plan_put_head(planner, out);
    put_rules(planner, out);
    put_tensors(planner, out);
    put_memory(planner, planner->partitions, out);
    put_warnings(planner, out);
    for (int phase = 0; phase < OCTAVO_PHASES; phase++)
        if (octavo_planner_wants(planner, (octavo_phase)phase))
            octavo_plan_put_phase(planner, &planner->partitions[phase], out);
    octavo_buffer_puts(out, "}\n");
}
