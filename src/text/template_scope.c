/* SPDX-License-Identifier: Apache-2.0
 *
 * Scopes, and the one rule of scoping that is not dynamic. Jinja settles names before it renders: a
 * name whose first mention in a scope assigns it, outside of any `if`, and which no scope around
 * mentions, belongs to that scope from its start. Until the assignment it is undefined there, even
 * if the render has a variable of that name; loops and macros inside can see that. Such names are
 * the scope's hidden ones.
 */
#include "base/error.h"
#include "text/template_eval.h"

#include <string.h>

/* --- at render time --- */

octavo_tpl_scope *octavo_tpl_scope_new(octavo_tpl_run *run, octavo_tpl_scope *parent,
                                       const octavo_tpl_hidden *hidden) {
    octavo_tpl_scope *scope = octavo_tpl_alloc(run, 1, sizeof *scope);
    if (scope != NULL) *scope = (octavo_tpl_scope){.parent = parent, .hidden = hidden};
    return scope;
}

static octavo_tpl_named *find_variable(octavo_tpl_run *run, octavo_tpl_scope *scope,
                                       const octavo_tpl_string *name) {
    if (!octavo_tpl_charge(run, scope->count / 8)) return NULL;
    for (size_t i = 0; i < scope->count; i++)
        if (scope->variables[i].name == name) return &scope->variables[i];
    return NULL;
}

void octavo_tpl_scope_set(octavo_tpl_run *run, octavo_tpl_scope *scope,
                          const octavo_tpl_string *name, octavo_tpl_value value) {
    octavo_tpl_named *variable = find_variable(run, scope, name);
    if (octavo_tpl_failed(run)) return;
    if (variable == NULL) {
        if (scope->count == scope->capacity) {
            size_t capacity = scope->capacity > 0 ? scope->capacity * 2 : 4;
            octavo_tpl_named *bigger = octavo_tpl_alloc(run, capacity, sizeof *bigger);
            if (bigger == NULL) return;
            if (scope->count > 0) memcpy(bigger, scope->variables, scope->count * sizeof *bigger);
            scope->variables = bigger;
            scope->capacity = capacity;
        }
        variable = &scope->variables[scope->count++];
        variable->name = name;
    }
    variable->value = value;
}

static bool is_hidden(octavo_tpl_run *run, const octavo_tpl_hidden *hidden,
                      const octavo_tpl_string *name) {
    if (hidden == NULL || !octavo_tpl_charge(run, hidden->count / 8)) return false;
    for (size_t i = 0; i < hidden->count; i++)
        if (hidden->names[i] == name) return true;
    return false;
}

octavo_tpl_value octavo_tpl_lookup(octavo_tpl_run *run, const octavo_tpl_string *name) {
    for (octavo_tpl_scope *scope = run->scope; scope != NULL; scope = scope->parent) {
        const octavo_tpl_named *variable = find_variable(run, scope, name);
        if (variable != NULL) return variable->value;
        if (is_hidden(run, scope->hidden, name)) return octavo_tpl_undefined(name);
    }
    octavo_tpl_value value = octavo_tpl_dict_get_text(run, run->variables, name);
    if (value.kind != OCTAVO_TPL_ABSENT) return value;
    const octavo_tpl_builtin *function = octavo_tpl_function_find(name);
    if (function != NULL)
        return (octavo_tpl_value){.kind = OCTAVO_TPL_FUNCTION, .as.function = function};
    return octavo_tpl_undefined(name);
}

/* --- once, after parsing --- */

/* What is known of a name in one scope while it is read in order. */
typedef struct mention {
    const octavo_tpl_string *name;
    bool hides;
} mention;

/* One scope being read; lives on the C stack, its mentions on the heap. */
typedef struct reader {
    octavo_template *tmpl;
    struct reader *parent;
    mention *slots; /* [capacity], open addressing by the name's address */
    size_t capacity, count, n_hidden;
    unsigned branches; /* `if`s around what is being read */
    octavo_status status;
} reader;

static void read_node(reader *r, const octavo_tpl_node *node);
static void enter_scopes(reader *r, octavo_tpl_node *list);

