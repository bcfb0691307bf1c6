/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable list of token ids, and ways to get and show one.
 */
#ifndef OCTAVO_CLI_IDS_H
#define OCTAVO_CLI_IDS_H

#include "base/buffer.h"

#include "octavo/tokenizer.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. */
typedef struct octavo_ids {
    int32_t *data; /* [capacity] */
    size_t n, capacity;
} octavo_ids;

OCTAVO_MUST_CHECK octavo_status octavo_ids_append(octavo_ids *ids, int32_t id, octavo_error *error);
void octavo_ids_deinit(octavo_ids *ids);

/* The failure of what needs a tokenizer where the model has none. */
octavo_status octavo_ids_no_tokenizer(octavo_error *error);

/* Appends the ids of a text; `flags` are OCTAVO_ENCODE_.... A NULL tokenizer: NOT_FOUND. */
OCTAVO_MUST_CHECK octavo_status octavo_ids_encode(octavo_ids *ids,
                                                  const octavo_tokenizer *tokenizer,
                                                  const char *text, size_t length, unsigned flags,
                                                  octavo_error *error);

/* The same of a file's text, special tokens in it recognised. Also statuses of octavo_input_read.
 */
OCTAVO_MUST_CHECK octavo_status octavo_ids_read(octavo_ids *ids, const octavo_tokenizer *tokenizer,
                                                const char *path, octavo_error *error);

/* Appends the ids of a JSON array; `where` goes into the error. */
OCTAVO_MUST_CHECK octavo_status octavo_ids_parse(octavo_ids *ids, const char *json, size_t length,
                                                 const char *where, octavo_error *error);

/* Appends the numbers of a JSON array; NULL or anything else is an error. On failure the list is as
 * it was. */
OCTAVO_MUST_CHECK octavo_status octavo_ids_add(octavo_ids *ids, const json_t *array,
                                               const char *where, octavo_error *error);

/* "[1,2,3]" */
void octavo_ids_print(const octavo_ids *ids, octavo_buffer *out);

#endif
