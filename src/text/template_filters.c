/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters on single values. Those that work on text take the text of any value, as Jinja's do.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

static bool given(octavo_tpl_value value) {
    return value.kind != OCTAVO_TPL_ABSENT && value.kind != OCTAVO_TPL_NONE;
}

/* --- text --- */

FILTER(filter_upper) {
    (void)args;
    return octavo_tpl_change_case(run, text_of(run, input), OCTAVO_TPL_UPPER);
}
FILTER(filter_lower) {
    (void)args;
    return octavo_tpl_change_case(run, text_of(run, input), OCTAVO_TPL_LOWER);
}
FILTER(filter_title) {
    (void)args;
    return octavo_tpl_change_case(run, text_of(run, input), OCTAVO_TPL_FILTER_TITLE);
}
FILTER(filter_capitalize) {
    (void)args;
    return octavo_tpl_change_case(run, text_of(run, input), OCTAVO_TPL_CAPITALIZE);
}
FILTER(filter_trim) {
    return octavo_tpl_strip(run, text_of(run, input), args->items[0], true, true);
}
FILTER(filter_string) {
    (void)args;
    return octavo_tpl_str(run, input);
}

FILTER(filter_replace) {
    return octavo_tpl_replace(run, text_of(run, input), text_of(run, args->items[0]),
                              text_of(run, args->items[1]),
                              octavo_tpl_integer_argument(run, args->items[2], -1));
}

static const octavo_tpl_string *indentation(octavo_tpl_run *run, octavo_tpl_value width) {
    if (width.kind == OCTAVO_TPL_STRING) return width.as.string;
    int64_t spaces = octavo_tpl_integer_argument(run, width, 4);
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_repeated(run, " ", 1, spaces > 0 ? (size_t)spaces : 0);
    return text_of(run, octavo_tpl_close(run, mark));
}

/* width, first, blank */
FILTER(filter_indent) {
    if (!octavo_tpl_defined(run, input)) return input;
    if (input.kind != OCTAVO_TPL_STRING)
        return octavo_tpl_fail(run, "indent wants a string, not %s", octavo_tpl_type(input));
    const octavo_tpl_string *by = indentation(run, args->items[0]);
    bool first = octavo_tpl_truth(args->items[1]), blank = octavo_tpl_truth(args->items[2]);
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_value(run, input); /* a last line break shows only with one more behind it */
    octavo_tpl_puts(run, "\n");
    const octavo_tpl_string *string = text_of(run, octavo_tpl_close(run, mark));
    octavo_tpl_list *lines = octavo_tpl_split_lines(run, string, false);
    for (size_t i = 0; lines != NULL && i < lines->count; i++) {
        const octavo_tpl_string *line = text_of(run, lines->items[i]);
        if (i > 0) octavo_tpl_puts(run, "\n");
        if (i == 0 ? first : (blank || line->size > 0)) octavo_tpl_put(run, by->data, by->size);
        octavo_tpl_put(run, line->data, line->size);
    }
    return octavo_tpl_close(run, mark);
}

/* length, killwords, end, leeway */
FILTER(filter_truncate) {
    static const octavo_tpl_string dots = {"...", 3, 3};
    if (input.kind != OCTAVO_TPL_STRING)
        return octavo_tpl_fail(run, "truncate wants a string, not %s", octavo_tpl_type(input));
    const octavo_tpl_string *string = input.as.string;
    const octavo_tpl_string *end = given(args->items[2]) ? text_of(run, args->items[2]) : &dots;
    int64_t length = octavo_tpl_integer_argument(run, args->items[0], 255);
    int64_t leeway = octavo_tpl_integer_argument(run, args->items[3], 5);
    if (octavo_tpl_failed(run)) return input;
    if (length < (int64_t)end->length || leeway < 0)
        return octavo_tpl_fail(run, "truncate: a length shorter than the ending");
    if ((int64_t)string->length - leeway <= length) return octavo_tpl_from_string(string);
    size_t size = octavo_utf8_offset(string->data, string->size, (size_t)length - end->length);
    size_t mark = octavo_tpl_open(run);
    if (!octavo_tpl_truth(args->items[1]))
        for (size_t at = size; at-- > 0;)
            if (string->data[at] == ' ') {
                size = at;
                break;
            }
    octavo_tpl_put(run, string->data, size);
    octavo_tpl_put(run, end->data, end->size);
    return octavo_tpl_close(run, mark);
}

FILTER(filter_center) {
    octavo_tpl_value text = octavo_tpl_from_string(text_of(run, input));
    octavo_tpl_value bound[2] = {args->items[0], octavo_tpl_absent()};
    if (!given(bound[0])) bound[0] = octavo_tpl_integer(80);
    const octavo_tpl_args padding = {.items = bound, .count = 2};
    static const octavo_tpl_string name = {"center", 6, 6};
    return octavo_tpl_string_method_find(&name)->call(run, text, &padding);
}

