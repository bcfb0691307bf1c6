/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of the parts of tokenizer.json share. Messages name the part; the file is put in
 * front of them once, by octavo_tokenizer_from_json.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_JSON_READER_H
#define OCTAVO_TEXT_TOKENIZER_JSON_READER_H

#include "text/pipeline.h"

#include <jansson.h>

typedef struct octavo_json_reader {
    json_t *root, *config; /* config may be NULL */
    const char *config_name;
    json_t *model_vocab; /* its object or array */
    octavo_pipeline *pipeline;
    octavo_arena arena; /* the arrays that vocab points to */
    octavo_vocab vocab;
    octavo_text *tokens;  /* [room]; data is NULL where there is none (yet) */
    int32_t *types;       /* [room] */
    uint8_t *added_flags; /* [room] */
    size_t room;
    octavo_error *error;
} octavo_json_reader;

/* Values of an object; NULL and the default where the key is absent or null. */
json_t *octavo_json_get(const json_t *object, const char *key);
OCTAVO_MUST_CHECK octavo_status octavo_json_bool(octavo_json_reader *r, const json_t *object,
                                                 const char *key, bool otherwise, bool *value);
/* A string as a view; FORMAT where it is absent. */
OCTAVO_MUST_CHECK octavo_status octavo_json_text(octavo_json_reader *r, const json_t *object,
                                                 const char *key, octavo_text *text);
/* "type" of a step, or "" where it has none. */
const char *octavo_json_type(const json_t *step);

/* The token with this text, added ones first, or -1. */
int32_t octavo_json_token(const octavo_json_reader *r, const char *text);

/* The parts. read_vocab comes first: others look tokens up. */
OCTAVO_MUST_CHECK octavo_status octavo_json_read_vocab(octavo_json_reader *r);
OCTAVO_MUST_CHECK octavo_status octavo_json_read_model(octavo_json_reader *r);
OCTAVO_MUST_CHECK octavo_status octavo_json_read_normalizer(octavo_json_reader *r);
OCTAVO_MUST_CHECK octavo_status octavo_json_read_splitter(octavo_json_reader *r);
OCTAVO_MUST_CHECK octavo_status octavo_json_read_decoder(octavo_json_reader *r);
OCTAVO_MUST_CHECK octavo_status octavo_json_read_ends(octavo_json_reader *r);

/* {"String": ...} or {"Regex": ...} under "pattern". */
OCTAVO_MUST_CHECK octavo_status octavo_json_pattern(octavo_json_reader *r, const json_t *step,
                                                    octavo_pattern *pattern);

#endif
