/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of a plan's document share.
 */
#ifndef OCTAVO_ENGINE_PLAN_JSON_H
#define OCTAVO_ENGINE_PLAN_JSON_H

#include "engine/plan.h"

/* An axis of a tensor; rows have the extent of the step, kept in *rows. */
const octavo_axis *octavo_plan_axis(const octavo_planner *planner, int tensor, int i,
                                    octavo_axis *rows);
/* Of a tensor in a layout, on the rank that holds most. */
double octavo_plan_bytes(const octavo_planner *planner, int tensor, const octavo_layout *layout);

/* Weights and cache of the fullest rank, by the planner's rules. */
double octavo_plan_placed_bytes(const octavo_planner *planner);

/* ,"prefill": {collectives, wire bytes, time, timeline} (plan_phase.c). */
void octavo_plan_put_phase(const octavo_planner *planner, const octavo_partition *partition,
                           octavo_buffer *out);
/* "prefill": {wire bytes, time}, ... of the phases asked for. */
void octavo_plan_put_times(const octavo_planner *planner, const octavo_partition *partitions,
                           octavo_buffer *out);

#endif
