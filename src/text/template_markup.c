/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters for markup, addresses and the like, which templates of pages have and those of
 * conversations seldom do.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILTER(name)                                                                               \
    static octavo_tpl_value name(octavo_tpl_run *run, octavo_tpl_value input,                      \
                                 const octavo_tpl_args *args)

/* The text of a value; an empty one after a failure, so that callers need not look. */
static const octavo_tpl_string *text_of(octavo_tpl_run *run, octavo_tpl_value value) {
    static const octavo_tpl_string empty = {"", 0, 0};
    octavo_tpl_value text = octavo_tpl_str(run, value);
    return text.kind == OCTAVO_TPL_STRING ? text.as.string : &empty;
}

static void put_escaped(octavo_tpl_run *run, const octavo_tpl_string *string) {
    static const char *const entities[][2] = {
        {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
    for (size_t at = 0; at < string->size && octavo_tpl_charge(run, 1); at++) {
        const char *entity = NULL;
        for (size_t i = 0; i < OCTAVO_COUNT(entities) && entity == NULL; i++)
            if (string->data[at] == entities[i][0][0]) entity = entities[i][1];
        if (entity != NULL)
            octavo_tpl_puts(run, entity);
        else
            octavo_tpl_put(run, string->data + at, 1);
    }
}

FILTER(filter_escape) {
    (void)args;
    const octavo_tpl_string *string = text_of(run, input);
    size_t mark = octavo_tpl_open(run);
    put_escaped(run, string);
    return octavo_tpl_close(run, mark);
}

/* --- attributes of a tag --- */

static bool ends_key(char c) {
    return c == '/' || c == '>' || c == '=' || c == '\0' || strchr(" \t\n\r\f\v", c) != NULL;
}

/* name="value" for all that is neither none nor undefined; autospace */
FILTER(filter_xmlattr) {
    if (input.kind != OCTAVO_TPL_DICT)
        return octavo_tpl_fail(run, "xmlattr wants a dict, not %s", octavo_tpl_type(input));
    bool spaces = args->items[0].kind == OCTAVO_TPL_ABSENT || octavo_tpl_truth(args->items[0]);
    const octavo_tpl_dict *dict = input.as.dict;
    bool is_first = true;
    size_t mark = octavo_tpl_open(run);
    for (size_t i = 0; i < dict->count && octavo_tpl_charge(run, 1); i++) {
        octavo_tpl_value value = dict->entries[i].value;
        if (value.kind == OCTAVO_TPL_NONE || value.kind == OCTAVO_TPL_UNDEFINED) continue;
        const octavo_tpl_string *key = text_of(run, dict->entries[i].key);
        const octavo_tpl_string *text = text_of(run, value);
        for (size_t at = 0; at < key->size; at++)
            if (ends_key(key->data[at])) {
                octavo_tpl_fail(run, "xmlattr: a key with space, '/', '>' or '='");
                break;
            }
        if (!is_first || spaces) octavo_tpl_puts(run, " ");
        is_first = false;
        put_escaped(run, key);
        octavo_tpl_puts(run, "=\"");
        put_escaped(run, text);
        octavo_tpl_puts(run, "\"");
    }
    return octavo_tpl_close(run, mark);
}

/* --- addresses --- */

/* `plain` are the other characters that stand for themselves. */
static void put_quoted(octavo_tpl_run *run, const octavo_tpl_string *string, const char *plain,
                       bool plus) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t at = 0; at < string->size && octavo_tpl_charge(run, 1); at++) {
        unsigned char c = (unsigned char)string->data[at];
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                        (c >= 'A' && c <= 'Z') || (c != '\0' && strchr(plain, c) != NULL);
        const char coded[] = {'%', digits[c >> 4], digits[c & 15]};
        if (is_plain)
            octavo_tpl_put(run, string->data + at, 1);
        else if (c == ' ' && plus)
            octavo_tpl_puts(run, "+");
        else
            octavo_tpl_put(run, coded, sizeof coded);
    }
}

