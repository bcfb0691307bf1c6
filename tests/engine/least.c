/* SPDX-License-Identifier: Apache-2.0 */
#include "least.h"

#include "kernels/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS, COLUMNS, DIMS };
enum { MOST_NODES = 544 }; /* of four mesh axes: 536 */

/* A layout: mesh axes of each axis of the tensor, outermost first, and those of a sum. */
typedef struct node {
    octavo_split split[DIMS];
    unsigned sum;
} node;

/* All layouts of a tensor and what it takes to get from one to another. */
typedef struct graph {
    double extent[DIMS], element; /* bytes */
    double *way;                  /* [n, n] */
} graph;

/* A number for each layout: the bytes from there on. */
typedef double *costs;

/* A weight: inputs, then outputs. */
typedef struct weight {
    graph graph;
    int placed;   /* layout */
    int slices;   /* of its inputs */
    double lanes; /* outputs in a step of its axis */
} weight;

typedef struct least {
    const least_dims *dims;
    const octavo_mesh *mesh;
    const octavo_rules *rules;
    octavo_phase phase;
    node nodes[MOST_NODES];
    int n;
    graph td, tn, tk, tf, tv;
    weight q, k, v, o, up, down, head;
    costs *ups; /* [n] of gate or up, to each layout in which they meet */
} least;

