/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes, items and slices. As in Jinja, x.name prefers a method and falls back to the item,
 * x['name'] prefers the item and falls back to the method; what is neither is undefined.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <string.h>

octavo_tpl_value octavo_tpl_bind(octavo_tpl_run *run, octavo_tpl_value self,
                                 const octavo_tpl_builtin *builtin) {
    octavo_tpl_method *method = octavo_tpl_alloc(run, 1, sizeof *method);
    if (method == NULL) return octavo_tpl_undefined(NULL);
    *method = (octavo_tpl_method){self, builtin};
    return (octavo_tpl_value){.kind = OCTAVO_TPL_METHOD, .as.method = method};
}

static octavo_tpl_value missing(octavo_tpl_value object, const octavo_tpl_string *name) {
    octavo_tpl_value value = octavo_tpl_undefined(name);
    value.parent = object.kind;
    return value;
}

/* Methods that would change a list or a dict: seen, but forbidden, so that no item of that name
 * shows through. */
static bool is_forbidden(octavo_tpl_kind kind, const octavo_tpl_string *name) {
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update"};
    static const char *const of_list[] = {"append", "clear",  "extend",  "insert",
                                          "pop",    "remove", "reverse", "sort"};
    const char *const *table = kind == OCTAVO_TPL_DICT ? of_dict : of_list;
    size_t count = kind == OCTAVO_TPL_DICT   ? OCTAVO_COUNT(of_dict)
                   : kind == OCTAVO_TPL_LIST ? OCTAVO_COUNT(of_list)
                                             : 0;
    for (size_t i = 0; i < count; i++)
        if (octavo_tpl_is(name, table[i])) return true;
    return false;
}

/* groupby gives pairs whose halves have names; `list->name` marks them. */
static octavo_tpl_value group_attribute(octavo_tpl_value pair, const octavo_tpl_string *name) {
    if (octavo_tpl_is(name, "grouper")) return pair.as.list->items[0];
    if (octavo_tpl_is(name, "list")) return pair.as.list->items[1];
    return octavo_tpl_absent();
}

/* What the object has by that name, its items left out; ABSENT when nothing. */
static octavo_tpl_value own_attribute(octavo_tpl_run *run, octavo_tpl_value object,
                                      const octavo_tpl_string *name) {
    if (object.kind == OCTAVO_TPL_NAMESPACE)
        return octavo_tpl_dict_get_text(run, object.as.dict, name);
    if (object.kind == OCTAVO_TPL_LOOP) return octavo_tpl_loop_attribute(run, object.as.loop, name);
    if (object.kind == OCTAVO_TPL_TUPLE && object.as.list->name != NULL) {
        octavo_tpl_value half = group_attribute(object, name);
        if (half.kind != OCTAVO_TPL_ABSENT) return half;
    }
    if (object.kind == OCTAVO_TPL_CYCLER && octavo_tpl_is(name, "current"))
        return object.as.list->items[object.as.list->position];
    if (object.kind == OCTAVO_TPL_MACRO && octavo_tpl_is(name, "name")) {
        const octavo_tpl_string *own = object.as.macro->node->as.macro.name;
        return own != NULL ? octavo_tpl_from_string(own) : octavo_tpl_none();
    }
    const octavo_tpl_builtin *builtin = octavo_tpl_method_find(object.kind, name);
    if (builtin != NULL) return octavo_tpl_bind(run, object, builtin);
    return is_forbidden(object.kind, name) ? missing(object, name) : octavo_tpl_absent();
}

octavo_tpl_value octavo_tpl_attribute(octavo_tpl_run *run, octavo_tpl_value object,
                                      const octavo_tpl_string *name) {
    if (!octavo_tpl_defined(run, object)) return octavo_tpl_undefined(NULL);
    octavo_tpl_value value = own_attribute(run, object, name);
    if (value.kind == OCTAVO_TPL_ABSENT && object.kind == OCTAVO_TPL_DICT)
        value = octavo_tpl_dict_get_text(run, object.as.dict, name);
    return value.kind != OCTAVO_TPL_ABSENT ? value : missing(object, name);
}

static octavo_tpl_value letter_at(octavo_tpl_run *run, const octavo_tpl_string *string,
                                  size_t index) {
    size_t at = index;
    if (string->length != string->size) {
        if (!octavo_tpl_charge(run, index / 64)) return octavo_tpl_undefined(NULL);
        at = octavo_utf8_offset(string->data, string->size, index);
    }
    return octavo_tpl_text_view(run, string->data + at,
                                octavo_utf8_next(string->data, string->size, at) - at);
}

