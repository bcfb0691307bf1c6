/* SPDX-License-Identifier: Apache-2.0
 *
 * The search. A state is how the live tensors lie (each may lie in several layouts at once) and the
 * least time in which that is reached. An op makes of each state one for each of its ways; of
 * states that agree the fastest stays.
 */
#include "program/partition_search.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_LIVE = 48,    /* layouts of live tensors in a state */
    MOST_STATES = 192, /* kept after an op, if the options do not say */
};

/* A tensor in a layout, of the table of layouts. */
typedef struct live {
    int tensor;
    int layout;
} live;

typedef struct state {
    double seconds;
    int node; /* the last decision on the way here, -1: none */
    int n;
    live live[MOST_LIVE];
} state;

typedef struct node {
    int before; /* node */
    octavo_way way;
} node;

typedef struct search {
    octavo_partitioner *p;
    octavo_layout *layouts;
    int n_layouts, capacity_layouts;
    node *nodes;
    int n_nodes, capacity_nodes;
    state *states, *next; /* [n], [n_next] */
    int n, n_next, capacity, capacity_next;
    int *slots; /* hash of next */
    int n_slots;
    octavo_way *ways; /* [OCTAVO_MAX_WAYS] */
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

static int layout_id(search *s, const octavo_layout *layout) {
    for (int i = 0; i < s->n_layouts; i++)
        if (octavo_layout_equal(&s->layouts[i], layout)) return i;
    s->layouts = grow(s, s->layouts, &s->capacity_layouts, s->n_layouts + 1, sizeof *s->layouts);
    if (s->has_no_memory) return 0;
    s->layouts[s->n_layouts] = *layout;
    return s->n_layouts++;
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
    s->nodes[s->n_nodes] = (node){.before = st->node, .way = *way};
    st->node = s->n_nodes++;
    if (is_new) s->slots[at] = s->n_next++;
    s->next[s->slots[at]] = *st;
}

static int by_seconds(const void *a, const void *b) {
    const double x = ((const state *)a)->seconds, y = ((const state *)b)->seconds;
    return (x > y) - (x < y);
}

static void take_next(search *s) {
    const int most = s->p->options->most_states ? s->p->options->most_states : MOST_STATES;
    if (s->n_next > most) {
        qsort(s->next, (size_t)s->n_next, sizeof *s->next, by_seconds);
        s->n_next = most;
    }
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
    if (kind != OCTAVO_TENSOR_ACTIVATION) {
        const octavo_route route = octavo_route_of(p, tensor, &p->placed[tensor], layout);
        st->seconds += octavo_route_seconds(p, &route);
        return true;
    }
    double best = -1.0;
    for (int i = 0; i < st->n; i++) {
        if (st->live[i].tensor != tensor) continue;
        const octavo_layout *from = &s->layouts[st->live[i].layout];
        if (octavo_layout_equal(from, layout)) return true;
        const octavo_route route = octavo_route_of(p, tensor, from, layout);
        const double seconds = octavo_route_seconds(p, &route);
        if (best < 0.0 || seconds < best) best = seconds;
    }
    st->seconds += best;
    return hold(st, tensor, layout_id(s, layout));
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

static void search_op(search *s, int index) {
    const octavo_partitioner *p = s->p;
    const octavo_op *op = &p->program->ops[index];
    octavo_held held[OCTAVO_OP_INPUTS];
    for (int i = 0; i < s->n && !s->has_no_memory; i++) {
        for (int k = 0; k < OCTAVO_OP_INPUTS; k++) {
            held[k].n = 0;
            if (op->in[k] == OCTAVO_NO_TENSOR) continue;
            held[k] = held_of(s, &s->states[i], op->in[k]);
            octavo_layout ruled;
            if (!octavo_input_is_ruled(p, op, k, &ruled)) continue;
            held[k].layout[0] = ruled;
            held[k].n = 1;
        }
        const int n = octavo_ways_of(p, index, held, s->ways);
        for (int w = 0; w < n; w++)
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
        s->p->decisions[i] = s->nodes[at].way;
        at = s->nodes[at].before;
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
    search s = {.p = p};
    octavo_status status = OCTAVO_OK;
    s.ways = octavo_alloc_zero(OCTAVO_MAX_WAYS, sizeof *s.ways);
    s.has_no_memory = !s.ways;
    if (!s.has_no_memory) begin_states(&s, begin);
    for (int i = begin; i < end && !s.has_no_memory; i++) {
        if (octavo_is_made_anywhere(p, p->program->ops[i].out)) continue;
        search_op(&s, i);
        take_next(&s);
    }
    status = s.has_no_memory ? octavo_fail_memory(p->error, "partition", (uint64_t)s.n_nodes)
                             : read_decisions(&s, begin, end);
    octavo_free(s.layouts);
    octavo_free(s.nodes);
    octavo_free(s.states);
    octavo_free(s.next);
    octavo_free(s.slots);
    octavo_free(s.ways);
    return status;
}
