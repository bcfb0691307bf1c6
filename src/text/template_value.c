/* SPDX-License-Identifier: Apache-2.0
 *
 * Budgets of a run; making, comparing, measuring and walking values.
 */
#include "text/template_value.h"

#include "text/template_string.h"

#include <math.h>
#include <string.h>

void *octavo_tpl_alloc(octavo_tpl_run *run, size_t count, size_t size) {
    size_t bytes;
    if (octavo_tpl_failed(run)) return NULL;
    if (!octavo_size_mul(count, size, &bytes) ||
        bytes > OCTAVO_TEMPLATE_MAX_MEMORY - run->arena.used) {
        octavo_tpl_fail_limit(run, "the values of one render take more than %u MiB",
                              OCTAVO_TEMPLATE_MAX_MEMORY >> 20);
        return NULL;
    }
    void *p = octavo_arena_alloc(&run->arena, bytes > 0 ? bytes : 1);
    if (p == NULL || run->arena.used > OCTAVO_TEMPLATE_MAX_MEMORY) {
        /* the arena rounds up, so that the last block may still cross the limit */
        if (p == NULL)
            octavo_tpl_fail_memory(run, bytes);
        else
            octavo_tpl_fail_limit(run, "the values of one render take too much memory");
        return NULL;
    }
    return p;
}

bool octavo_tpl_charge(octavo_tpl_run *run, size_t steps) {
    if (octavo_tpl_failed(run)) return false;
    if (steps > OCTAVO_TEMPLATE_MAX_STEPS - run->steps) {
        octavo_tpl_fail_limit(run, "rendering takes more than %u steps", OCTAVO_TEMPLATE_MAX_STEPS);
        return false;
    }
    run->steps += steps;
    return true;
}

/* --- making --- */

octavo_tpl_value octavo_tpl_from_string(const octavo_tpl_string *string) {
    return (octavo_tpl_value){.kind = OCTAVO_TPL_STRING, .as.string = string};
}

octavo_tpl_value octavo_tpl_text_view(octavo_tpl_run *run, const char *data, size_t size) {
    octavo_tpl_string *string = octavo_tpl_alloc(run, 1, sizeof *string);
    if (string == NULL) return octavo_tpl_undefined(NULL);
    *string = (octavo_tpl_string){data, size, octavo_utf8_length(data, size)};
    return octavo_tpl_from_string(string);
}

octavo_tpl_value octavo_tpl_text(octavo_tpl_run *run, const char *data, size_t size) {
    char *copy = octavo_tpl_alloc(run, size, 1);
    if (copy == NULL) return octavo_tpl_undefined(NULL);
    if (size > 0) memcpy(copy, data, size);
    return octavo_tpl_text_view(run, copy, size);
}

octavo_tpl_value octavo_tpl_literal(octavo_tpl_run *run, const char *text) {
    return octavo_tpl_text_view(run, text, strlen(text));
}

octavo_tpl_list *octavo_tpl_list_new(octavo_tpl_run *run, size_t count) {
    octavo_tpl_list *list = octavo_tpl_alloc(run, 1, sizeof *list);
    octavo_tpl_value *items = octavo_tpl_alloc(run, count, sizeof *items);
    if (list == NULL || items == NULL || !octavo_tpl_charge(run, count)) return NULL;
    *list = (octavo_tpl_list){.items = items, .count = count};
    return list;
}

octavo_tpl_value octavo_tpl_from_list(octavo_tpl_kind kind, octavo_tpl_list *list) {
    if (list == NULL) return octavo_tpl_undefined(NULL);
    return (octavo_tpl_value){.kind = kind, .as.list = list};
}

octavo_tpl_value octavo_tpl_generator(octavo_tpl_list *list, const char *name) {
    if (list != NULL) list->name = name;
    return octavo_tpl_from_list(OCTAVO_TPL_GENERATOR, list);
}

