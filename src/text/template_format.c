/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's two ways to fill in a text: "%s is %d" % (a, b) and "{} is {:.2f}".format(a, b). Both
 * come down to one specification of width, precision and kind.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PRECISION 300

typedef struct spec {
    const char *fill; /* one character of fill_size bytes; NULL: a space */
    size_t fill_size;
    char align; /* < > ^ =, or 0 for the kind's own */
    char sign;  /* + or space: shown for positive numbers too */
    bool alternate;
    bool commas;
    int64_t width;
    int64_t precision; /* -1: none */
    char type;         /* 0: by kind */
} spec;

static bool digits_at(const octavo_tpl_string *text, size_t *at, int64_t *number) {
    size_t from = *at;
    *number = 0;
    for (; *at < text->size && text->data[*at] >= '0' && text->data[*at] <= '9'; *at += 1)
        if (*number < 100000000) *number = *number * 10 + (text->data[*at] - '0');
    return *at > from;
}

/* --- writing one value --- */

static void put_fill(octavo_tpl_run *run, const spec *s, size_t times) {
    if (s->fill != NULL)
        octavo_tpl_put_repeated(run, s->fill, s->fill_size, times);
    else
        octavo_tpl_put_repeated(run, " ", 1, times);
}

/* Sign or prefix, then the body, padded to the width. */
static void put_padded(octavo_tpl_run *run, const spec *s, const char *sign, const char *body,
                       size_t size, char align) {
    size_t length = strlen(sign) + octavo_utf8_length(body, size);
    size_t rest = s->width > (int64_t)length ? (size_t)s->width - length : 0;
    if (s->align != 0) align = s->align;
    size_t left = align == '>' ? rest : align == '^' ? rest / 2 : 0;
    size_t inner = align == '=' ? rest : 0;
    put_fill(run, s, left);
    octavo_tpl_puts(run, sign);
    put_fill(run, s, inner);
    octavo_tpl_put(run, body, size);
    put_fill(run, s, rest - left - inner);
}

static void put_string(octavo_tpl_run *run, const spec *s, octavo_tpl_value text, char align) {
    if (octavo_tpl_failed(run)) return;
    const octavo_tpl_string *string = text.as.string;
    size_t size = string->size;
    if (s->precision >= 0) size = octavo_utf8_offset(string->data, size, (size_t)s->precision);
    put_padded(run, s, "", string->data, size, align);
}

/* Copies the digits in front of any point with a comma every three. */
static size_t group_digits(const char *digits, char *out) {
    size_t whole = strspn(digits, "0123456789"), n = 0;
    for (size_t i = 0; i < whole; i++) {
        if (i > 0 && (whole - i) % 3 == 0) out[n++] = ',';
        out[n++] = digits[i];
    }
    size_t rest = strlen(digits + whole);
    memcpy(out + n, digits + whole, rest);
    return n + rest;
}

static void put_digits(octavo_tpl_run *run, const spec *s, bool minus, const char *prefix,
                       const char *digits) {
    char sign[8], grouped[1200];
    snprintf(sign, sizeof sign, "%s%s",
             minus            ? "-"
             : s->sign == '+' ? "+"
             : s->sign == ' ' ? " "
                              : "",
             prefix);
    if (s->commas)
        put_padded(run, s, sign, grouped, group_digits(digits, grouped), '>');
    else
        put_padded(run, s, sign, digits, strlen(digits), '>');
}

static void put_integer(octavo_tpl_run *run, const spec *s, int64_t integer) {
    char digits[400], *at = digits + sizeof digits;
    bool minus = integer < 0;
    uint64_t rest = minus ? 0 - (uint64_t)integer : (uint64_t)integer;
    unsigned base = s->type == 'x' || s->type == 'X' ? 16
                    : s->type == 'o'                 ? 8
                    : s->type == 'b'                 ? 2
                                                     : 10;
    const char *letters = s->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char prefix[3] = {'0', s->type, '\0'};
    *--at = '\0';
    do
        *--at = letters[rest % base];
    while ((rest /= base) > 0);
    while (digits + sizeof digits - 1 - at < s->precision)
        *--at = '0';
    put_digits(run, s, minus, s->alternate && base != 10 ? prefix : "", at);
}

