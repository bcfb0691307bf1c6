/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/layout.h"

#include "base/compiler.h"

#include <assert.h>
#include <string.h>

/* ---- shards of an axis ---- */

static bool is_by_slices(const octavo_axis *axis, int degree) {
    return degree <= axis->n_slices && axis->n_slices % degree == 0;
}

/* Of the axis, or of its readers. */
static octavo_range cut(const octavo_axis *axis, int64_t extent, int degree, int64_t index) {
    if (is_by_slices(axis, degree)) {
        const int64_t n = axis->n_slices / degree;
        return (octavo_range){axis->cut[index * n], axis->cut[(index + 1) * n]};
    }
    const int64_t units = (extent + axis->unit - 1) / axis->unit;
    const int64_t begin = index * units / degree * axis->unit,
                  end = (index + 1) * units / degree * axis->unit;
    return (octavo_range){begin < extent ? begin : extent, end < extent ? end : extent};
}

octavo_range octavo_axis_shard(const octavo_axis *axis, int degree, int index) {
    if (degree == 1) return (octavo_range){0, axis->extent};
    if (axis->readers == 0) return cut(axis, axis->extent, degree, index);
    const int64_t group = axis->readers / axis->extent;
    const octavo_range q = cut(axis, axis->readers, degree, index);
    if (q.begin == q.end) return (octavo_range){q.begin / group, q.begin / group};
    return (octavo_range){q.begin / group, (q.end + group - 1) / group};
}

int64_t octavo_axis_widest(const octavo_axis *axis, int degree) {
    int64_t widest = 0;
    if (degree == 1) return axis->extent;
    if (axis->readers == 0 && !is_by_slices(axis, degree)) {
        const int64_t units = (axis->extent + axis->unit - 1) / axis->unit;
        const int64_t most = (units + degree - 1) / degree * axis->unit;
        return most < axis->extent ? most : axis->extent;
    }
    if (axis->readers == 0) {
        const int64_t step = axis->n_slices / degree;
        for (int64_t i = 0; i < axis->n_slices; i += step)
            if (axis->cut[i + step] - axis->cut[i] > widest)
                widest = axis->cut[i + step] - axis->cut[i];
        return widest;
    }
    /* of many ranks that read heads or parts of heads alike, one tells of all */
    const int64_t units = (axis->readers + axis->unit - 1) / axis->unit;
    const int64_t most = units / degree * axis->unit;
    const int64_t group = axis->readers / axis->extent;
    const bool is_even = units % degree == 0 && !is_by_slices(axis, degree) && most > 0 &&
                         (group % most == 0 || most % group == 0);
    for (int i = 0; i < (is_even ? 1 : degree); i++) {
        const octavo_range shard = octavo_axis_shard(axis, degree, i);
        if (shard.end - shard.begin > widest) widest = shard.end - shard.begin;
    }
    return widest;
}

bool octavo_axis_is_exact(const octavo_axis *axis, int degree) {
    return degree == 1 || is_by_slices(axis, degree);
}

/* ---- layouts ---- */

static_assert(sizeof(octavo_layout) == (OCTAVO_SPEC_AXES + 2) * sizeof(octavo_split) + 1,
              "nothing between that would not compare");

