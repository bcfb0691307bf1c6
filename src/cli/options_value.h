/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict readers of an option's value: the whole text must be the number, and in range.
 */
#ifndef OCTAVO_CLI_OPTIONS_VALUE_H
#define OCTAVO_CLI_OPTIONS_VALUE_H

#include "cli/options.h"

/* Stores `text` in the option's field. Returns -1, or the exit status after saying what is wrong.
 */
int octavo_option_store(const octavo_option *option, const char *text, void *values);

#endif
