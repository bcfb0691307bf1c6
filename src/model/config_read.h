/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers, texts and flags of a model's description, read the same way from the metadata of a GGUF
 * file and from config.json: a key has a name in each. Values are checked against their range here;
 * every error names the file and the key. null in config.json is as if the key were absent.
 */
#ifndef OCTAVO_MODEL_CONFIG_READ_H
#define OCTAVO_MODEL_CONFIG_READ_H

#include "base/compiler.h"
#include "model/checkpoint.h"
#include "model/config_note.h"

/* gguf: what follows "ARCHITECTURE."; hf: in config.json. NULL: there the value is not written
 * down, which is as if it were absent. */
typedef struct octavo_key {
    const char *gguf, *hf;
} octavo_key;

/* What one family calls a key of config.json that is not there under its usual name. */
typedef struct octavo_key_alias {
    const char *usual, *own;
} octavo_key_alias;

typedef struct octavo_config_reader {
    const octavo_checkpoint *checkpoint;
    const char *architecture; /* of GGUF keys */
    const json_t *object;     /* of config.json: the one about the text model, or one inside it */
    const char *section;      /* its name, for messages; "" at the top */
    const octavo_key_alias *aliases; /* at the top; ends with a NULL, may be NULL */
    octavo_error *error;
    octavo_config_notes *notes; /* of config.json: takes what is read; may be NULL */
} octavo_config_reader;

/* Of integers as a fallback: the key must be there. For floats that is NAN. */
#define OCTAVO_REQUIRED INT64_MIN

static inline bool octavo_config_is_hf(const octavo_config_reader *reader) {
    return reader->checkpoint->gguf == NULL;
}

/* Is the key there? config.json may say null to mean none, where absent means a default. */
bool octavo_config_has(const octavo_config_reader *reader, octavo_key key);
bool octavo_config_is_null(const octavo_config_reader *reader, octavo_key key);

/* Results are untouched on failure. Statuses: NOT_FOUND (required, and absent), FORMAT (of another
 * kind, out of range). An array in GGUF metadata that has the same number for every layer is as
 * that number; UNSUPPORTED where they differ. */
OCTAVO_MUST_CHECK octavo_status octavo_config_integer(const octavo_config_reader *reader,
                                                      octavo_key key, int64_t fallback, int64_t low,
                                                      int64_t high, int64_t *value);
/* In GGUF metadata, an array of integers or flags in place of one value: true where there is. */
bool octavo_config_array(const octavo_config_reader *reader, octavo_key key,
                         octavo_gguf_array *array);
/* A finite number above 0. */
OCTAVO_MUST_CHECK octavo_status octavo_config_positive(const octavo_config_reader *reader,
                                                       octavo_key key, double fallback,
                                                       float *value);
OCTAVO_MUST_CHECK octavo_status octavo_config_flag(const octavo_config_reader *reader,
                                                   octavo_key key, bool fallback, bool *value);
/* A view; `fallback` may be NULL, then so may text->data be. */
OCTAVO_MUST_CHECK octavo_status octavo_config_text(const octavo_config_reader *reader,
                                                   octavo_key key, const char *fallback,
                                                   octavo_gguf_string *text);
/* An object of config.json as a reader of its own; inner->object is NULL where it is absent. Not
 * for GGUF. `key` must outlive *inner. */
OCTAVO_MUST_CHECK octavo_status octavo_config_section(const octavo_config_reader *reader,
                                                      const char *key, octavo_config_reader *inner);

/* A failure about a key's value: "metadata \"KEY\" (FILE): why" or "config \"KEY\" (FILE): why". */
octavo_status octavo_config_fail(const octavo_config_reader *reader, octavo_key key,
                                 octavo_status status, const char *format, ...) OCTAVO_PRINTF(4, 5);

bool octavo_text_is(octavo_gguf_string text, const char *word);

#endif
