/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements, loops and macros. Output goes to the end of run->out; what a macro or block collects
 * is cut off from there again.
 */
#include "text/template_eval.h"

#include <string.h>

typedef enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;

static flow exec_list(octavo_tpl_run *run, const octavo_tpl_node *list);

/* --- assignment --- */

static void assign(octavo_tpl_run *run, octavo_tpl_scope *scope, const octavo_tpl_node *target,
                   octavo_tpl_value value);

static void assign_member(octavo_tpl_run *run, const octavo_tpl_node *target,
                          octavo_tpl_value value) {
    octavo_tpl_value object = octavo_tpl_lookup(run, target->as.member.name);
    if (object.kind != OCTAVO_TPL_NAMESPACE) {
        octavo_tpl_fail(run, "only a namespace() can have its attributes set, not %s",
                        octavo_tpl_type(object));
        return;
    }
    octavo_tpl_dict_set(run, object.as.dict, octavo_tpl_from_string(target->as.member.member),
                        value);
}

static void unpack(octavo_tpl_run *run, octavo_tpl_scope *scope, const octavo_tpl_node *target,
                   octavo_tpl_value value) {
    size_t wanted = 0, i = 0;
    for (const octavo_tpl_node *c = target->as.children; c != NULL; c = c->next)
        wanted++;
    if (!octavo_tpl_iterable(value)) {
        octavo_tpl_fail(run, "%s cannot be unpacked into %zu names", octavo_tpl_type(value),
                        wanted);
        return;
    }
    octavo_tpl_list items = octavo_tpl_items(run, value);
    if (octavo_tpl_failed(run)) return;
    if (items.count != wanted) {
        octavo_tpl_fail(run, "%zu values for %zu names", items.count, wanted);
        return;
    }
    for (const octavo_tpl_node *c = target->as.children; c != NULL; c = c->next)
        assign(run, scope, c, items.items[i++]);
}

static void assign(octavo_tpl_run *run, octavo_tpl_scope *scope, const octavo_tpl_node *target,
                   octavo_tpl_value value) {
    if (octavo_tpl_failed(run) || scope == NULL) return;
    if (target->kind == OCTAVO_TPL_NODE_NAME)
        octavo_tpl_scope_set(run, scope, target->as.name, value);
    else if (target->kind == OCTAVO_TPL_NODE_TUPLE)
        unpack(run, scope, target, value);
    else
        assign_member(run, target, value);
}

/* --- blocks that collect --- */

/* Runs `list` in a new scope and returns its output as a string. A break or continue leaves the
 * block, and what it has collected is dropped. */
static octavo_tpl_value capture(octavo_tpl_run *run, octavo_tpl_scope *scope,
                                const octavo_tpl_node *list, flow *how) {
    octavo_tpl_scope *outer = run->scope;
    size_t mark = octavo_tpl_open(run);
    if (scope == NULL) return octavo_tpl_undefined(NULL);
    run->scope = scope;
    *how = exec_list(run, list);
    run->scope = outer;
    return octavo_tpl_close(run, mark);
}

static octavo_tpl_value eval_captured(octavo_tpl_run *run, const octavo_tpl_node *expression,
                                      octavo_tpl_value text) {
    octavo_tpl_value outer = run->captured;
    run->captured = text;
    octavo_tpl_value value = octavo_tpl_eval(run, expression);
    run->captured = outer;
    return value;
}

static flow exec_collecting(octavo_tpl_run *run, const octavo_tpl_node *node) {
    flow how = FLOW_ON;
    octavo_tpl_scope *scope = octavo_tpl_scope_new(run, run->scope, node->hidden);
    octavo_tpl_value text = capture(run, scope, node->as.assign.body, &how);
    if (how != FLOW_ON || octavo_tpl_failed(run)) return how;
    octavo_tpl_value value = eval_captured(run, node->as.assign.value, text);
    if (node->kind == OCTAVO_TPL_NODE_FILTER_BLOCK)
        octavo_tpl_put_value(run, value);
    else
        assign(run, run->scope, node->as.assign.target, value);
    return FLOW_ON;
}

/* Runs `list` in `scope`, its output staying where it is. */
static flow exec_in(octavo_tpl_run *run, octavo_tpl_scope *scope, const octavo_tpl_node *list) {
    octavo_tpl_scope *outer = run->scope;
    if (scope == NULL) return FLOW_ON;
    run->scope = scope;
    flow how = exec_list(run, list);
    run->scope = outer;
    return how;
}