static mention *mention_slot(mention *slots, size_t capacity, const octavo_tpl_string *name) {
    size_t at = (size_t)(((uintptr_t)name >> 4) * 0x9e3779b97f4a7c15u) & (capacity - 1);
    while (slots[at].name != NULL && slots[at].name != name)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool is_mentioned(const reader *r, const octavo_tpl_string *name) {
    return r->capacity > 0 && mention_slot(r->slots, r->capacity, name)->name != NULL;
}

static void add_mention(reader *r, const octavo_tpl_string *name, bool hides) {
    if (r->status != OCTAVO_OK || is_mentioned(r, name)) return;
    if (r->count * 2 >= r->capacity) {
        size_t capacity = r->capacity > 0 ? r->capacity * 2 : 32;
        mention *bigger = octavo_alloc_zero(capacity, sizeof *bigger);
        if (bigger == NULL) {
            r->status = OCTAVO_ERROR_MEMORY;
            return;
        }
        for (size_t i = 0; i < r->capacity; i++)
            if (r->slots[i].name != NULL)
                *mention_slot(bigger, capacity, r->slots[i].name) = r->slots[i];
        octavo_free(r->slots);
        r->slots = bigger;
        r->capacity = capacity;
    }
    *mention_slot(r->slots, r->capacity, name) = (mention){name, hides};
    r->count++;
    r->n_hidden += hides;
}

static void load(reader *r, const octavo_tpl_string *name) {
    for (const reader *outer = r; outer != NULL; outer = outer->parent)
        if (is_mentioned(outer, name)) return;
    add_mention(r, name, false);
}

static void store(reader *r, const octavo_tpl_string *name) {
    bool known = false;
    for (const reader *outer = r->parent; outer != NULL && !known; outer = outer->parent)
        known = is_mentioned(outer, name);
    add_mention(r, name, r->branches == 0 && !known);
}

static void store_target(reader *r, const octavo_tpl_node *target, bool as_parameter) {
    if (target->kind == OCTAVO_TPL_NODE_NAMESPACE_TARGET)
        load(r, target->as.member.name);
    else if (target->kind == OCTAVO_TPL_NODE_TUPLE)
        for (const octavo_tpl_node *c = target->as.children; c != NULL; c = c->next)
            store_target(r, c, as_parameter);
    else if (target->kind == OCTAVO_TPL_NODE_NAME) {
        if (as_parameter)
            add_mention(r, target->as.name, false);
        else
            store(r, target->as.name);
    }
}

static void read_list(reader *r, const octavo_tpl_node *list) {
    for (; list != NULL; list = list->next)
        read_node(r, list);
}

static void read_branches(reader *r, const octavo_tpl_node *node) {
    read_list(r, node->as.condition.test);
    r->branches++;
    read_list(r, node->as.condition.then);
    read_list(r, node->as.condition.otherwise);
    r->branches--;
}

/* The mentions in one scope; bodies that are scopes of their own are left out. */
static void read_statement(reader *r, const octavo_tpl_node *node) {
    switch (node->kind) {
    case OCTAVO_TPL_NODE_PRINT:
        read_list(r, node->as.pair.left);
        break;
    case OCTAVO_TPL_NODE_IF:
        read_branches(r, node);
        break;
    case OCTAVO_TPL_NODE_FOR:
        read_list(r, node->as.loop.iterable);
        break;
    case OCTAVO_TPL_NODE_SET:
        read_list(r, node->as.assign.value);
        store_target(r, node->as.assign.target, false);
        break;
    case OCTAVO_TPL_NODE_SET_BLOCK:
        store_target(r, node->as.assign.target, false);
        break;
    case OCTAVO_TPL_NODE_FILTER_BLOCK:
    case OCTAVO_TPL_NODE_WITH:
        read_list(r, node->as.assign.value);
        break;
    case OCTAVO_TPL_NODE_MACRO:
        store(r, node->as.macro.name);
        break;
    case OCTAVO_TPL_NODE_CALL_BLOCK:
        read_list(r, node->as.macro.call);
        break;
    default:
        break;
    }
}

static void read_node(reader *r, const octavo_tpl_node *node) {
    switch (node->kind) {
    case OCTAVO_TPL_NODE_NAME:
        load(r, node->as.name);
        break;
    case OCTAVO_TPL_NODE_LIST:
    case OCTAVO_TPL_NODE_TUPLE:
    case OCTAVO_TPL_NODE_DICT:
    case OCTAVO_TPL_NODE_CONCAT:
    case OCTAVO_TPL_NODE_COMPARE:
        read_list(r, node->as.children);
        break;
    case OCTAVO_TPL_NODE_ATTRIBUTE:
        read_list(r, node->as.attribute.object);
        break;
    case OCTAVO_TPL_NODE_ITEM:
        read_list(r, node->as.item.object);
        read_list(r, node->as.item.index);
        break;
    case OCTAVO_TPL_NODE_SLICE:
        read_list(r, node->as.slice.start);
        read_list(r, node->as.slice.stop);
        read_list(r, node->as.slice.step);
        break;
    case OCTAVO_TPL_NODE_CALL:
        read_list(r, node->as.call.callee);
        read_list(r, node->as.call.arguments);
        break;
    case OCTAVO_TPL_NODE_FILTER:
    case OCTAVO_TPL_NODE_TEST:
        read_list(r, node->as.apply.input);
        read_list(r, node->as.apply.arguments);
        break;
    case OCTAVO_TPL_NODE_UNARY:
    case OCTAVO_TPL_NODE_NOT:
    case OCTAVO_TPL_NODE_BINARY:
    case OCTAVO_TPL_NODE_AND:
    case OCTAVO_TPL_NODE_OR:
    case OCTAVO_TPL_NODE_OPERAND:
    case OCTAVO_TPL_NODE_SPREAD:
    case OCTAVO_TPL_NODE_SPREAD_DICT:
        read_list(r, node->as.pair.left);
        read_list(r, node->as.pair.right);
        break;
    case OCTAVO_TPL_NODE_CONDITION:
        read_list(r, node->as.condition.test);
        read_list(r, node->as.condition.then);
        read_list(r, node->as.condition.otherwise);
        break;
    case OCTAVO_TPL_NODE_KEYWORD:
        read_list(r, node->as.keyword.value);
        break;
    default:
        read_statement(r, node);
        break;
    }
}

static octavo_tpl_hidden *collect_hidden(reader *r) {
    if (r->n_hidden == 0) return NULL;
    octavo_tpl_hidden *hidden = octavo_arena_alloc(&r->tmpl->arena, sizeof *hidden);
    const octavo_tpl_string **names =
        octavo_arena_alloc(&r->tmpl->arena, r->n_hidden * sizeof *names);
    if (hidden == NULL || names == NULL) {
        r->status = OCTAVO_ERROR_MEMORY;
        return NULL;
    }
    hidden->names = names;
    for (size_t i = 0; i < r->capacity; i++)
        if (r->slots[i].hides) names[hidden->count++] = r->slots[i].name;
    return hidden;
}

/* Reads the scope of `owner` (NULL: the template) whose statements are `body`, then those inside.
 */
static octavo_tpl_hidden *read_scope(reader *parent, octavo_template *tmpl,
                                     const octavo_tpl_node *owner, octavo_tpl_node *body,
                                     octavo_status *status) {
    reader r = {.tmpl = tmpl, .parent = parent};
    if (owner != NULL && owner->kind == OCTAVO_TPL_NODE_FOR) {
        add_mention(&r, tmpl->name_loop, false);
        store_target(&r, owner->as.loop.target, true);
    }
    if (owner != NULL && owner->kind == OCTAVO_TPL_NODE_WITH)
        for (const octavo_tpl_node *t = owner->as.assign.target; t != NULL; t = t->next)
            store_target(&r, t, true);
    if (owner != NULL &&
        (owner->kind == OCTAVO_TPL_NODE_MACRO || owner->kind == OCTAVO_TPL_NODE_CALL_BLOCK)) {
        for (const octavo_tpl_node *p = owner->as.macro.parameters; p != NULL; p = p->next) {
            add_mention(&r, p->as.keyword.name, false);
            read_list(&r, p->as.keyword.value);
        }
        if (owner->operation & OCTAVO_TPL_MENTIONS_CALLER)
            add_mention(&r, tmpl->name_caller, false);
        if (owner->operation & OCTAVO_TPL_MENTIONS_VARARGS)
            add_mention(&r, tmpl->name_varargs, false);
        if (owner->operation & OCTAVO_TPL_MENTIONS_KWARGS)
            add_mention(&r, tmpl->name_kwargs, false);
    }
    read_list(&r, body);
    octavo_tpl_hidden *hidden = collect_hidden(&r);
    enter_scopes(&r, body);
    octavo_free(r.slots);
    if (*status == OCTAVO_OK) *status = r.status;
    return hidden;
}

/* The scopes that statements of `list` open. The else of a loop is a scope too, but one in which
 * nothing runs before what it assigns; it is read with the loop's own rules left out. */
static void enter_scopes(reader *r, octavo_tpl_node *list) {
    for (octavo_tpl_node *node = list; node != NULL && r->status == OCTAVO_OK; node = node->next) {
        switch (node->kind) {
        case OCTAVO_TPL_NODE_IF:
            enter_scopes(r, node->as.condition.then);
            enter_scopes(r, node->as.condition.otherwise);
            break;
        case OCTAVO_TPL_NODE_FOR:
            node->hidden = read_scope(r, r->tmpl, node, node->as.loop.body, &r->status);
            read_scope(r, r->tmpl, NULL, node->as.loop.otherwise, &r->status);
            break;
        case OCTAVO_TPL_NODE_SET_BLOCK:
        case OCTAVO_TPL_NODE_FILTER_BLOCK:
        case OCTAVO_TPL_NODE_WITH:
            node->hidden = read_scope(r, r->tmpl, node, node->as.assign.body, &r->status);
            break;
        case OCTAVO_TPL_NODE_MACRO:
        case OCTAVO_TPL_NODE_CALL_BLOCK:
            node->hidden = read_scope(r, r->tmpl, node, node->as.macro.body, &r->status);
            break;
        case OCTAVO_TPL_NODE_SCOPE:
            node->hidden = read_scope(r, r->tmpl, node, node->as.children, &r->status);
            break;
        default:
            break;
        }
    }
}

octavo_status octavo_tpl_resolve_scopes(octavo_template *tmpl, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    tmpl->hidden = read_scope(NULL, tmpl, NULL, tmpl->body, &status);
    return status == OCTAVO_OK ? OCTAVO_OK : octavo_fail_memory(error, "chat template scopes", 0);
}