/* %e %f %g with a point whatever the locale. */
static void put_real(octavo_tpl_run *run, const spec *s, double real) {
    char digits[800];
    int precision = s->precision < 0 ? 6 : (int)s->precision;
    bool minus = signbit(real) && !isnan(real), percent = s->type == '%';
    double size = fabs(percent ? real * 100.0 : real);
    if (isnan(real) || isinf(size)) {
        put_digits(run, s, minus, "", isnan(real) ? "nan" : "inf");
        return;
    }
    if (s->type == 'e' || s->type == 'E')
        snprintf(digits, sizeof digits, "%.*e", precision, size);
    else if (s->type == 'g' || s->type == 'G')
        snprintf(digits, sizeof digits, "%.*g", precision, size);
    else
        snprintf(digits, sizeof digits, "%.*f%s", precision, size, percent ? "%" : "");
    const char *point = localeconv()->decimal_point;
    char *found = strcmp(point, ".") != 0 ? strstr(digits, point) : NULL;
    if (found != NULL) {
        *found = '.';
        memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
    }
    for (char *p = digits; s->type == 'E' || s->type == 'G'; p++) {
        if (*p == 'e') *p = 'E';
        if (*p == '\0') break;
    }
    put_digits(run, s, minus, "", digits);
}

static bool is_real_type(char type) {
    return type != 0 && strchr("eEfFgG%", type) != NULL;
}

static bool is_integer_type(char type) {
    return type != 0 && strchr("dioxXbun", type) != NULL;
}

/* A float without a type: as str() writes it, with a precision as 'g'. */
static void put_plain_float(octavo_tpl_run *run, const spec *s, double real) {
    spec general = *s;
    general.type = 'g';
    if (s->precision >= 0) {
        put_real(run, &general, real);
        return;
    }
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_float(run, fabs(real));
    octavo_tpl_value text = octavo_tpl_close(run, mark);
    char digits[64];
    if (octavo_tpl_failed(run) || text.as.string->size >= sizeof digits) return;
    memcpy(digits, text.as.string->data, text.as.string->size);
    digits[text.as.string->size] = '\0';
    put_digits(run, s, signbit(real) && !isnan(real), "", digits);
}

static void put_number(octavo_tpl_run *run, const spec *s, octavo_tpl_value number) {
    int64_t integer;
    bool is_integer = octavo_tpl_is_integer(number, &integer);
    if (s->precision > MAX_PRECISION) {
        octavo_tpl_fail_limit(run, "a precision above %d", MAX_PRECISION);
    } else if (is_real_type(s->type)) {
        put_real(run, s, octavo_tpl_real(number));
    } else if (is_integer) {
        put_integer(run, s, integer);
    } else if (s->type == 0) {
        put_plain_float(run, s, number.as.real);
    } else {
        octavo_tpl_fail(run, "the format '%c' wants an integer", s->type);
    }
}

/* --- printf style --- */

typedef struct percent {
    octavo_tpl_run *run;
    const octavo_tpl_string *format;
    octavo_tpl_value values;
    size_t at;   /* in the format */
    size_t used; /* values taken */
    bool keyed;  /* some value was taken by name */
} percent;

static octavo_tpl_value next_value(percent *p) {
    octavo_tpl_run *run = p->run;
    if (p->values.kind != OCTAVO_TPL_TUPLE) {
        if (p->used++ > 0) return octavo_tpl_fail(run, "not enough values for the format");
        return p->values;
    }
    if (p->used >= p->values.as.list->count)
        return octavo_tpl_fail(run, "not enough values for the format");
    return p->values.as.list->items[p->used++];
}

