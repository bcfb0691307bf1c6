/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions.
 */
#include "text/template_eval.h"

bool octavo_tpl_push(octavo_tpl_run *run, const octavo_tpl_node *node) {
    if (!octavo_tpl_charge(run, 1)) return false;
    run->at = node;
    if (run->depth >= OCTAVO_TPL_MAX_DEPTH) {
        octavo_tpl_fail_limit(run, "calls and expressions are nested deeper than %u",
                              OCTAVO_TPL_MAX_DEPTH);
        return false;
    }
    run->depth++;
    return true;
}

static octavo_tpl_value eval_sequence(octavo_tpl_run *run, const octavo_tpl_node *node) {
    size_t count = 0, i = 0;
    for (const octavo_tpl_node *c = node->as.children; c != NULL; c = c->next)
        count++;
    octavo_tpl_list *list = octavo_tpl_list_new(run, count);
    for (const octavo_tpl_node *c = node->as.children; c != NULL && list != NULL; c = c->next)
        list->items[i++] = octavo_tpl_eval(run, c);
    return octavo_tpl_from_list(
        node->kind == OCTAVO_TPL_NODE_TUPLE ? OCTAVO_TPL_TUPLE : OCTAVO_TPL_LIST, list);
}

static octavo_tpl_value eval_dict(octavo_tpl_run *run, const octavo_tpl_node *node) {
    size_t count = 0;
    for (const octavo_tpl_node *c = node->as.children; c != NULL; c = c->next->next)
        count++;
    octavo_tpl_dict *dict = octavo_tpl_dict_new(run, count);
    for (const octavo_tpl_node *c = node->as.children; c != NULL && dict != NULL;
         c = c->next->next) {
        octavo_tpl_value key = octavo_tpl_eval(run, c);
        octavo_tpl_value value = octavo_tpl_eval(run, c->next);
        octavo_tpl_dict_set(run, dict, key, value);
    }
    return octavo_tpl_from_dict(OCTAVO_TPL_DICT, dict);
}

static octavo_tpl_value eval_bound(octavo_tpl_run *run, const octavo_tpl_node *node) {
    return node != NULL ? octavo_tpl_eval(run, node) : octavo_tpl_none();
}

static octavo_tpl_value eval_item(octavo_tpl_run *run, const octavo_tpl_node *node) {
    const octavo_tpl_node *index = node->as.item.index;
    octavo_tpl_value object = octavo_tpl_eval(run, node->as.item.object);
    if (index->kind != OCTAVO_TPL_NODE_SLICE) {
        octavo_tpl_value key = octavo_tpl_eval(run, index);
        run->at = node;
        return octavo_tpl_item(run, object, key);
    }
    octavo_tpl_value start = eval_bound(run, index->as.slice.start);
    octavo_tpl_value stop = eval_bound(run, index->as.slice.stop);
    octavo_tpl_value step = eval_bound(run, index->as.slice.step);
    run->at = node;
    return octavo_tpl_slice(run, object, start, stop, step);
}

static octavo_tpl_value eval_call(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_value callee = octavo_tpl_eval(run, node->as.call.callee);
    octavo_tpl_args args = octavo_tpl_eval_arguments(run, node->as.call.arguments);
    run->at = node;
    return octavo_tpl_call(run, callee, &args);
}

static octavo_tpl_value eval_apply(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_value input = octavo_tpl_eval(run, node->as.apply.input);
    octavo_tpl_args args = octavo_tpl_eval_arguments(run, node->as.apply.arguments);
    run->at = node;
    if (node->as.apply.builtin != NULL)
        return octavo_tpl_call_builtin(run, node->as.apply.builtin, input, &args);
    octavo_tpl_value name = octavo_tpl_from_string(node->as.apply.name); /* fails, with the name */
    return node->kind == OCTAVO_TPL_NODE_FILTER ? octavo_tpl_filter(run, name, input, &args)
                                                : octavo_tpl_test(run, name, input, &args);
}

static octavo_tpl_value eval_concat(octavo_tpl_run *run, const octavo_tpl_node *node) {
    size_t mark = octavo_tpl_open(run);
    for (const octavo_tpl_node *c = node->as.children; c != NULL; c = c->next)
        octavo_tpl_put_value(run, octavo_tpl_eval(run, c));
    return octavo_tpl_close(run, mark);
}