bool octavo_layout_equal(const octavo_layout *a, const octavo_layout *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

unsigned octavo_layout_axes(const octavo_layout *layout) {
    unsigned bits = octavo_split_bits(&layout->partial) | octavo_split_bits(&layout->experts);
    for (int i = 0; i < OCTAVO_SPEC_AXES; i++)
        bits |= octavo_split_bits(&layout->split[i]);
    return bits;
}

const char *octavo_collective_name(octavo_collective collective) {
    static const char *const names[] = {
        [OCTAVO_COLLECTIVE_NONE] = "none",
        [OCTAVO_COLLECTIVE_ALL_REDUCE] = "all-reduce",
        [OCTAVO_COLLECTIVE_ALL_GATHER] = "all-gather",
        [OCTAVO_COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
        [OCTAVO_COLLECTIVE_ALL_TO_ALL] = "all-to-all",
        [OCTAVO_COLLECTIVE_PERMUTE] = "permute",
    };
    return names[collective];
}

/* ---- transfers ---- */

static int ranks_along(const octavo_mesh *mesh, unsigned bits) {
    int n = 1;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (bits >> a & 1) n *= mesh->degree[a];
    return n;
}

static int common_prefix(const octavo_split *a, const octavo_split *b) {
    int n = 0;
    while (n < a->n && n < b->n && a->axis[n] == b->axis[n])
        n++;
    return n;
}

/* Elements of the largest box. */
static double box_of(const octavo_mesh *mesh, const octavo_axis *const *axes, int n,
                     const octavo_layout *layout) {
    double box = 1.0;
    for (int i = 0; i < n; i++)
        box *= (double)octavo_axis_widest(axes[i], octavo_split_degree(&layout->split[i], mesh));
    return box / octavo_split_degree(&layout->experts, mesh);
}

/* Does every shard have the whole axis? Only a single head is read by all, unless there are more
 * shards than readers to go round. */
static bool is_everywhere(const octavo_axis *axis, int degree) {
    if (axis->readers == 0 || axis->extent != 1) return false;
    return is_by_slices(axis, degree) || (axis->readers + axis->unit - 1) / axis->unit >= degree;
}

/* Mesh axes by which pieces of the box `to` lie on other ranks: those that split an axis in `from`
 * and not, in the same place, in `to`. A head that all read needs no exchange. */
static unsigned moving_axes(const octavo_mesh *mesh, const octavo_axis *const *axes, int n,
                            const octavo_layout *from, const octavo_layout *to) {
    unsigned bits = 0;
    for (int i = 0; i < n; i++) {
        const octavo_split *f = &from->split[i];
        if (is_everywhere(axes[i], octavo_split_degree(f, mesh))) continue;
        for (int j = common_prefix(f, &to->split[i]); j < f->n; j++)
            bits |= 1u << f->axis[j];
    }
    return bits;
}

static bool is_refined(const octavo_layout *from, const octavo_layout *to) {
    for (int i = 0; i < OCTAVO_SPEC_AXES; i++)
        if (common_prefix(&from->split[i], &to->split[i]) < from->split[i].n) return false;
    return true;
}

static octavo_transfer make(octavo_collective collective, unsigned axes, int group, double bytes) {
    octavo_transfer t = {.collective = collective, .axes = axes, .group = group, .bytes = bytes};
    const double n = group;
    switch (collective) {
    case OCTAVO_COLLECTIVE_NONE:
        break;
    case OCTAVO_COLLECTIVE_ALL_REDUCE:
        t.wire_bytes = 2.0 * (n - 1.0) / n * bytes;
        break;
    case OCTAVO_COLLECTIVE_ALL_GATHER:
    case OCTAVO_COLLECTIVE_ALL_TO_ALL:
        t.wire_bytes = (n - 1.0) / n * bytes;
        break;
    case OCTAVO_COLLECTIVE_REDUCE_SCATTER:
        t.wire_bytes = (n - 1.0) * bytes;
        break;
    case OCTAVO_COLLECTIVE_PERMUTE:
        t.wire_bytes = bytes;
        break;
    }
    return t;
}

octavo_transfer octavo_transfer_between(const octavo_mesh *mesh, const octavo_axis *const *axes,
                                        int n, const octavo_layout *from, const octavo_layout *to,
                                        double element_bytes) {
    const double bytes = box_of(mesh, axes, n, to) * element_bytes;
    const unsigned moving = moving_axes(mesh, axes, n, from, to);
    const unsigned target = octavo_layout_axes(to);
    unsigned partial = octavo_split_bits(&from->partial);
    if (partial && !from->is_owned) {
        const int group = ranks_along(mesh, partial);
        octavo_assert(moving == 0 && is_refined(from, to)); /* see octavo_route_between */
        if ((target & partial) == partial)
            return make(OCTAVO_COLLECTIVE_REDUCE_SCATTER, partial, group, bytes);
        octavo_assert(group == 2 && (target & partial) == 0);
        return make(OCTAVO_COLLECTIVE_ALL_REDUCE, partial, group, bytes);
    }
    const unsigned all = moving | partial;
    if (all == 0) return make(OCTAVO_COLLECTIVE_NONE, 0, 1, bytes);
    const int group = ranks_along(mesh, all);
    if ((target & all) == 0) return make(OCTAVO_COLLECTIVE_ALL_GATHER, all, group, bytes);
    /* The same mesh axes over the same axis in another order, or over others. */
    for (int i = 0; i < n; i++) {
        const unsigned both =
            octavo_split_bits(&from->split[i]) & octavo_split_bits(&to->split[i]) & moving;
        if (both) return make(OCTAVO_COLLECTIVE_PERMUTE, all, group, bytes);
    }
    return make(OCTAVO_COLLECTIVE_ALL_TO_ALL, all, group, bytes);
}

/* `to` with the mesh axes `bits` appended to the splits of axis i. */
static octavo_layout split_further(const octavo_layout *to, unsigned bits, int i) {
    octavo_layout more = *to;
    for (int a = 0; a < OCTAVO_MESH_AXES; a++)
        if (bits >> a & 1) more.split[i] = octavo_split_add(more.split[i], a);
    return more;
}

static void try_route(octavo_route *best, const octavo_mesh *mesh, const octavo_axis *const *axes,
                      int n, const octavo_layout *from, const octavo_layout *middle,
                      const octavo_layout *to, double element_bytes) {
    octavo_route route = {.n = 1, .to = {*middle}};
    route.step[0] = octavo_transfer_between(mesh, axes, n, from, middle, element_bytes);
    route.wire_bytes = route.step[0].wire_bytes;
    if (!octavo_layout_equal(middle, to)) {
        route.n = 2;
        route.to[1] = *to;
        route.step[1] = octavo_transfer_between(mesh, axes, n, middle, to, element_bytes);
        route.wire_bytes += route.step[1].wire_bytes;
    }
    if (best->n == 0 || route.wire_bytes < best->wire_bytes ||
        (route.wire_bytes == best->wire_bytes && route.n < best->n))
        *best = route;
}

octavo_route octavo_route_between(const octavo_mesh *mesh, const octavo_axis *const *axes, int n,
                                  const octavo_layout *from, const octavo_layout *to,
                                  double element_bytes) {
    octavo_route best = {0};
    const unsigned partial = octavo_split_bits(&from->partial);
    if (octavo_layout_equal(from, to)) return best;
    if (partial == 0 || from->is_owned) {
        try_route(&best, mesh, axes, n, from, to, to, element_bytes);
        return best;
    }
    /* Sums are completed on shards of what each rank has already, or of what is wanted, further
     * split over the ranks that have the parts; then they are brought where they are wanted. */
    octavo_layout whole = *from;
    whole.partial = (octavo_split){0};
    const octavo_layout *ends[] = {&whole, to};
    for (int e = 0; e < 2; e++) {
        const octavo_layout *end = ends[e];
        if (!is_refined(&whole, end)) continue;
        const unsigned rest = partial & ~octavo_layout_axes(end);
        if (ranks_along(mesh, rest) == 2 && rest == partial)
            try_route(&best, mesh, axes, n, from, end, to, element_bytes);
        for (int i = axes[0]->letter == 'p'; i < n; i++) { /* pairs stay where their tokens are */
            const octavo_layout middle = split_further(end, rest, i);
            try_route(&best, mesh, axes, n, from, &middle, to, element_bytes);
        }
    }
    return best;
}