/* Item of a sequence; ABSENT when there is none. */
static octavo_tpl_value indexed(octavo_tpl_run *run, octavo_tpl_value object, int64_t index) {
    int64_t length = octavo_tpl_length(object);
    if (index < 0) index += length;
    if (index < 0 || index >= length) return octavo_tpl_absent();
    switch (object.kind) {
    case OCTAVO_TPL_LIST:
    case OCTAVO_TPL_TUPLE:
        return object.as.list->items[index];
    case OCTAVO_TPL_STRING:
        return letter_at(run, object.as.string, (size_t)index);
    case OCTAVO_TPL_RANGE:
        return octavo_tpl_range_at(object.as.range, (size_t)index);
    default:
        return octavo_tpl_absent();
    }
}

static bool hashable(octavo_tpl_value value) {
    if (value.kind == OCTAVO_TPL_TUPLE) {
        for (size_t i = 0; i < value.as.list->count; i++)
            if (value.as.list->items[i].kind == OCTAVO_TPL_TUPLE ||
                !hashable(value.as.list->items[i]))
                return false;
        return true;
    }
    return octavo_tpl_is_number(value) || value.kind == OCTAVO_TPL_STRING ||
           value.kind == OCTAVO_TPL_NONE || value.kind == OCTAVO_TPL_UNDEFINED;
}

octavo_tpl_value octavo_tpl_item(octavo_tpl_run *run, octavo_tpl_value object,
                                 octavo_tpl_value key) {
    int64_t index;
    octavo_tpl_value value = octavo_tpl_absent();
    if (!octavo_tpl_defined(run, object)) return octavo_tpl_undefined(NULL);
    if (object.kind == OCTAVO_TPL_DICT) {
        if (hashable(key)) value = octavo_tpl_dict_get(run, object.as.dict, key);
    } else if (octavo_tpl_is_integer(key, &index)) {
        value = indexed(run, object, index);
    }
    if (value.kind == OCTAVO_TPL_ABSENT && key.kind == OCTAVO_TPL_STRING)
        value = own_attribute(run, object, key.as.string);
    if (value.kind != OCTAVO_TPL_ABSENT) return value;
    return missing(object, key.kind == OCTAVO_TPL_STRING ? key.as.string : NULL);
}

static octavo_tpl_value step_into(octavo_tpl_run *run, octavo_tpl_value object,
                                  octavo_tpl_value key, octavo_tpl_value fallback) {
    octavo_tpl_value value = octavo_tpl_item(run, object, key);
    bool replaced = value.kind == OCTAVO_TPL_UNDEFINED && fallback.kind != OCTAVO_TPL_ABSENT &&
                    fallback.kind != OCTAVO_TPL_NONE;
    return replaced ? fallback : value;
}

/* A part of a path: a number where it is written as one. */
static octavo_tpl_value path_key(octavo_tpl_run *run, const char *text, size_t size) {
    int64_t index = 0;
    bool digits = size > 0 && size < 18;
    for (size_t i = 0; i < size && digits; i++) {
        digits = text[i] >= '0' && text[i] <= '9';
        index = index * 10 + (text[i] - '0');
    }
    return digits ? octavo_tpl_integer(index) : octavo_tpl_text_view(run, text, size);
}

octavo_tpl_value octavo_tpl_path(octavo_tpl_run *run, octavo_tpl_value object,
                                 octavo_tpl_value path, octavo_tpl_value fallback) {
    if (path.kind == OCTAVO_TPL_ABSENT || path.kind == OCTAVO_TPL_NONE) return object;
    if (path.kind != OCTAVO_TPL_STRING) return step_into(run, object, path, fallback);
    const char *at = path.as.string->data, *end = at + path.as.string->size;
    while (!octavo_tpl_failed(run)) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        const char *stop = dot != NULL ? dot : end;
        object = step_into(run, object, path_key(run, at, (size_t)(stop - at)), fallback);
        if (dot == NULL) break;
        at = dot + 1;
    }
    return object;
}

/* --- slices --- */

typedef struct slice {
    int64_t start, stop, step;
    size_t count;
} slice;

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* One bound counted from the front, within what a walk of that direction can reach. */
static int64_t bound(octavo_tpl_value value, int64_t length, bool backwards, int64_t fallback) {
    int64_t at;
    if (!octavo_tpl_is_integer(value, &at)) return fallback;
    if (at < 0) at = at < -length ? -1 : at + length;
    return backwards ? clamp(at, -1, length - 1) : clamp(at, 0, length);
}