octavo_tpl_value octavo_tpl_pair(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b) {
    octavo_tpl_list *pair = octavo_tpl_list_new(run, 2);
    if (pair == NULL) return octavo_tpl_undefined(NULL);
    pair->items[0] = a;
    pair->items[1] = b;
    return octavo_tpl_from_list(OCTAVO_TPL_TUPLE, pair);
}

octavo_tpl_value octavo_tpl_from_dict(octavo_tpl_kind kind, octavo_tpl_dict *dict) {
    if (dict == NULL) return octavo_tpl_undefined(NULL);
    return (octavo_tpl_value){.kind = kind, .as.dict = dict};
}

/* --- asking --- */

const char *octavo_tpl_type(octavo_tpl_value value) {
    static const char *const names[] = {
        [OCTAVO_TPL_ABSENT] = "nothing",     [OCTAVO_TPL_UNDEFINED] = "Undefined",
        [OCTAVO_TPL_NONE] = "NoneType",      [OCTAVO_TPL_BOOL] = "bool",
        [OCTAVO_TPL_INTEGER] = "int",        [OCTAVO_TPL_FLOAT] = "float",
        [OCTAVO_TPL_STRING] = "str",         [OCTAVO_TPL_LIST] = "list",
        [OCTAVO_TPL_TUPLE] = "tuple",        [OCTAVO_TPL_DICT] = "dict",
        [OCTAVO_TPL_RANGE] = "range",        [OCTAVO_TPL_VIEW] = "dict view",
        [OCTAVO_TPL_GENERATOR] = "iterator", [OCTAVO_TPL_NAMESPACE] = "Namespace",
        [OCTAVO_TPL_MACRO] = "Macro",        [OCTAVO_TPL_METHOD] = "method",
        [OCTAVO_TPL_FUNCTION] = "function",  [OCTAVO_TPL_LOOP] = "LoopContext",
        [OCTAVO_TPL_JOINER] = "Joiner",      [OCTAVO_TPL_CYCLER] = "Cycler",
    };
    return names[value.kind];
}

bool octavo_tpl_is_number(octavo_tpl_value value) {
    return value.kind == OCTAVO_TPL_BOOL || value.kind == OCTAVO_TPL_INTEGER ||
           value.kind == OCTAVO_TPL_FLOAT;
}

bool octavo_tpl_is_integer(octavo_tpl_value value, int64_t *integer) {
    if (value.kind == OCTAVO_TPL_BOOL)
        *integer = value.as.truth ? 1 : 0;
    else if (value.kind == OCTAVO_TPL_INTEGER)
        *integer = value.as.integer;
    else
        return false;
    return true;
}

double octavo_tpl_real(octavo_tpl_value number) {
    int64_t integer;
    return octavo_tpl_is_integer(number, &integer) ? (double)integer : number.as.real;
}

int64_t octavo_tpl_length(octavo_tpl_value value) {
    switch (value.kind) {
    case OCTAVO_TPL_UNDEFINED:
        return 0;
    case OCTAVO_TPL_STRING:
        return (int64_t)value.as.string->length;
    case OCTAVO_TPL_LIST:
    case OCTAVO_TPL_TUPLE:
    case OCTAVO_TPL_VIEW:
        return (int64_t)value.as.list->count;
    case OCTAVO_TPL_DICT:
        return (int64_t)value.as.dict->count;
    case OCTAVO_TPL_RANGE:
        return (int64_t)value.as.range->count;
    default:
        return -1;
    }
}

bool octavo_tpl_truth(octavo_tpl_value value) {
    switch (value.kind) {
    case OCTAVO_TPL_ABSENT:
    case OCTAVO_TPL_NONE:
        return false;
    case OCTAVO_TPL_BOOL:
        return value.as.truth;
    case OCTAVO_TPL_INTEGER:
        return value.as.integer != 0;
    case OCTAVO_TPL_FLOAT:
        return value.as.real < 0.0 || value.as.real > 0.0 || isnan(value.as.real);
    default:
        return octavo_tpl_length(value) != 0;
    }
}