static flow exec_with(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_scope *scope = octavo_tpl_scope_new(run, run->scope, node->hidden);
    const octavo_tpl_node *value = node->as.assign.value;
    for (const octavo_tpl_node *t = node->as.assign.target; t != NULL; t = t->next) {
        assign(run, scope, t, octavo_tpl_eval(run, value));
        value = value->next;
    }
    return exec_in(run, scope, node->as.assign.body);
}

/* --- loops --- */

/* The items for which the loop's own `if` holds. */
static octavo_tpl_list filter_items(octavo_tpl_run *run, const octavo_tpl_node *node,
                                    octavo_tpl_list items) {
    octavo_tpl_list *kept = octavo_tpl_list_new(run, items.count);
    octavo_tpl_scope *outer = run->scope, *scope = octavo_tpl_scope_new(run, outer, NULL);
    size_t count = 0;
    if (kept == NULL || scope == NULL) return (octavo_tpl_list){0};
    run->scope = scope;
    for (size_t i = 0; i < items.count && octavo_tpl_charge(run, 1); i++) {
        scope->count = 0;
        assign(run, scope, node->as.loop.target, items.items[i]);
        if (octavo_tpl_truth(octavo_tpl_eval(run, node->as.loop.test)))
            kept->items[count++] = items.items[i];
    }
    run->scope = outer;
    kept->count = count;
    return *kept;
}

/* Returns whether some turn came to its end, without break or continue: that is what Jinja's `else`
 * goes by, even where there were items. */
static bool exec_turns(octavo_tpl_run *run, octavo_tpl_loop *loop) {
    bool is_complete = false;
    const octavo_tpl_node *node = loop->node;
    octavo_tpl_scope *scope = octavo_tpl_scope_new(run, loop->closure, node->hidden);
    octavo_tpl_value self = {.kind = OCTAVO_TPL_LOOP, .as.loop = loop};
    for (; loop->index < loop->items.count && octavo_tpl_charge(run, 1); loop->index++) {
        scope->count = 0;
        octavo_tpl_scope_set(run, scope, run->tmpl->name_loop, self);
        assign(run, scope, node->as.loop.target, loop->items.items[loop->index]);
        flow how = exec_in(run, scope, node->as.loop.body);
        if (how == FLOW_BREAK) break;
        if (how == FLOW_ON) is_complete = true;
    }
    return is_complete;
}

static flow exec_loop(octavo_tpl_run *run, const octavo_tpl_node *node, octavo_tpl_scope *closure,
                      octavo_tpl_value iterable, size_t depth) {
    octavo_tpl_scope *outer = run->scope;
    octavo_tpl_loop *loop = octavo_tpl_alloc(run, 1, sizeof *loop);
    octavo_tpl_list items = octavo_tpl_items(run, iterable);
    run->scope = closure;
    if (node->as.loop.test != NULL) items = filter_items(run, node, items);
    flow how = FLOW_ON;
    if (loop != NULL && !octavo_tpl_failed(run)) {
        *loop = (octavo_tpl_loop){.node = node, .closure = closure, .items = items, .depth = depth};
        if (!exec_turns(run, loop) && !octavo_tpl_failed(run))
            how = exec_in(run, octavo_tpl_scope_new(run, closure, NULL), node->as.loop.otherwise);
    }
    run->scope = outer;
    return how;
}

octavo_tpl_value octavo_tpl_call_loop(octavo_tpl_run *run, const octavo_tpl_loop *loop,
                                      const octavo_tpl_args *args) {
    if (!loop->node->as.loop.recursive || args->count != 1 || args->named_count != 0)
        return octavo_tpl_fail(run, "only a loop marked 'recursive' can be called, with one list");
    size_t mark = octavo_tpl_open(run);
    if (octavo_tpl_push(run, loop->node)) {
        exec_loop(run, loop->node, loop->closure, args->items[0], loop->depth + 1);
        octavo_tpl_pop(run);
    }
    return octavo_tpl_close(run, mark);
}

/* --- macros --- */

static octavo_tpl_value macro_value(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_macro *macro = octavo_tpl_alloc(run, 1, sizeof *macro);
    if (macro == NULL) return octavo_tpl_undefined(NULL);
    *macro = (octavo_tpl_macro){node, run->scope};
    return (octavo_tpl_value){.kind = OCTAVO_TPL_MACRO, .as.macro = macro};
}

