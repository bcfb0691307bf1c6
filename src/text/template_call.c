/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: arguments of a call, their binding to the parameters of builtins, and what can be called.
 */
#include "text/template_eval.h"

#include <string.h>

const octavo_tpl_builtin *octavo_tpl_find(const octavo_tpl_builtin *table, size_t count,
                                          const octavo_tpl_string *name) {
    for (size_t i = 0; i < count; i++)
        if (octavo_tpl_is(name, table[i].name)) return &table[i];
    return NULL;
}

/* --- the arguments of a call --- */

/* How many values a node of the argument list stands for, once evaluated to `value`. */
static size_t width(octavo_tpl_run *run, const octavo_tpl_node *node, octavo_tpl_value *value) {
    const octavo_tpl_node *expression =
        node->kind == OCTAVO_TPL_NODE_KEYWORD ? node->as.keyword.value
        : node->kind == OCTAVO_TPL_NODE_SPREAD || node->kind == OCTAVO_TPL_NODE_SPREAD_DICT
            ? node->as.pair.left
            : node;
    *value = octavo_tpl_eval(run, expression);
    if (node->kind == OCTAVO_TPL_NODE_SPREAD) {
        octavo_tpl_list items = octavo_tpl_items(run, *value);
        octavo_tpl_list *list = octavo_tpl_list_new(run, items.count);
        for (size_t i = 0; list != NULL && i < items.count; i++)
            list->items[i] = items.items[i];
        *value = octavo_tpl_from_list(OCTAVO_TPL_LIST, list);
        return items.count;
    }
    if (node->kind == OCTAVO_TPL_NODE_SPREAD_DICT) {
        if (value->kind == OCTAVO_TPL_DICT) return value->as.dict->count;
        octavo_tpl_fail(run, "** wants a dict, not %s", octavo_tpl_type(*value));
        return 0;
    }
    return 1;
}

static void add_dict(octavo_tpl_run *run, octavo_tpl_args *args, const octavo_tpl_dict *dict) {
    for (size_t i = 0; i < dict->count; i++) {
        if (dict->entries[i].key.kind != OCTAVO_TPL_STRING) {
            octavo_tpl_fail(run, "a key of ** is %s; names are strings",
                            octavo_tpl_type(dict->entries[i].key));
            return;
        }
        args->named[args->named_count++] =
            (octavo_tpl_named){dict->entries[i].key.as.string, dict->entries[i].value};
    }
}

octavo_tpl_args octavo_tpl_eval_arguments(octavo_tpl_run *run, const octavo_tpl_node *list) {
    octavo_tpl_args args = {0};
    size_t nodes = 0, positional = 0, named = 0, i = 0;
    for (const octavo_tpl_node *node = list; node != NULL; node = node->next)
        nodes++;
    octavo_tpl_value *values = octavo_tpl_alloc(run, nodes, sizeof *values);
    for (const octavo_tpl_node *node = list; node != NULL && values != NULL; node = node->next) {
        size_t n = width(run, node, &values[i++]);
        bool by_name =
            node->kind == OCTAVO_TPL_NODE_KEYWORD || node->kind == OCTAVO_TPL_NODE_SPREAD_DICT;
        if (by_name)
            named += n;
        else
            positional += n;
    }
    if (positional == nodes && i == nodes) { /* the plain case: nothing to sort apart */
        bool plain = true;
        for (const octavo_tpl_node *node = list; node != NULL; node = node->next)
            plain = plain && node->kind != OCTAVO_TPL_NODE_SPREAD;
        if (plain) return (octavo_tpl_args){.items = values, .count = nodes};
    }
    args.items = octavo_tpl_alloc(run, positional, sizeof *args.items);
    args.named = octavo_tpl_alloc(run, named, sizeof *args.named);
    if (octavo_tpl_failed(run)) return (octavo_tpl_args){0};
    i = 0;
    for (const octavo_tpl_node *node = list; node != NULL; node = node->next, i++) {
        if (node->kind == OCTAVO_TPL_NODE_KEYWORD) {
            args.named[args.named_count++] = (octavo_tpl_named){node->as.keyword.name, values[i]};
        } else if (node->kind == OCTAVO_TPL_NODE_SPREAD_DICT) {
            add_dict(run, &args, values[i].as.dict);
        } else if (node->kind == OCTAVO_TPL_NODE_SPREAD) {
            for (size_t k = 0; k < values[i].as.list->count; k++)
                args.items[args.count++] = values[i].as.list->items[k];
        } else {
            args.items[args.count++] = values[i];
        }
    }
    return args;
}

/* --- builtins --- */

#define MAX_PARAMETERS 8

/* Index of `name` among names separated by spaces, or -1; *count gets how many there are. */
static int parameter_index(const char *names, const octavo_tpl_string *name, size_t *count) {
    int found = -1;
    *count = 0;
    while (*names != '\0') {
        size_t size = strcspn(names, " ");
        if (name != NULL && name->size == size && memcmp(name->data, names, size) == 0)
            found = (int)*count;
        *count += 1;
        names += size + (names[size] == ' ');
    }
    return found;
}

