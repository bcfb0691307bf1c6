/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a text is well-formed markup: tags nest, attributes are quoted and not given twice,
 * entities are the five of XML. Of HTML it also takes a doctype and <meta>, which has no end.
 */
#ifndef OCTAVO_TESTS_CLI_MARKUP_H
#define OCTAVO_TESTS_CLI_MARKUP_H

#include "../unit.h"

/* Fails the test where it is not; says at which byte. */
void markup_check(const char *text);
/* Fails the test where the text could run or load anything. */
void markup_check_alone(const char *text);
/* How many elements of a name there are. */
size_t markup_count(const char *text, const char *name);

#endif
