/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways of attention: heads, rows, and positions of the cache.
 */
#include "program/partition_way.h"

#include <math.h>

static bool is_cache_grouped(const octavo_way_list *list, int cache) {
    return octavo_split_has(&list->p->placed[cache].split[0], OCTAVO_MESH_DATA);
}

static unsigned data_of(const octavo_way_list *list) {
    return list->p->active & (1u << OCTAVO_MESH_DATA);
}

/* New keys and values go to every rank that keeps their sequence and head. */
void octavo_ways_cache_update(octavo_way_list *list) {
    const octavo_op *op = list->op;
    const octavo_layout *cache = &list->p->placed[op->in[2]];
    octavo_layout rows = {.split = {{0}, cache->split[1]}};
    if (is_cache_grouped(list, op->in[2]))
        rows.split[0] = octavo_split_join_rows(rows.split[0], data_of(list));
    octavo_way *way = octavo_way_add(list, cache);
    for (int i = 0; i < 2; i++)
        if (op->in[i] != OCTAVO_NO_TENSOR) octavo_way_set_in(way, i, &rows);
}

/* parts: mesh axes whose ranks share the kv splits. */
static double attention_seconds(const octavo_way_list *list, const octavo_layout *q,
                                const octavo_split *parts) {
    const octavo_partition_options *options = list->p->options;
    const octavo_op *op = list->op;
    const octavo_tensor *query = &list->p->program->tensors[op->in[0]];
    const octavo_tensor *cache = &list->p->program->tensors[op->in[1]];
    const double heads = octavo_way_widest(list, op->in[0], 1, &q->split[1]);
    const double rows = octavo_way_widest(list, op->in[0], 0, &q->split[0]);
    const double lanes = (double)query->extent[2];
    const double group = (double)query->extent[1] / (double)cache->extent[1];
    const octavo_attention_splits splits = {.n_parts = octavo_split_degree(parts, &list->p->mesh)};
    const double length =
        (double)octavo_attention_local_position(&splits, options->kv_length); /* part 0 has most */
    const double operations = 4.0 * rows * heads * lanes * length;
    const double streams = options->phase == OCTAVO_PHASE_GENERATE ? rows : 1.0;
    const double kv_heads = ceil(heads / group); /* those that ranks share are read by each */
    const double bytes = 2.0 * streams * kv_heads * lanes * length * options->cache_bytes;
    const double computing = operations / options->machine.operations_s;
    const double reading = bytes / options->machine.memory_bytes_s;
    return computing > reading ? computing : reading;
}

static void add_attention(octavo_way_list *list, const octavo_layout *q,
                          const octavo_split *parts) {
    octavo_layout out = *q;
    out.partial = *parts;
    octavo_way *way = octavo_way_add(list, &out);
    if (!way) return;
    octavo_way_set_in(way, 0, q);
    octavo_way_set_vectors(list, way, 2, q);
    way->seconds = attention_seconds(list, q, parts);
}

/* Axes over which kv splits may be dealt where all ranks have all of them: it is worth something
 * only if there are as many splits. */
static bool may_deal(const octavo_way_list *list, const octavo_split *parts) {
    return list->p->options->phase == OCTAVO_PHASE_GENERATE &&
           octavo_split_degree(parts, &list->p->mesh) <= octavo_seen_splits(list->p, list->op);
}

/* A rank attends with any of the query heads of the key/value heads that it keeps, for any of the
 * tokens whose sequences it keeps. Ranks that have different positions have the same queries; so
 * may, of a long context, ranks that have all. */
void octavo_ways_attention(octavo_way_list *list, const octavo_held *held) {
    const octavo_op *op = list->op;
    const octavo_split *heads = &list->p->placed[op->in[1]].split[1];
    const octavo_split deal = octavo_cache_deal(&list->p->placed[op->in[1]]);
    const bool is_grouped = is_cache_grouped(list, op->in[1]);
    const unsigned data = data_of(list);
    const unsigned used =
        octavo_split_bits(heads) | octavo_split_bits(&deal) | (is_grouped ? data : 0);
    const octavo_held forms = octavo_forms_of(list, op->in[0], &held[0]);
    const octavo_row_splits rows = octavo_way_rows(list, &forms, used);
    for (int i = 0; i < rows.n; i++) {
        const octavo_split split =
            is_grouped ? octavo_split_join_rows(rows.split[i], data) : rows.split[i];
        const unsigned free = list->p->active & ~used & ~octavo_split_bits(&split);
        unsigned more = 0;
        do {
            const octavo_layout q = {.split = {split, octavo_split_join(*heads, more)}};
            const unsigned left = deal.n > 0 ? 0 : free & ~more & ~data;
            unsigned shared = 0;
            add_attention(list, &q, &deal);
            while ((shared = octavo_subset_next(shared, left)) != 0) {
                const octavo_split parts = octavo_split_join((octavo_split){0}, shared);
                if (may_deal(list, &parts)) add_attention(list, &q, &parts);
            }
            more = octavo_subset_next(more, free);
        } while (more != 0);
    }
}

/* Each shard of a finer split inside of one of a coarser. */
static bool nests(const octavo_way_list *list, int tensor, const octavo_split *coarse,
                  const octavo_split *fine) {
    const octavo_axis *axis = octavo_axis_of(list->p->axes, tensor, 1);
    const int m = octavo_split_degree(coarse, &list->p->mesh);
    const int n = octavo_split_degree(fine, &list->p->mesh);
    for (int i = 0; i < n; i++) {
        const octavo_range in = octavo_axis_shard(axis, m, i / (n / m));
        const octavo_range part = octavo_axis_shard(axis, n, i);
        if (part.begin < part.end && (part.begin < in.begin || part.end > in.end)) return false;
    }
    return true;
}

static void add_merge(octavo_way_list *list, const octavo_layout *from, const octavo_layout *out) {
    const octavo_op *op = list->op;
    octavo_layout q = *from;
    q.partial = (octavo_split){0};
    octavo_way *way = octavo_way_add(list, out);
    if (!way) return;
    octavo_way_set_in(way, 0, &q);
    octavo_way_set_in(way, 3, from);
    octavo_way_set_vectors(list, way, 2, &q);
    if (from->partial.n == 0) return;
    const octavo_transfer transfer = octavo_records_transfer(list->p, op, from, out);
    const octavo_route route = {.n = 1, .step = {transfer}};
    way->seconds = octavo_route_seconds(list->p, &route);
}

/* Where attention left it; of records, too, each rank some of the heads or rows. */
void octavo_ways_attention_merge(octavo_way_list *list, const octavo_held *held) {
    for (int i = 0; i < held[3].n; i++) {
        const octavo_layout *from = &held[3].layout[i];
        octavo_layout out = *from;
        out.partial = (octavo_split){0};
        add_merge(list, from, &out);
        if (from->partial.n == 0) continue;
        const unsigned bits = octavo_split_bits(&from->partial);
        octavo_layout rows = out, heads = out;
        rows.split[0] = octavo_split_join_rows(rows.split[0], bits);
        heads.split[1] = octavo_split_join(heads.split[1], bits);
        add_merge(list, from, &rows);
        if (nests(list, list->op->out, &out.split[1], &heads.split[1]))
            add_merge(list, from, &heads);
    }
}
