/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading values from either description.
 */
#include "model/config_read.h"

#include "base/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = 128 };

static const char *gguf_key(const octavo_config_reader *reader, octavo_key key, char *full) {
    snprintf(full, KEY_SIZE, "%s.%s", reader->architecture, key.gguf);
    return full;
}

static const char *hf_key(const octavo_config_reader *reader, octavo_key key) {
    const octavo_key_alias *alias = reader->aliases;
    for (; alias && alias->usual && key.hf; alias++)
        if (strcmp(alias->usual, key.hf) == 0 && !json_object_get(reader->object, key.hf))
            return alias->own;
    return key.hf;
}

octavo_status octavo_config_fail(const octavo_config_reader *reader, octavo_key key,
                                 octavo_status status, const char *format, ...) {
    char why[sizeof((octavo_error *)0)->message], full[KEY_SIZE];
    const char *path = octavo_checkpoint_path(reader->checkpoint);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (octavo_config_is_hf(reader))
        return octavo_fail(reader->error, status, "config \"%s%s%s\" (%s): %s", reader->section,
                           reader->section[0] ? "." : "", hf_key(reader, key), path, why);
    return octavo_fail(reader->error, status, "metadata \"%s\" (%s): %s",
                       gguf_key(reader, key, full), path, why);
}

/* The value in config.json, or NULL. */
static const json_t *json_of(const octavo_config_reader *reader, octavo_key key) {
    const json_t *value = key.hf ? json_object_get(reader->object, hf_key(reader, key)) : NULL;
    return json_is_null(value) ? NULL : value;
}

bool octavo_config_has(const octavo_config_reader *reader, octavo_key key) {
    char full[KEY_SIZE];
    if (octavo_config_is_hf(reader)) return json_of(reader, key) != NULL;
    if (!key.gguf) return false;
    return octavo_gguf_metadata_find(reader->checkpoint->gguf, gguf_key(reader, key, full)) >= 0;
}

bool octavo_config_is_null(const octavo_config_reader *reader, octavo_key key) {
    return octavo_config_is_hf(reader) && key.hf &&
           json_is_null(json_object_get(reader->object, hf_key(reader, key)));
}

static octavo_status fail_missing(const octavo_config_reader *reader, octavo_key key) {
    const char *name = octavo_config_is_hf(reader) ? key.hf : key.gguf;
    if (!name)
        return octavo_fail(reader->error, OCTAVO_ERROR_NOT_FOUND,
                           "model (%s): its description lacks a number that it needs",
                           octavo_checkpoint_path(reader->checkpoint));
    return octavo_config_fail(reader, key, OCTAVO_ERROR_NOT_FOUND,
                              "the key is missing, and the model cannot be run without it; the "
                              "file is damaged or made for another program");
}

static octavo_status fail_kind(const octavo_config_reader *reader, octavo_key key,
                               const char *kind) {
    return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                              "not %s; the file is damaged or made for another program", kind);
}

bool octavo_config_array(const octavo_config_reader *reader, octavo_key key,
                         octavo_gguf_array *array) {
    char full[KEY_SIZE];
    octavo_error ignored;
    return !octavo_config_is_hf(reader) && octavo_config_has(reader, key) &&
           octavo_gguf_get_integers(reader->checkpoint->gguf, gguf_key(reader, key, full), array,
                                    &ignored) == OCTAVO_OK &&
           array->count > 0;
}

static octavo_status read_equal(const octavo_config_reader *reader, octavo_key key,
                                const octavo_gguf_array *array, int64_t *value) {
    *value = octavo_gguf_array_i64(array, 0);
    for (size_t i = 1; i < array->count; i++)
        if (octavo_gguf_array_i64(array, i) != *value)
            return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                                      "layers that differ in this number (%lld, and %lld in layer "
                                      "%zu) are not in this version",
                                      (long long)*value, (long long)octavo_gguf_array_i64(array, i),
                                      i);
    return OCTAVO_OK;
}