/* (name) behind the percent sign. */
static octavo_tpl_value keyed_value(percent *p) {
    const octavo_tpl_string *format = p->format;
    const char *from = format->data + p->at + 1;
    const char *end = memchr(from, ')', format->size - p->at - 1);
    if (end == NULL || p->values.kind != OCTAVO_TPL_DICT)
        return octavo_tpl_fail(p->run, "the format wants a dict");
    octavo_tpl_value key = octavo_tpl_text_view(p->run, from, (size_t)(end - from));
    p->at = (size_t)(end - format->data) + 1;
    p->keyed = true;
    octavo_tpl_value value = octavo_tpl_dict_get(p->run, p->values.as.dict, key);
    if (value.kind == OCTAVO_TPL_ABSENT)
        return octavo_tpl_fail(p->run, "the format names a key that is not there");
    return value;
}

static void put_percent_value(percent *p, spec *s, octavo_tpl_value value) {
    octavo_tpl_run *run = p->run;
    int64_t integer;
    if (s->type == 's' || s->type == 'r' || s->type == 'a') {
        size_t mark = octavo_tpl_open(run);
        if (s->type == 's')
            octavo_tpl_put_value(run, value);
        else
            octavo_tpl_put_repr(run, value);
        if (s->align == '=') s->align = '>';
        s->fill = NULL;
        put_string(run, s, octavo_tpl_close(run, mark), '>');
    } else if (s->type == 'c' && value.kind == OCTAVO_TPL_STRING && value.as.string->length == 1) {
        put_string(run, s, value, '>');
    } else if (s->type == 'c' && octavo_tpl_is_integer(value, &integer) && integer >= 0 &&
               integer <= 0x10ffff) {
        size_t mark = octavo_tpl_open(run);
        octavo_tpl_put_codepoint(run, (int32_t)integer);
        put_string(run, s, octavo_tpl_close(run, mark), '>');
    } else if (!octavo_tpl_defined(run, value)) {
        return;
    } else if (!octavo_tpl_is_number(value) ||
               !(is_real_type(s->type) || is_integer_type(s->type))) {
        octavo_tpl_fail(run, "the format '%%%c' does not go with %s", s->type,
                        octavo_tpl_type(value));
    } else if (value.kind == OCTAVO_TPL_FLOAT &&
               (s->type == 'd' || s->type == 'i' || s->type == 'u')) {
        if (!(fabs(value.as.real) < 9.2e18))
            octavo_tpl_fail(run, "%%d of a number beyond 64 bits");
        else
            put_number(run, s, octavo_tpl_integer((int64_t)value.as.real));
    } else {
        put_number(run, s, value);
    }
}

/* The conversion behind a percent sign. */
static void put_conversion(percent *p) {
    const octavo_tpl_string *format = p->format;
    spec s = {.precision = -1};
    octavo_tpl_value value = octavo_tpl_absent();
    bool zero = false;
    if (p->at < format->size && format->data[p->at] == '(') value = keyed_value(p);
    for (; p->at < format->size; p->at++) {
        char c = format->data[p->at];
        if (c == '-')
            s.align = '<';
        else if (c == '0')
            zero = true;
        else if (c == '#')
            s.alternate = true;
        else if (c == '+' || (c == ' ' && s.sign == 0))
            s.sign = c;
        else if (c != ' ')
            break;
    }
    if (zero && s.align == 0) {
        s.align = '=';
        s.fill = "0";
        s.fill_size = 1;
    }
    digits_at(format, &p->at, &s.width);
    if (p->at < format->size && format->data[p->at] == '.') {
        p->at++;
        digits_at(format, &p->at, &s.precision);
    }
    if (octavo_tpl_failed(p->run)) return;
    if (p->at >= format->size) {
        octavo_tpl_fail(p->run, "the format ends within a conversion");
        return;
    }
    s.type = format->data[p->at++];
    if (s.type == '%') {
        octavo_tpl_puts(p->run, "%");
        return;
    }
    if ((unsigned char)s.type >= 0x80 || strchr("sracdiuoxXeEfFgG", s.type) == NULL ||
        s.type == '\0') {
        octavo_tpl_fail(p->run, "the format has an unknown conversion");
        return;
    }
    if (value.kind == OCTAVO_TPL_ABSENT) value = next_value(p);
    if (!octavo_tpl_failed(p->run)) put_percent_value(p, &s, value);
}

