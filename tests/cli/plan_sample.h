/* SPDX-License-Identifier: Apache-2.0
 *
 * Documents of the form of octavo/plan.h for tests of their renderings: right in form, of no model.
 */
#ifndef OCTAVO_TESTS_CLI_PLAN_SAMPLE_H
#define OCTAVO_TESTS_CLI_PLAN_SAMPLE_H

#include "../unit.h"

#include <jansson.h>

/* A plan over data x expert x seq x model ranks. Each layer has two collectives, odd layers a third
 * one; one more is outside of layers. The caller gives it to json_decref. */
json_t *plan_sample(int data, int expert, int seq, int model, int layers);

/* A document of --search with n rule sets. */
json_t *plan_sample_search(int n);

#endif