bool octavo_tpl_string_equal(const octavo_tpl_string *a, const octavo_tpl_string *b) {
    return a == b || (a->size == b->size && memcmp(a->data, b->data, a->size) == 0);
}

bool octavo_tpl_is(const octavo_tpl_string *string, const char *text) {
    return string->size == strlen(text) && memcmp(string->data, text, string->size) == 0;
}

/* --- comparing --- */

static bool dicts_equal(octavo_tpl_run *run, const octavo_tpl_dict *a, const octavo_tpl_dict *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        octavo_tpl_value other = octavo_tpl_dict_get(run, b, a->entries[i].key);
        if (other.kind == OCTAVO_TPL_ABSENT) return false;
        if (!octavo_tpl_equal(run, a->entries[i].value, other)) return false;
    }
    return true;
}

static bool lists_equal(octavo_tpl_run *run, const octavo_tpl_list *a, const octavo_tpl_list *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!octavo_tpl_equal(run, a->items[i], b->items[i])) return false;
    return true;
}

static bool numbers_equal(octavo_tpl_value a, octavo_tpl_value b) {
    int64_t x, y;
    if (octavo_tpl_is_integer(a, &x) && octavo_tpl_is_integer(b, &y)) return x == y;
    double p = octavo_tpl_real(a), q = octavo_tpl_real(b);
    return p <= q && p >= q;
}

/* Compares inside containers of equal kind; one level deeper. */
static bool same_kind_equal(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b) {
    switch (a.kind) {
    case OCTAVO_TPL_UNDEFINED:
    case OCTAVO_TPL_NONE:
        return true;
    case OCTAVO_TPL_STRING:
        return octavo_tpl_charge(run, a.as.string->size / 64) &&
               octavo_tpl_string_equal(a.as.string, b.as.string);
    case OCTAVO_TPL_LIST:
    case OCTAVO_TPL_TUPLE:
        return lists_equal(run, a.as.list, b.as.list);
    case OCTAVO_TPL_DICT:
        return dicts_equal(run, a.as.dict, b.as.dict);
    case OCTAVO_TPL_RANGE:
        return a.as.range->count == b.as.range->count &&
               (a.as.range->count == 0 ||
                (a.as.range->start == b.as.range->start &&
                 (a.as.range->count == 1 || a.as.range->step == b.as.range->step)));
    case OCTAVO_TPL_METHOD:
        return a.as.method == b.as.method;
    default:
        return a.as.list == b.as.list; /* everything else is equal to itself only */
    }
}

bool octavo_tpl_equal(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b) {
    if (!octavo_tpl_charge(run, 1)) return false;
    if (octavo_tpl_is_number(a) && octavo_tpl_is_number(b)) return numbers_equal(a, b);
    if (a.kind != b.kind) return false;
    if (run->depth > OCTAVO_TPL_MAX_DEPTH + OCTAVO_TPL_MAX_NESTING) {
        octavo_tpl_fail_limit(run, "a value is nested too deeply to compare");
        return false;
    }
    run->depth++;
    bool equal = same_kind_equal(run, a, b);
    run->depth--;
    return equal;
}

static int compare_strings(octavo_tpl_run *run, const octavo_tpl_string *a,
                           const octavo_tpl_string *b) {
    /* the order of UTF-8 bytes is the order of code points */
    size_t common = a->size < b->size ? a->size : b->size;
    if (!octavo_tpl_charge(run, common / 64)) return 0;
    int order = memcmp(a->data, b->data, common);
    if (order != 0) return order;
    return a->size < b->size ? -1 : a->size > b->size;
}

static int compare_lists(octavo_tpl_run *run, const octavo_tpl_list *a, const octavo_tpl_list *b) {
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (!octavo_tpl_equal(run, a->items[i], b->items[i]))
            return octavo_tpl_compare(run, a->items[i], b->items[i]);
    return a->count < b->count ? -1 : a->count > b->count;
}