/* Fills bound[] in the order of the parameters; false after a failure. */
static bool bind(octavo_tpl_run *run, const octavo_tpl_builtin *builtin,
                 const octavo_tpl_args *args, octavo_tpl_value bound[MAX_PARAMETERS],
                 size_t *count) {
    parameter_index(builtin->parameters, NULL, count);
    octavo_assert(*count <= MAX_PARAMETERS);
    if (args->count > *count) {
        octavo_tpl_fail(run, "%s takes %zu arguments, not %zu", builtin->name, *count, args->count);
        return false;
    }
    for (size_t i = 0; i < args->count; i++)
        bound[i] = args->items[i];
    for (size_t i = 0; i < args->named_count; i++) {
        const octavo_tpl_string *name = args->named[i].name;
        size_t n;
        int at = parameter_index(builtin->parameters, name, &n);
        if (at < 0 || bound[at].kind != OCTAVO_TPL_ABSENT) {
            octavo_tpl_fail(run, "%s: argument '%.*s' is %s", builtin->name,
                            name->size < 80 ? (int)name->size : 80, name->data,
                            at < 0 ? "unknown" : "given twice");
            return false;
        }
        bound[at] = args->named[i].value;
    }
    for (size_t i = 0; i < builtin->required; i++)
        if (bound[i].kind == OCTAVO_TPL_ABSENT) {
            octavo_tpl_fail(run, "%s needs %zu arguments", builtin->name, builtin->required);
            return false;
        }
    return true;
}

octavo_tpl_value octavo_tpl_call_builtin(octavo_tpl_run *run, const octavo_tpl_builtin *builtin,
                                         octavo_tpl_value self, const octavo_tpl_args *args) {
    if (!octavo_tpl_charge(run, 1)) return octavo_tpl_undefined(NULL);
    if (builtin->parameters == NULL) return builtin->call(run, self, args);
    octavo_tpl_value bound[MAX_PARAMETERS] = {{0}};
    octavo_tpl_args in_order = {.items = bound};
    if (!bind(run, builtin, args, bound, &in_order.count)) return octavo_tpl_undefined(NULL);
    return builtin->call(run, self, &in_order);
}

static octavo_tpl_value apply(octavo_tpl_run *run, const octavo_tpl_builtin *builtin,
                              const char *what, octavo_tpl_value name, octavo_tpl_value input,
                              const octavo_tpl_args *args) {
    if (builtin != NULL) return octavo_tpl_call_builtin(run, builtin, input, args);
    if (name.kind != OCTAVO_TPL_STRING)
        return octavo_tpl_fail(run, "the name of a %s is %s", what, octavo_tpl_type(name));
    const octavo_tpl_string *text = name.as.string;
    return octavo_tpl_fail(run, "there is no %s named '%.*s'", what,
                           text->size < 80 ? (int)text->size : 80, text->data);
}

octavo_tpl_value octavo_tpl_filter(octavo_tpl_run *run, octavo_tpl_value name,
                                   octavo_tpl_value input, const octavo_tpl_args *args) {
    const octavo_tpl_builtin *builtin =
        name.kind == OCTAVO_TPL_STRING ? octavo_tpl_filter_find(name.as.string) : NULL;
    return apply(run, builtin, "filter", name, input, args);
}

octavo_tpl_value octavo_tpl_test(octavo_tpl_run *run, octavo_tpl_value name, octavo_tpl_value input,
                                 const octavo_tpl_args *args) {
    const octavo_tpl_builtin *builtin =
        name.kind == OCTAVO_TPL_STRING ? octavo_tpl_test_find(name.as.string) : NULL;
    return apply(run, builtin, "test", name, input, args);
}

/* --- whatever can be called --- */

octavo_tpl_value octavo_tpl_call(octavo_tpl_run *run, octavo_tpl_value callee,
                                 const octavo_tpl_args *args) {
    switch (callee.kind) {
    case OCTAVO_TPL_FUNCTION:
        return octavo_tpl_call_builtin(run, callee.as.function, octavo_tpl_absent(), args);
    case OCTAVO_TPL_METHOD:
        return octavo_tpl_call_builtin(run, callee.as.method->builtin, callee.as.method->self,
                                       args);
    case OCTAVO_TPL_MACRO:
        return octavo_tpl_call_macro(run, callee.as.macro, args);
    case OCTAVO_TPL_LOOP:
        return octavo_tpl_call_loop(run, callee.as.loop, args);
    case OCTAVO_TPL_JOINER: {
        bool used = callee.as.joiner->used;
        callee.as.joiner->used = true;
        return used ? octavo_tpl_from_string(callee.as.joiner->separator)
                    : octavo_tpl_literal(run, "");
    }
    default:
        if (!octavo_tpl_defined(run, callee)) return callee;
        return octavo_tpl_fail(run, "%s cannot be called", octavo_tpl_type(callee));
    }
}