static bool compare(octavo_tpl_run *run, octavo_tpl_token_kind operation, octavo_tpl_value a,
                    octavo_tpl_value b) {
    switch (operation) {
    case OCTAVO_TPL_EQ:
        return octavo_tpl_equal(run, a, b);
    case OCTAVO_TPL_NE:
        return !octavo_tpl_equal(run, a, b);
    case OCTAVO_TPL_NAME:
        return octavo_tpl_contains(run, b, a);
    case OCTAVO_TPL_TILDE:
        return !octavo_tpl_contains(run, b, a);
    default:
        break;
    }
    if (!octavo_tpl_defined(run, a) || !octavo_tpl_defined(run, b)) return false;
    return octavo_tpl_ordered(run, operation, a, b);
}

/* a < b < c: each operand is evaluated once, and none after the first that does not hold. */
static octavo_tpl_value eval_compare(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_value left = octavo_tpl_eval(run, node->as.children);
    for (const octavo_tpl_node *c = node->as.children->next; c != NULL; c = c->next) {
        octavo_tpl_value right = octavo_tpl_eval(run, c->as.pair.left);
        run->at = c;
        if (!compare(run, (octavo_tpl_token_kind)c->operation, left, right))
            return octavo_tpl_bool(false);
        left = right;
    }
    return octavo_tpl_bool(true);
}

static octavo_tpl_value eval_binary(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_value left = octavo_tpl_eval(run, node->as.pair.left);
    octavo_tpl_value right = octavo_tpl_eval(run, node->as.pair.right);
    run->at = node;
    return octavo_tpl_binary(run, (octavo_tpl_token_kind)node->operation, left, right);
}

static octavo_tpl_value eval_logic(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_value left = octavo_tpl_eval(run, node->as.pair.left);
    bool decided = octavo_tpl_truth(left) == (node->kind == OCTAVO_TPL_NODE_OR);
    return decided ? left : octavo_tpl_eval(run, node->as.pair.right);
}

static octavo_tpl_value eval_condition(octavo_tpl_run *run, const octavo_tpl_node *node) {
    if (octavo_tpl_truth(octavo_tpl_eval(run, node->as.condition.test)))
        return octavo_tpl_eval(run, node->as.condition.then);
    if (node->as.condition.otherwise == NULL) return octavo_tpl_undefined(NULL);
    return octavo_tpl_eval(run, node->as.condition.otherwise);
}

static octavo_tpl_value eval_node(octavo_tpl_run *run, const octavo_tpl_node *node) {
    octavo_tpl_value value;
    switch (node->kind) {
    case OCTAVO_TPL_NODE_LIST:
    case OCTAVO_TPL_NODE_TUPLE:
        return eval_sequence(run, node);
    case OCTAVO_TPL_NODE_DICT:
        return eval_dict(run, node);
    case OCTAVO_TPL_NODE_ATTRIBUTE:
        value = octavo_tpl_eval(run, node->as.attribute.object);
        run->at = node;
        return octavo_tpl_attribute(run, value, node->as.attribute.name);
    case OCTAVO_TPL_NODE_ITEM:
        return eval_item(run, node);
    case OCTAVO_TPL_NODE_CALL:
        return eval_call(run, node);
    case OCTAVO_TPL_NODE_FILTER:
    case OCTAVO_TPL_NODE_TEST:
        return eval_apply(run, node);
    case OCTAVO_TPL_NODE_UNARY:
        value = octavo_tpl_eval(run, node->as.pair.left);
        return octavo_tpl_sign(run, node->operation == OCTAVO_TPL_MINUS, value);
    case OCTAVO_TPL_NODE_NOT:
        return octavo_tpl_bool(!octavo_tpl_truth(octavo_tpl_eval(run, node->as.pair.left)));
    case OCTAVO_TPL_NODE_BINARY:
        return eval_binary(run, node);
    case OCTAVO_TPL_NODE_AND:
    case OCTAVO_TPL_NODE_OR:
        return eval_logic(run, node);
    case OCTAVO_TPL_NODE_CONCAT:
        return eval_concat(run, node);
    case OCTAVO_TPL_NODE_COMPARE:
        return eval_compare(run, node);
    case OCTAVO_TPL_NODE_CONDITION:
        return eval_condition(run, node);
    case OCTAVO_TPL_NODE_CAPTURED:
        return run->captured;
    default:
        octavo_assert(!"not an expression");
        return octavo_tpl_undefined(NULL);
    }
}

octavo_tpl_value octavo_tpl_eval(octavo_tpl_run *run, const octavo_tpl_node *node) {
    if (!octavo_tpl_push(run, node)) return octavo_tpl_undefined(NULL);
    octavo_tpl_value value;
    if (node->kind == OCTAVO_TPL_NODE_CONSTANT)
        value = node->as.constant;
    else if (node->kind == OCTAVO_TPL_NODE_NAME)
        value = octavo_tpl_lookup(run, node->as.name);
    else
        value = eval_node(run, node);
    octavo_tpl_pop(run);
    return value;
}
