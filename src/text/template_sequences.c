/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters on sequences. What Jinja makes lazily is made at once here, but still can be walked only
 * once.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <string.h>

#define FILTER(name)                                                                               \
    static octavo_tpl_value name(octavo_tpl_run *run, octavo_tpl_value input,                      \
                                 const octavo_tpl_args *args)

static octavo_tpl_list *copy_items(octavo_tpl_run *run, octavo_tpl_value input) {
    octavo_tpl_list items = octavo_tpl_items(run, input);
    octavo_tpl_list *list = octavo_tpl_list_new(run, items.count);
    if (list != NULL && items.count > 0)
        memcpy(list->items, items.items, items.count * sizeof *list->items);
    return list;
}

/* --- ends and order --- */

FILTER(filter_list) {
    (void)args;
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, copy_items(run, input));
}

FILTER(filter_first) {
    static const octavo_tpl_string name = {"first item", 10, 10};
    (void)args;
    if (input.kind == OCTAVO_TPL_GENERATOR) {
        octavo_tpl_list *list = input.as.list;
        return list->position < list->count ? list->items[list->position++]
                                            : octavo_tpl_undefined(&name);
    }
    octavo_tpl_list items = octavo_tpl_items(run, input);
    return items.count > 0 ? items.items[0] : octavo_tpl_undefined(&name);
}

FILTER(filter_last) {
    static const octavo_tpl_string name = {"last item", 9, 9};
    (void)args;
    if (input.kind == OCTAVO_TPL_GENERATOR)
        return octavo_tpl_fail(run, "last wants a list; add '| list' before it");
    octavo_tpl_list items = octavo_tpl_items(run, input);
    return items.count > 0 ? items.items[items.count - 1] : octavo_tpl_undefined(&name);
}

FILTER(filter_reverse) {
    (void)args;
    if (input.kind == OCTAVO_TPL_STRING)
        return octavo_tpl_slice(run, input, octavo_tpl_none(), octavo_tpl_none(),
                                octavo_tpl_integer(-1));
    octavo_tpl_list items = octavo_tpl_items(run, input);
    octavo_tpl_list *list = octavo_tpl_list_new(run, items.count);
    for (size_t i = 0; list != NULL && i < items.count; i++)
        list->items[i] = items.items[items.count - 1 - i];
    if (input.kind == OCTAVO_TPL_GENERATOR) return octavo_tpl_from_list(OCTAVO_TPL_LIST, list);
    return octavo_tpl_generator(list, "reverse");
}

/* separator, attribute */
FILTER(filter_join) {
    static const octavo_tpl_string empty = {"", 0, 0};
    octavo_tpl_list *list = copy_items(run, input);
    if (list == NULL) return octavo_tpl_undefined(NULL);
    for (size_t i = 0; i < list->count && !octavo_tpl_failed(run); i++)
        list->items[i] = octavo_tpl_path(run, list->items[i], args->items[1], octavo_tpl_absent());
    octavo_tpl_value separator = args->items[0];
    if (separator.kind == OCTAVO_TPL_ABSENT) separator = octavo_tpl_from_string(&empty);
    separator = octavo_tpl_str(run, separator);
    if (octavo_tpl_failed(run)) return separator;
    return octavo_tpl_join(run, separator.as.string, *list, false);
}

FILTER(filter_items) {
    static const octavo_tpl_string name = {"items", 5, 5};
    if (input.kind == OCTAVO_TPL_UNDEFINED)
        return octavo_tpl_generator(octavo_tpl_list_new(run, 0), "items");
    if (input.kind != OCTAVO_TPL_DICT)
        return octavo_tpl_fail(run, "items wants a dict, not %s", octavo_tpl_type(input));
    octavo_tpl_value view = octavo_tpl_method_find(OCTAVO_TPL_DICT, &name)->call(run, input, args);
    return octavo_tpl_failed(run) ? view : octavo_tpl_generator(view.as.list, "items");
}

/* --- by key --- */

typedef struct keyed {
    octavo_tpl_value key, value;
} keyed;

