/* SPDX-License-Identifier: Apache-2.0
 *
 * The search. A state is how the live tensors lie (each may lie in several layouts at once) and the
 * least time in which that is reached. An op makes of each state one for each of its ways; of
 * states that agree the fastest stays.
 */
#include "program/partition_search.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_LIVE = 48,   /* layouts of live tensors in a state */
    FEW_OPS = 18,     /* a plain layer's */
    MOST_RIVALS = 32, /* that a state is compared with */
    LAYOUT_SLOTS = 4096,
    ROUTE_SLOTS = 8192,
};

/* What a way between two layouts takes; later ones take its place. */
typedef struct known_route {
    int tensor, from, to; /* tensor + 1, 0: none */
    double seconds;
} known_route;

/* A tensor in a layout, of the table of layouts. */
typedef struct live {
    int tensor;
    int layout;
} live;

typedef struct state {
    double seconds;
    double ahead; /* at least, for what rules ask for next: only for the order of states */
    int node;     /* the last decision on the way here, -1: none */
    int n;
    live live[MOST_LIVE];
} state;

/* A way that was gone, its layouts by the table. */
typedef struct node {
    int before; /* node */
    int out;
    int in[OCTAVO_OP_INPUTS]; /* -1: the way does not speak of it */
    double seconds;
} node;

typedef struct search {
    octavo_partitioner *p;
    int n_ops; /* of the range at hand */
    octavo_layout *layouts;
    int n_layouts, capacity_layouts;
    int layout_slots[LAYOUT_SLOTS]; /* hash of layouts: index + 1, 0 none */
    known_route *routes;            /* [ROUTE_SLOTS] */
    node *nodes;
    int n_nodes, capacity_nodes;
    state *states, *next; /* [n], [n_next] */
    int n, n_next, capacity, capacity_next;
    int *slots; /* hash of next */
    int n_slots;
    octavo_way *ways; /* [OCTAVO_MAX_WAYS], of tensors that lie as way_held says */
    int n_ways;
    octavo_held *way_held; /* [OCTAVO_OP_INPUTS] */
    bool has_no_memory;
} search;

static void *grow(search *s, void *array, int *capacity, int needed, size_t size) {
    if (needed <= *capacity) return array;
    int wanted = *capacity > 0 ? *capacity : 256;
    while (wanted < needed)
        wanted *= 2;
    void *moved = octavo_realloc(array, (size_t)wanted * size);
    if (!moved) {
        s->has_no_memory = true;
        return array;
    }
    *capacity = wanted;
    return moved;
}

static unsigned hash_bytes(const void *bytes, size_t n) {
    const uint8_t *at = bytes;
    unsigned h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * 16777619u;
    return h ^ h >> 15;
}

/* The table of layouts takes half of its slots at most; a program of few mesh axes has fewer. */
static int layout_id(search *s, const octavo_layout *layout) {
    unsigned slot = hash_bytes(layout, sizeof *layout) % LAYOUT_SLOTS;
    while (s->layout_slots[slot] > 0) {
        const int id = s->layout_slots[slot] - 1;
        if (octavo_layout_equal(&s->layouts[id], layout)) return id;
        slot = (slot + 1) % LAYOUT_SLOTS;
    }
    s->layouts = grow(s, s->layouts, &s->capacity_layouts, s->n_layouts + 1, sizeof *s->layouts);
    s->has_no_memory |= s->n_layouts == LAYOUT_SLOTS / 2;
    if (s->has_no_memory) return 0;
    s->layouts[s->n_layouts] = *layout;
    s->layout_slots[slot] = ++s->n_layouts;
    return s->n_layouts - 1;
}