static octavo_tpl_value surplus_positional(octavo_tpl_run *run, const octavo_tpl_args *args,
                                           size_t taken) {
    size_t rest = args->count > taken ? args->count - taken : 0;
    octavo_tpl_list *list = octavo_tpl_list_new(run, rest);
    if (list != NULL && rest > 0)
        memcpy(list->items, args->items + taken, rest * sizeof *list->items);
    return octavo_tpl_from_list(OCTAVO_TPL_TUPLE, list);
}

static bool is_parameter(const octavo_tpl_node *parameters, const octavo_tpl_string *name) {
    for (; parameters != NULL; parameters = parameters->next)
        if (octavo_tpl_string_equal(parameters->as.keyword.name, name)) return true;
    return false;
}

/* Named arguments that are no parameters: `caller` apart, the others are kwargs or an error. */
static void bind_surplus(octavo_tpl_run *run, octavo_tpl_scope *scope, const octavo_tpl_node *node,
                         const octavo_tpl_args *args, size_t parameters) {
    const octavo_template *tmpl = run->tmpl;
    octavo_tpl_value caller = octavo_tpl_undefined(tmpl->name_caller);
    octavo_tpl_dict *kwargs = octavo_tpl_dict_new(run, args->named_count);
    for (size_t i = 0; i < args->named_count && kwargs != NULL; i++) {
        const octavo_tpl_string *name = args->named[i].name;
        if (is_parameter(node->as.macro.parameters, name)) continue;
        if (octavo_tpl_is(name, "caller") && (node->operation & OCTAVO_TPL_MENTIONS_CALLER))
            caller = args->named[i].value;
        else
            octavo_tpl_dict_set(run, kwargs, octavo_tpl_from_string(name), args->named[i].value);
    }
    if (octavo_tpl_failed(run)) return;
    if (kwargs->count > 0 && !(node->operation & OCTAVO_TPL_MENTIONS_KWARGS))
        octavo_tpl_fail(run, "a macro is given an argument that it does not take");
    if (args->count > parameters && !(node->operation & OCTAVO_TPL_MENTIONS_VARARGS))
        octavo_tpl_fail(run, "a macro takes %zu arguments, not %zu", parameters, args->count);
    if ((node->operation & OCTAVO_TPL_MENTIONS_CALLER) &&
        !is_parameter(node->as.macro.parameters, tmpl->name_caller))
        octavo_tpl_scope_set(run, scope, tmpl->name_caller, caller);
    if (node->operation & OCTAVO_TPL_MENTIONS_KWARGS)
        octavo_tpl_scope_set(run, scope, tmpl->name_kwargs,
                             octavo_tpl_from_dict(OCTAVO_TPL_DICT, kwargs));
    if (node->operation & OCTAVO_TPL_MENTIONS_VARARGS)
        octavo_tpl_scope_set(run, scope, tmpl->name_varargs,
                             surplus_positional(run, args, parameters));
}

static octavo_tpl_value named_argument(const octavo_tpl_args *args, const octavo_tpl_string *name) {
    for (size_t i = 0; i < args->named_count; i++)
        if (octavo_tpl_string_equal(args->named[i].name, name)) return args->named[i].value;
    return octavo_tpl_absent();
}

/* Binds parameters in order, so that a default may use those before it. */
static void bind_parameters(octavo_tpl_run *run, octavo_tpl_scope *scope,
                            const octavo_tpl_node *node, const octavo_tpl_args *args) {
    size_t i = 0;
    octavo_tpl_scope *outer = run->scope;
    for (const octavo_tpl_node *p = node->as.macro.parameters; p != NULL; p = p->next, i++) {
        const octavo_tpl_string *name = p->as.keyword.name;
        octavo_tpl_value value = named_argument(args, name);
        if (i < args->count) {
            if (value.kind != OCTAVO_TPL_ABSENT)
                octavo_tpl_fail(run, "an argument of a macro is given twice");
            value = args->items[i];
        }
        if (value.kind == OCTAVO_TPL_ABSENT && p->as.keyword.value != NULL) {
            run->scope = scope;
            value = octavo_tpl_eval(run, p->as.keyword.value);
            run->scope = outer;
        }
        if (value.kind == OCTAVO_TPL_ABSENT) value = octavo_tpl_undefined(name);
        octavo_tpl_scope_set(run, scope, name, value);
    }
    bind_surplus(run, scope, node, args, i);
}

