/* SPDX-License-Identifier: Apache-2.0
 *
 * Global functions, and what `loop` and cyclers offer.
 */
#include "base/error.h"
#include "text/template_eval.h"

#include <string.h>

static octavo_tpl_value call_raise(octavo_tpl_run *run, octavo_tpl_value self,
                                   const octavo_tpl_args *args) {
    (void)self;
    octavo_tpl_value text = octavo_tpl_str(run, args->items[0]);
    if (octavo_tpl_failed(run)) return text;
    int size = text.as.string->size < 400 ? (int)text.as.string->size : 400;
    run->status = octavo_fail(run->error, OCTAVO_ERROR_INVALID, "template raised: %.*s", size,
                              text.as.string->data);
    return octavo_tpl_undefined(NULL);
}

static octavo_tpl_value call_strftime_now(octavo_tpl_run *run, octavo_tpl_value self,
                                          const octavo_tpl_args *args) {
    (void)self;
    if (args->items[0].kind != OCTAVO_TPL_STRING)
        return octavo_tpl_fail(run, "strftime_now wants a format, not %s",
                               octavo_tpl_type(args->items[0]));
    size_t mark = octavo_tpl_open(run);
    octavo_tpl_put_time(run, args->items[0].as.string);
    return octavo_tpl_close(run, mark);
}

static octavo_tpl_value call_range(octavo_tpl_run *run, octavo_tpl_value self,
                                   const octavo_tpl_args *args) {
    (void)self;
    int64_t bounds[3] = {0, 0, 1};
    for (size_t i = 0; i < args->count; i++) {
        if (args->items[i].kind == OCTAVO_TPL_ABSENT) continue;
        if (!octavo_tpl_is_integer(args->items[i], &bounds[i]))
            return octavo_tpl_fail(run, "range wants integers, not %s",
                                   octavo_tpl_type(args->items[i]));
    }
    octavo_tpl_range range = {.start = bounds[0], .stop = bounds[1], .step = bounds[2]};
    if (args->items[1].kind == OCTAVO_TPL_ABSENT) {
        range.start = 0;
        range.stop = bounds[0];
    }
    if (range.step == 0) return octavo_tpl_fail(run, "the step of a range is 0");
    bool forwards = range.step > 0;
    if (forwards ? range.start < range.stop : range.start > range.stop) {
        uint64_t distance = forwards ? (uint64_t)range.stop - (uint64_t)range.start
                                     : (uint64_t)range.start - (uint64_t)range.stop;
        uint64_t stride = forwards ? (uint64_t)range.step : 0 - (uint64_t)range.step;
        uint64_t count = (distance - 1) / stride + 1;
        if (count > OCTAVO_TEMPLATE_MAX_RANGE)
            return octavo_tpl_fail_limit(run, "a range has more than %u items",
                                         OCTAVO_TEMPLATE_MAX_RANGE);
        range.count = (size_t)count;
    }
    octavo_tpl_range *copy = octavo_tpl_alloc(run, 1, sizeof *copy);
    if (copy == NULL) return octavo_tpl_undefined(NULL);
    *copy = range;
    return (octavo_tpl_value){.kind = OCTAVO_TPL_RANGE, .as.range = copy};
}

/* dict() and namespace(): from a dict, or pairs, and named arguments. */
static octavo_tpl_value make_dict(octavo_tpl_run *run, octavo_tpl_kind kind,
                                  const octavo_tpl_args *args) {
    octavo_tpl_dict *dict = octavo_tpl_dict_new(run, args->named_count);
    if (args->count > 1) return octavo_tpl_fail(run, "a dict is made from one thing at most");
    if (args->count == 1 && (args->items[0].kind == OCTAVO_TPL_DICT)) {
        const octavo_tpl_dict *from = args->items[0].as.dict;
        for (size_t i = 0; i < from->count && dict != NULL && octavo_tpl_charge(run, 1); i++)
            octavo_tpl_dict_set(run, dict, from->entries[i].key, from->entries[i].value);
    } else if (args->count == 1) {
        octavo_tpl_list items = octavo_tpl_items(run, args->items[0]);
        for (size_t i = 0; i < items.count && dict != NULL && octavo_tpl_charge(run, 1); i++) {
            octavo_tpl_list pair = octavo_tpl_items(run, items.items[i]);
            if (pair.count != 2) return octavo_tpl_fail(run, "a dict is made from pairs");
            octavo_tpl_dict_set(run, dict, pair.items[0], pair.items[1]);
        }
    }
    for (size_t i = 0; i < args->named_count && dict != NULL; i++)
        octavo_tpl_dict_set(run, dict, octavo_tpl_from_string(args->named[i].name),
                            args->named[i].value);
    return octavo_tpl_from_dict(kind, dict);
}

static octavo_tpl_value call_dict(octavo_tpl_run *run, octavo_tpl_value self,
                                  const octavo_tpl_args *args) {
    (void)self;
    return make_dict(run, OCTAVO_TPL_DICT, args);
}

