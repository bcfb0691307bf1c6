/* SPDX-License-Identifier: Apache-2.0
 *
 * Text out of values: the scratch at the end of the output, and Python's str() and repr().
 */
#include "text/template_string.h"
#include "text/template_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t octavo_tpl_open(octavo_tpl_run *run) {
    return run->out.size;
}

octavo_tpl_value octavo_tpl_close(octavo_tpl_run *run, size_t mark) {
    octavo_tpl_value text = octavo_tpl_undefined(NULL);
    if (!octavo_tpl_failed(run))
        text = run->out.size > mark
                   ? octavo_tpl_text(run, run->out.data + mark, run->out.size - mark)
                   : octavo_tpl_literal(run, "");
    run->out.size = mark;
    return text;
}

void octavo_tpl_put(octavo_tpl_run *run, const char *data, size_t size) {
    if (octavo_tpl_failed(run)) return;
    if (size > OCTAVO_TEMPLATE_MAX_OUTPUT - run->out.size) {
        octavo_tpl_fail_limit(run, "the text grows beyond %u MiB",
                              OCTAVO_TEMPLATE_MAX_OUTPUT >> 20);
        return;
    }
    if (!octavo_tpl_charge(run, size / 64)) return;
    octavo_buffer_append(&run->out, data, size);
    if (run->out.failed) octavo_tpl_fail_memory(run, size);
}

void octavo_tpl_puts(octavo_tpl_run *run, const char *text) {
    octavo_tpl_put(run, text, strlen(text));
}

void octavo_tpl_put_repeated(octavo_tpl_run *run, const char *data, size_t size, size_t times) {
    size_t total;
    if (!octavo_size_mul(size, times, &total) || total > OCTAVO_TEMPLATE_MAX_OUTPUT) {
        octavo_tpl_fail_limit(run, "a text repeated %zu times grows beyond %u MiB", times,
                              OCTAVO_TEMPLATE_MAX_OUTPUT >> 20);
        return;
    }
    if (size == 0) return;
    for (size_t i = 0; i < times && octavo_tpl_charge(run, 1); i++)
        octavo_tpl_put(run, data, size);
}

void octavo_tpl_put_codepoint(octavo_tpl_run *run, int32_t codepoint) {
    char bytes[4];
    octavo_tpl_put(run, bytes, octavo_utf8_encode(codepoint, bytes));
}

static void put_integer(octavo_tpl_run *run, int64_t integer) {
    char text[32];
    int n = snprintf(text, sizeof text, "%" PRId64, integer);
    octavo_tpl_put(run, text, (size_t)n);
}

/* The fewest digits that read back as the same number: "d.ddde+xx" in `text`. The decimal point is
 * whatever the locale says; callers look at digits and exponent only. */
static void shortest(double real, char text[40]) {
    for (int digits = 0; digits <= 16; digits++) {
        snprintf(text, 40, "%.*e", digits, real);
        double back = strtod(text, NULL);
        if (back <= real && back >= real) return;
    }
}