FILTER(filter_wordcount) {
    const octavo_tpl_string *string = text_of(run, input);
    int64_t words = 0;
    bool inside = false;
    (void)args;
    for (size_t at = 0; at < string->size && octavo_tpl_charge(run, 1);) {
        bool letter =
            octavo_utf8_is_name(octavo_utf8_codepoint(string->data, string->size, at), false);
        words += letter && !inside;
        inside = letter;
        at = octavo_utf8_next(string->data, string->size, at);
    }
    return octavo_tpl_integer(words);
}

FILTER(filter_tojson) {
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_json(run, input, args);
    return octavo_tpl_close(run, mark);
}

FILTER(filter_format) {
    octavo_tpl_value values = octavo_tpl_undefined(NULL);
    if (args->named_count == 0) {
        octavo_tpl_list *list = octavo_tpl_list_new(run, args->count);
        if (list != NULL && args->count > 0)
            memcpy(list->items, args->items, args->count * sizeof *list->items);
        values = octavo_tpl_from_list(OCTAVO_TPL_TUPLE, list);
    } else if (args->count == 0) {
        octavo_tpl_dict *dict = octavo_tpl_dict_new(run, args->named_count);
        for (size_t i = 0; dict != NULL && i < args->named_count; i++)
            octavo_tpl_dict_set(run, dict, octavo_tpl_from_string(args->named[i].name),
                                args->named[i].value);
        values = octavo_tpl_from_dict(OCTAVO_TPL_DICT, dict);
    } else {
        octavo_tpl_fail(run, "format takes positional or named arguments, not both");
    }
    if (octavo_tpl_failed(run)) return values;
    return octavo_tpl_percent(run, text_of(run, input), values);
}

/* --- numbers --- */

/* An integer literal in `base` (0: as its prefix says) with spaces around; false when it is none.
 */
static bool read_integer(const octavo_tpl_string *string, int64_t base, int64_t *integer) {
    char digits[80];
    size_t from = octavo_utf8_skip_space(string->data, string->size, 0), n = 0;
    size_t to = from + octavo_utf8_trim_end(string->data + from, string->size - from);
    for (size_t at = from; at < to; at++) {
        char c = string->data[at];
        bool between = at > from && at + 1 < to && string->data[at - 1] != '_';
        if (c == '_' && between) continue;
        if (c == '_' || n + 1 >= sizeof digits || (unsigned char)c >= 0x80 || c == '\0')
            return false;
        digits[n++] = c;
    }
    digits[n] = '\0';
    char *start = digits, *end = NULL;
    bool minus = *start == '-';
    if (*start == '-' || *start == '+') start++;
    char letter = start[0] == '0' ? (char)(start[1] | 0x20) : '\0';
    int64_t prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == 0 || base == prefixed)) {
        base = prefixed;
        start += 2;
    } else if (base == 0) {
        base = 10;
    }
    char first = (char)(*start | 0x20);
    if (!((*start >= '0' && *start <= '9') || (first >= 'a' && first <= 'z'))) return false;
    memmove(digits + minus, start, strlen(start) + 1);
    if (minus) digits[0] = '-';
    long long value = strtoll(digits, &end, (int)base);
    if (*end != '\0' || value == INT64_MAX || value == INT64_MIN) return false;
    *integer = value;
    return true;
}

static bool read_float(const octavo_tpl_string *string, double *real) {
    size_t from = octavo_utf8_skip_space(string->data, string->size, 0);
    size_t size = octavo_utf8_trim_end(string->data + from, string->size - from);
    const char *text = string->data + from;
    bool minus = size > 0 && text[0] == '-', sign = minus || (size > 0 && text[0] == '+');
    const octavo_tpl_string rest = {text + sign, size - sign, size - sign};
    if (octavo_tpl_is(&rest, "inf") || octavo_tpl_is(&rest, "infinity"))
        *real = minus ? -HUGE_VAL : HUGE_VAL;
    else if (octavo_tpl_is(&rest, "nan"))
        *real = (double)NAN;
    else
        return octavo_tpl_read_float(text, size, real);
    return true;
}

static octavo_tpl_value truncated(octavo_tpl_run *run, double real, octavo_tpl_value fallback) {
    if (isnan(real)) return fallback;
    if (!(real > -9.2233720368547e18 && real < 9.2233720368547e18))
        return octavo_tpl_fail(run, "int: a number beyond 64 bits");
    return octavo_tpl_integer((int64_t)real);
}

/* default, base */
FILTER(filter_int) {
    octavo_tpl_value fallback = args->items[0];
    int64_t integer, base = octavo_tpl_integer_argument(run, args->items[1], 10);
    double real;
    if (fallback.kind == OCTAVO_TPL_ABSENT) fallback = octavo_tpl_integer(0);
    if (base != 0 && (base < 2 || base > 36))
        return octavo_tpl_fail(run, "int: the base is not within 2 and 36");
    if (!octavo_tpl_defined(run, input)) return input;
    if (octavo_tpl_is_integer(input, &integer)) return octavo_tpl_integer(integer);
    if (input.kind == OCTAVO_TPL_FLOAT) return truncated(run, input.as.real, fallback);
    if (input.kind != OCTAVO_TPL_STRING) return fallback;
    if (read_integer(input.as.string, base, &integer)) return octavo_tpl_integer(integer);
    if (!read_float(input.as.string, &real) || isinf(real)) return fallback;
    return truncated(run, real, fallback);
}

