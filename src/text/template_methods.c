/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings. Positions are counted in code points.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <string.h>
#include <utf8proc.h>

#define METHOD(name)                                                                               \
    static octavo_tpl_value name(octavo_tpl_run *run, octavo_tpl_value self,                       \
                                 const octavo_tpl_args *args)

static const octavo_tpl_string *string_argument(octavo_tpl_run *run, octavo_tpl_value value) {
    static const octavo_tpl_string empty = {"", 0, 0};
    if (value.kind == OCTAVO_TPL_STRING) return value.as.string;
    octavo_tpl_fail(run, "a string is wanted, not %s", octavo_tpl_type(value));
    return &empty;
}

/* --- case and stripping --- */

METHOD(string_upper) {
    (void)args;
    return octavo_tpl_change_case(run, self.as.string, OCTAVO_TPL_UPPER);
}
METHOD(string_lower) {
    (void)args;
    return octavo_tpl_change_case(run, self.as.string, OCTAVO_TPL_LOWER);
}
METHOD(string_title) {
    (void)args;
    return octavo_tpl_change_case(run, self.as.string, OCTAVO_TPL_TITLE);
}
METHOD(string_capitalize) {
    (void)args;
    return octavo_tpl_change_case(run, self.as.string, OCTAVO_TPL_CAPITALIZE);
}
METHOD(string_swapcase) {
    (void)args;
    return octavo_tpl_change_case(run, self.as.string, OCTAVO_TPL_SWAPCASE);
}
METHOD(string_strip) {
    return octavo_tpl_strip(run, self.as.string, args->items[0], true, true);
}
METHOD(string_lstrip) {
    return octavo_tpl_strip(run, self.as.string, args->items[0], true, false);
}
METHOD(string_rstrip) {
    return octavo_tpl_strip(run, self.as.string, args->items[0], false, true);
}

/* --- searching --- */

typedef struct window {
    const char *data;
    size_t size;
    size_t before; /* code points left of it */
    bool valid;    /* false: it starts behind the end, where not even nothing is found */
} window;

/* The part of the string that the arguments start and end (2nd and 3rd) select. */
static window select_window(octavo_tpl_run *run, const octavo_tpl_string *string,
                            const octavo_tpl_args *args) {
    int64_t length = (int64_t)string->length;
    int64_t start = octavo_tpl_integer_argument(run, args->items[1], 0);
    int64_t stop = octavo_tpl_integer_argument(run, args->items[2], length);
    if (!octavo_tpl_charge(run, 1 + string->size / 64)) return (window){0};
    if (start < 0) start = start < -length ? 0 : start + length;
    if (stop < 0) stop = stop < -length ? 0 : stop + length;
    if (stop > length) stop = length;
    if (start > stop) return (window){.data = string->data};
    size_t from = octavo_utf8_offset(string->data, string->size, (size_t)start);
    size_t size =
        octavo_utf8_offset(string->data + from, string->size - from, (size_t)(stop - start));
    return (window){string->data + from, size, (size_t)start, true};
}

/* The last occurrence, or NULL. */
static const char *find_last(octavo_tpl_run *run, const char *data, size_t size,
                             const octavo_tpl_string *part) {
    if (part->size > size) return NULL;
    for (size_t at = size - part->size + 1; at-- > 0;) {
        if ((at & 63) == 0 && !octavo_tpl_charge(run, 1 + part->size / 64)) return NULL;
        if (memcmp(data + at, part->data, part->size) == 0) return data + at;
    }
    return NULL;
}

/* Code points before the occurrence, or -1. */
static int64_t search(octavo_tpl_run *run, octavo_tpl_value self, const octavo_tpl_args *args,
                      bool last) {
    const octavo_tpl_string *part = string_argument(run, args->items[0]);
    window in = select_window(run, self.as.string, args);
    if (octavo_tpl_failed(run) || !in.valid) return -1;
    const char *found = last ? find_last(run, in.data, in.size, part)
                             : memmem(in.data, in.size, part->data, part->size);
    if (found == NULL) return -1;
    return (int64_t)(in.before + octavo_utf8_length(in.data, (size_t)(found - in.data)));
}

