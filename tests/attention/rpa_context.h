/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts for tests: every level that this machine has.
 */
#ifndef OCTAVO_TESTS_RPA_CONTEXT_H
#define OCTAVO_TESTS_RPA_CONTEXT_H

#include "octavo/attention.h"

#include <stdbool.h>

/* Name of level i of those that the machine has and that bring something for attention, scalar
 * first; NULL after the last. */
const char *rpa_level(int i);
/* Ends the program if it cannot be made. */
octavo_attention_context *rpa_context(const char *isa, int n_threads);

#endif
