/* SPDX-License-Identifier: Apache-2.0
 *
 * A vocabulary that is being filled from the files of a folder, and what tokenizer_config.json says
 * about it.
 */
#ifndef OCTAVO_TEXT_VOCAB_DRAFT_H
#define OCTAVO_TEXT_VOCAB_DRAFT_H

#include "base/memory.h"
#include "text/vocab.h"

#include <jansson.h>

/* Where a vocabulary comes from. Messages name the files. */
typedef struct octavo_vocab_source {
    const char *name;        /* of the file with the vocabulary */
    const char *config_name; /* of tokenizer_config.json */
    json_t *config;          /* hostile; NULL: none */
} octavo_vocab_source;

typedef struct octavo_vocab_draft {
    octavo_arena arena; /* own memory: the arrays, and texts that are no views */
    octavo_vocab vocab;
    octavo_text *tokens; /* [room] */
    int32_t *types;      /* [room] */
    float *scores;       /* [room] */
    uint8_t *added_flags;
    size_t room;
} octavo_vocab_draft;

/* Makes room for n tokens and those that the configuration adds. LIMIT of tokens is FORMAT, MEMORY.
 */
OCTAVO_MUST_CHECK octavo_status octavo_vocab_draft_init(octavo_vocab_draft *draft, size_t n,
                                                        const octavo_vocab_source *source,
                                                        octavo_error *error);
void octavo_vocab_draft_deinit(octavo_vocab_draft *draft);

/* Puts a token behind the others; there is room. */
void octavo_vocab_draft_put(octavo_vocab_draft *draft, octavo_text text, int32_t type, float score);

/* What the configuration says: tokens that are added ("added_tokens_decoder"), which ones texts
 * begin and end with, and whether they do. It wins over what the draft has. FORMAT. */
OCTAVO_MUST_CHECK octavo_status octavo_vocab_configure(octavo_vocab_draft *draft,
                                                       const octavo_vocab_source *source,
                                                       octavo_error *error);

#endif