static octavo_tpl_value found_or_fail(octavo_tpl_run *run, int64_t at) {
    if (at < 0) return octavo_tpl_fail(run, "the part is not in the string");
    return octavo_tpl_integer(at);
}

METHOD(string_find) {
    return octavo_tpl_integer(search(run, self, args, false));
}
METHOD(string_rfind) {
    return octavo_tpl_integer(search(run, self, args, true));
}
METHOD(string_index) {
    return found_or_fail(run, search(run, self, args, false));
}
METHOD(string_rindex) {
    return found_or_fail(run, search(run, self, args, true));
}

METHOD(string_count) {
    const octavo_tpl_string *part = string_argument(run, args->items[0]);
    window in = select_window(run, self.as.string, args);
    int64_t count = 0;
    if (octavo_tpl_failed(run) || !in.valid) return octavo_tpl_integer(0);
    if (part->size == 0)
        return octavo_tpl_integer((int64_t)octavo_utf8_length(in.data, in.size) + 1);
    const char *end = in.data + in.size, *at = in.data;
    while ((at = memmem(at, (size_t)(end - at), part->data, part->size)) != NULL &&
           octavo_tpl_charge(run, 1)) {
        at += part->size;
        count++;
    }
    return octavo_tpl_integer(count);
}

static bool has_affix(window in, const octavo_tpl_string *affix, bool at_end) {
    if (!in.valid || affix->size > in.size) return false;
    return memcmp(in.data + (at_end ? in.size - affix->size : 0), affix->data, affix->size) == 0;
}

/* One affix, or a tuple of which one must fit. */
static octavo_tpl_value test_affix(octavo_tpl_run *run, octavo_tpl_value self,
                                   const octavo_tpl_args *args, bool at_end) {
    window in = select_window(run, self.as.string, args);
    if (args->items[0].kind != OCTAVO_TPL_TUPLE)
        return octavo_tpl_bool(has_affix(in, string_argument(run, args->items[0]), at_end));
    const octavo_tpl_list *list = args->items[0].as.list;
    for (size_t i = 0; i < list->count && !octavo_tpl_failed(run); i++)
        if (has_affix(in, string_argument(run, list->items[i]), at_end))
            return octavo_tpl_bool(true);
    return octavo_tpl_bool(false);
}

METHOD(string_startswith) {
    return test_affix(run, self, args, false);
}
METHOD(string_endswith) {
    return test_affix(run, self, args, true);
}

static octavo_tpl_value remove_affix(octavo_tpl_run *run, octavo_tpl_value self,
                                     const octavo_tpl_args *args, bool at_end) {
    const octavo_tpl_string *string = self.as.string, *affix = string_argument(run, args->items[0]);
    window whole = {string->data, string->size, 0, true};
    if (!has_affix(whole, affix, at_end)) return self;
    return octavo_tpl_text_view(run, string->data + (at_end ? 0 : affix->size),
                                string->size - affix->size);
}

METHOD(string_removeprefix) {
    return remove_affix(run, self, args, false);
}
METHOD(string_removesuffix) {
    return remove_affix(run, self, args, true);
}

/* --- taking apart and putting together --- */

static octavo_tpl_value partition(octavo_tpl_run *run, octavo_tpl_value self,
                                  const octavo_tpl_args *args, bool last) {
    const octavo_tpl_string *string = self.as.string, *part = string_argument(run, args->items[0]);
    octavo_tpl_list *list = octavo_tpl_list_new(run, 3);
    if (list == NULL || !octavo_tpl_charge(run, string->size / 64))
        return octavo_tpl_undefined(NULL);
    if (part->size == 0) return octavo_tpl_fail(run, "partition at an empty string");
    const char *found = last ? find_last(run, string->data, string->size, part)
                             : memmem(string->data, string->size, part->data, part->size);
    if (found == NULL) {
        list->items[0] = list->items[1] = list->items[2] = octavo_tpl_literal(run, "");
        list->items[last ? 2 : 0] = self;
    } else {
        size_t at = (size_t)(found - string->data), behind = at + part->size;
        list->items[0] = octavo_tpl_text_view(run, string->data, at);
        list->items[1] = octavo_tpl_from_string(part);
        list->items[2] = octavo_tpl_text_view(run, string->data + behind, string->size - behind);
    }
    return octavo_tpl_from_list(OCTAVO_TPL_TUPLE, list);
}

