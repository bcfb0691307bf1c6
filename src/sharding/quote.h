/* SPDX-License-Identifier: Apache-2.0
 *
 * Names from outside in messages: bounded, and without control characters, which must not reach a
 * terminal.
 */
#ifndef OCTAVO_SHARDING_QUOTE_H
#define OCTAVO_SHARDING_QUOTE_H

#include <stddef.h>

typedef struct octavo_quoted {
    char text[64];
} octavo_quoted;

/* `text` in quotation marks; of a long one the begin, and "...". */
octavo_quoted octavo_quote(const char *text, size_t length);

#endif