static slice resolve(int64_t length, octavo_tpl_value start, octavo_tpl_value stop, int64_t step) {
    bool backwards = step < 0;
    int64_t from = bound(start, length, backwards, backwards ? length - 1 : 0);
    int64_t to = bound(stop, length, backwards, backwards ? -1 : length);
    uint64_t distance = backwards ? (uint64_t)(from - to) : (uint64_t)(to - from);
    uint64_t stride = backwards ? 0 - (uint64_t)step : (uint64_t)step;
    bool empty = backwards ? from <= to : from >= to;
    return (slice){from, to, step, empty ? 0 : (size_t)((distance - 1) / stride + 1)};
}

static octavo_tpl_value slice_string(octavo_tpl_run *run, const octavo_tpl_string *string,
                                     slice part) {
    size_t size = string->size;
    if (!octavo_tpl_charge(run, size / 64)) return octavo_tpl_undefined(NULL);
    if (part.step == 1) {
        size_t from = octavo_utf8_offset(string->data, size, (size_t)part.start);
        size_t bytes = octavo_utf8_offset(string->data + from, size - from, part.count);
        return octavo_tpl_text_view(run, string->data + from, part.count > 0 ? bytes : 0);
    }
    octavo_tpl_list letters = octavo_tpl_items(run, octavo_tpl_from_string(string));
    size_t mark = octavo_tpl_open(run);
    for (size_t i = 0; i < part.count && octavo_tpl_charge(run, 1); i++)
        octavo_tpl_put_value(run, letters.items[part.start + (int64_t)i * part.step]);
    return octavo_tpl_close(run, mark);
}

static octavo_tpl_value slice_range(octavo_tpl_run *run, const octavo_tpl_range *range,
                                    slice part) {
    octavo_tpl_range *copy = octavo_tpl_alloc(run, 1, sizeof *copy);
    int64_t most = INT64_MAX / (OCTAVO_TEMPLATE_MAX_RANGE + 1);
    if (copy == NULL) return octavo_tpl_undefined(NULL);
    /* a step beyond the range's length takes one item at most, however far it goes */
    part.step = clamp(part.step, -(int64_t)OCTAVO_TEMPLATE_MAX_RANGE, OCTAVO_TEMPLATE_MAX_RANGE);
    if (range->step > most || range->step < -most || range->start > INT64_MAX / 2 ||
        range->start < INT64_MIN / 2)
        return octavo_tpl_fail(run, "the slice of a range leaves 64 bits");
    *copy = (octavo_tpl_range){.start = range->start + part.start * range->step,
                               .stop = range->start + part.stop * range->step,
                               .step = range->step * part.step,
                               .count = part.count};
    return (octavo_tpl_value){.kind = OCTAVO_TPL_RANGE, .as.range = copy};
}

static bool is_bound(octavo_tpl_value value) {
    int64_t integer;
    return value.kind == OCTAVO_TPL_NONE || octavo_tpl_is_integer(value, &integer);
}

octavo_tpl_value octavo_tpl_slice(octavo_tpl_run *run, octavo_tpl_value object,
                                  octavo_tpl_value start, octavo_tpl_value stop,
                                  octavo_tpl_value step) {
    int64_t stride = 1;
    bool sliceable = object.kind == OCTAVO_TPL_STRING || object.kind == OCTAVO_TPL_LIST ||
                     object.kind == OCTAVO_TPL_TUPLE || object.kind == OCTAVO_TPL_RANGE;
    if (!octavo_tpl_defined(run, object)) return octavo_tpl_undefined(NULL);
    if (!sliceable) return octavo_tpl_fail(run, "%s has no slices", octavo_tpl_type(object));
    if (!is_bound(start) || !is_bound(stop) || !is_bound(step))
        return octavo_tpl_fail(run, "the bounds of a slice are integers or none");
    if (octavo_tpl_is_integer(step, &stride) && stride == 0)
        return octavo_tpl_fail(run, "the step of a slice is 0");
    slice part = resolve(octavo_tpl_length(object), start, stop, stride);
    if (object.kind == OCTAVO_TPL_STRING) return slice_string(run, object.as.string, part);
    if (object.kind == OCTAVO_TPL_RANGE) return slice_range(run, object.as.range, part);
    octavo_tpl_list items = octavo_tpl_items(run, object);
    octavo_tpl_list *list = octavo_tpl_list_new(run, part.count);
    for (size_t i = 0; list != NULL && i < part.count; i++)
        list->items[i] = items.items[part.start + (int64_t)i * part.step];
    return octavo_tpl_from_list(
        object.kind == OCTAVO_TPL_TUPLE ? OCTAVO_TPL_TUPLE : OCTAVO_TPL_LIST, list);
}