octavo_tpl_value octavo_tpl_percent(octavo_tpl_run *run, const octavo_tpl_string *format,
                                    octavo_tpl_value values) {
    percent p = {.run = run, .format = format, .values = values};
    size_t mark = octavo_tpl_open(run);
    while (p.at < format->size && octavo_tpl_charge(run, 1)) {
        const char *from = format->data + p.at;
        const char *sign = memchr(from, '%', format->size - p.at);
        size_t plain = sign != NULL ? (size_t)(sign - from) : format->size - p.at;
        octavo_tpl_put(run, from, plain);
        p.at += plain;
        if (sign == NULL) break;
        p.at++;
        put_conversion(&p);
    }
    /* what could be looked into by name may be left unused, as in Python */
    bool lookable = values.kind == OCTAVO_TPL_DICT || values.kind == OCTAVO_TPL_LIST ||
                    values.kind == OCTAVO_TPL_RANGE || values.kind == OCTAVO_TPL_UNDEFINED;
    bool all =
        values.kind == OCTAVO_TPL_TUPLE ? p.used == values.as.list->count : p.used == 1 || lookable;
    if (!all && !p.keyed) octavo_tpl_fail(run, "not all values are used by the format");
    return octavo_tpl_close(run, mark);
}

/* --- str.format style --- */

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static bool parse_spec(const octavo_tpl_string *text, spec *s) {
    size_t at = 0, next = text->size > 0 ? octavo_utf8_next(text->data, text->size, 0) : 0;
    *s = (spec){.precision = -1};
    if (next > 0 && next < text->size && memchr("<>^=", text->data[next], 4) != NULL) {
        s->fill = text->data;
        s->fill_size = next;
        s->align = text->data[next];
        at = next + 1;
    } else if (text->size > 0 && memchr("<>^=", text->data[0], 4) != NULL) {
        s->align = text->data[at++];
    }
    if (at < text->size && memchr("+- ", text->data[at], 3) != NULL) s->sign = text->data[at++];
    if (at < text->size && text->data[at] == '#') {
        s->alternate = true;
        at++;
    }
    if (at < text->size && text->data[at] == '0') {
        if (s->fill == NULL) {
            s->fill = "0";
            s->fill_size = 1;
        }
        if (s->align == 0) s->align = '=';
        at++;
    }
    digits_at(text, &at, &s->width);
    if (at < text->size && text->data[at] == ',') {
        s->commas = true;
        at++;
    }
    if (at < text->size && text->data[at] == '.') {
        at++;
        if (!digits_at(text, &at, &s->precision)) return false;
    }
    if (at < text->size) s->type = text->data[at++];
    return at == text->size;
}

static void put_formatted(octavo_tpl_run *run, octavo_tpl_value value,
                          const octavo_tpl_string *text) {
    spec s;
    if (octavo_tpl_failed(run)) return;
    if (text->size == 0) {
        octavo_tpl_put_value(run, value);
        return;
    }
    bool good = parse_spec(text, &s);
    if (good && octavo_tpl_is_number(value) &&
        (s.type == 0 || is_real_type(s.type) || is_integer_type(s.type))) {
        if (value.kind == OCTAVO_TPL_BOOL && s.type == 0) s.type = 'd';
        put_number(run, &s, value);
    } else if (good && value.kind == OCTAVO_TPL_STRING && (s.type == 0 || s.type == 's') &&
               s.align != '=') {
        put_string(run, &s, value, '<');
    } else {
        octavo_tpl_fail(run, "a format specification does not go with %s", octavo_tpl_type(value));
    }
}

