/* SPDX-License-Identifier: Apache-2.0
 *
 * A short list, searched from its begin.
 */
#include "model/config_note.h"

#include <string.h>

const octavo_config_note *octavo_config_note_find(const octavo_config_notes *notes,
                                                  const char *key) {
    for (int i = 0; i < notes->n; i++)
        if (strcmp(notes->items[i].key, key) == 0) return &notes->items[i];
    return NULL;
}

void octavo_config_note_remove(octavo_config_notes *notes, const char *key) {
    const octavo_config_note *found = octavo_config_note_find(notes, key);
    if (!found) return;
    const int at = (int)(found - notes->items);
    notes->n--;
    memmove(&notes->items[at], &notes->items[at + 1],
            (size_t)(notes->n - at) * sizeof *notes->items);
}

void octavo_config_note_put(octavo_config_notes *notes, octavo_config_note note) {
    if (!notes || !note.key) return;
    octavo_config_note_remove(notes, note.key);
    if (notes->n < OCTAVO_MAX_NOTES) notes->items[notes->n++] = note;
}

void octavo_config_note_integer(octavo_config_notes *notes, const char *key, int64_t value) {
    octavo_config_note note = {.key = key, .type = OCTAVO_GGUF_U32};
    note.value.u32 = value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    octavo_config_note_put(notes, note);
}

void octavo_config_note_number(octavo_config_notes *notes, const char *key, float value) {
    octavo_config_note_put(
        notes, (octavo_config_note){.key = key, .type = OCTAVO_GGUF_F32, .value.f32 = value});
}

void octavo_config_note_text(octavo_config_notes *notes, const char *key, const char *text) {
    octavo_config_note_put(notes, (octavo_config_note){.key = key,
                                                       .type = OCTAVO_GGUF_STRING,
                                                       .value.text = {text, strlen(text)}});
}