FILTER(filter_float) {
    double real;
    if (!octavo_tpl_defined(run, input)) return input;
    if (octavo_tpl_is_number(input)) return octavo_tpl_float(octavo_tpl_real(input));
    if (input.kind == OCTAVO_TPL_STRING && read_float(input.as.string, &real))
        return octavo_tpl_float(real);
    return args->items[0].kind != OCTAVO_TPL_ABSENT ? args->items[0] : octavo_tpl_float(0.0);
}

FILTER(filter_abs) {
    (void)args;
    bool minus = octavo_tpl_is_number(input) && octavo_tpl_real(input) < 0.0;
    return octavo_tpl_sign(run, minus, input);
}

/* To `digits` decimals, a tie going to the even one of the exact decimal values. */
static double round_common(double real, int64_t digits) {
    char text[400];
    double rounded = real, scale;
    if (!isfinite(real) || digits > 300) return real;
    if (digits < 0) {
        scale = pow(10.0, (double)(digits < -310 ? -310 : digits));
        return nearbyint(real * scale) / scale;
    }
    int n = snprintf(text, sizeof text, "%.*f", (int)digits, real);
    if (n > 0 && (size_t)n < sizeof text) rounded = strtod(text, NULL);
    return rounded;
}

/* precision, method */
FILTER(filter_round) {
    int64_t integer, digits = octavo_tpl_integer_argument(run, args->items[0], 0);
    const octavo_tpl_string *method =
        given(args->items[1]) ? text_of(run, args->items[1]) : text_of(run, octavo_tpl_none());
    bool common = !given(args->items[1]) || octavo_tpl_is(method, "common");
    if (!octavo_tpl_defined(run, input) || octavo_tpl_failed(run)) return input;
    if (!octavo_tpl_is_number(input))
        return octavo_tpl_fail(run, "round wants a number, not %s", octavo_tpl_type(input));
    if (common && octavo_tpl_is_integer(input, &integer) && digits >= 0)
        return octavo_tpl_integer(integer);
    if (common && octavo_tpl_is_integer(input, &integer))
        return truncated(run, round_common((double)integer, digits), input);
    double real = octavo_tpl_real(input), scale = pow(10.0, (double)digits);
    if (common) return octavo_tpl_float(round_common(real, digits));
    if (octavo_tpl_is(method, "ceil")) return octavo_tpl_float(ceil(real * scale) / scale);
    if (octavo_tpl_is(method, "floor")) return octavo_tpl_float(floor(real * scale) / scale);
    return octavo_tpl_fail(run, "round: the method is common, ceil or floor");
}

/* --- any value --- */

/* default_value, boolean */
FILTER(filter_default) {
    bool absent = input.kind == OCTAVO_TPL_UNDEFINED ||
                  (octavo_tpl_truth(args->items[1]) && !octavo_tpl_truth(input));
    if (!absent) return input;
    return args->items[0].kind != OCTAVO_TPL_ABSENT ? args->items[0] : octavo_tpl_literal(run, "");
}

FILTER(filter_length) {
    (void)args;
    int64_t length = octavo_tpl_length(input);
    if (length < 0) return octavo_tpl_fail(run, "%s has no length", octavo_tpl_type(input));
    return octavo_tpl_integer(length);
}

const octavo_tpl_builtin *octavo_tpl_filter_find(const octavo_tpl_string *name) {
    static const octavo_tpl_builtin filters[] = {
        {"tojson", "ensure_ascii indent separators sort_keys", 0, filter_tojson},
        {"trim", "chars", 0, filter_trim},
        {"length", "", 0, filter_length},
        {"count", "", 0, filter_length},
        {"default", "default_value boolean", 0, filter_default},
        {"d", "default_value boolean", 0, filter_default},
        {"string", "", 0, filter_string},
        {"upper", "", 0, filter_upper},
        {"lower", "", 0, filter_lower},
        {"title", "", 0, filter_title},
        {"capitalize", "", 0, filter_capitalize},
        {"replace", "old new count", 2, filter_replace},
        {"indent", "width first blank", 0, filter_indent},
        {"int", "default base", 0, filter_int},
        {"float", "default", 0, filter_float},
        {"abs", "", 0, filter_abs},
        {"round", "precision method", 0, filter_round},
        {"format", NULL, 0, filter_format},
        {"truncate", "length killwords end leeway", 0, filter_truncate},
        {"center", "width", 0, filter_center},
        {"wordcount", "", 0, filter_wordcount},
        {"wordwrap", "width break_long_words wrapstring break_on_hyphens", 0,
         octavo_tpl_filter_wordwrap},
        {"safe", "", 0, filter_string},
    };
    const octavo_tpl_builtin *found = octavo_tpl_find(filters, OCTAVO_COUNT(filters), name);
    if (found == NULL) found = octavo_tpl_sequence_filter_find(name);
    return found != NULL ? found : octavo_tpl_markup_filter_find(name);
}
