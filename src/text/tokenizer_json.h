/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer from the JSON that Hugging Face checkpoints carry: tokenizer.json, which describes it
 * whole, and tokenizer_config.json, which names the tokens that texts begin and end with.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_JSON_H
#define OCTAVO_TEXT_TOKENIZER_JSON_H

#include "octavo/tokenizer.h"

#include <jansson.h>

typedef struct octavo_tokenizer_json {
    const char *name;        /* of tokenizer.json, for messages */
    const char *config_name; /* of tokenizer_config.json */
    json_t *tokenizer;       /* hostile */
    json_t *config;          /* NULL: none */
} octavo_tokenizer_json;

/* Builds a tokenizer; the JSON may go afterwards. Every message names the file.
 * Statuses: FORMAT (something is missing, of a wrong type, or contradicts another), UNSUPPORTED (a
 * step or an option that this build does not know, by its name), MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_from_json(const octavo_tokenizer_json *source,
                                                           octavo_tokenizer **tokenizer,
                                                           octavo_error *error);

#endif
