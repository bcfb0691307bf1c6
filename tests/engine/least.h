/* SPDX-License-Identifier: Apache-2.0
 *
 * The fewest bytes in which one layer of llama, its embedding and the logits of all tokens can run
 * on a mesh under given rules, by trying everything. It shares rules with the planner, but neither
 * ways, routes nor search: a tensor has two axes (rows and columns, inputs and outputs), a layout
 * gives each mesh axis to one of them in any order, to a sum that is still to be made, or to none;
 * between layouts lead all chains of exchanges, at what a ring sends for each.
 *
 * Obligations are those of the rules: activation_td, logits_tv and what overrides speak of are held
 * exactly so, weights and cache lie as placed, but weights may move
 * in panels of outputs. Sums are split as the order
 * contract has it: into no more parts than there are slices, unless the weight is placed so.
 */
#ifndef OCTAVO_TESTS_ENGINE_LEAST_H
#define OCTAVO_TESTS_ENGINE_LEAST_H

#include "sharding/rules.h"

typedef struct least_dims {
    int t, d, n, k, h, f, v; /* as letters of the rules */
    int panel;               /* outputs of a weight that move together */
} least_dims;

/* f32. All degrees divide what they split. */
double least_wire_bytes(const least_dims *dims, const octavo_mesh *mesh, octavo_phase phase,
                        const octavo_rules *rules);

#endif