static costs make_costs(const least *l) {
    costs c = malloc((size_t)l->n * sizeof *c);
    if (!c) abort();
    for (int i = 0; i < l->n; i++)
        c[i] = (double)INFINITY;
    return c;
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

/* ---- layouts ---- */

static unsigned bits_of(const octavo_split *split) {
    unsigned bits = 0;
    for (int i = 0; i < split->n; i++)
        bits |= 1u << split->axis[i];
    return bits;
}

static double ranks_of(const least *l, unsigned bits) {
    double n = 1.0;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (bits >> a & 1) n *= l->mesh->degree[a];
    return n;
}

static octavo_split insert(const octavo_split *split, int at, int axis) {
    octavo_split made = {0};
    for (int i = 0; i <= split->n; i++) {
        if (i == at) made = octavo_split_add(made, axis);
        if (i < split->n) made = octavo_split_add(made, split->axis[i]);
    }
    return made;
}

static void enumerate(least *l, const node *at, int axis) {
    while (axis < OCTAVO_MESH_AXES && l->mesh->degree[axis] == 1)
        axis++;
    if (axis == OCTAVO_MESH_AXES) {
        l->nodes[l->n++] = *at;
        return;
    }
    node next = *at;
    enumerate(l, &next, axis + 1);
    next.sum |= 1u << axis;
    enumerate(l, &next, axis + 1);
    for (int d = 0; d < DIMS; d++) {
        for (int i = 0; i <= at->split[d].n; i++) {
            next = *at;
            next.split[d] = insert(&at->split[d], i, axis);
            enumerate(l, &next, axis + 1);
        }
    }
}

static int find(const least *l, const octavo_split *rows, const octavo_split *columns,
                unsigned sum) {
    for (int i = 0; i < l->n; i++)
        if (l->nodes[i].sum == sum && octavo_split_equal(&l->nodes[i].split[ROWS], rows) &&
            octavo_split_equal(&l->nodes[i].split[COLUMNS], columns))
            return i;
    abort();
}

/* Tokens belong to their group first. */
static bool has_rows_of_groups(const node *a) {
    const octavo_split *rows = &a->split[ROWS];
    return !octavo_split_has(rows, OCTAVO_MESH_DATA) || rows->axis[0] == OCTAVO_MESH_DATA;
}

static octavo_split data_first(const octavo_split *split) {
    octavo_split rows = {0};
    if (octavo_split_has(split, OCTAVO_MESH_DATA)) rows = octavo_split_add(rows, OCTAVO_MESH_DATA);
    for (int i = 0; i < split->n; i++)
        if (split->axis[i] != OCTAVO_MESH_DATA) rows = octavo_split_add(rows, split->axis[i]);
    return rows;
}

/* ---- exchanges ---- */

static double bytes_of(const least *l, const graph *g, const node *a) {
    double bytes = g->element;
    for (int d = 0; d < DIMS; d++)
        bytes *= fmax(1.0, g->extent[d] / ranks_of(l, bits_of(&a->split[d])));
    return bytes;
}

/* One exchange without sums: a gather, an all-to-all, a permute, or none where a rank has what it
 * needs. */
static double exchange(const least *l, const graph *g, const node *from, const node *to) {
    unsigned moving = 0;
    bool is_permute = false;
    for (int d = 0; d < DIMS; d++) {
        const octavo_split *f = &from->split[d], *t = &to->split[d];
        int same = 0;
        while (same < f->n && same < t->n && f->axis[same] == t->axis[same])
            same++;
        for (int i = same; i < f->n; i++) {
            moving |= 1u << f->axis[i];
            is_permute |= octavo_split_has(t, f->axis[i]);
        }
    }
    const double n = ranks_of(l, moving), bytes = bytes_of(l, g, to);
    if (moving == 0) return 0.0;
    return is_permute ? bytes : (n - 1.0) / n * bytes;
}

/* One mesh axis of a sum becomes the innermost split of an axis: a reduce-scatter. */
static double scatter(const least *l, const graph *g, const node *from, const node *to) {
    for (int d = 0; d < DIMS; d++) {
        node made = *from;
        if (to->split[d].n != from->split[d].n + 1) continue;
        const int axis = to->split[d].axis[from->split[d].n];
        if (!(from->sum >> axis & 1)) continue;
        made.split[d] = octavo_split_add(made.split[d], axis);
        if (octavo_split_equal(&made.split[d], &to->split[d]) &&
            octavo_split_equal(&made.split[1 - d], &to->split[1 - d]) &&
            to->sum == (from->sum & ~(1u << axis)))
            return (l->mesh->degree[axis] - 1.0) * bytes_of(l, g, to);
    }
    return (double)INFINITY;
}

/* Shortest chains between all layouts. */
static graph make_graph(const least *l, double rows, double columns, double element,
                        bool has_tokens) {
    graph g = {.extent = {rows, columns}, .element = element};
    const int n = l->n;
    g.way = malloc((size_t)n * (size_t)n * sizeof *g.way);
    if (!g.way) abort();
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const node *a = &l->nodes[i], *b = &l->nodes[j];
            double way = (double)INFINITY;
            if (!has_tokens || (has_rows_of_groups(a) && has_rows_of_groups(b)))
                way = a->sum == b->sum ? exchange(l, &g, a, b) : scatter(l, &g, a, b);
            g.way[i * n + j] = i == j ? 0.0 : way;
        }
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++) {
            const double first = g.way[i * n + k];
            if (isinf(first)) continue;
            for (int j = 0; j < n; j++)
                g.way[i * n + j] = smaller(g.way[i * n + j], first + g.way[k * n + j]);
        }
    return g;
}

static double way(const least *l, const graph *g, int from, int to) {
    return g->way[from * l->n + to];
}

/* ---- rules ---- */

/* The layout that a tensor of two axes (rows, or inputs, first) has by its rule; `last`: of three
 * axes the first and the last, else the first two. */
static int ruled(const least *l, const char *name, bool last, bool *is_override) {
    octavo_spec spec;
    octavo_split split[DIMS];
    if (!octavo_rules_find(l->rules, l->phase, name, 0, OCTAVO_BLOCK_ANY, &spec, is_override))
        abort();
    split[ROWS] = octavo_split_reduce(&spec.split[0], l->mesh);
    split[COLUMNS] = octavo_split_reduce(&spec.split[last ? 2 : 1], l->mesh);
    if (!octavo_named_tensor_at(octavo_named_tensor_find(name))->is_weight)
        split[ROWS] = data_first(&split[ROWS]);
    return find(l, &split[ROWS], &split[COLUMNS], 0);
}

/* What follows when the tensor is first brought to any layout from which `after` goes on; by way
 * of its rule where an override speaks of it. */
