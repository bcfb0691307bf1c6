/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON in and out: the variables of a render, and the filter tojson, byte for byte what Python's
 * json.dumps writes.
 */
#include "base/error.h"
#include "text/template_string.h"
#include "text/template_value.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- in --- */

/* jansson bounds the nesting of what it parses, so plain recursion is safe here. */
static octavo_tpl_value convert(octavo_tpl_run *run, json_t *json);

static octavo_tpl_dict *convert_object(octavo_tpl_run *run, json_t *json) {
    octavo_tpl_dict *dict = octavo_tpl_dict_new(run, json_object_size(json));
    for (void *it = json_object_iter(json); dict != NULL && it != NULL;
         it = json_object_iter_next(json, it)) {
        octavo_tpl_value key =
            octavo_tpl_text(run, json_object_iter_key(it), strlen(json_object_iter_key(it)));
        octavo_tpl_value value = convert(run, json_object_iter_value(it));
        octavo_tpl_dict_set(run, dict, key, value);
    }
    return dict;
}

static octavo_tpl_value convert_array(octavo_tpl_run *run, json_t *json) {
    octavo_tpl_list *list = octavo_tpl_list_new(run, json_array_size(json));
    for (size_t i = 0; list != NULL && i < list->count; i++)
        list->items[i] = convert(run, json_array_get(json, i));
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, list);
}

static octavo_tpl_value convert(octavo_tpl_run *run, json_t *json) {
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return octavo_tpl_from_dict(OCTAVO_TPL_DICT, convert_object(run, json));
    case JSON_ARRAY:
        return convert_array(run, json);
    case JSON_STRING:
        return octavo_tpl_text(run, json_string_value(json), json_string_length(json));
    case JSON_INTEGER:
        return octavo_tpl_integer(json_integer_value(json));
    case JSON_REAL:
        return octavo_tpl_float(json_real_value(json));
    case JSON_TRUE:
        return octavo_tpl_bool(true);
    case JSON_FALSE:
        return octavo_tpl_bool(false);
    default:
        return octavo_tpl_none();
    }
}

octavo_tpl_dict *octavo_tpl_parse_variables(octavo_tpl_run *run, const char *json) {
    json_error_t wrong;
    json_t *root = json_loads(json, JSON_ALLOW_NUL, &wrong);
    octavo_tpl_dict *variables = NULL;
    if (root == NULL)
        run->status = json_error_code(&wrong) == json_error_out_of_memory
                          ? octavo_fail_memory(run->error, "template variables", strlen(json))
                          : octavo_fail_at(run->error, OCTAVO_ERROR_FORMAT, wrong.position,
                                           "template variables (line %d): %s; give one JSON object",
                                           wrong.line, wrong.text);
    else if (!json_is_object(root))
        run->status = octavo_fail_at(run->error, OCTAVO_ERROR_FORMAT, 0,
                                     "template variables: not a JSON object; give one with "
                                     "`messages` and the like");
    else
        variables = convert_object(run, root);
    json_decref(root);
    return octavo_tpl_failed(run) ? NULL : variables;
}

/* --- out --- */

typedef struct writer {
    octavo_tpl_run *run;
    const octavo_tpl_string *indent; /* NULL: all on one line */
    const octavo_tpl_string *item_separator;
    const octavo_tpl_string *key_separator;
    bool ensure_ascii;
    bool sort_keys;
    size_t level;
} writer;

static void write_value(writer *w, octavo_tpl_value value);

static void write_text(writer *w, const octavo_tpl_string *text) {
    octavo_tpl_put(w->run, text->data, text->size);
}

static void write_unicode_escape(writer *w, uint32_t c) {
    char text[16];
    if (c >= 0x10000) {
        c -= 0x10000;
        snprintf(text, sizeof text, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + (c >> 10),
                 0xdc00 + (c & 0x3ff));
    } else {
        snprintf(text, sizeof text, "\\u%04" PRIx32, c);
    }
    octavo_tpl_puts(w->run, text);
}