static double seconds_between(search *s, int tensor, int from, int to) {
    const unsigned key[] = {(unsigned)tensor, (unsigned)from, (unsigned)to};
    known_route *known = &s->routes[hash_bytes(key, sizeof key) % ROUTE_SLOTS];
    if (known->tensor == tensor + 1 && known->from == from && known->to == to)
        return known->seconds;
    if (octavo_is_records(s->p->program, tensor, &s->layouts[from])) return (double)INFINITY;
    const octavo_route route = octavo_route_of(s->p, tensor, &s->layouts[from], &s->layouts[to]);
    *known = (known_route){tensor + 1, from, to, octavo_route_seconds(s->p, &route)};
    return known->seconds;
}

/* ---- states ---- */

/* Live layouts are sorted, so that equal states look alike. False: no room. */
static bool hold(state *st, int tensor, int layout) {
    int at = st->n;
    for (int i = 0; i < st->n; i++)
        if (st->live[i].tensor == tensor && st->live[i].layout == layout) return true;
    if (st->n == MOST_LIVE) return false;
    while (at > 0 && (st->live[at - 1].tensor > tensor ||
                      (st->live[at - 1].tensor == tensor && st->live[at - 1].layout > layout))) {
        st->live[at] = st->live[at - 1];
        at--;
    }
    st->live[at] = (live){tensor, layout};
    st->n++;
    return true;
}

static void drop(state *st, int tensor) {
    int n = 0;
    for (int i = 0; i < st->n; i++)
        if (st->live[i].tensor != tensor) st->live[n++] = st->live[i];
    st->n = n;
}

static octavo_held held_of(const search *s, const state *st, int tensor) {
    octavo_held held = {.n = 0};
    for (int i = 0; i < st->n; i++)
        if (st->live[i].tensor == tensor && held.n < OCTAVO_MAX_HELD)
            held.layout[held.n++] = s->layouts[st->live[i].layout];
    return held;
}

static uint64_t hash_of(const state *st) {
    uint64_t h = 1469598103934665603u;
    for (int i = 0; i < st->n; i++) {
        h = (h ^ (uint64_t)st->live[i].tensor) * 1099511628211u;
        h = (h ^ (uint64_t)st->live[i].layout) * 1099511628211u;
    }
    return h ^ h >> 29;
}

static bool is_same(const state *a, const state *b) {
    return a->n == b->n && memcmp(a->live, b->live, (size_t)a->n * sizeof *a->live) == 0;
}

static void rehash(search *s, int n_slots) {
    int *slots = octavo_realloc(s->slots, (size_t)n_slots * sizeof *slots);
    if (!slots) {
        s->has_no_memory = true;
        return;
    }
    s->slots = slots;
    s->n_slots = n_slots;
    memset(slots, -1, (size_t)n_slots * sizeof *slots);
    for (int i = 0; i < s->n_next; i++) {
        uint64_t at = hash_of(&s->next[i]) % (uint64_t)n_slots;
        while (slots[at] >= 0)
            at = (at + 1) % (uint64_t)n_slots;
        slots[at] = i;
    }
}

/* Keeps the faster of two that are the same. The node is made only for one that stays. */
static void keep_state(search *s, state *st, const octavo_way *way) {
    if ((s->n_next + 1) * 2 > s->n_slots) rehash(s, s->n_slots ? s->n_slots * 2 : 1024);
    if (s->has_no_memory) return;
    uint64_t at = hash_of(st) % (uint64_t)s->n_slots;
    while (s->slots[at] >= 0 && !is_same(&s->next[s->slots[at]], st))
        at = (at + 1) % (uint64_t)s->n_slots;
    const bool is_new = s->slots[at] < 0;
    if (!is_new && s->next[s->slots[at]].seconds <= st->seconds) return;
    s->nodes = grow(s, s->nodes, &s->capacity_nodes, s->n_nodes + 1, sizeof *s->nodes);
    if (is_new) s->next = grow(s, s->next, &s->capacity_next, s->n_next + 1, sizeof *s->next);
    if (s->has_no_memory) return;
    node *made = &s->nodes[s->n_nodes];
    *made = (node){.before = st->node, .out = layout_id(s, &way->out), .seconds = way->seconds};
    for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
        made->in[k] = way->has_in[k] ? layout_id(s, &way->in[k]) : -1;
    st->node = s->n_nodes++;
    if (is_new) s->slots[at] = s->n_next++;
    s->next[s->slots[at]] = *st;
}

