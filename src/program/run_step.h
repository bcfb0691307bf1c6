/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rank works out of a step before its ops run (run_step.c).
 */
#ifndef OCTAVO_PROGRAM_RUN_STEP_H
#define OCTAVO_PROGRAM_RUN_STEP_H

#include "program/run.h"

/* Chooses the program; finds the rank's rows of t and makes its plans. By the caller of a step. */
void octavo_run_begin(octavo_run *run, const octavo_step *step);

/* Is there an i-th lot of rows that need a result, in any data group? */
bool octavo_run_has_rows(const octavo_run *run, int i);
/* Finds these rows. By the rank's thread 0, between two barriers. */
void octavo_run_begin_rows(octavo_run *run, int i);

#endif