static octavo_tpl_value call_namespace(octavo_tpl_run *run, octavo_tpl_value self,
                                       const octavo_tpl_args *args) {
    (void)self;
    return make_dict(run, OCTAVO_TPL_NAMESPACE, args);
}

static octavo_tpl_value call_joiner(octavo_tpl_run *run, octavo_tpl_value self,
                                    const octavo_tpl_args *args) {
    (void)self;
    octavo_tpl_joiner *joiner = octavo_tpl_alloc(run, 1, sizeof *joiner);
    octavo_tpl_value separator = args->items[0].kind == OCTAVO_TPL_ABSENT
                                     ? octavo_tpl_literal(run, ", ")
                                     : octavo_tpl_str(run, args->items[0]);
    if (octavo_tpl_failed(run)) return separator;
    *joiner = (octavo_tpl_joiner){.separator = separator.as.string};
    return (octavo_tpl_value){.kind = OCTAVO_TPL_JOINER, .as.joiner = joiner};
}

static octavo_tpl_value call_cycler(octavo_tpl_run *run, octavo_tpl_value self,
                                    const octavo_tpl_args *args) {
    (void)self;
    octavo_tpl_list *list = octavo_tpl_alloc(run, 1, sizeof *list);
    if (args->count == 0 || args->named_count > 0)
        return octavo_tpl_fail(run, "cycler wants the items to go round");
    if (list != NULL) *list = (octavo_tpl_list){.items = args->items, .count = args->count};
    return octavo_tpl_from_list(OCTAVO_TPL_CYCLER, list);
}

const octavo_tpl_builtin *octavo_tpl_function_find(const octavo_tpl_string *name) {
    static const octavo_tpl_builtin functions[] = {
        {"raise_exception", "message", 1, call_raise},
        {"strftime_now", "format", 1, call_strftime_now},
        {"range", "start stop step", 1, call_range},
        {"dict", NULL, 0, call_dict},
        {"namespace", NULL, 0, call_namespace},
        {"joiner", "sep", 0, call_joiner},
        {"cycler", NULL, 0, call_cycler},
    };
    return octavo_tpl_find(functions, OCTAVO_COUNT(functions), name);
}

/* --- methods of loop and of cyclers --- */

static octavo_tpl_value loop_cycle(octavo_tpl_run *run, octavo_tpl_value self,
                                   const octavo_tpl_args *args) {
    if (args->count == 0) return octavo_tpl_fail(run, "loop.cycle wants the items to go round");
    return args->items[self.as.loop->index % args->count];
}

static octavo_tpl_value loop_changed(octavo_tpl_run *run, octavo_tpl_value self,
                                     const octavo_tpl_args *args) {
    octavo_tpl_loop *loop = self.as.loop;
    octavo_tpl_list *list = octavo_tpl_list_new(run, args->count);
    if (list == NULL) return octavo_tpl_undefined(NULL);
    if (args->count > 0) memcpy(list->items, args->items, args->count * sizeof *list->items);
    octavo_tpl_value now = octavo_tpl_from_list(OCTAVO_TPL_TUPLE, list);
    if (octavo_tpl_equal(run, loop->changed, now)) return octavo_tpl_bool(false);
    loop->changed = now;
    return octavo_tpl_bool(true);
}

static octavo_tpl_value cycler_next(octavo_tpl_run *run, octavo_tpl_value self,
                                    const octavo_tpl_args *args) {
    (void)run;
    (void)args;
    octavo_tpl_list *list = self.as.list;
    octavo_tpl_value value = list->items[list->position];
    list->position = (list->position + 1) % list->count;
    return value;
}

static octavo_tpl_value cycler_reset(octavo_tpl_run *run, octavo_tpl_value self,
                                     const octavo_tpl_args *args) {
    (void)run;
    (void)args;
    self.as.list->position = 0;
    return octavo_tpl_none();
}

static const octavo_tpl_builtin loop_methods[] = {
    {"cycle", NULL, 0, loop_cycle},
    {"changed", NULL, 0, loop_changed},
};

static const octavo_tpl_builtin cycler_methods[] = {
    {"next", "", 0, cycler_next},
    {"reset", "", 0, cycler_reset},
};

static octavo_tpl_value neighbour(const octavo_tpl_loop *loop, size_t index,
                                  const octavo_tpl_string *name) {
    return index < loop->items.count ? loop->items.items[index] : octavo_tpl_undefined(name);
}