static costs held(const least *l, const graph *g, costs after, const char *name) {
    bool is_override = false;
    const int rule = name ? ruled(l, name, false, &is_override) : 0;
    costs before = make_costs(l);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && !is_override) break;
        const double from_rule = before[rule];
        for (int i = 0; i < l->n; i++) {
            double best = (double)INFINITY;
            if (pass == 1) best = way(l, g, i, rule) + from_rule;
            for (int j = 0; pass == 0 && j < l->n; j++)
                best = smaller(best, way(l, g, i, j) + after[j]);
            before[i] = best;
        }
    }
    free(after);
    return before;
}

/* ---- ops, from what follows to what is before ---- */

/* Can the weight move to the layout? A part of what a rank has is there already; else whole panels
 * of outputs move. */
static bool can_move(const least *l, const weight *w, int to) {
    const int ends[] = {w->placed, to};
    if (way(l, &w->graph, w->placed, to) == 0.0) return true;
    for (int i = 0; i < 2; i++) {
        const double degree = ranks_of(l, bits_of(&l->nodes[ends[i]].split[COLUMNS]));
        const double outputs = w->graph.extent[COLUMNS] / degree * w->lanes;
        if (degree > 1.0 && fmod(outputs, l->dims->panel) != 0.0) return false;
    }
    return true;
}

/* Each mesh axis splits tokens, inputs (which leaves a sum), outputs or nothing; the weight comes
 * from where it is placed. */
static costs matmul(const least *l, const costs after, const weight *w) {
    const unsigned placed_inputs = bits_of(&l->nodes[w->placed].split[ROWS]);
    costs before = make_costs(l);
    for (int to = 0; to < l->n; to++) {
        const node *b = &l->nodes[to];
        const unsigned sum = bits_of(&b->split[ROWS]);
        if (b->sum || (sum != placed_inputs && ranks_of(l, sum) > w->slices) || !can_move(l, w, to))
            continue;
        for (int x = 0; x < l->n; x++) {
            const node *a = &l->nodes[x];
            if (a->sum || !has_rows_of_groups(a) ||
                !octavo_split_equal(&a->split[COLUMNS], &b->split[ROWS]) ||
                (bits_of(&b->split[COLUMNS]) & bits_of(&a->split[ROWS])))
                continue;
            const int out = find(l, &a->split[ROWS], &b->split[COLUMNS], sum);
            before[x] = smaller(before[x], way(l, &w->graph, w->placed, to) + after[out]);
        }
    }
    return before;
}

/* A norm takes whole rows, since no width of these models has slices. */
static void norm(const least *l, costs after) {
    for (int i = 0; i < l->n; i++)
        if (l->nodes[i].sum || l->nodes[i].split[COLUMNS].n > 0) after[i] = (double)INFINITY;
}

static void no_sums(const least *l, costs after) {
    for (int i = 0; i < l->n; i++)
        if (l->nodes[i].sum) after[i] = (double)INFINITY;
}

/* Several take the tensor: it is brought somewhere, from there to one of them and to the rest. */
static costs both(const least *l, const graph *g, costs a, costs b) {
    for (int i = 0; i < l->n; i++)
        a[i] += b[i];
    free(b);
    return held(l, g, a, NULL);
}

static costs reach(const least *l, const graph *g, int target) {
    costs c = make_costs(l);
    for (int i = 0; i < l->n; i++)
        c[i] = way(l, g, i, target);
    return c;
}

static costs copy(const least *l, const costs a) {
    costs c = make_costs(l);
    memcpy(c, a, (size_t)l->n * sizeof *c);
    return c;
}

/* Keys or values, to the ranks that keep them. */
static costs to_cache(const least *l, const weight *w, int cache) {
    costs after = reach(l, &l->tk, cache);
    costs before = held(l, &l->td, matmul(l, after, w), NULL);
    free(after);
    return before;
}

static int cache_rows(const least *l) {
    octavo_spec spec;
    octavo_split rows = {0};
    octavo_rules_find(l->rules, OCTAVO_PHASE_GENERATE, "keyvalue_skh", 0, OCTAVO_BLOCK_ANY, &spec,
                      NULL);
    const octavo_split slots = octavo_split_reduce(&spec.split[0], l->mesh);
    const octavo_split heads = octavo_split_reduce(&spec.split[1], l->mesh);
    if (octavo_split_has(&slots, OCTAVO_MESH_DATA)) rows = octavo_split_add(rows, OCTAVO_MESH_DATA);
    return find(l, &rows, &heads, 0);
}