int octavo_tpl_compare(octavo_tpl_run *run, octavo_tpl_value a, octavo_tpl_value b) {
    int64_t x, y;
    if (!octavo_tpl_charge(run, 1)) return 0;
    if (octavo_tpl_is_integer(a, &x) && octavo_tpl_is_integer(b, &y)) return x < y ? -1 : x > y;
    if (octavo_tpl_is_number(a) && octavo_tpl_is_number(b)) {
        double p = octavo_tpl_real(a), q = octavo_tpl_real(b);
        return p < q ? -1 : p > q;
    }
    if (a.kind == OCTAVO_TPL_STRING && b.kind == OCTAVO_TPL_STRING)
        return compare_strings(run, a.as.string, b.as.string);
    if (a.kind == b.kind && (a.kind == OCTAVO_TPL_LIST || a.kind == OCTAVO_TPL_TUPLE)) {
        if (run->depth > OCTAVO_TPL_MAX_DEPTH + OCTAVO_TPL_MAX_NESTING) {
            octavo_tpl_fail_limit(run, "a value is nested too deeply to compare");
            return 0;
        }
        run->depth++;
        int order = compare_lists(run, a.as.list, b.as.list);
        run->depth--;
        return order;
    }
    octavo_tpl_fail(run, "cannot order %s and %s", octavo_tpl_type(a), octavo_tpl_type(b));
    return 0;
}

/* --- walking --- */

bool octavo_tpl_iterable(octavo_tpl_value value) {
    return octavo_tpl_length(value) >= 0 || value.kind == OCTAVO_TPL_GENERATOR ||
           value.kind == OCTAVO_TPL_LOOP;
}

octavo_tpl_value octavo_tpl_range_at(const octavo_tpl_range *range, size_t i) {
    return octavo_tpl_integer(range->start + (int64_t)i * range->step);
}

static octavo_tpl_list string_items(octavo_tpl_run *run, const octavo_tpl_string *string) {
    octavo_tpl_list *list = octavo_tpl_list_new(run, string->length);
    octavo_tpl_string *letters = octavo_tpl_alloc(run, string->length, sizeof *letters);
    if (list == NULL || letters == NULL) return (octavo_tpl_list){0};
    size_t at = 0;
    for (size_t i = 0; i < string->length; i++) {
        size_t size = octavo_utf8_next(string->data, string->size, at) - at;
        letters[i] = (octavo_tpl_string){string->data + at, size, 1};
        list->items[i] = octavo_tpl_from_string(&letters[i]);
        at += size;
    }
    return *list;
}

octavo_tpl_list octavo_tpl_items(octavo_tpl_run *run, octavo_tpl_value value) {
    octavo_tpl_list *list = NULL;
    switch (value.kind) {
    case OCTAVO_TPL_UNDEFINED:
        return (octavo_tpl_list){0};
    case OCTAVO_TPL_LIST:
    case OCTAVO_TPL_TUPLE:
    case OCTAVO_TPL_VIEW:
        return *value.as.list;
    case OCTAVO_TPL_GENERATOR: {
        octavo_tpl_list rest = {.items = value.as.list->items + value.as.list->position,
                                .count = value.as.list->count - value.as.list->position};
        value.as.list->position = value.as.list->count;
        return rest;
    }
    case OCTAVO_TPL_STRING:
        return string_items(run, value.as.string);
    case OCTAVO_TPL_DICT:
        list = octavo_tpl_list_new(run, value.as.dict->count);
        for (size_t i = 0; list != NULL && i < list->count; i++)
            list->items[i] = value.as.dict->entries[i].key;
        break;
    case OCTAVO_TPL_RANGE:
        list = octavo_tpl_list_new(run, value.as.range->count);
        for (size_t i = 0; list != NULL && i < list->count; i++)
            list->items[i] = octavo_tpl_range_at(value.as.range, i);
        break;
    default:
        octavo_tpl_fail(run, "%s cannot be walked; give a list, a dict or a string",
                        octavo_tpl_type(value));
        break;
    }
    return list != NULL ? *list : (octavo_tpl_list){0};
}