octavo_tpl_value octavo_tpl_call_macro(octavo_tpl_run *run, const octavo_tpl_macro *macro,
                                       const octavo_tpl_args *args) {
    const octavo_tpl_node *node = macro->node;
    octavo_tpl_scope *scope = octavo_tpl_scope_new(run, macro->closure, node->hidden);
    octavo_tpl_value text = octavo_tpl_undefined(NULL);
    flow how;
    if (scope == NULL || !octavo_tpl_push(run, node)) return text;
    bind_parameters(run, scope, node, args);
    if (!octavo_tpl_failed(run)) text = capture(run, scope, node->as.macro.body, &how);
    octavo_tpl_pop(run);
    return text;
}

/* The body becomes the macro `caller`, passed along by name. */
static void exec_call_block(octavo_tpl_run *run, const octavo_tpl_node *node) {
    const octavo_tpl_node *call = node->as.macro.call;
    octavo_tpl_value callee = octavo_tpl_eval(run, call->as.call.callee);
    octavo_tpl_args args = octavo_tpl_eval_arguments(run, call->as.call.arguments);
    octavo_tpl_named *named = octavo_tpl_alloc(run, args.named_count + 1, sizeof *named);
    if (named == NULL) return;
    if (args.named_count > 0) memcpy(named, args.named, args.named_count * sizeof *named);
    named[args.named_count++] = (octavo_tpl_named){run->tmpl->name_caller, macro_value(run, node)};
    args.named = named;
    run->at = node;
    octavo_tpl_put_value(run, octavo_tpl_call(run, callee, &args));
}

/* --- statements --- */

static flow exec_if(octavo_tpl_run *run, const octavo_tpl_node *node) {
    bool holds = octavo_tpl_truth(octavo_tpl_eval(run, node->as.condition.test));
    return exec_list(run, holds ? node->as.condition.then : node->as.condition.otherwise);
}

static flow exec_node(octavo_tpl_run *run, const octavo_tpl_node *node) {
    switch (node->kind) {
    case OCTAVO_TPL_NODE_DATA:
        octavo_tpl_put(run, node->as.data.text, node->as.data.size);
        return FLOW_ON;
    case OCTAVO_TPL_NODE_PRINT:
        octavo_tpl_put_value(run, octavo_tpl_eval(run, node->as.pair.left));
        return FLOW_ON;
    case OCTAVO_TPL_NODE_IF:
        return exec_if(run, node);
    case OCTAVO_TPL_NODE_FOR:
        return exec_loop(run, node, run->scope, octavo_tpl_eval(run, node->as.loop.iterable), 0);
    case OCTAVO_TPL_NODE_SET:
        assign(run, run->scope, node->as.assign.target,
               octavo_tpl_eval(run, node->as.assign.value));
        return FLOW_ON;
    case OCTAVO_TPL_NODE_SET_BLOCK:
    case OCTAVO_TPL_NODE_FILTER_BLOCK:
        return exec_collecting(run, node);
    case OCTAVO_TPL_NODE_MACRO:
        octavo_tpl_scope_set(run, run->scope, node->as.macro.name, macro_value(run, node));
        return FLOW_ON;
    case OCTAVO_TPL_NODE_CALL_BLOCK:
        exec_call_block(run, node);
        return FLOW_ON;
    case OCTAVO_TPL_NODE_WITH:
        return exec_with(run, node);
    case OCTAVO_TPL_NODE_SCOPE:
        return exec_in(run, octavo_tpl_scope_new(run, run->scope, node->hidden), node->as.children);
    case OCTAVO_TPL_NODE_BREAK:
        return FLOW_BREAK;
    case OCTAVO_TPL_NODE_CONTINUE:
        return FLOW_CONTINUE;
    default:
        octavo_assert(!"not a statement");
        return FLOW_ON;
    }
}

static flow exec_list(octavo_tpl_run *run, const octavo_tpl_node *list) {
    flow how = FLOW_ON;
    for (; list != NULL && how == FLOW_ON && octavo_tpl_push(run, list); list = list->next) {
        how = exec_node(run, list);
        octavo_tpl_pop(run);
    }
    return how;
}

void octavo_tpl_exec_template(octavo_tpl_run *run) {
    run->scope = octavo_tpl_scope_new(run, NULL, run->tmpl->hidden);
    if (run->scope != NULL) exec_list(run, run->tmpl->body);
}