static int by_seconds(const void *a, const void *b) {
    const state *s = a, *t = b;
    const double x = s->seconds + s->ahead, y = t->seconds + t->ahead;
    return (x > y) - (x < y);
}

/* What it takes to have what `wanted` has, too: more than `most` is not told apart. Parts of a sum
 * cannot be had from elsewhere. */
static double seconds_to_have(search *s, const state *has, const state *wanted, double most) {
    double seconds = 0.0;
    int at = 0;
    for (int i = 0; i < wanted->n && seconds <= most; i++) {
        const live *want = &wanted->live[i];
        double best = (double)INFINITY;
        while (at < has->n && has->live[at].tensor < want->tensor)
            at++;
        for (int j = at; j < has->n && has->live[j].tensor == want->tensor; j++) {
            if (has->live[j].layout == want->layout) {
                best = 0.0;
                break;
            }
            if (s->layouts[want->layout].partial.n > 0) continue;
            const double way = seconds_between(s, want->tensor, has->live[j].layout, want->layout);
            if (way < best) best = way;
        }
        seconds += best;
    }
    return seconds;
}

/* Another state is as good: from there all of this one is to be had in the same time. */
static bool is_beaten(search *s, const state *st, const state *others, int n) {
    for (int i = 0; i < n; i++) {
        const double left = st->seconds - others[i].seconds;
        if (seconds_to_have(s, &others[i], st, left) <= left) return true;
    }
    return false;
}

/* States that are kept: with few mesh axes all that matter, else as many as take little time, more
 * where there are few ops. */
static int most_states(const search *s) {
    static const int most[OCTAVO_MESH_AXES + 1] = {1, 4096, 4096, 768, 192};
    static const int most_of_few[OCTAVO_MESH_AXES + 1] = {1, 4096, 4096, 4096, 1024};
    const octavo_partitioner *p = s->p;
    int n = 0;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        n += p->active >> a & 1;
    if (p->options->most_states) return p->options->most_states;
    return s->n_ops <= FEW_OPS ? most_of_few[n] : most[n];
}

/* What will be made of the tensor and kept by a rule: itself, once all ops have worked on it, or
 * the product that it is a factor of. -1: nothing. *share of the way there is the tensor's. */
static int becomes(const octavo_partitioner *p, int tensor, int index, double *share) {
    const int last = p->last_use[tensor];
    *share = 1.0;
    if (p->is_kept[tensor] && p->last_write[tensor] > index) return tensor;
    if (last >= p->program->n_ops) return -1;
    const octavo_op *op = &p->program->ops[last];
    *share = 0.5;
    return op->kind == OCTAVO_OP_GATE && p->is_kept[op->out] ? op->out : -1;
}

/* Layouts that cost little now may be far from what a rule asks for. */
static void look_ahead(search *s, state *st, int index) {
    st->ahead = 0.0;
    for (int i = 0, j; i < st->n; i = j) {
        const int tensor = st->live[i].tensor;
        double share, least = (double)INFINITY;
        const int to = becomes(s->p, tensor, index, &share);
        for (j = i; j < st->n && st->live[j].tensor == tensor; j++) {
            if (to < 0) continue;
            const int kept = layout_id(s, &s->p->ruled[to]);
            const double way = seconds_between(s, tensor, st->live[j].layout, kept);
            if (way < least) least = way;
        }
        if (to >= 0) st->ahead += share * least;
    }
}