/* Query heads of the key/value heads that a rank keeps, tokens of its sequences. */
static bool can_attend(const node *q, const node *cache) {
    const octavo_split *heads = &q->split[COLUMNS], *kept = &cache->split[COLUMNS];
    if (q->sum || heads->n < kept->n) return false;
    for (int i = 0; i < kept->n; i++)
        if (heads->axis[i] != kept->axis[i]) return false;
    return cache->split[ROWS].n == 0 || octavo_split_has(&q->split[ROWS], OCTAVO_MESH_DATA);
}

/* From the input of q, k and v to the residual's layout `sum`. */
static costs attention(least *l, int sum) {
    const int cache = cache_rows(l);
    costs out = held(l, &l->td, reach(l, &l->td, sum), "activation_attention_out_td");
    costs o = held(l, &l->tn, matmul(l, out, &l->o), "attn_o_tnh");
    for (int i = 0; i < l->n; i++)
        if (!can_attend(&l->nodes[i], &l->nodes[cache])) o[i] = (double)INFINITY;
    costs query = held(l, &l->tn, o, "query_tnh");
    costs q = held(l, &l->td, matmul(l, query, &l->q), "activation_q_td");
    costs k = to_cache(l, &l->k, cache), v = to_cache(l, &l->v, cache);
    /* any of the three may go its way first */
    costs first = both(l, &l->td, both(l, &l->td, copy(l, q), copy(l, k)), copy(l, v));
    costs second = both(l, &l->td, both(l, &l->td, copy(l, q), copy(l, v)), copy(l, k));
    costs third = both(l, &l->td, both(l, &l->td, k, v), q);
    for (int i = 0; i < l->n; i++)
        first[i] = smaller(first[i], smaller(second[i], third[i]));
    free(out);
    free(query);
    free(second);
    free(third);
    return held(l, &l->td, first, "activation_attention_td");
}

/* Gate and up meet in a layout, whichever is best. */
static costs feed_forward(least *l, int sum) {
    costs out = reach(l, &l->td, sum);
    costs hidden = held(l, &l->tf, matmul(l, out, &l->down), "ffw_hidden_tf");
    costs best = make_costs(l);
    free(out);
    for (int meet = 0; meet < l->n; meet++) {
        if (l->nodes[meet].sum || isinf(hidden[meet])) continue;
        if (!l->ups[meet]) {
            costs after = reach(l, &l->tf, meet);
            l->ups[meet] = matmul(l, after, &l->up);
            free(after);
        }
        for (int i = 0; i < l->n; i++)
            best[i] = smaller(best[i], 2.0 * l->ups[meet][i] + hidden[meet]);
    }
    free(hidden);
    return held(l, &l->td, best, "activation_ffw_td");
}

/* A block and the sum behind it: after[] is what follows from the sum's layout. */
static costs residual(least *l, costs (*block)(least *, int), const costs after) {
    costs before = make_costs(l);
    for (int sum = 0; sum < l->n; sum++) {
        if (l->nodes[sum].sum || isinf(after[sum])) continue;
        costs inner = block(l, sum);
        norm(l, inner);
        costs all = both(l, &l->td, held(l, &l->td, inner, NULL), reach(l, &l->td, sum));
        for (int i = 0; i < l->n; i++)
            before[i] = smaller(before[i], all[i] + after[sum]);
        free(all);
    }
    return before;
}