octavo_status octavo_config_integer(const octavo_config_reader *reader, octavo_key key,
                                    int64_t fallback, int64_t low, int64_t high, int64_t *value) {
    int64_t read = fallback;
    octavo_gguf_array array;
    if (!octavo_config_has(reader, key)) {
        if (fallback == OCTAVO_REQUIRED) return fail_missing(reader, key);
    } else if (octavo_config_array(reader, key, &array)) {
        octavo_status status = read_equal(reader, key, &array, &read);
        if (status) return status;
    } else if (octavo_config_is_hf(reader)) {
        const json_t *json = json_of(reader, key);
        if (!json_is_integer(json)) return fail_kind(reader, key, "a whole number");
        read = json_integer_value(json);
    } else {
        char full[KEY_SIZE];
        uint64_t raw = 0;
        octavo_status status = octavo_gguf_get_u64(
            reader->checkpoint->gguf, gguf_key(reader, key, full), &raw, reader->error);
        if (status) return status;
        read = raw > INT64_MAX ? INT64_MAX : (int64_t)raw;
    }
    if (read < low || read > high)
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "%lld is outside %lld to %lld; the file is damaged or made for "
                                  "another program",
                                  (long long)read, (long long)low, (long long)high);
    octavo_config_note_integer(reader->notes, key.gguf, read);
    *value = read;
    return OCTAVO_OK;
}

octavo_status octavo_config_positive(const octavo_config_reader *reader, octavo_key key,
                                     double fallback, float *value) {
    float read = (float)fallback;
    if (!octavo_config_has(reader, key)) {
        if (isnan(fallback)) return fail_missing(reader, key);
    } else if (octavo_config_is_hf(reader)) {
        const json_t *json = json_of(reader, key);
        if (!json_is_number(json)) return fail_kind(reader, key, "a number");
        read = (float)json_number_value(json);
    } else {
        char full[KEY_SIZE];
        octavo_status status = octavo_gguf_get_f32(
            reader->checkpoint->gguf, gguf_key(reader, key, full), &read, reader->error);
        if (status) return status;
    }
    if (!(read > 0.0f) || !isfinite(read)) return fail_kind(reader, key, "a positive number");
    octavo_config_note_number(reader->notes, key.gguf, read);
    *value = read;
    return OCTAVO_OK;
}

octavo_status octavo_config_flag(const octavo_config_reader *reader, octavo_key key, bool fallback,
                                 bool *value) {
    bool read = fallback;
    if (octavo_config_has(reader, key)) {
        char full[KEY_SIZE];
        if (!octavo_config_is_hf(reader))
            return octavo_gguf_get_bool(reader->checkpoint->gguf, gguf_key(reader, key, full),
                                        value, reader->error);
        const json_t *json = json_of(reader, key);
        if (!json_is_boolean(json)) return fail_kind(reader, key, "true or false");
        read = json_is_true(json);
    }
    octavo_config_note note = {.key = key.gguf, .type = OCTAVO_GGUF_BOOL, .value.flag = read};
    octavo_config_note_put(reader->notes, note);
    *value = read;
    return OCTAVO_OK;
}

octavo_status octavo_config_text(const octavo_config_reader *reader, octavo_key key,
                                 const char *fallback, octavo_gguf_string *text) {
    octavo_gguf_string read = {fallback, fallback ? strlen(fallback) : 0};
    if (octavo_config_has(reader, key)) {
        char full[KEY_SIZE];
        if (!octavo_config_is_hf(reader))
            return octavo_gguf_get_string(reader->checkpoint->gguf, gguf_key(reader, key, full),
                                          text, reader->error);
        const json_t *json = json_of(reader, key);
        if (!json_is_string(json)) return fail_kind(reader, key, "a text");
        read = (octavo_gguf_string){json_string_value(json), json_string_length(json)};
    }
    *text = read;
    return OCTAVO_OK;
}

octavo_status octavo_config_section(const octavo_config_reader *reader, const char *key,
                                    octavo_config_reader *inner) {
    const octavo_key name = {NULL, key};
    const json_t *json = json_of(reader, name);
    if (json && !json_is_object(json)) return fail_kind(reader, name, "an object");
    *inner = *reader;
    inner->object = json;
    inner->section = key;
    inner->aliases = NULL;
    return OCTAVO_OK;
}

bool octavo_text_is(octavo_gguf_string text, const char *word) {
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}
