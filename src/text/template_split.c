/* SPDX-License-Identifier: Apache-2.0
 *
 * str.split and str.rsplit: at runs of white space, or at a separator.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <string.h>

/* Pieces as offsets into the string, counted first and then taken: two passes, one allocation. */
typedef struct splitter {
    octavo_tpl_run *run;
    const octavo_tpl_string *string;
    const octavo_tpl_string *separator; /* NULL: white space */
    size_t most;                        /* splits */
    octavo_tpl_list *list;              /* NULL while counting */
    size_t count;
} splitter;

static void piece(splitter *s, size_t from, size_t to) {
    if (s->list != NULL)
        s->list->items[s->count] = octavo_tpl_text_view(s->run, s->string->data + from, to - from);
    s->count++;
}

static void split_at_space(splitter *s) {
    const char *data = s->string->data;
    size_t size = s->string->size, at = octavo_utf8_skip_space(data, size, 0);
    while (at < size && octavo_tpl_charge(s->run, 1)) {
        size_t end = at;
        if (s->count == s->most) {
            piece(s, at, size); /* what is left keeps its spaces, as in Python */
            return;
        }
        while (end < size && !octavo_utf8_is_space(octavo_utf8_codepoint(data, size, end)))
            end = octavo_utf8_next(data, size, end);
        piece(s, at, end);
        at = octavo_utf8_skip_space(data, size, end);
    }
}

static void split_at_separator(splitter *s) {
    const char *data = s->string->data;
    size_t size = s->string->size, at = 0;
    while (s->count < s->most && octavo_tpl_charge(s->run, 1)) {
        const char *found = memmem(data + at, size - at, s->separator->data, s->separator->size);
        if (found == NULL) break;
        piece(s, at, (size_t)(found - data));
        at = (size_t)(found - data) + s->separator->size;
    }
    piece(s, at, size);
}

static void rsplit_at_space(splitter *s) {
    const char *data = s->string->data;
    size_t size = octavo_utf8_trim_end(data, s->string->size);
    while (size > 0 && octavo_tpl_charge(s->run, 1)) {
        size_t from = size;
        if (s->count == s->most) {
            piece(s, 0, size);
            return;
        }
        while (from > 0) {
            size_t before = octavo_utf8_previous(data, from);
            if (octavo_utf8_is_space(octavo_utf8_codepoint(data, size, before))) break;
            from = before;
        }
        piece(s, from, size);
        size = octavo_utf8_trim_end(data, from);
    }
}

static void rsplit_at_separator(splitter *s) {
    const char *data = s->string->data;
    size_t end = s->string->size, width = s->separator->size;
    for (size_t at = end; at >= width && s->count < s->most && octavo_tpl_charge(s->run, 1);) {
        if (memcmp(data + at - width, s->separator->data, width) == 0) {
            piece(s, at, end);
            at -= width;
            end = at;
        } else {
            at--;
        }
    }
    piece(s, 0, end);
}

static octavo_tpl_value split(octavo_tpl_run *run, octavo_tpl_value self,
                              const octavo_tpl_args *args, bool from_right) {
    int64_t most = octavo_tpl_integer_argument(run, args->items[1], -1);
    splitter s = {.run = run, .string = self.as.string, .most = most < 0 ? SIZE_MAX : (size_t)most};
    octavo_tpl_value separator = args->items[0];
    if (separator.kind == OCTAVO_TPL_STRING)
        s.separator = separator.as.string;
    else if (separator.kind != OCTAVO_TPL_ABSENT && separator.kind != OCTAVO_TPL_NONE)
        return octavo_tpl_fail(run, "split at %s; a string is wanted", octavo_tpl_type(separator));
    if (s.separator != NULL && s.separator->size == 0)
        return octavo_tpl_fail(run, "split at an empty string");
    void (*walk)(splitter *) = from_right
                                   ? (s.separator != NULL ? rsplit_at_separator : rsplit_at_space)
                                   : (s.separator != NULL ? split_at_separator : split_at_space);
    if (!octavo_tpl_charge(run, s.string->size / 16)) return octavo_tpl_undefined(NULL);
    walk(&s);
    s.list = octavo_tpl_list_new(run, s.count);
    if (s.list == NULL) return octavo_tpl_undefined(NULL);
    s.count = 0;
    walk(&s);
    if (octavo_tpl_failed(run)) return octavo_tpl_undefined(NULL);
    for (size_t i = 0, k = s.count; from_right && i + 1 < k; i++) { /* found from the end */
        octavo_tpl_value swap = s.list->items[i];
        s.list->items[i] = s.list->items[--k];
        s.list->items[k] = swap;
    }
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, s.list);
}

octavo_tpl_value octavo_tpl_string_split(octavo_tpl_run *run, octavo_tpl_value self,
                                         const octavo_tpl_args *args) {
    return split(run, self, args, false);
}

octavo_tpl_value octavo_tpl_string_rsplit(octavo_tpl_run *run, octavo_tpl_value self,
                                          const octavo_tpl_args *args) {
    return split(run, self, args, true);
}
