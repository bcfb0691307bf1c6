/* SPDX-License-Identifier: Apache-2.0
 *
 * Work on strings that methods and filters share: case, stripping, replacing, lines, joining.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <string.h>
#include <utf8proc.h>

int64_t octavo_tpl_integer_argument(octavo_tpl_run *run, octavo_tpl_value value, int64_t fallback) {
    int64_t integer = fallback;
    if (value.kind == OCTAVO_TPL_ABSENT || value.kind == OCTAVO_TPL_NONE) return fallback;
    if (!octavo_tpl_is_integer(value, &integer))
        octavo_tpl_fail(run, "an integer is wanted, not %s", octavo_tpl_type(value));
    return integer;
}

/* --- case --- */

static void put_upper(octavo_tpl_run *run, int32_t c, bool title) {
    if (c == 0xdf)
        octavo_tpl_puts(run, title ? "Ss" : "SS"); /* has no single capital */
    else
        octavo_tpl_put_codepoint(run, title ? utf8proc_totitle(c) : utf8proc_toupper(c));
}

static bool is_cased(int32_t c) {
    return octavo_utf8_is_upper(c) || octavo_utf8_is_lower(c);
}

/* The filter `title` starts a word at the beginning and after these. */
static bool starts_word(int32_t c) {
    return octavo_utf8_is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

octavo_tpl_value octavo_tpl_change_case(octavo_tpl_run *run, const octavo_tpl_string *string,
                                        octavo_tpl_case how) {
    size_t mark = octavo_tpl_open(run);
    bool first = true; /* of the word, or of the text */
    for (size_t at = 0; at < string->size && octavo_tpl_charge(run, 1);) {
        int32_t c = octavo_utf8_codepoint(string->data, string->size, at);
        at = octavo_utf8_next(string->data, string->size, at);
        bool up =
            how == OCTAVO_TPL_UPPER || (how == OCTAVO_TPL_SWAPCASE && octavo_utf8_is_lower(c));
        bool capital = how >= OCTAVO_TPL_TITLE && how <= OCTAVO_TPL_CAPITALIZE && first;
        if (up || (capital && how == OCTAVO_TPL_FILTER_TITLE))
            put_upper(run, c, false);
        else if (capital)
            put_upper(run, c, true);
        else
            octavo_tpl_put_codepoint(run, utf8proc_tolower(c));
        if (how == OCTAVO_TPL_TITLE)
            first = !is_cased(c);
        else if (how == OCTAVO_TPL_FILTER_TITLE)
            first = starts_word(c);
        else
            first = false;
    }
    return octavo_tpl_close(run, mark);
}

/* --- stripping --- */

static bool in_set(const octavo_tpl_string *set, const char *letter, size_t size) {
    return memmem(set->data, set->size, letter, size) != NULL;
}

octavo_tpl_value octavo_tpl_strip(octavo_tpl_run *run, const octavo_tpl_string *string,
                                  octavo_tpl_value characters, bool left, bool right) {
    const char *data = string->data;
    size_t from = 0, to = string->size;
    if (characters.kind == OCTAVO_TPL_ABSENT || characters.kind == OCTAVO_TPL_NONE) {
        if (left) from = octavo_utf8_skip_space(data, to, 0);
        if (right) to = from + octavo_utf8_trim_end(data + from, to - from);
        return octavo_tpl_text_view(run, data + from, to - from);
    }
    if (characters.kind != OCTAVO_TPL_STRING)
        return octavo_tpl_fail(run, "the characters to strip are %s, not a string",
                               octavo_tpl_type(characters));
    const octavo_tpl_string *set = characters.as.string;
    while (left && from < to && octavo_tpl_charge(run, 1 + set->size / 64)) {
        size_t next = octavo_utf8_next(data, to, from);
        if (!in_set(set, data + from, next - from)) break;
        from = next;
    }
    while (right && from < to && octavo_tpl_charge(run, 1 + set->size / 64)) {
        size_t before = octavo_utf8_previous(data, to);
        if (!in_set(set, data + before, to - before)) break;
        to = before;
    }
    return octavo_tpl_text_view(run, data + from, to - from);
}

/* --- replacing --- */

/* Between all letters, and at both ends. */
static void replace_nothing(octavo_tpl_run *run, const octavo_tpl_string *string,
                            const octavo_tpl_string *to, int64_t count) {
    size_t at = 0;
    for (; count != 0 && octavo_tpl_charge(run, 1); count--) {
        octavo_tpl_put(run, to->data, to->size);
        if (at == string->size) return;
        size_t next = octavo_utf8_next(string->data, string->size, at);
        octavo_tpl_put(run, string->data + at, next - at);
        at = next;
    }
    octavo_tpl_put(run, string->data + at, string->size - at);
}

octavo_tpl_value octavo_tpl_replace(octavo_tpl_run *run, const octavo_tpl_string *string,
                                    const octavo_tpl_string *from, const octavo_tpl_string *to,
                                    int64_t count) {
    size_t mark = octavo_tpl_open(run), at = 0;
    if (from->size == 0) {
        replace_nothing(run, string, to, count);
        return octavo_tpl_close(run, mark);
    }
    for (; count != 0 && octavo_tpl_charge(run, 1); count--) {
        const char *found = memmem(string->data + at, string->size - at, from->data, from->size);
        if (found == NULL) break;
        size_t where = (size_t)(found - string->data);
        octavo_tpl_put(run, string->data + at, where - at);
        octavo_tpl_put(run, to->data, to->size);
        at = where + from->size;
    }
    octavo_tpl_put(run, string->data + at, string->size - at);
    return octavo_tpl_close(run, mark);
}

/* --- lines --- */

static bool ends_line(int32_t c) {
    return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

/* Behind the line that starts at `at`; *end is where its text ends. */
static size_t next_line(const octavo_tpl_string *string, size_t at, size_t *end) {
    const char *data = string->data;
    for (; at < string->size; at = octavo_utf8_next(data, string->size, at)) {
        int32_t c = octavo_utf8_codepoint(data, string->size, at);
        if (!ends_line(c)) continue;
        *end = at;
        if (c == '\r' && at + 1 < string->size && data[at + 1] == '\n') return at + 2;
        return octavo_utf8_next(data, string->size, at);
    }
    *end = string->size;
    return string->size;
}

octavo_tpl_list *octavo_tpl_split_lines(octavo_tpl_run *run, const octavo_tpl_string *string,
                                        bool keep_ends) {
    size_t count = 0, end;
    if (!octavo_tpl_charge(run, string->size / 16)) return NULL;
    for (size_t at = 0; at < string->size; at = next_line(string, at, &end))
        count++;
    octavo_tpl_list *list = octavo_tpl_list_new(run, count);
    for (size_t at = 0, i = 0; list != NULL && i < count; i++) {
        size_t next = next_line(string, at, &end);
        list->items[i] =
            octavo_tpl_text_view(run, string->data + at, (keep_ends ? next : end) - at);
        at = next;
    }
    return octavo_tpl_failed(run) ? NULL : list;
}

octavo_tpl_value octavo_tpl_join(octavo_tpl_run *run, const octavo_tpl_string *separator,
                                 octavo_tpl_list items, bool strings_only) {
    size_t mark = octavo_tpl_open(run);
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++) {
        if (strings_only && items.items[i].kind != OCTAVO_TPL_STRING)
            octavo_tpl_fail(run, "join wants strings, item %zu is %s", i,
                            octavo_tpl_type(items.items[i]));
        if (i > 0) octavo_tpl_put(run, separator->data, separator->size);
        octavo_tpl_put_value(run, items.items[i]);
    }
    return octavo_tpl_close(run, mark);
}