typedef struct ordering {
    octavo_tpl_value attribute; /* a path, several separated by commas, or absent */
    octavo_tpl_value fallback;  /* for items without it */
    bool case_sensitive;
    bool reverse;
} ordering;

static octavo_tpl_value one_key(octavo_tpl_run *run, octavo_tpl_value item, octavo_tpl_value path,
                                const ordering *by) {
    octavo_tpl_value key = octavo_tpl_path(run, item, path, by->fallback);
    if (key.kind == OCTAVO_TPL_STRING && !by->case_sensitive)
        key = octavo_tpl_change_case(run, key.as.string, OCTAVO_TPL_LOWER);
    return key;
}

/* The key of an item; several paths give a list. */
static octavo_tpl_value key_of(octavo_tpl_run *run, octavo_tpl_value item, const ordering *by) {
    const octavo_tpl_string *paths =
        by->attribute.kind == OCTAVO_TPL_STRING ? by->attribute.as.string : NULL;
    if (paths == NULL || memchr(paths->data, ',', paths->size) == NULL)
        return one_key(run, item, by->attribute, by);
    size_t count = 1, from = 0;
    for (size_t i = 0; i < paths->size; i++)
        count += paths->data[i] == ',';
    octavo_tpl_list *list = octavo_tpl_list_new(run, count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        const char *comma = memchr(paths->data + from, ',', paths->size - from);
        size_t size = (comma != NULL ? (size_t)(comma - paths->data) : paths->size) - from;
        list->items[i] =
            one_key(run, item, octavo_tpl_text_view(run, paths->data + from, size), by);
        from += size + 1;
    }
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, list);
}

static keyed *key_items(octavo_tpl_run *run, octavo_tpl_list items, const ordering *by) {
    keyed *pairs = octavo_tpl_alloc(run, items.count, sizeof *pairs);
    for (size_t i = 0; pairs != NULL && i < items.count && octavo_tpl_charge(run, 1); i++)
        pairs[i] = (keyed){key_of(run, items.items[i], by), items.items[i]};
    return octavo_tpl_failed(run) ? NULL : pairs;
}

/* Stable merge of the halves of from[0..count) into to. */
static void merge(octavo_tpl_run *run, const keyed *from, keyed *to, size_t middle, size_t count,
                  bool reverse) {
    size_t left = 0, right = middle;
    for (size_t i = 0; i < count; i++) {
        bool take_right = left == middle;
        if (left < middle && right < count) {
            int order = octavo_tpl_compare(run, from[right].key, from[left].key);
            take_right = reverse ? order > 0 : order < 0;
        }
        to[i] = take_right ? from[right++] : from[left++];
    }
}

/* Sorts bottom-up: runs of 1, 2, 4, ... Returns the sorted pairs, NULL after a failure. */
static keyed *sort_pairs(octavo_tpl_run *run, keyed *pairs, size_t count, bool reverse) {
    keyed *other = octavo_tpl_alloc(run, count, sizeof *other);
    for (size_t width = 1; other != NULL && width < count; width *= 2) {
        for (size_t at = 0; at < count && octavo_tpl_charge(run, 1); at += 2 * width) {
            size_t rest = count - at;
            merge(run, pairs + at, other + at, rest < width ? rest : width,
                  rest < 2 * width ? rest : 2 * width, reverse);
        }
        keyed *swap = pairs;
        pairs = other;
        other = swap;
        if (octavo_tpl_failed(run)) return NULL;
    }
    return octavo_tpl_failed(run) ? NULL : pairs;
}

static octavo_tpl_value values_of(octavo_tpl_run *run, const keyed *pairs, size_t count) {
    octavo_tpl_list *list = octavo_tpl_list_new(run, count);
    for (size_t i = 0; list != NULL && i < count; i++)
        list->items[i] = pairs[i].value;
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, list);
}

static octavo_tpl_value sorted(octavo_tpl_run *run, octavo_tpl_list items, const ordering *by) {
    keyed *pairs = key_items(run, items, by);
    if (pairs != NULL) pairs = sort_pairs(run, pairs, items.count, by->reverse);
    return pairs != NULL ? values_of(run, pairs, items.count) : octavo_tpl_undefined(NULL);
}

