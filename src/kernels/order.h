/* SPDX-License-Identifier: Apache-2.0
 *
 * The order contract: in which order floating-point numbers are added. Every kernel, path and
 * collective obeys it, and that is why a request gets the same bits whatever its batch, chunking,
 * threads, pages, cache hits or ranks.
 *
 *  1. Slices. An axis that is summed over is cut into 1, 2, 4 or 8 slices (octavo_slices_make).
 * Within a slice an output's additions go in ascending order of the axis into one accumulator that
 * starts at zero (a kernel that needs lanes uses one fixed pattern of lanes for every shape it is
 * called with). Slices are added in a fixed binary tree (octavo_tree_add).
 *  2. Ranks hold whole neighbouring slices, so a rank's partial sum is a subtree; sums over ranks
 * are added locally in the order of the same tree.
 *  3. Attention. The softmax runs over blocks of OCTAVO_SOFTMAX_BLOCK absolute positions, and (max,
 * sum, accumulator) are formed per split of OCTAVO_KV_SPLIT absolute positions, blocks ascending;
 * splits are merged ascending, an attention sink enters once at the end.
 *  4. Experts. A token's experts are cut by number into slices too (octavo_slices_of_experts):
 * within a slice they are added by ascending number, slices by the tree; of a slice without any of
 * the token's experts nothing is added.
 *  5. Scales of quantised activations and caches come from the row's own block, never from a
 * neighbour.
 *
 * The result of a kernel may differ between instruction sets (within its stated bound), never with
 * the number of rows, tile, thread, phase or rank.
 */
#ifndef OCTAVO_KERNELS_ORDER_H
#define OCTAVO_KERNELS_ORDER_H

#include <stdint.h>

/* Most slices of an axis, and the least elements a slice has when there is more than one. */
#define OCTAVO_MAX_SLICES 8
#define OCTAVO_MIN_SLICE  128

/* Absolute positions in a softmax block, and in a kv split (a multiple of blocks). */
#define OCTAVO_SOFTMAX_BLOCK 64
#define OCTAVO_KV_SPLIT      1024

/* Lanes of a sum that has only one output (a norm's sum of squares): element i of a slice goes to
 * lane i % OCTAVO_SUM_LANES, each lane ascending; the lanes are then added by octavo_tree_add. */
#define OCTAVO_SUM_LANES 16

/* Slice i is [cut[i], cut[i + 1]), in elements of the axis. */
typedef struct octavo_slices {
    int n;
    int64_t cut[OCTAVO_MAX_SLICES + 1];
} octavo_slices;

/* Cuts an axis of `extent` elements. `unit` is what may not be cut: the least common multiple of
 * the head width (for an axis of heads) and the largest quantisation block among the tensors that
 * meet on the axis. The number of slices is the largest of 8, 4, 2, 1 that leaves each slice
 * OCTAVO_MIN_SLICE elements with cuts at floor(i * units / n) units. Depends on nothing else. */
octavo_slices octavo_slices_make(int64_t extent, int64_t unit);

/* Cuts experts, 1 to any number, into the largest of 8, 4, 2, 1 slices that leaves none empty, at
 * floor(i * n_experts / n). */
octavo_slices octavo_slices_of_experts(int64_t n_experts);

/* Least common multiple, for `unit`. Both at least 1. */
int64_t octavo_slices_unit(int64_t a, int64_t b);

/* parts[0][j] becomes the tree sum of parts[0..n)[j], j < width; n is a power of two. parts[i]
 * starts at parts + i * stride. The tree of n = 8 is ((0+1)+(2+3))+((4+5)+(6+7)). Other parts are
 * overwritten. */
void octavo_tree_add(float *parts, int n, int64_t stride, int64_t width);

#endif