static const char *short_escape(int32_t c) {
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\f':
        return "\\f";
    case '\b':
        return "\\b";
    default:
        return NULL;
    }
}

static void write_string(writer *w, const octavo_tpl_string *string) {
    octavo_tpl_puts(w->run, "\"");
    size_t plain = 0; /* start of what needs no escape and is not written yet */
    for (size_t at = 0; at < string->size;) {
        size_t next = octavo_utf8_next(string->data, string->size, at);
        unsigned char byte = (unsigned char)string->data[at];
        bool escape =
            byte < 0x20 || byte == '"' || byte == '\\' || (byte >= 0x80 && w->ensure_ascii);
        if (escape) {
            int32_t c = octavo_utf8_codepoint(string->data, string->size, at);
            octavo_tpl_put(w->run, string->data + plain, at - plain);
            if (short_escape(c) != NULL)
                octavo_tpl_puts(w->run, short_escape(c));
            else
                write_unicode_escape(w, (uint32_t)c);
            plain = next;
        }
        at = next;
    }
    octavo_tpl_put(w->run, string->data + plain, string->size - plain);
    octavo_tpl_puts(w->run, "\"");
}

static void write_float(writer *w, double real) {
    if (isnan(real))
        octavo_tpl_puts(w->run, "NaN");
    else if (isinf(real))
        octavo_tpl_puts(w->run, real < 0 ? "-Infinity" : "Infinity");
    else
        octavo_tpl_put_float(w->run, real);
}

static void write_newline(writer *w) {
    if (w->indent == NULL) return;
    octavo_tpl_puts(w->run, "\n");
    octavo_tpl_put_repeated(w->run, w->indent->data, w->indent->size, w->level);
}

static void write_list(writer *w, const octavo_tpl_list *list) {
    octavo_tpl_puts(w->run, "[");
    w->level++;
    for (size_t i = 0; i < list->count && octavo_tpl_charge(w->run, 1); i++) {
        if (i > 0) write_text(w, w->item_separator);
        write_newline(w);
        write_value(w, list->items[i]);
    }
    w->level--;
    if (list->count > 0) write_newline(w);
    octavo_tpl_puts(w->run, "]");
}

/* Keys that are not strings are written as JSON writes their values. */
static octavo_tpl_value key_text(writer *w, octavo_tpl_value key) {
    if (key.kind == OCTAVO_TPL_STRING) return key;
    if (!octavo_tpl_is_number(key) && key.kind != OCTAVO_TPL_NONE)
        return octavo_tpl_fail(w->run, "tojson: a key of a dict is %s; JSON has string keys only",
                               octavo_tpl_type(key));
    size_t mark = octavo_tpl_open(w->run);
    write_value(w, key);
    return octavo_tpl_close(w->run, mark);
}

/* Stable insertion into order: objects are small, and the run pays for the comparisons. */
static octavo_tpl_entry *sorted_entries(writer *w, const octavo_tpl_dict *dict) {
    octavo_tpl_entry *entries = octavo_tpl_alloc(w->run, dict->count, sizeof *entries);
    for (size_t i = 0; entries != NULL && i < dict->count; i++) {
        size_t at = i;
        while (at > 0 &&
               octavo_tpl_compare(w->run, entries[at - 1].key, dict->entries[i].key) > 0) {
            entries[at] = entries[at - 1];
            at--;
        }
        entries[at] = dict->entries[i];
    }
    return entries;
}

static void write_dict(writer *w, const octavo_tpl_dict *dict) {
    const octavo_tpl_entry *entries = w->sort_keys ? sorted_entries(w, dict) : dict->entries;
    octavo_tpl_puts(w->run, "{");
    w->level++;
    for (size_t i = 0; i < dict->count && octavo_tpl_charge(w->run, 1); i++) {
        if (i > 0) write_text(w, w->item_separator);
        write_newline(w);
        octavo_tpl_value key = key_text(w, entries[i].key);
        if (octavo_tpl_failed(w->run)) return;
        write_string(w, key.as.string);
        write_text(w, w->key_separator);
        write_value(w, entries[i].value);
    }
    w->level--;
    if (dict->count > 0) write_newline(w);
    octavo_tpl_puts(w->run, "}");
}