/* reverse, case_sensitive, attribute */
FILTER(filter_sort) {
    const ordering by = {.attribute = args->items[2],
                         .case_sensitive = octavo_tpl_truth(args->items[1]),
                         .reverse = octavo_tpl_truth(args->items[0])};
    return sorted(run, octavo_tpl_items(run, input), &by);
}

/* case_sensitive, by, reverse */
FILTER(filter_dictsort) {
    octavo_tpl_value half = args->items[1];
    bool by_value = half.kind == OCTAVO_TPL_STRING && octavo_tpl_is(half.as.string, "value");
    const ordering by = {.attribute = octavo_tpl_integer(by_value ? 1 : 0),
                         .case_sensitive = octavo_tpl_truth(args->items[0]),
                         .reverse = octavo_tpl_truth(args->items[2])};
    if (half.kind != OCTAVO_TPL_ABSENT && !by_value &&
        !(half.kind == OCTAVO_TPL_STRING && octavo_tpl_is(half.as.string, "key")))
        return octavo_tpl_fail(run, "dictsort sorts by 'key' or 'value'");
    if (input.kind != OCTAVO_TPL_DICT)
        return octavo_tpl_fail(run, "dictsort wants a dict, not %s", octavo_tpl_type(input));
    const octavo_tpl_args none = {0};
    octavo_tpl_value pairs = filter_items(run, input, &none);
    return sorted(run, octavo_tpl_items(run, pairs), &by);
}

/* case_sensitive, attribute */
FILTER(filter_unique) {
    const ordering by = {.attribute = args->items[1],
                         .case_sensitive = octavo_tpl_truth(args->items[0])};
    octavo_tpl_list items = octavo_tpl_items(run, input);
    octavo_tpl_list *list = octavo_tpl_list_new(run, items.count);
    octavo_tpl_dict *seen = octavo_tpl_dict_new(run, items.count);
    size_t count = 0;
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++) {
        octavo_tpl_value key = one_key(run, items.items[i], by.attribute, &by);
        if (octavo_tpl_dict_get(run, seen, key).kind != OCTAVO_TPL_ABSENT) continue;
        octavo_tpl_dict_set(run, seen, key, octavo_tpl_none());
        list->items[count++] = items.items[i];
    }
    if (list != NULL) list->count = count;
    return octavo_tpl_generator(list, "unique");
}

static octavo_tpl_value extreme(octavo_tpl_run *run, octavo_tpl_value input,
                                const octavo_tpl_args *args, int sign) {
    static const octavo_tpl_string name = {"item of an empty sequence", 25, 25};
    const ordering by = {.attribute = args->items[1],
                         .case_sensitive = octavo_tpl_truth(args->items[0])};
    octavo_tpl_list items = octavo_tpl_items(run, input);
    keyed *pairs = key_items(run, items, &by);
    if (pairs == NULL || items.count == 0) return octavo_tpl_undefined(&name);
    size_t best = 0;
    for (size_t i = 1; i < items.count && !octavo_tpl_failed(run); i++)
        if (octavo_tpl_compare(run, pairs[i].key, pairs[best].key) * sign > 0) best = i;
    return pairs[best].value;
}

FILTER(filter_min) {
    return extreme(run, input, args, -1);
}
FILTER(filter_max) {
    return extreme(run, input, args, 1);
}

static octavo_tpl_value group(octavo_tpl_run *run, const keyed *pairs, size_t count,
                              const ordering *by) {
    ordering exact = *by;
    exact.case_sensitive = true;
    octavo_tpl_value key = key_of(run, pairs[0].value, &exact);
    octavo_tpl_value pair = octavo_tpl_pair(run, key, values_of(run, pairs, count));
    if (!octavo_tpl_failed(run)) pair.as.list->name = "group";
    return pair;
}

