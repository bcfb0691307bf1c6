/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search of rules may choose: groups of tensors that are split together, and the few ways to
 * split each that make sense.
 */
#ifndef OCTAVO_ENGINE_PLAN_CHOICES_H
#define OCTAVO_ENGINE_PLAN_CHOICES_H

#include "engine/plan.h"

enum {
    OCTAVO_CHOICES = 9,  /* groups */
    OCTAVO_OPTIONS = 12, /* most of a group, without "as it is" */
    OCTAVO_MEMBERS = 15, /* most tensors of a group */
};

/* Overrides that make one option of a group. */
typedef struct octavo_plan_option {
    octavo_override overrides[OCTAVO_MEMBERS];
    int n;
} octavo_plan_option;

typedef struct octavo_plan_choice {
    octavo_plan_option options[OCTAVO_OPTIONS];
    int n; /* 0: the model has no such tensors, or rules speak of all of them */
    bool is_in[OCTAVO_PHASES];
} octavo_plan_choice;

/* Options that differ on the planner's mesh from what its rules say and from one another. Tensors
 * that overrides speak of are left alone. */
void octavo_plan_choices(const octavo_planner *planner, octavo_plan_choice list[OCTAVO_CHOICES]);

#endif