typedef struct filler {
    octavo_tpl_run *run;
    const octavo_tpl_args *args;
    size_t next;
} filler;

static octavo_tpl_value field_base(filler *f, const char *name, size_t size) {
    const octavo_tpl_string text = {name, size, size};
    int64_t index = (int64_t)f->next;
    size_t at = 0;
    if (size == 0) f->next++;
    if (size == 0 || (digits_at(&text, &at, &index) && at == size)) {
        if ((uint64_t)index < f->args->count) return f->args->items[index];
        return octavo_tpl_fail(f->run, "format has no argument %" PRId64, index);
    }
    for (size_t i = 0; i < f->args->named_count; i++)
        if (octavo_tpl_string_equal(f->args->named[i].name, &text)) return f->args->named[i].value;
    return octavo_tpl_fail(f->run, "format has no argument '%.*s'", size < 80 ? (int)size : 80,
                           name);
}

/* name(.attribute|[item])* */
static octavo_tpl_value field_value(filler *f, const char *name, size_t size) {
    size_t at = 0;
    while (at < size && name[at] != '.' && name[at] != '[')
        at++;
    octavo_tpl_value value = field_base(f, name, at);
    while (at < size && !octavo_tpl_failed(f->run)) {
        bool item = name[at] == '[';
        size_t from = at + 1, end = from;
        while (end < size && (item ? name[end] != ']' : name[end] != '.' && name[end] != '['))
            end++;
        octavo_tpl_value key = octavo_tpl_text_view(f->run, name + from, end - from);
        if (octavo_tpl_failed(f->run)) break;
        int64_t index;
        size_t read = 0;
        bool number = item && digits_at(key.as.string, &read, &index) && read == end - from;
        value = !item ? octavo_tpl_attribute(f->run, value, key.as.string)
                      : octavo_tpl_item(f->run, value, number ? octavo_tpl_integer(index) : key);
        at = end + item;
    }
    return value;
}

/* What stands between braces: name, !conversion, :specification. */
static void put_field(filler *f, const char *field, size_t size) {
    size_t name = 0;
    char conversion = 's';
    while (name < size && field[name] != '!' && field[name] != ':')
        name++;
    octavo_tpl_value value = field_value(f, field, name);
    size_t at = name;
    if (at + 1 < size && field[at] == '!') {
        conversion = field[at + 1];
        at += 2;
        size_t mark = octavo_tpl_open(f->run);
        if (conversion == 'r')
            octavo_tpl_put_repr(f->run, value);
        else
            octavo_tpl_put_value(f->run, value);
        value = octavo_tpl_close(f->run, mark);
    }
    if (at < size && field[at] == ':') at++;
    const octavo_tpl_string text = {field + at, size - at, size - at};
    put_formatted(f->run, value, &text);
}

octavo_tpl_value octavo_tpl_format(octavo_tpl_run *run, const octavo_tpl_string *format,
                                   const octavo_tpl_args *args) {
    filler f = {.run = run, .args = args};
    const char *data = format->data;
    size_t size = format->size, mark = octavo_tpl_open(run);
    for (size_t at = 0; at < size && octavo_tpl_charge(run, 1);) {
        size_t plain = at;
        while (plain < size && data[plain] != '{' && data[plain] != '}')
            plain++;
        octavo_tpl_put(run, data + at, plain - at);
        at = plain;
        if (at == size) break;
        if (at + 1 < size && data[at + 1] == data[at]) {
            octavo_tpl_put(run, data + at, 1);
            at += 2;
            continue;
        }
        const char *end = data[at] == '{' ? memchr(data + at, '}', size - at) : NULL;
        if (end == NULL) {
            octavo_tpl_fail(run, "format has a single brace; write it twice");
            break;
        }
        put_field(&f, data + at + 1, (size_t)(end - data) - at - 1);
        at = (size_t)(end - data) + 1;
    }
    return octavo_tpl_close(run, mark);
}
