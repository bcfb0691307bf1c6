/* SPDX-License-Identifier: Apache-2.0
 *
 * What is read of a config.json, noted under the keys that GGUF files have for it: so a description
 * is written with the table by which it is read.
 */
#ifndef OCTAVO_MODEL_CONFIG_NOTE_H
#define OCTAVO_MODEL_CONFIG_NOTE_H

#include "formats/gguf.h"

enum { OCTAVO_MAX_NOTES = 96 };

typedef struct octavo_config_note {
    const char *key;       /* without the architecture; lives forever */
    octavo_gguf_type type; /* U32, F32, BOOL or STRING */
    union {
        uint32_t u32;
        float f32;
        bool flag;
        octavo_gguf_string text; /* of the config.json */
    } value;
} octavo_config_note;

/* Of two notes of a key the later counts. What does not fit any more is missed when the description
 * is read again. */
typedef struct octavo_config_notes {
    octavo_config_note items[OCTAVO_MAX_NOTES];
    int n;
} octavo_config_notes;

/* `notes` and a note's key may be NULL: then there is nothing to note. */
void octavo_config_note_put(octavo_config_notes *notes, octavo_config_note note);
void octavo_config_note_integer(octavo_config_notes *notes, const char *key, int64_t value);
void octavo_config_note_number(octavo_config_notes *notes, const char *key, float value);
void octavo_config_note_text(octavo_config_notes *notes, const char *key, const char *text);
void octavo_config_note_remove(octavo_config_notes *notes, const char *key);
const octavo_config_note *octavo_config_note_find(const octavo_config_notes *notes,
                                                  const char *key);

#endif