/* attribute, default, case_sensitive */
FILTER(filter_groupby) {
    const ordering by = {.attribute = args->items[0],
                         .fallback = args->items[1],
                         .case_sensitive = octavo_tpl_truth(args->items[2])};
    octavo_tpl_list items = octavo_tpl_items(run, input);
    octavo_tpl_list *groups = octavo_tpl_list_new(run, items.count);
    keyed *pairs = key_items(run, items, &by);
    size_t count = 0, from = 0;
    if (pairs != NULL) pairs = sort_pairs(run, pairs, items.count, false);
    if (pairs == NULL || groups == NULL) return octavo_tpl_undefined(NULL);
    for (size_t i = 1; i <= items.count && !octavo_tpl_failed(run); i++) {
        if (i < items.count && octavo_tpl_equal(run, pairs[i].key, pairs[from].key)) continue;
        groups->items[count++] = group(run, pairs + from, i - from, &by);
        from = i;
    }
    groups->count = count;
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, groups);
}

/* attribute, start */
FILTER(filter_sum) {
    octavo_tpl_list items = octavo_tpl_items(run, input);
    octavo_tpl_value sum =
        args->items[1].kind != OCTAVO_TPL_ABSENT ? args->items[1] : octavo_tpl_integer(0);
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++)
        sum = octavo_tpl_binary(
            run, OCTAVO_TPL_PLUS, sum,
            octavo_tpl_path(run, items.items[i], args->items[0], octavo_tpl_absent()));
    return sum;
}

/* --- choosing and changing items --- */

/* The arguments behind the first `n` positional ones. */
static octavo_tpl_args rest_of(const octavo_tpl_args *args, size_t n) {
    octavo_tpl_args rest = *args;
    rest.items += n;
    rest.count -= n;
    return rest;
}

static octavo_tpl_value map_attribute(octavo_tpl_run *run, octavo_tpl_list items,
                                      const octavo_tpl_args *args) {
    octavo_tpl_value path = octavo_tpl_absent(), fallback = octavo_tpl_absent();
    octavo_tpl_list *list = octavo_tpl_list_new(run, items.count);
    for (size_t i = 0; i < args->named_count; i++) {
        if (octavo_tpl_is(args->named[i].name, "attribute"))
            path = args->named[i].value;
        else if (octavo_tpl_is(args->named[i].name, "default"))
            fallback = args->named[i].value;
        else
            return octavo_tpl_fail(run, "map takes a filter, or attribute and default");
    }
    if (path.kind == OCTAVO_TPL_ABSENT) return octavo_tpl_fail(run, "map wants a filter's name");
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++)
        list->items[i] = octavo_tpl_path(run, items.items[i], path, fallback);
    return octavo_tpl_generator(list, "map");
}

FILTER(filter_map) {
    if (!octavo_tpl_truth(input)) return octavo_tpl_generator(octavo_tpl_list_new(run, 0), "map");
    octavo_tpl_list items = octavo_tpl_items(run, input);
    if (args->count == 0) return map_attribute(run, items, args);
    octavo_tpl_list *list = octavo_tpl_list_new(run, items.count);
    const octavo_tpl_args rest = rest_of(args, 1);
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++)
        list->items[i] = octavo_tpl_filter(run, args->items[0], items.items[i], &rest);
    return octavo_tpl_generator(list, "map");
}

/* Keeps the items for which the test holds, or does not. With `by_attribute` the first argument is
 * the path to what is tested; without a test the value's truth counts. */
static octavo_tpl_value choose(octavo_tpl_run *run, octavo_tpl_value input,
                               const octavo_tpl_args *args, bool wanted, bool by_attribute) {
    size_t skip = by_attribute ? 1 : 0, count = 0;
    if (!octavo_tpl_truth(input))
        return octavo_tpl_generator(octavo_tpl_list_new(run, 0), "select");
    if (args->count < skip) return octavo_tpl_fail(run, "the name of an attribute is missing");
    octavo_tpl_list items = octavo_tpl_items(run, input);
    octavo_tpl_list *list = octavo_tpl_list_new(run, items.count);
    bool has_test = args->count > skip;
    const octavo_tpl_args rest = has_test ? rest_of(args, skip + 1) : (octavo_tpl_args){0};
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++) {
        octavo_tpl_value value = items.items[i];
        if (by_attribute) value = octavo_tpl_path(run, value, args->items[0], octavo_tpl_absent());
        if (has_test) value = octavo_tpl_test(run, args->items[skip], value, &rest);
        if (octavo_tpl_truth(value) == wanted) list->items[count++] = items.items[i];
    }
    if (list != NULL) list->count = count;
    return octavo_tpl_generator(list, "select");
}

