/* SPDX-License-Identifier: Apache-2.0
 *
 * Meshes, splits and groups of collectives, from JSON.
 */
#include "cli/plan_document.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const char *const AXES[OCTAVO_VIEW_AXES] = {"data", "expert", "seq", "model"};

const char *octavo_view_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

double octavo_view_number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

const char *octavo_view_axis_name(int axis) {
    return AXES[axis];
}

octavo_view_mesh octavo_view_mesh_of(const json_t *plan) {
    const json_t *given = json_object_get(plan, "mesh");
    octavo_view_mesh mesh = {.degree = {1, 1, 1, 1}, .ranks = 1};
    for (int i = 0; i < OCTAVO_VIEW_AXES; i++) {
        const int64_t degree = json_integer_value(json_object_get(given, AXES[i]));
        if (degree < 1) continue;
        if (degree > OCTAVO_VIEW_MAX_RANKS / mesh.ranks)
            return (octavo_view_mesh){.degree = {1, 1, 1, 1}, .ranks = 1};
        mesh.degree[i] = degree;
        mesh.ranks *= degree;
    }
    return mesh;
}

int64_t octavo_view_place(const octavo_view_mesh *mesh, int64_t rank, int axis) {
    for (int i = OCTAVO_VIEW_AXES - 1; i > axis; i--)
        rank /= mesh->degree[i];
    return rank % mesh->degree[axis];
}

static void add_axis(octavo_view_split *split, const json_t *name) {
    for (int i = 0; i < OCTAVO_VIEW_AXES; i++) {
        if (!json_is_string(name) || strcmp(json_string_value(name), AXES[i]) != 0) continue;
        /* once: so degrees stay under the ranks of the mesh */
        if (!(split->seen & 1u << i)) split->axis[split->n++] = i;
        split->seen |= 1u << i;
    }
}

octavo_view_split octavo_view_split_of(const json_t *entry) {
    octavo_view_split split = {0};
    size_t i;
    json_t *name;
    add_axis(&split, entry);
    json_array_foreach(entry, i, name) add_axis(&split, name);
    return split;
}

int64_t octavo_view_split_degree(const octavo_view_split *split, const octavo_view_mesh *mesh) {
    int64_t degree = 1;
    for (int i = 0; i < split->n; i++)
        degree *= mesh->degree[split->axis[i]];
    return degree;
}

int64_t octavo_view_split_index(const octavo_view_split *split, const octavo_view_mesh *mesh,
                                int64_t rank) {
    int64_t index = 0;
    for (int i = 0; i < split->n; i++) {
        const int axis = split->axis[i];
        index = index * mesh->degree[axis] + octavo_view_place(mesh, rank, axis);
    }
    return index;
}

const char *octavo_view_phase_name(int phase) {
    return phase == 0 ? "prefill" : "generate";
}

/* ---- groups of collectives ---- */

int64_t octavo_view_layer(const json_t *op) {
    const json_t *layer = json_object_get(op, "layer");
    const int64_t number = json_is_integer(layer) ? json_integer_value(layer) : -1;
    return number >= 0 && number < INT32_MAX ? number : -1;
}

static bool is_alike(const json_t *a, const json_t *b) {
    static const char *const keys[] = {"op",    "tensor",     "axes",  "group",
                                       "bytes", "wire_bytes", "reason"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        if (x != y && !json_equal(x, y)) return false;
    }
    return (octavo_view_layer(a) < 0) == (octavo_view_layer(b) < 0);
}

static void add_to(octavo_view_group *group, int64_t layer) {
    group->count++;
    if (layer < 0 || layer == group->to) return;
    group->n_layers++;
    if (layer < group->from) group->from = layer;
    if (layer > group->to) group->to = layer;
}

bool octavo_view_same_layers(const octavo_view_group *a, const octavo_view_group *b) {
    return a->from == b->from && a->to == b->to && a->n_layers == b->n_layers;
}

/* Behind each group the others of its layers, in their order. */
static void gather_layers(octavo_view_groups *groups) {
    size_t done = 0;
    while (done < groups->n) {
        const octavo_view_group head = groups->items[done++];
        for (size_t i = done; i < groups->n; i++) {
            const octavo_view_group group = groups->items[i];
            if (!octavo_view_same_layers(&group, &head)) continue;
            memmove(&groups->items[done + 1], &groups->items[done], (i - done) * sizeof group);
            groups->items[done++] = group;
        }
    }
}

bool octavo_view_groups_make(const json_t *phase, octavo_view_groups *groups) {
    const json_t *collectives = json_object_get(phase, "collectives");
    octavo_view_groups made = {
        .items = octavo_alloc_zero(json_array_size(collectives) + 1, sizeof(octavo_view_group))};
    size_t i, g;
    json_t *collective;
    if (!made.items) return false;
    json_array_foreach(collectives, i, collective) {
        const int64_t layer = octavo_view_layer(collective);
        for (g = 0; g < made.n && !is_alike(made.items[g].first, collective); g++) {
        }
        if (g == made.n)
            made.items[made.n++] = (octavo_view_group){.first = collective,
                                                       .count = 1,
                                                       .from = layer,
                                                       .to = layer,
                                                       .n_layers = layer >= 0};
        else
            add_to(&made.items[g], layer);
    }
    gather_layers(&made);
    *groups = made;
    return true;
}

void octavo_view_groups_deinit(octavo_view_groups *groups) {
    octavo_free(groups->items);
    *groups = (octavo_view_groups){0};
}

int64_t octavo_view_layers_count(const char *layers) {
    int64_t count = 0;
    /* "0-2,5": ranges */
    while (*layers) {
        char *end;
        const long from = strtol(layers, &end, 10);
        long to = from;
        if (end == layers) break;
        if (*end == '-') to = strtol(end + 1, &end, 10);
        if (from < 0 || to > INT32_MAX) break;
        count += to >= from ? to - from + 1 : 1;
        layers = end + strspn(end, ", ");
    }
    return count > 0 ? count : 1;
}

int64_t octavo_view_count(const json_t *tensor) {
    const int64_t count = json_integer_value(json_object_get(tensor, "count"));
    return count > 0 ? count : octavo_view_layers_count(octavo_view_text(tensor, "layers"));
}

int octavo_view_section_of(const json_t *tensor) {
    const char *kind = octavo_view_text(tensor, "kind"), *phase = octavo_view_text(tensor, "phase");
    if (strcmp(kind, "weight") == 0) return 0;
    if (strcmp(kind, "cache") == 0) return 1;
    return strcmp(phase, "prefill") == 0 ? 3 : strcmp(phase, "generate") == 0 ? 4 : 2;
}

const char *octavo_view_section_name(int section) {
    static const char *const names[OCTAVO_VIEW_SECTIONS] = {
        "Weights", "Cache", "Activations", "Activations, prefill", "Activations, generate"};
    return names[section];
}

double octavo_view_memory(const json_t *plan) {
    const json_t *memory = json_object_get(plan, "memory_per_rank");
    return octavo_view_number(memory, "weights") + octavo_view_number(memory, "cache") +
           octavo_view_number(memory, "activations");
}

bool octavo_view_is_search(const json_t *document) {
    return json_is_array(json_object_get(document, "search"));
}

bool octavo_view_is_compare(const json_t *document) {
    return json_array_size(json_object_get(document, "compare")) == 2;
}