static void write_container(writer *w, octavo_tpl_value value) {
    octavo_tpl_run *run = w->run;
    if (run->depth > OCTAVO_TPL_MAX_DEPTH + OCTAVO_TPL_MAX_NESTING) {
        octavo_tpl_fail_limit(run, "tojson: a value is nested too deeply");
        return;
    }
    run->depth++;
    if (value.kind == OCTAVO_TPL_LIST || value.kind == OCTAVO_TPL_TUPLE)
        write_list(w, value.as.list);
    else if (value.kind == OCTAVO_TPL_DICT)
        write_dict(w, value.as.dict);
    else
        octavo_tpl_fail(run, "tojson: %s has no form in JSON", octavo_tpl_type(value));
    run->depth--;
}

static void write_value(writer *w, octavo_tpl_value value) {
    if (octavo_tpl_failed(w->run)) return;
    switch (value.kind) {
    case OCTAVO_TPL_NONE:
        octavo_tpl_puts(w->run, "null");
        break;
    case OCTAVO_TPL_BOOL:
        octavo_tpl_puts(w->run, value.as.truth ? "true" : "false");
        break;
    case OCTAVO_TPL_INTEGER:
        octavo_tpl_put_repr(w->run, value);
        break;
    case OCTAVO_TPL_FLOAT:
        write_float(w, value.as.real);
        break;
    case OCTAVO_TPL_STRING:
        write_string(w, value.as.string);
        break;
    default:
        write_container(w, value);
        break;
    }
}

static const octavo_tpl_string *indent_text(octavo_tpl_run *run, octavo_tpl_value indent) {
    int64_t width;
    if (indent.kind == OCTAVO_TPL_ABSENT || indent.kind == OCTAVO_TPL_NONE) return NULL;
    if (indent.kind == OCTAVO_TPL_STRING) return indent.as.string;
    if (!octavo_tpl_is_integer(indent, &width)) {
        octavo_tpl_fail(run, "tojson: indent is %s; give a number of spaces or a string",
                        octavo_tpl_type(indent));
        return NULL;
    }
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_repeated(run, " ", 1, width > 0 ? (size_t)width : 0);
    octavo_tpl_value text = octavo_tpl_close(run, mark);
    return octavo_tpl_failed(run) ? NULL : text.as.string;
}

/* args: ensure_ascii, indent, separators, sort_keys. */
void octavo_tpl_put_json(octavo_tpl_run *run, octavo_tpl_value value, const octavo_tpl_args *args) {
    static const octavo_tpl_string comma_space = {", ", 2, 2}, comma = {",", 1, 1},
                                   colon = {": ", 2, 2};
    writer w = {.run = run,
                .indent = indent_text(run, args->items[1]),
                .key_separator = &colon,
                .ensure_ascii = octavo_tpl_truth(args->items[0]),
                .sort_keys = octavo_tpl_truth(args->items[3])};
    w.item_separator = w.indent != NULL ? &comma : &comma_space;
    octavo_tpl_value separators = args->items[2];
    if (separators.kind == OCTAVO_TPL_LIST || separators.kind == OCTAVO_TPL_TUPLE) {
        const octavo_tpl_list *pair = separators.as.list;
        if (pair->count != 2 || pair->items[0].kind != OCTAVO_TPL_STRING ||
            pair->items[1].kind != OCTAVO_TPL_STRING) {
            octavo_tpl_fail(run, "tojson: separators must be two strings");
            return;
        }
        w.item_separator = pair->items[0].as.string;
        w.key_separator = pair->items[1].as.string;
    }
    write_value(&w, value);
}