METHOD(string_partition) {
    return partition(run, self, args, false);
}
METHOD(string_rpartition) {
    return partition(run, self, args, true);
}

METHOD(string_splitlines) {
    bool keep = octavo_tpl_truth(args->items[0]);
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, octavo_tpl_split_lines(run, self.as.string, keep));
}

METHOD(string_join) {
    return octavo_tpl_join(run, self.as.string, octavo_tpl_items(run, args->items[0]), true);
}

METHOD(string_replace) {
    return octavo_tpl_replace(run, self.as.string, string_argument(run, args->items[0]),
                              string_argument(run, args->items[1]),
                              octavo_tpl_integer_argument(run, args->items[2], -1));
}

METHOD(string_format) {
    return octavo_tpl_format(run, self.as.string, args);
}

/* --- padding --- */

static octavo_tpl_value pad(octavo_tpl_run *run, octavo_tpl_value self, const octavo_tpl_args *args,
                            int left_of_two) {
    static const octavo_tpl_string space = {" ", 1, 1};
    const octavo_tpl_string *string = self.as.string, *fill = &space;
    int64_t width = octavo_tpl_integer_argument(run, args->items[0], 0);
    if (args->items[1].kind != OCTAVO_TPL_ABSENT) fill = string_argument(run, args->items[1]);
    if (fill->length != 1) return octavo_tpl_fail(run, "the fill is not one character");
    if (octavo_tpl_failed(run) || width <= (int64_t)string->length) return self;
    size_t total = (size_t)width - string->length;
    /* an odd rest goes to the left where the width is odd too, as Python has it */
    size_t left =
        left_of_two == 1 ? total / 2 + (total & (size_t)width & 1) : (left_of_two == 2 ? total : 0);
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_repeated(run, fill->data, fill->size, left);
    octavo_tpl_put_value(run, self);
    octavo_tpl_put_repeated(run, fill->data, fill->size, total - left);
    return octavo_tpl_close(run, mark);
}

METHOD(string_ljust) {
    return pad(run, self, args, 0);
}
METHOD(string_center) {
    return pad(run, self, args, 1);
}
METHOD(string_rjust) {
    return pad(run, self, args, 2);
}

METHOD(string_zfill) {
    const octavo_tpl_string *string = self.as.string;
    int64_t width = octavo_tpl_integer_argument(run, args->items[0], 0);
    if (octavo_tpl_failed(run) || width <= (int64_t)string->length) return self;
    size_t sign = string->size > 0 && (string->data[0] == '-' || string->data[0] == '+');
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put(run, string->data, sign);
    octavo_tpl_put_repeated(run, "0", 1, (size_t)width - string->length);
    octavo_tpl_put(run, string->data + sign, string->size - sign);
    return octavo_tpl_close(run, mark);
}

/* --- classes --- */

static bool is_digit(int32_t c) {
    return utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
}
static bool is_alnum(int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return octavo_utf8_is_letter(c) || category == UTF8PROC_CATEGORY_ND;
}
static bool is_ascii(int32_t c) {
    return c < 0x80;
}

/* Whether all characters are of the class, of which there must be one. */
static octavo_tpl_value all_are(octavo_tpl_run *run, octavo_tpl_value self,
                                bool (*is)(int32_t codepoint)) {
    const octavo_tpl_string *string = self.as.string;
    for (size_t at = 0; at < string->size && octavo_tpl_charge(run, 1);) {
        if (!is(octavo_utf8_codepoint(string->data, string->size, at)))
            return octavo_tpl_bool(false);
        at = octavo_utf8_next(string->data, string->size, at);
    }
    return octavo_tpl_bool(string->size > 0);
}