static void put_pair(octavo_tpl_run *run, octavo_tpl_value key, octavo_tpl_value value) {
    static const char plain[] = "_.-~";
    const octavo_tpl_string *text = text_of(run, key);
    put_quoted(run, text, plain, true);
    octavo_tpl_puts(run, "=");
    text = text_of(run, value);
    put_quoted(run, text, plain, true);
}

/* A text, or the pairs of a query. */
FILTER(filter_urlencode) {
    (void)args;
    octavo_tpl_list items = {0};
    bool is_dict = input.kind == OCTAVO_TPL_DICT;
    bool is_pairs = is_dict || input.kind == OCTAVO_TPL_LIST || input.kind == OCTAVO_TPL_TUPLE;
    const octavo_tpl_string *string = is_pairs ? NULL : text_of(run, input);
    if (is_pairs) items = octavo_tpl_items(run, input);
    size_t mark = octavo_tpl_open(run);
    if (!is_pairs) put_quoted(run, string, "_.-~/", false);
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++) {
        octavo_tpl_value key = items.items[i], value = octavo_tpl_none();
        if (is_dict) {
            value = octavo_tpl_item(run, input, key);
        } else {
            octavo_tpl_list pair = octavo_tpl_items(run, key);
            if (pair.count != 2) {
                octavo_tpl_fail(run, "urlencode wants pairs of key and value");
                break;
            }
            key = pair.items[0];
            value = pair.items[1];
        }
        if (i > 0) octavo_tpl_puts(run, "&");
        put_pair(run, key, value);
    }
    return octavo_tpl_close(run, mark);
}

/* --- any value --- */

/* Only attributes, where a dot looks among the items too. */
FILTER(filter_attr) {
    const octavo_tpl_string *name = text_of(run, args->items[0]);
    bool has_items = input.kind == OCTAVO_TPL_DICT;
    if (has_items && octavo_tpl_method_find(input.kind, name) == NULL)
        return octavo_tpl_undefined(name);
    return octavo_tpl_attribute(run, input, name);
}

/* A number of bytes for a reader; binary */
FILTER(filter_filesizeformat) {
    static const char *const prefixes[] = {"k", "M", "G", "T", "P", "E", "Z", "Y"};
    bool binary = octavo_tpl_truth(args->items[0]);
    octavo_tpl_args none = {.items = (octavo_tpl_value[]){octavo_tpl_none()}, .count = 1};
    static const octavo_tpl_string name = {"float", 5, 5};
    octavo_tpl_value number = octavo_tpl_filter_find(&name)->call(run, input, &none);
    if (!octavo_tpl_is_number(number))
        return octavo_tpl_fail(run, "filesizeformat wants a number, not %s",
                               octavo_tpl_type(input));
    double bytes = octavo_tpl_real(number), base = binary ? 1024 : 1000, unit = base;
    char text[80];
    size_t i = 0;
    if (bytes == 1) {
        snprintf(text, sizeof text, "1 Byte");
    } else if (bytes < base) {
        if (!(bytes > -9e18)) return octavo_tpl_fail(run, "filesizeformat: a number out of range");
        snprintf(text, sizeof text, "%lld Bytes", (long long)bytes);
    } else {
        while (i + 1 < OCTAVO_COUNT(prefixes) && !(bytes < unit * base)) {
            unit *= base;
            i++;
        }
        const char *prefix = binary && i == 0 ? "K" : prefixes[i];
        snprintf(text, sizeof text, "%.1f %s%s", bytes / unit, prefix, binary ? "iB" : "B");
    }
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_puts(run, text);
    return octavo_tpl_close(run, mark);
}

const octavo_tpl_builtin *octavo_tpl_markup_filter_find(const octavo_tpl_string *name) {
    static const octavo_tpl_builtin filters[] = {
        {"escape", "", 0, filter_escape},
        {"e", "", 0, filter_escape},
        {"forceescape", "", 0, filter_escape},
        {"xmlattr", "autospace", 0, filter_xmlattr},
        {"urlencode", "", 0, filter_urlencode},
        {"attr", "name", 1, filter_attr},
        {"filesizeformat", "binary", 0, filter_filesizeformat},
    };
    return octavo_tpl_find(filters, OCTAVO_COUNT(filters), name);
}