/* Each row is on the ranks that have its part of the table. */
static double embed(const least *l, int target) {
    const node *table = &l->nodes[ruled(l, "emb_weight_vd", false, NULL)];
    const unsigned owners = bits_of(&table->split[ROWS]);
    double best = (double)INFINITY;
    for (int i = 0; i < l->n; i++) {
        const node *to = &l->nodes[i];
        const octavo_split *f = &table->split[COLUMNS], *t = &to->split[COLUMNS];
        unsigned moving = owners;
        int same = 0;
        if (to->sum || !has_rows_of_groups(to)) continue;
        while (same < f->n && same < t->n && f->axis[same] == t->axis[same])
            same++;
        for (int k = same; k < f->n; k++)
            moving |= 1u << f->axis[k];
        const double n = ranks_of(l, moving);
        best = smaller(best, (n - 1.0) / n * bytes_of(l, &l->td, to) + way(l, &l->td, i, target));
    }
    return best;
}

/* `last`: of three axes the outputs are the last, and the heads of the inputs have lanes. */
static weight make_weight(const least *l, const char *name, int inputs, int outputs, bool last) {
    const bool has_heads = octavo_named_tensor_at(octavo_named_tensor_find(name))->axes[2] != 0;
    const int lanes = has_heads ? l->dims->h : 1;
    const int unit = last ? lanes : 1;
    return (weight){
        .graph = make_graph(l, inputs, outputs, lanes * (double)sizeof(float), false),
        .placed = ruled(l, name, last, NULL),
        .slices = octavo_slices_make((int64_t)inputs * unit, unit).n,
        .lanes = last ? 1 : lanes,
    };
}

static void set_up(least *l) {
    const least_dims *dims = l->dims;
    const double f32 = sizeof(float), t = dims->t;
    const node whole = {.sum = 0};
    enumerate(l, &whole, 0);
    l->td = make_graph(l, t, dims->d, f32, true);
    l->tn = make_graph(l, t, dims->n, f32 * dims->h, true);
    l->tk = make_graph(l, t, dims->k, f32 * dims->h, true);
    l->tf = make_graph(l, t, dims->f, f32, true);
    l->tv = make_graph(l, t, dims->v, f32, true);
    l->q = make_weight(l, "attn_q_weight_dnh", dims->d, dims->n, false);
    l->k = make_weight(l, "attn_k_weight_dkh", dims->d, dims->k, false);
    l->v = make_weight(l, "attn_v_weight_dkh", dims->d, dims->k, false);
    l->o = make_weight(l, "attn_o_weight_nhd", dims->n, dims->d, true);
    l->up = make_weight(l, "ffw_weight_df", dims->d, dims->f, false);
    l->down = make_weight(l, "ffw_weight_fd", dims->f, dims->d, false);
    l->head = make_weight(l, "vocab_dv", dims->d, dims->v, false);
    l->ups = calloc((size_t)l->n, sizeof *l->ups);
    if (!l->ups) abort();
}

static void tear_down(least *l) {
    graph *const graphs[] = {&l->td,      &l->tn,       &l->tk,         &l->tf,
                             &l->tv,      &l->q.graph,  &l->k.graph,    &l->v.graph,
                             &l->o.graph, &l->up.graph, &l->down.graph, &l->head.graph};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        free(graphs[i]->way);
    for (int i = 0; i < l->n; i++)
        free(l->ups[i]);
    free(l->ups);
    free(l);
}

double least_wire_bytes(const least_dims *dims, const octavo_mesh *mesh, octavo_phase phase,
                        const octavo_rules *rules) {
    least *l = calloc(1, sizeof *l);
    if (!l) abort();
    *l = (least){.dims = dims, .mesh = mesh, .rules = rules, .phase = phase};
    set_up(l);
    const int kept = ruled(l, "activation_td", false, NULL);
    costs logits = reach(l, &l->tv, ruled(l, "logits_tv", false, NULL));
    costs head = held(l, &l->td, matmul(l, logits, &l->head), "prelogit_td");
    norm(l, head);
    head = held(l, &l->td, head, NULL);
    costs end = reach(l, &l->td, kept);
    no_sums(l, end);
    for (int i = 0; i < l->n; i++)
        end[i] += head[kept];
    costs middle = residual(l, feed_forward, end);
    costs begin = residual(l, attention, middle);
    const double bytes = embed(l, kept) + begin[kept];
    free(logits);
    free(head);
    free(end);
    free(middle);
    free(begin);
    tear_down(l);
    return bytes;
}
