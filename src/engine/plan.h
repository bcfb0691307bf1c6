/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan in the making, and its document.
 */
#ifndef OCTAVO_ENGINE_PLAN_H
#define OCTAVO_ENGINE_PLAN_H

#include "base/buffer.h"
#include "model/network.h"
#include "program/partition.h"

#include "octavo/plan.h"

typedef struct octavo_planner {
    octavo_plan_options options; /* defaults filled in */
    octavo_network network;
    octavo_program program;
    octavo_program_axes axes;
    octavo_mesh mesh;
    octavo_rules rules;
    int64_t context;                            /* positions of a sequence in the cache */
    octavo_partition partitions[OCTAVO_PHASES]; /* of those asked for */
    octavo_partition_options costs;
    const char *type_name; /* of weights */
} octavo_planner;

/* One phase's partition by the planner's rules. */
OCTAVO_MUST_CHECK octavo_status octavo_planner_partition(octavo_planner *planner,
                                                         octavo_phase phase,
                                                         octavo_partition *partition,
                                                         octavo_error *error);
bool octavo_planner_wants(const octavo_planner *planner, octavo_phase phase);

/* plan_search.c: the document of a search that starts from the planner's rules, after its plan is
 * made. */
OCTAVO_MUST_CHECK octavo_status octavo_plan_search(octavo_planner *planner, octavo_buffer *out,
                                                   octavo_error *error);

/* plan_json.c: the document, and the parts of it that a search shows. */
void octavo_plan_put_head(const octavo_planner *planner, octavo_buffer *out);
void octavo_plan_put_summary(const octavo_planner *planner, const octavo_partition *partitions,
                             octavo_buffer *out);
void octavo_plan_put_document(const octavo_planner *planner, octavo_buffer *out);

#endif
