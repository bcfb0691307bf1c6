/* SPDX-License-Identifier: Apache-2.0
 *
 * Metadata values as JSON, for people and for `inspect`. One pass over the bytes of a value: nested
 * arrays are written where they lie, never looked up by index.
 */
#include "base/compiler.h"
#include "formats/gguf_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The shortest digits that give the value back, with a point in every locale. */
static void append_float(octavo_buffer *buffer, octavo_gguf_type type, double value) {
    if (!isfinite(value)) {
        octavo_buffer_puts(buffer, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    int most = type == OCTAVO_GGUF_F32 ? 9 : 17;
    char text[64];
    for (int digits = type == OCTAVO_GGUF_F32 ? 6 : 15; digits <= most; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        double back = type == OCTAVO_GGUF_F32 ? (double)strtof(text, NULL) : strtod(text, NULL);
        if (back >= value && back <= value) break;
    }
    bool in_point = false;
    for (const char *c = text; *c != 0; c++) {
        bool plain = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
        if (plain) {
            octavo_buffer_putc(buffer, *c);
        } else if (!in_point) {
            octavo_buffer_putc(buffer, '.');
        }
        in_point = !plain;
    }
}

static void append_scalar(octavo_buffer *buffer, octavo_gguf_type type, const uint8_t *data) {
    if (type == OCTAVO_GGUF_BOOL) {
        octavo_buffer_puts(buffer, *data != 0 ? "true" : "false");
    } else if (octavo_gguf_type_is_float(type)) {
        append_float(buffer, type, octavo_gguf_load_float(type, data));
    } else {
        bool negative;
        unsigned long long bits = octavo_gguf_load_integer(type, data, &negative);
        octavo_buffer_printf(buffer, "%s%llu", negative ? "-" : "", negative ? 0 - bits : bits);
    }
}

static const uint8_t *append_value(octavo_buffer *buffer, octavo_gguf_type type,
                                   const uint8_t *data, size_t max_items);

/* Writes the array and returns the byte after the elements written. */
static const uint8_t *append_array(octavo_buffer *buffer, const octavo_gguf_array *array,
                                   size_t max_items) {
    bool is_long = array->count > max_items;
    if (is_long) {
        octavo_buffer_printf(buffer, "{\"type\": \"%s\", \"count\": %zu, \"first\": ",
                             octavo_gguf_type_name(array->type), array->count);
    }
    size_t shown = is_long ? max_items : array->count;
    const uint8_t *data = array->data;
    octavo_buffer_putc(buffer, '[');
    for (size_t i = 0; i < shown; i++) {
        if (i > 0) octavo_buffer_puts(buffer, ", ");
        data = append_value(buffer, array->type, data, max_items);
    }
    octavo_buffer_puts(buffer, is_long ? "]}" : "]");
    return data;
}

/* Returns the byte after the value. Recursion is bounded by OCTAVO_GGUF_MAX_DEPTH. */
static const uint8_t *append_value(octavo_buffer *buffer, octavo_gguf_type type,
                                   const uint8_t *data, size_t max_items) {
    if (type == OCTAVO_GGUF_STRING) {
        octavo_gguf_string string = octavo_gguf_load_string(data);
        octavo_buffer_json_string(buffer, string.data, string.size);
    } else if (type == OCTAVO_GGUF_ARRAY) {
        octavo_gguf_array array = octavo_gguf_load_array(data);
        const uint8_t *end = append_array(buffer, &array, max_items);
        if (array.count <= max_items) return end;
    } else {
        append_scalar(buffer, type, data);
    }
    return octavo_gguf_skip(type, data);
}

void octavo_gguf_metadata_json(const octavo_gguf *gguf, size_t index, size_t max_items,
                               octavo_buffer *buffer) {
    octavo_assert(index < gguf->parts[0].n_entries);
    const octavo_gguf_entry *entry = &gguf->parts[0].entries[index];
    if (entry->type == OCTAVO_GGUF_ARRAY) {
        append_array(buffer, &entry->array, max_items);
    } else {
        append_value(buffer, entry->type, entry->data, max_items);
    }
}