FILTER(filter_select) {
    return choose(run, input, args, true, false);
}
FILTER(filter_reject) {
    return choose(run, input, args, false, false);
}
FILTER(filter_selectattr) {
    return choose(run, input, args, true, true);
}
FILTER(filter_rejectattr) {
    return choose(run, input, args, false, true);
}

/* --- lists of lists --- */

/* items[from, to), and `fill` behind it up to `count` unless that is absent or none. */
static octavo_tpl_value part(octavo_tpl_run *run, octavo_tpl_list items, size_t from, size_t to,
                             octavo_tpl_value fill, size_t count) {
    bool filled = fill.kind != OCTAVO_TPL_ABSENT && fill.kind != OCTAVO_TPL_NONE;
    size_t size = filled && count > to - from ? count : to - from;
    octavo_tpl_list *list = octavo_tpl_list_new(run, size);
    for (size_t i = 0; list != NULL && i < size; i++)
        list->items[i] = from + i < to ? items.items[from + i] : fill;
    return octavo_tpl_from_list(OCTAVO_TPL_LIST, list);
}

/* linecount, fill_with */
FILTER(filter_batch) {
    octavo_tpl_list items = octavo_tpl_items(run, input);
    int64_t width = octavo_tpl_integer_argument(run, args->items[0], 0);
    if (width <= 0) return octavo_tpl_fail(run, "batch wants a positive number of items");
    size_t step = (uint64_t)width > items.count ? items.count + (items.count == 0) : (size_t)width;
    octavo_tpl_list *list = octavo_tpl_list_new(run, (items.count + step - 1) / step);
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        size_t from = i * step, rest = items.count - from;
        list->items[i] = part(run, items, from, from + (rest < step ? rest : step), args->items[1],
                              (size_t)width);
    }
    return octavo_tpl_generator(list, "batch");
}

/* slices, fill_with */
FILTER(filter_slice) {
    octavo_tpl_list items = octavo_tpl_items(run, input);
    int64_t slices = octavo_tpl_integer_argument(run, args->items[0], 0);
    if (slices <= 0) return octavo_tpl_fail(run, "slice wants a positive number of slices");
    octavo_tpl_list *list = octavo_tpl_list_new(run, (size_t)slices);
    size_t each = items.count / (size_t)slices, longer = items.count % (size_t)slices, from = 0;
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        size_t to = from + each + (i < longer);
        list->items[i] = part(run, items, from, to, args->items[1], i < longer ? 0 : each + 1);
        from = to;
    }
    return octavo_tpl_generator(list, "slice");
}

const octavo_tpl_builtin *octavo_tpl_sequence_filter_find(const octavo_tpl_string *name) {
    static const octavo_tpl_builtin filters[] = {
        {"list", "", 0, filter_list},
        {"first", "", 0, filter_first},
        {"last", "", 0, filter_last},
        {"reverse", "", 0, filter_reverse},
        {"join", "d attribute", 0, filter_join},
        {"items", "", 0, filter_items},
        {"sort", "reverse case_sensitive attribute", 0, filter_sort},
        {"dictsort", "case_sensitive by reverse", 0, filter_dictsort},
        {"unique", "case_sensitive attribute", 0, filter_unique},
        {"min", "case_sensitive attribute", 0, filter_min},
        {"max", "case_sensitive attribute", 0, filter_max},
        {"groupby", "attribute default case_sensitive", 1, filter_groupby},
        {"sum", "attribute start", 0, filter_sum},
        {"map", NULL, 0, filter_map},
        {"select", NULL, 0, filter_select},
        {"reject", NULL, 0, filter_reject},
        {"selectattr", NULL, 0, filter_selectattr},
        {"rejectattr", NULL, 0, filter_rejectattr},
        {"batch", "linecount fill_with", 1, filter_batch},
        {"slice", "slices fill_with", 1, filter_slice},
    };
    return octavo_tpl_find(filters, OCTAVO_COUNT(filters), name);
}