octavo_tpl_value octavo_tpl_loop_attribute(octavo_tpl_run *run, octavo_tpl_loop *loop,
                                           const octavo_tpl_string *name) {
    size_t index = loop->index, count = loop->items.count;
    const struct {
        const char *name;
        size_t value;
    } numbers[] = {
        {"index0", index},
        {"index", index + 1},
        {"length", count},
        {"revindex", count - index},
        {"depth0", loop->depth},
        {"depth", loop->depth + 1},
        {"revindex0", count - index - 1},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(numbers); i++)
        if (octavo_tpl_is(name, numbers[i].name))
            return octavo_tpl_integer((int64_t)numbers[i].value);
    if (octavo_tpl_is(name, "first")) return octavo_tpl_bool(index == 0);
    if (octavo_tpl_is(name, "last")) return octavo_tpl_bool(index + 1 >= count);
    if (octavo_tpl_is(name, "previtem")) return neighbour(loop, index - 1, name);
    if (octavo_tpl_is(name, "nextitem")) return neighbour(loop, index + 1, name);
    const octavo_tpl_builtin *method =
        octavo_tpl_find(loop_methods, OCTAVO_COUNT(loop_methods), name);
    octavo_tpl_value self = {.kind = OCTAVO_TPL_LOOP, .as.loop = loop};
    return method != NULL ? octavo_tpl_bind(run, self, method) : octavo_tpl_absent();
}

/* --- methods of lists and dicts --- */

static octavo_tpl_value view(octavo_tpl_run *run, const octavo_tpl_dict *dict, const char *name,
                             bool keys, bool values) {
    octavo_tpl_list *list = octavo_tpl_list_new(run, dict->count);
    for (size_t i = 0; list != NULL && i < dict->count; i++) {
        const octavo_tpl_entry *entry = &dict->entries[i];
        list->items[i] = keys && values ? octavo_tpl_pair(run, entry->key, entry->value)
                         : keys         ? entry->key
                                        : entry->value;
    }
    if (list != NULL) list->name = name;
    return octavo_tpl_from_list(OCTAVO_TPL_VIEW, list);
}

static octavo_tpl_value dict_keys(octavo_tpl_run *run, octavo_tpl_value self,
                                  const octavo_tpl_args *args) {
    (void)args;
    return view(run, self.as.dict, "dict_keys", true, false);
}

static octavo_tpl_value dict_values(octavo_tpl_run *run, octavo_tpl_value self,
                                    const octavo_tpl_args *args) {
    (void)args;
    return view(run, self.as.dict, "dict_values", false, true);
}

static octavo_tpl_value dict_items(octavo_tpl_run *run, octavo_tpl_value self,
                                   const octavo_tpl_args *args) {
    (void)args;
    return view(run, self.as.dict, "dict_items", true, true);
}

static octavo_tpl_value dict_get(octavo_tpl_run *run, octavo_tpl_value self,
                                 const octavo_tpl_args *args) {
    octavo_tpl_value value = octavo_tpl_dict_get(run, self.as.dict, args->items[0]);
    if (value.kind != OCTAVO_TPL_ABSENT) return value;
    return args->items[1].kind != OCTAVO_TPL_ABSENT ? args->items[1] : octavo_tpl_none();
}

/* Values never change, so a copy is the value itself. */
static octavo_tpl_value copy(octavo_tpl_run *run, octavo_tpl_value self,
                             const octavo_tpl_args *args) {
    (void)run;
    (void)args;
    return self;
}

static octavo_tpl_value list_count(octavo_tpl_run *run, octavo_tpl_value self,
                                   const octavo_tpl_args *args) {
    int64_t count = 0;
    for (size_t i = 0; i < self.as.list->count && !octavo_tpl_failed(run); i++)
        count += octavo_tpl_equal(run, self.as.list->items[i], args->items[0]);
    return octavo_tpl_integer(count);
}

static octavo_tpl_value list_index(octavo_tpl_run *run, octavo_tpl_value self,
                                   const octavo_tpl_args *args) {
    for (size_t i = 0; i < self.as.list->count && !octavo_tpl_failed(run); i++)
        if (octavo_tpl_equal(run, self.as.list->items[i], args->items[0]))
            return octavo_tpl_integer((int64_t)i);
    return octavo_tpl_fail(run, "the item is not in the list");
}

static const octavo_tpl_builtin dict_methods[] = {
    {"keys", "", 0, dict_keys},   {"values", "", 0, dict_values},
    {"items", "", 0, dict_items}, {"get", "key default", 1, dict_get},
    {"copy", "", 0, copy},
};

static const octavo_tpl_builtin list_methods[] = {
    {"count", "value", 1, list_count},
    {"index", "value", 1, list_index},
    {"copy", "", 0, copy},
};

const octavo_tpl_builtin *octavo_tpl_method_find(octavo_tpl_kind kind,
                                                 const octavo_tpl_string *name) {
    switch (kind) {
    case OCTAVO_TPL_STRING:
        return octavo_tpl_string_method_find(name);
    case OCTAVO_TPL_LIST:
        return octavo_tpl_find(list_methods, 3, name);
    case OCTAVO_TPL_TUPLE: /* no copy */
        return octavo_tpl_find(list_methods, 2, name);
    case OCTAVO_TPL_DICT:
        return octavo_tpl_find(dict_methods, OCTAVO_COUNT(dict_methods), name);
    case OCTAVO_TPL_CYCLER:
        return octavo_tpl_find(cycler_methods, OCTAVO_COUNT(cycler_methods), name);
    default:
        return NULL;
    }
}