/* The fastest, without those that others beat. */
static void take_next(search *s, int index) {
    const int most = most_states(s);
    int n = 0;
    for (int i = 0; i < s->n_next; i++)
        look_ahead(s, &s->next[i], index);
    qsort(s->next, (size_t)s->n_next, sizeof *s->next, by_seconds);
    for (int i = 0; i < s->n_next && n < most; i++) {
        if (is_beaten(s, &s->next[i], s->next, n < MOST_RIVALS ? n : MOST_RIVALS)) continue;
        if (n < i) s->next[n] = s->next[i];
        n++;
    }
    s->n_next = n;
    state *states = s->states;
    const int capacity = s->capacity;
    s->states = s->next;
    s->n = s->n_next;
    s->capacity = s->capacity_next;
    s->next = states;
    s->capacity_next = capacity;
    s->n_next = 0;
    if (s->slots) memset(s->slots, -1, (size_t)s->n_slots * sizeof *s->slots);
}

/* ---- one op ---- */

/* The tensor is needed in a layout: time passes if it is not there yet. False: no room. */
static bool need(search *s, state *st, int tensor, const octavo_layout *layout) {
    const octavo_partitioner *p = s->p;
    const octavo_tensor_kind kind = p->program->tensors[tensor].kind;
    if (octavo_is_made_anywhere(p, tensor)) return true;
    const int to = layout_id(s, layout);
    if (s->has_no_memory) return false;
    if (kind != OCTAVO_TENSOR_ACTIVATION) {
        const int placed = layout_id(s, &p->placed[tensor]);
        if (!s->has_no_memory) st->seconds += seconds_between(s, tensor, placed, to);
        return !s->has_no_memory;
    }
    double best = -1.0;
    for (int i = 0; i < st->n; i++) {
        if (st->live[i].tensor != tensor) continue;
        if (st->live[i].layout == to) return true;
        const double seconds = seconds_between(s, tensor, st->live[i].layout, to);
        if (best < 0.0 || seconds < best) best = seconds;
    }
    st->seconds += best;
    return hold(st, tensor, to);
}

static void forget_dead(const octavo_partitioner *p, state *st, int index) {
    int n = 0;
    for (int i = 0; i < st->n; i++)
        if (p->last_use[st->live[i].tensor] > index) st->live[n++] = st->live[i];
    st->n = n;
}

static void go_on(search *s, const state *from, int index, const octavo_way *way) {
    const octavo_partitioner *p = s->p;
    const octavo_op *op = &p->program->ops[index];
    state st = *from;
    st.seconds += way->seconds;
    for (int i = 0; i < OCTAVO_OP_INPUTS; i++) {
        octavo_layout ruled;
        if (!way->has_in[i]) continue;
        if (octavo_input_is_ruled(p, op, i, &ruled)) {
            if (!need(s, &st, op->in[i], &ruled)) return;
            drop(&st, op->in[i]);
            hold(&st, op->in[i], layout_id(s, &ruled));
        }
        if (!need(s, &st, op->in[i], &way->in[i])) return;
    }
    if (p->program->tensors[op->out].kind == OCTAVO_TENSOR_ACTIVATION) {
        drop(&st, op->out); /* in place: other layouts hold what was before */
        if (!hold(&st, op->out, layout_id(s, &way->out))) return;
        if (p->is_kept[op->out] && index == p->last_write[op->out]) {
            if (!need(s, &st, op->out, &p->ruled[op->out])) return;
            drop(&st, op->out);
            hold(&st, op->out, layout_id(s, &p->ruled[op->out]));
        }
    }
    forget_dead(p, &st, index);
    keep_state(s, &st, way);
}

/* How the op's operands lie in a state, as far as its ways depend on it. */
static void find_held(const search *s, const octavo_op *op, const state *st, octavo_held *held) {
    octavo_layout ruled;
    memset(held, 0, OCTAVO_OP_INPUTS * sizeof *held);
    for (int k = 0; k < OCTAVO_OP_INPUTS; k++) {
        if (op->in[k] == OCTAVO_NO_TENSOR) continue;
        if (!octavo_input_is_ruled(s->p, op, k, &ruled)) {
            held[k] = held_of(s, st, op->in[k]);
            continue;
        }
        held[k].layout[0] = ruled;
        held[k].n = 1;
    }
}

