/* SPDX-License-Identifier: Apache-2.0
 *
 * The document of octavo_inspect as a page for people.
 */
#ifndef OCTAVO_CLI_INSPECT_TEXT_H
#define OCTAVO_CLI_INSPECT_TEXT_H

#include <jansson.h>

/* Prints on standard output. What the document lacks is left out. */
void octavo_inspect_print(const json_t *document);

#endif