METHOD(string_isdigit) {
    (void)args;
    return all_are(run, self, is_digit);
}
METHOD(string_isalpha) {
    (void)args;
    return all_are(run, self, octavo_utf8_is_letter);
}
METHOD(string_isalnum) {
    (void)args;
    return all_are(run, self, is_alnum);
}
METHOD(string_isspace) {
    (void)args;
    return all_are(run, self, octavo_utf8_is_space);
}
METHOD(string_isascii) {
    (void)args;
    return self.as.string->size == 0 ? octavo_tpl_bool(true) : all_are(run, self, is_ascii);
}

/* At least one letter of that case and none of the other. */
static octavo_tpl_value of_case(octavo_tpl_run *run, octavo_tpl_value self, bool upper) {
    const octavo_tpl_string *string = self.as.string;
    bool any = false;
    for (size_t at = 0; at < string->size && octavo_tpl_charge(run, 1);) {
        int32_t c = octavo_utf8_codepoint(string->data, string->size, at);
        bool is_upper = octavo_utf8_is_upper(c), is_lower = octavo_utf8_is_lower(c);
        if (upper ? is_lower : is_upper) return octavo_tpl_bool(false);
        any = any || is_upper || is_lower;
        at = octavo_utf8_next(string->data, string->size, at);
    }
    return octavo_tpl_bool(any);
}

METHOD(string_isupper) {
    (void)args;
    return of_case(run, self, true);
}
METHOD(string_islower) {
    (void)args;
    return of_case(run, self, false);
}

const octavo_tpl_builtin *octavo_tpl_string_method_find(const octavo_tpl_string *name) {
    static const octavo_tpl_builtin methods[] = {
        {"strip", "chars", 0, string_strip},
        {"lstrip", "chars", 0, string_lstrip},
        {"rstrip", "chars", 0, string_rstrip},
        {"split", "sep maxsplit", 0, octavo_tpl_string_split},
        {"rsplit", "sep maxsplit", 0, octavo_tpl_string_rsplit},
        {"splitlines", "keepends", 0, string_splitlines},
        {"startswith", "prefix start end", 1, string_startswith},
        {"endswith", "suffix start end", 1, string_endswith},
        {"replace", "old new count", 2, string_replace},
        {"upper", "", 0, string_upper},
        {"lower", "", 0, string_lower},
        {"casefold", "", 0, string_lower},
        {"title", "", 0, string_title},
        {"capitalize", "", 0, string_capitalize},
        {"swapcase", "", 0, string_swapcase},
        {"join", "iterable", 1, string_join},
        {"find", "sub start end", 1, string_find},
        {"rfind", "sub start end", 1, string_rfind},
        {"index", "sub start end", 1, string_index},
        {"rindex", "sub start end", 1, string_rindex},
        {"count", "sub start end", 1, string_count},
        {"removeprefix", "prefix", 1, string_removeprefix},
        {"removesuffix", "suffix", 1, string_removesuffix},
        {"partition", "sep", 1, string_partition},
        {"rpartition", "sep", 1, string_rpartition},
        {"format", NULL, 0, string_format},
        {"ljust", "width fillchar", 1, string_ljust},
        {"rjust", "width fillchar", 1, string_rjust},
        {"center", "width fillchar", 1, string_center},
        {"zfill", "width", 1, string_zfill},
        {"isdigit", "", 0, string_isdigit},
        {"isdecimal", "", 0, string_isdigit},
        {"isnumeric", "", 0, string_isdigit},
        {"isalpha", "", 0, string_isalpha},
        {"isalnum", "", 0, string_isalnum},
        {"isspace", "", 0, string_isspace},
        {"isascii", "", 0, string_isascii},
        {"isupper", "", 0, string_isupper},
        {"islower", "", 0, string_islower},
    };
    return octavo_tpl_find(methods, OCTAVO_COUNT(methods), name);
}