void octavo_tpl_put_float(octavo_tpl_run *run, double real) {
    if (isnan(real)) {
        octavo_tpl_puts(run, "nan");
        return;
    }
    if (signbit(real)) octavo_tpl_puts(run, "-");
    if (isinf(real)) {
        octavo_tpl_puts(run, "inf");
        return;
    }
    char text[40], digits[24];
    size_t n = 0;
    shortest(fabs(real), text);
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    int exponent = (int)strtol(e + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16) {
        octavo_tpl_put(run, digits, 1);
        if (n > 1) octavo_tpl_puts(run, ".");
        octavo_tpl_put(run, digits + 1, n - 1);
        snprintf(text, sizeof text, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        octavo_tpl_puts(run, text);
    } else if (exponent < 0) {
        octavo_tpl_puts(run, "0.");
        octavo_tpl_put(run, "0000", (size_t)(-exponent - 1));
        octavo_tpl_put(run, digits, n);
    } else {
        size_t whole = (size_t)exponent + 1;
        octavo_tpl_put(run, digits, n < whole ? n : whole);
        if (n < whole) octavo_tpl_put_repeated(run, "0", 1, whole - n);
        octavo_tpl_puts(run, ".");
        if (n > whole)
            octavo_tpl_put(run, digits + whole, n - whole);
        else
            octavo_tpl_puts(run, "0");
    }
}

static void put_escaped_codepoint(octavo_tpl_run *run, int32_t c) {
    char text[16];
    if (c == '\n')
        octavo_tpl_puts(run, "\\n");
    else if (c == '\r')
        octavo_tpl_puts(run, "\\r");
    else if (c == '\t')
        octavo_tpl_puts(run, "\\t");
    else {
        if (c < 0x100)
            snprintf(text, sizeof text, "\\x%02" PRIx32, (uint32_t)c);
        else if (c < 0x10000)
            snprintf(text, sizeof text, "\\u%04" PRIx32, (uint32_t)c);
        else
            snprintf(text, sizeof text, "\\U%08" PRIx32, (uint32_t)c);
        octavo_tpl_puts(run, text);
    }
}

static void put_string_repr(octavo_tpl_run *run, const octavo_tpl_string *string) {
    bool has_single = memchr(string->data, '\'', string->size) != NULL;
    bool has_double = memchr(string->data, '"', string->size) != NULL;
    char quote = has_single && !has_double ? '"' : '\'';
    octavo_tpl_put(run, &quote, 1);
    for (size_t at = 0; at < string->size && octavo_tpl_charge(run, 1);) {
        size_t next = octavo_utf8_next(string->data, string->size, at);
        int32_t c = octavo_utf8_codepoint(string->data, string->size, at);
        if (c == quote || c == '\\') octavo_tpl_puts(run, "\\");
        if (octavo_utf8_is_printable(c))
            octavo_tpl_put(run, string->data + at, next - at);
        else
            put_escaped_codepoint(run, c);
        at = next;
    }
    octavo_tpl_put(run, &quote, 1);
}

static void put_items(octavo_tpl_run *run, const octavo_tpl_list *list) {
    for (size_t i = 0; i < list->count && octavo_tpl_charge(run, 1); i++) {
        if (i > 0) octavo_tpl_puts(run, ", ");
        octavo_tpl_put_repr(run, list->items[i]);
    }
}

static void put_dict(octavo_tpl_run *run, const octavo_tpl_dict *dict) {
    octavo_tpl_puts(run, "{");
    for (size_t i = 0; i < dict->count && octavo_tpl_charge(run, 1); i++) {
        if (i > 0) octavo_tpl_puts(run, ", ");
        octavo_tpl_put_repr(run, dict->entries[i].key);
        octavo_tpl_puts(run, ": ");
        octavo_tpl_put_repr(run, dict->entries[i].value);
    }
    octavo_tpl_puts(run, "}");
}

static void put_range(octavo_tpl_run *run, const octavo_tpl_range *range) {
    octavo_tpl_puts(run, "range(");
    put_integer(run, range->start);
    octavo_tpl_puts(run, ", ");
    put_integer(run, range->stop);
    if (range->step != 1) {
        octavo_tpl_puts(run, ", ");
        put_integer(run, range->step);
    }
    octavo_tpl_puts(run, ")");
}

static void put_container(octavo_tpl_run *run, octavo_tpl_value value) {
    switch (value.kind) {
    case OCTAVO_TPL_LIST:
        octavo_tpl_puts(run, "[");
        put_items(run, value.as.list);
        octavo_tpl_puts(run, "]");
        break;
    case OCTAVO_TPL_TUPLE:
        octavo_tpl_puts(run, "(");
        put_items(run, value.as.list);
        octavo_tpl_puts(run, value.as.list->count == 1 ? ",)" : ")");
        break;
    case OCTAVO_TPL_VIEW:
        octavo_tpl_puts(run, value.as.list->name);
        octavo_tpl_puts(run, "([");
        put_items(run, value.as.list);
        octavo_tpl_puts(run, "])");
        break;
    case OCTAVO_TPL_DICT:
        put_dict(run, value.as.dict);
        break;
    case OCTAVO_TPL_NAMESPACE:
        octavo_tpl_puts(run, "<Namespace ");
        put_dict(run, value.as.dict);
        octavo_tpl_puts(run, ">");
        break;
    default:
        octavo_tpl_puts(run, "<");
        octavo_tpl_puts(run, octavo_tpl_type(value));
        octavo_tpl_puts(run, ">");
        break;
    }
}

void octavo_tpl_put_repr(octavo_tpl_run *run, octavo_tpl_value value) {
    if (octavo_tpl_failed(run)) return;
    switch (value.kind) {
    case OCTAVO_TPL_UNDEFINED:
        octavo_tpl_puts(run, "Undefined");
        return;
    case OCTAVO_TPL_STRING:
        put_string_repr(run, value.as.string);
        return;
    case OCTAVO_TPL_NONE:
        octavo_tpl_puts(run, "None");
        return;
    case OCTAVO_TPL_BOOL:
        octavo_tpl_puts(run, value.as.truth ? "True" : "False");
        return;
    case OCTAVO_TPL_INTEGER:
        put_integer(run, value.as.integer);
        return;
    case OCTAVO_TPL_FLOAT:
        octavo_tpl_put_float(run, value.as.real);
        return;
    case OCTAVO_TPL_RANGE:
        put_range(run, value.as.range);
        return;
    default:
        break;
    }
    if (run->depth > OCTAVO_TPL_MAX_DEPTH + OCTAVO_TPL_MAX_NESTING) {
        octavo_tpl_fail_limit(run, "a value is nested too deeply to print");
        return;
    }
    run->depth++;
    put_container(run, value);
    run->depth--;
}

void octavo_tpl_put_value(octavo_tpl_run *run, octavo_tpl_value value) {
    if (value.kind == OCTAVO_TPL_STRING)
        octavo_tpl_put(run, value.as.string->data, value.as.string->size);
    else if (value.kind != OCTAVO_TPL_UNDEFINED)
        octavo_tpl_put_repr(run, value);
}

octavo_tpl_value octavo_tpl_str(octavo_tpl_run *run, octavo_tpl_value value) {
    if (value.kind == OCTAVO_TPL_STRING) return value;
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_value(run, value);
    return octavo_tpl_close(run, mark);
}
