/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the parts of a tensor lie: how an axis is cut, which box of a tensor a rank holds, and what
 * it takes to get from one layout to another. Pure functions; the collectives of a program are
 * derived from them (program/partition.h).
 */
#ifndef OCTAVO_SHARDING_LAYOUT_H
#define OCTAVO_SHARDING_LAYOUT_H

#include "kernels/order.h"
#include "sharding/spec.h"

typedef struct octavo_range {
    int64_t begin, end;
} octavo_range;

/* An axis as it may be cut.
 *
 * Into as many shards as divide its slices (kernels/order.h) it is cut between slices, so that the
 * sums of ranks are subtrees; else at floor(i * units / shards) units. Shards may be empty.
 *
 * Key/value heads follow the query heads that read them: their shard i is what the shard i of the
 * `readers` reads, so neighbouring shards may share a head. */
typedef struct octavo_axis {
    char letter;    /* of the sharding rules */
    int64_t extent; /* of rows (t, r, p) that of the step at hand */
    int64_t unit;   /* of the axis, or of the readers: cuts fall on its multiples */
    int n_slices;   /* likewise; 1 where nothing sums over it */
    int64_t cut[OCTAVO_MAX_SLICES + 1];
    int64_t readers; /* of kv heads, query heads: a multiple of the extent; else 0 */
} octavo_axis;

octavo_range octavo_axis_shard(const octavo_axis *axis, int degree, int index);
/* The widest shard. */
int64_t octavo_axis_widest(const octavo_axis *axis, int degree);
/* Do the shards' sums add up in the tree of the slices, bit for bit? */
bool octavo_axis_is_exact(const octavo_axis *axis, int degree);

/* How a value lies over the ranks. */
typedef struct octavo_layout {
    octavo_split split[OCTAVO_SPEC_AXES]; /* of each axis; of p (pairs) that of their tokens */
    octavo_split experts;                 /* of pairs: whose experts; of rows t: a rank has only
                                             those of tokens with one of its experts */
    octavo_split partial;                 /* along these each rank has a part of the sum, or of the
                                             rows: */
    bool is_owned; /* a row is on the one rank that has its row of the table */
} octavo_layout;

bool octavo_layout_equal(const octavo_layout *a, const octavo_layout *b);
/* Mesh axes (bits) that any axis of it is split by, or that are partial. */
unsigned octavo_layout_axes(const octavo_layout *layout);

typedef enum octavo_collective {
    OCTAVO_COLLECTIVE_NONE, /* each rank has what it needs */
    OCTAVO_COLLECTIVE_ALL_REDUCE,
    OCTAVO_COLLECTIVE_ALL_GATHER,
    OCTAVO_COLLECTIVE_REDUCE_SCATTER,
    OCTAVO_COLLECTIVE_ALL_TO_ALL,
    OCTAVO_COLLECTIVE_PERMUTE,
} octavo_collective;

const char *octavo_collective_name(octavo_collective collective); /* "all-reduce" */

typedef struct octavo_transfer {
    octavo_collective collective;
    unsigned axes;     /* mesh axes over which data moves */
    int group;         /* ranks that exchange with one another */
    double bytes;      /* of the result on one rank */
    double wire_bytes; /* that one rank sends, in the mean */
} octavo_transfer;

/* From one layout to another in one exchange, each rank taking what it needs from the nearest ranks
 * that have it; of partial values from all that have a part. `axes`: the tensor's, n of them;
 * element_bytes may be broken (quantised blocks). */
octavo_transfer octavo_transfer_between(const octavo_mesh *mesh, const octavo_axis *const *axes,
                                        int n, const octavo_layout *from, const octavo_layout *to,
                                        double element_bytes);

enum { OCTAVO_ROUTE_STEPS = 2 };

/* The cheapest way: one exchange, or two with a layout between them. */
typedef struct octavo_route {
    int n;
    octavo_layout to[OCTAVO_ROUTE_STEPS];
    octavo_transfer step[OCTAVO_ROUTE_STEPS];
    double wire_bytes;
} octavo_route;

octavo_route octavo_route_between(const octavo_mesh *mesh, const octavo_axis *const *axes, int n,
                                  const octavo_layout *from, const octavo_layout *to,
                                  double element_bytes);

#endif