static bool is_held_alike(const octavo_held *a, const octavo_held *b) {
    for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
        if (a[k].n != b[k].n ||
            memcmp(a[k].layout, b[k].layout, (size_t)a[k].n * sizeof *a[k].layout) != 0)
            return false;
    return true;
}

static void search_op(search *s, int index) {
    const octavo_op *op = &s->p->program->ops[index];
    octavo_held held[OCTAVO_OP_INPUTS];
    s->n_ways = -1;
    for (int i = 0; i < s->n && !s->has_no_memory; i++) {
        find_held(s, op, &s->states[i], held);
        if (s->n_ways < 0 || !is_held_alike(held, s->way_held)) {
            memcpy(s->way_held, held, sizeof held);
            s->n_ways = octavo_ways_of(s->p, index, held, s->ways);
        }
        for (int w = 0; w < s->n_ways; w++)
            go_on(s, &s->states[i], index, &s->ways[w]);
    }
}

/* ---- all of them ---- */

static octavo_status read_decisions(search *s, int begin, int end) {
    const state *best = NULL;
    for (int i = 0; i < s->n; i++)
        if (!best || s->states[i].seconds < best->seconds) best = &s->states[i];
    if (!best)
        return octavo_fail(s->p->error, OCTAVO_ERROR_UNSUPPORTED,
                           "partition (ops %d to %d): no way to run them", begin, end);
    int at = best->node;
    for (int i = end - 1; i >= begin; i--) {
        if (octavo_is_made_anywhere(s->p, s->p->program->ops[i].out)) continue;
        const node *gone = &s->nodes[at];
        octavo_way *way = &s->p->decisions[i];
        *way = (octavo_way){.out = s->layouts[gone->out], .seconds = gone->seconds};
        for (int k = 0; k < OCTAVO_OP_INPUTS; k++) {
            way->has_in[k] = gone->in[k] >= 0;
            if (way->has_in[k]) way->in[k] = s->layouts[gone->in[k]];
        }
        at = gone->before;
    }
    return OCTAVO_OK;
}

/* What lives at `begin` lies as it is kept: nothing else crosses a layer's border. */
static void begin_states(search *s, int begin) {
    const octavo_partitioner *p = s->p;
    s->states = grow(s, s->states, &s->capacity, 1, sizeof *s->states);
    if (s->has_no_memory) return;
    s->states[0] = (state){.node = -1};
    s->n = 1;
    for (int i = 0; i < begin; i++) {
        const int out = p->program->ops[i].out;
        if (p->program->tensors[out].kind == OCTAVO_TENSOR_ACTIVATION &&
            p->last_use[out] >= begin && !octavo_is_made_anywhere(p, out))
            hold(&s->states[0], out, layout_id(s, &p->ruled[out]));
    }
}

octavo_status octavo_partition_search(octavo_partitioner *p, int begin, int end) {
    search s = {.p = p, .n_ops = end - begin};
    octavo_status status = OCTAVO_OK;
    s.ways = octavo_alloc_zero(OCTAVO_MAX_WAYS, sizeof *s.ways);
    s.way_held = octavo_alloc_zero(OCTAVO_OP_INPUTS, sizeof *s.way_held);
    s.routes = octavo_alloc_zero(ROUTE_SLOTS, sizeof *s.routes);
    s.has_no_memory = !s.ways || !s.way_held || !s.routes;
    if (!s.has_no_memory) begin_states(&s, begin);
    for (int i = begin; i < end && !s.has_no_memory; i++) {
        if (octavo_is_made_anywhere(p, p->program->ops[i].out)) continue;
        search_op(&s, i);
        take_next(&s, i);
    }
    status = s.has_no_memory ? octavo_fail_memory(p->error, "partition", (uint64_t)s.n_nodes)
                             : read_decisions(&s, begin, end);
    octavo_free(s.layouts);
    octavo_free(s.nodes);
    octavo_free(s.states);
    octavo_free(s.next);
    octavo_free(s.slots);
    octavo_free(s.ways);
    octavo_free(s.way_held);
    octavo_free(s.routes);
    return status;
}
