/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions. From loose to tight: if-else, or, and, not, comparisons with in, + -, ~, * / // %,
 * **, signs, then attributes, items, calls, filters and tests.
 */
#include "base/error.h"
#include "text/template_parse.h"
#include "text/template_string.h"

#include <string.h>

static octavo_tpl_node *parse_or(octavo_tpl_parser *parser);
static octavo_tpl_node *parse_unary(octavo_tpl_parser *parser, bool with_filters);

static octavo_tpl_node *constant(octavo_tpl_parser *parser, uint32_t offset,
                                 octavo_tpl_value value) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_CONSTANT, offset);
    node->as.constant = value;
    return node;
}

static octavo_tpl_node *pair(octavo_tpl_parser *parser, octavo_tpl_node_kind kind, uint32_t offset,
                             octavo_tpl_node *left, octavo_tpl_node *right) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, kind, offset);
    node->as.pair.left = octavo_tpl_adopt(parser, node, left);
    node->as.pair.right = octavo_tpl_adopt(parser, node, right);
    return node;
}

/* --- literals --- */

static octavo_tpl_node *parse_strings(octavo_tpl_parser *parser) {
    uint32_t offset = parser->token.offset;
    octavo_buffer joined = {0};
    octavo_tpl_string *string = octavo_arena_alloc(parser->arena, sizeof *string);
    char *copy = NULL;
    while (octavo_tpl_at(parser, OCTAVO_TPL_STRING_LITERAL)) { /* neighbours are one string */
        octavo_buffer_append(&joined, parser->token.text, parser->token.size);
        octavo_tpl_advance(parser);
    }
    if (string != NULL && !joined.failed)
        copy = octavo_arena_strndup(parser->arena, joined.size > 0 ? joined.data : "", joined.size);
    if (copy == NULL) {
        if (!octavo_tpl_parse_failed(parser))
            parser->lexer.status =
                octavo_fail_memory(parser->lexer.error, "template string", joined.size);
        octavo_buffer_deinit(&joined);
        return constant(parser, offset, octavo_tpl_none());
    }
    *string = (octavo_tpl_string){copy, joined.size, octavo_utf8_length(copy, joined.size)};
    octavo_buffer_deinit(&joined);
    return constant(parser, offset, octavo_tpl_from_string(string));
}

static octavo_tpl_node *parse_list(octavo_tpl_parser *parser) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_LIST, parser->token.offset);
    octavo_tpl_nodes items = {0};
    octavo_tpl_expect(parser, OCTAVO_TPL_LEFT_BRACKET);
    while (!octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_BRACKET) && !octavo_tpl_parse_failed(parser)) {
        octavo_tpl_append(&items, octavo_tpl_parse_expression(parser));
        if (!octavo_tpl_accept(parser, OCTAVO_TPL_COMMA)) break;
    }
    octavo_tpl_expect(parser, OCTAVO_TPL_RIGHT_BRACKET);
    node->as.children = octavo_tpl_adopt(parser, node, items.first);
    return node;
}

static octavo_tpl_node *parse_dict(octavo_tpl_parser *parser) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_DICT, parser->token.offset);
    octavo_tpl_nodes items = {0};
    octavo_tpl_expect(parser, OCTAVO_TPL_LEFT_BRACE);
    while (!octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_BRACE) && !octavo_tpl_parse_failed(parser)) {
        octavo_tpl_append(&items, octavo_tpl_parse_expression(parser));
        octavo_tpl_expect(parser, OCTAVO_TPL_COLON);
        octavo_tpl_append(&items, octavo_tpl_parse_expression(parser));
        if (!octavo_tpl_accept(parser, OCTAVO_TPL_COMMA)) break;
    }
    octavo_tpl_expect(parser, OCTAVO_TPL_RIGHT_BRACE);
    node->as.children = octavo_tpl_adopt(parser, node, items.first);
    return node;
}

static octavo_tpl_node *parse_name(octavo_tpl_parser *parser) {
    uint32_t offset = parser->token.offset;
    bool is_true = octavo_tpl_at_name(parser, "true") || octavo_tpl_at_name(parser, "True");
    bool is_false = octavo_tpl_at_name(parser, "false") || octavo_tpl_at_name(parser, "False");
    bool is_none = octavo_tpl_at_name(parser, "none") || octavo_tpl_at_name(parser, "None");
    if (is_true || is_false || is_none) {
        octavo_tpl_advance(parser);
        return constant(parser, offset, is_none ? octavo_tpl_none() : octavo_tpl_bool(is_true));
    }
    if (octavo_tpl_at_name(parser, "caller")) parser->mentioned |= OCTAVO_TPL_MENTIONS_CALLER;
    if (octavo_tpl_at_name(parser, "varargs")) parser->mentioned |= OCTAVO_TPL_MENTIONS_VARARGS;
    if (octavo_tpl_at_name(parser, "kwargs")) parser->mentioned |= OCTAVO_TPL_MENTIONS_KWARGS;
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_NAME, offset);
    node->as.name = octavo_tpl_take_name(parser);
    return node;
}

/* Behind the left parenthesis: anything up to the right one, nothing being the empty tuple. */
static octavo_tpl_node *parse_parenthesis(octavo_tpl_parser *parser) {
    octavo_tpl_node *node = NULL;
    uint32_t offset = parser->token.offset;
    octavo_tpl_expect(parser, OCTAVO_TPL_LEFT_PAREN);
    if (octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_PAREN))
        node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_TUPLE, offset);
    else
        node = octavo_tpl_parse_tuple(parser, true);
    octavo_tpl_expect(parser, OCTAVO_TPL_RIGHT_PAREN);
    return node;
}

octavo_tpl_node *octavo_tpl_parse_primary(octavo_tpl_parser *parser) {
    octavo_tpl_token token = parser->token;
    switch (token.kind) {
    case OCTAVO_TPL_NAME:
        return parse_name(parser);
    case OCTAVO_TPL_STRING_LITERAL:
        return parse_strings(parser);
    case OCTAVO_TPL_INTEGER_LITERAL:
        octavo_tpl_advance(parser);
        return constant(parser, token.offset, octavo_tpl_integer(token.integer));
    case OCTAVO_TPL_FLOAT_LITERAL:
        octavo_tpl_advance(parser);
        return constant(parser, token.offset, octavo_tpl_float(token.real));
    case OCTAVO_TPL_LEFT_PAREN:
        return parse_parenthesis(parser);
    case OCTAVO_TPL_LEFT_BRACKET:
        return parse_list(parser);
    case OCTAVO_TPL_LEFT_BRACE:
        return parse_dict(parser);
    default:
        octavo_tpl_unexpected(parser, "an expression");
        return constant(parser, token.offset, octavo_tpl_none());
    }
}

/* --- attributes, items, calls --- */

static octavo_tpl_node *parse_argument(octavo_tpl_parser *parser) {
    octavo_tpl_node *node;
    uint32_t offset = parser->token.offset;
    if (octavo_tpl_accept(parser, OCTAVO_TPL_STAR))
        return pair(parser, OCTAVO_TPL_NODE_SPREAD, offset, octavo_tpl_parse_expression(parser),
                    NULL);
    if (octavo_tpl_accept(parser, OCTAVO_TPL_DOUBLE_STAR))
        return pair(parser, OCTAVO_TPL_NODE_SPREAD_DICT, offset,
                    octavo_tpl_parse_expression(parser), NULL);
    if (!octavo_tpl_at(parser, OCTAVO_TPL_NAME) || octavo_tpl_peek(parser) != OCTAVO_TPL_ASSIGN)
        return octavo_tpl_parse_expression(parser);
    node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_KEYWORD, offset);
    node->as.keyword.name = octavo_tpl_take_name(parser);
    octavo_tpl_expect(parser, OCTAVO_TPL_ASSIGN);
    node->as.keyword.value = octavo_tpl_adopt(parser, node, octavo_tpl_parse_expression(parser));
    return node;
}

/* Positional arguments, then *list, then named ones, then **dict. */
static octavo_tpl_node *parse_arguments(octavo_tpl_parser *parser) {
    octavo_tpl_nodes list = {0};
    int rank = 0;
    octavo_tpl_expect(parser, OCTAVO_TPL_LEFT_PAREN);
    while (!octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_PAREN) && !octavo_tpl_parse_failed(parser)) {
        octavo_tpl_node *node = parse_argument(parser);
        int own = node->kind == OCTAVO_TPL_NODE_SPREAD_DICT ? 3
                  : node->kind == OCTAVO_TPL_NODE_SPREAD    ? 1
                  : node->kind == OCTAVO_TPL_NODE_KEYWORD   ? 2
                                                            : 0;
        if (own < rank || (own == rank && (own == 1 || own == 3)))
            octavo_tpl_parse_fail(parser, "arguments out of order; positional ones go first");
        rank = own;
        octavo_tpl_append(&list, node);
        if (!octavo_tpl_accept(parser, OCTAVO_TPL_COMMA)) break;
    }
    octavo_tpl_expect(parser, OCTAVO_TPL_RIGHT_PAREN);
    return list.first;
}

static octavo_tpl_node *parse_call(octavo_tpl_parser *parser, octavo_tpl_node *callee) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_CALL, parser->token.offset);
    node->as.call.callee = octavo_tpl_adopt(parser, node, callee);
    node->as.call.arguments = octavo_tpl_adopt(parser, node, parse_arguments(parser));
    return node;
}

static bool at_slice_part(const octavo_tpl_parser *parser) {
    return !octavo_tpl_at(parser, OCTAVO_TPL_COLON) &&
           !octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_BRACKET) &&
           !octavo_tpl_at(parser, OCTAVO_TPL_COMMA);
}

static octavo_tpl_node *parse_index(octavo_tpl_parser *parser) {
    uint32_t offset = parser->token.offset;
    octavo_tpl_node *start = NULL, *stop = NULL, *step = NULL;
    if (!octavo_tpl_at(parser, OCTAVO_TPL_COLON)) {
        start = octavo_tpl_parse_expression(parser);
        if (!octavo_tpl_at(parser, OCTAVO_TPL_COLON)) return start;
    }
    octavo_tpl_expect(parser, OCTAVO_TPL_COLON);
    if (at_slice_part(parser)) stop = octavo_tpl_parse_expression(parser);
    if (octavo_tpl_accept(parser, OCTAVO_TPL_COLON) && at_slice_part(parser))
        step = octavo_tpl_parse_expression(parser);
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_SLICE, offset);
    node->as.slice.start = octavo_tpl_adopt(parser, node, start);
    node->as.slice.stop = octavo_tpl_adopt(parser, node, stop);
    node->as.slice.step = octavo_tpl_adopt(parser, node, step);
    return node;
}

static octavo_tpl_node *parse_item(octavo_tpl_parser *parser, octavo_tpl_node *object) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_ITEM, parser->token.offset);
    octavo_tpl_nodes indices = {0};
    octavo_tpl_expect(parser, OCTAVO_TPL_LEFT_BRACKET);
    do
        octavo_tpl_append(&indices, parse_index(parser));
    while (octavo_tpl_accept(parser, OCTAVO_TPL_COMMA));
    octavo_tpl_expect(parser, OCTAVO_TPL_RIGHT_BRACKET);
    octavo_tpl_node *index = indices.first;
    if (indices.count > 1) { /* x[a, b] looks for the tuple */
        index = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_TUPLE, node->offset);
        index->as.children = octavo_tpl_adopt(parser, index, indices.first);
        for (octavo_tpl_node *part = indices.first; part != NULL; part = part->next)
            if (part->kind == OCTAVO_TPL_NODE_SLICE)
                octavo_tpl_parse_fail(parser, "a slice stands beside other indices");
    }
    node->as.item.object = octavo_tpl_adopt(parser, node, object);
    node->as.item.index = octavo_tpl_adopt(parser, node, index);
    return node;
}

static octavo_tpl_node *parse_attribute(octavo_tpl_parser *parser, octavo_tpl_node *object) {
    uint32_t offset = parser->token.offset;
    octavo_tpl_expect(parser, OCTAVO_TPL_DOT);
    if (octavo_tpl_at(parser, OCTAVO_TPL_INTEGER_LITERAL)) { /* x.0 is x[0] */
        octavo_tpl_node *item = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_ITEM, offset);
        item->as.item.object = octavo_tpl_adopt(parser, item, object);
        item->as.item.index = octavo_tpl_adopt(parser, item, octavo_tpl_parse_primary(parser));
        return item;
    }
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_ATTRIBUTE, offset);
    node->as.attribute.name = octavo_tpl_take_name(parser);
    node->as.attribute.object = octavo_tpl_adopt(parser, node, object);
    return node;
}

static octavo_tpl_node *parse_postfix(octavo_tpl_parser *parser, octavo_tpl_node *node) {
    while (!octavo_tpl_parse_failed(parser)) {
        if (octavo_tpl_at(parser, OCTAVO_TPL_DOT))
            node = parse_attribute(parser, node);
        else if (octavo_tpl_at(parser, OCTAVO_TPL_LEFT_BRACKET))
            node = parse_item(parser, node);
        else if (octavo_tpl_at(parser, OCTAVO_TPL_LEFT_PAREN))
            node = parse_call(parser, node);
        else
            break;
    }
    return node;
}

/* --- filters and tests --- */

/* a.b.c is one name; no builtin has such a one, but the text is well-formed. */
static const octavo_tpl_string *parse_dotted_name(octavo_tpl_parser *parser) {
    const octavo_tpl_string *name = octavo_tpl_take_name(parser);
    if (!octavo_tpl_at(parser, OCTAVO_TPL_DOT)) return name;
    octavo_buffer dotted = {0};
    octavo_buffer_append(&dotted, name->data, name->size);
    while (octavo_tpl_accept(parser, OCTAVO_TPL_DOT)) {
        const octavo_tpl_string *part = octavo_tpl_take_name(parser);
        octavo_buffer_putc(&dotted, '.');
        octavo_buffer_append(&dotted, part->data, part->size);
    }
    if (!dotted.failed) name = octavo_tpl_intern(parser, dotted.data, dotted.size);
    octavo_buffer_deinit(&dotted);
    return name;
}

octavo_tpl_node *octavo_tpl_parse_filter(octavo_tpl_parser *parser, octavo_tpl_node *input) {
    do {
        octavo_tpl_node *node =
            octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_FILTER, parser->token.offset);
        node->as.apply.name = parse_dotted_name(parser);
        node->as.apply.builtin = octavo_tpl_filter_find(node->as.apply.name);
        node->as.apply.input = octavo_tpl_adopt(parser, node, input);
        if (octavo_tpl_at(parser, OCTAVO_TPL_LEFT_PAREN))
            node->as.apply.arguments = octavo_tpl_adopt(parser, node, parse_arguments(parser));
        input = node;
    } while (octavo_tpl_accept(parser, OCTAVO_TPL_PIPE));
    return input;
}

/* A test may have one argument without parentheses: x is divisibleby 3. */
static bool at_bare_argument(const octavo_tpl_parser *parser) {
    switch (parser->token.kind) {
    case OCTAVO_TPL_NAME:
        return !octavo_tpl_at_name(parser, "else") && !octavo_tpl_at_name(parser, "or") &&
               !octavo_tpl_at_name(parser, "and");
    case OCTAVO_TPL_STRING_LITERAL:
    case OCTAVO_TPL_INTEGER_LITERAL:
    case OCTAVO_TPL_FLOAT_LITERAL:
    case OCTAVO_TPL_LEFT_BRACKET:
    case OCTAVO_TPL_LEFT_BRACE:
        return true;
    default:
        return false;
    }
}

static octavo_tpl_node *parse_test(octavo_tpl_parser *parser, octavo_tpl_node *input) {
    uint32_t offset = parser->token.offset;
    octavo_tpl_expect_name(parser, "is");
    bool negated = octavo_tpl_accept_name(parser, "not");
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_TEST, offset);
    node->as.apply.name = parse_dotted_name(parser);
    node->as.apply.builtin = octavo_tpl_test_find(node->as.apply.name);
    node->as.apply.input = octavo_tpl_adopt(parser, node, input);
    octavo_tpl_node *arguments = NULL;
    if (octavo_tpl_at(parser, OCTAVO_TPL_LEFT_PAREN)) {
        arguments = parse_arguments(parser);
    } else if (at_bare_argument(parser)) {
        if (octavo_tpl_at_name(parser, "is"))
            octavo_tpl_parse_fail(parser, "tests cannot be chained; join them with 'and'");
        arguments = parse_postfix(parser, octavo_tpl_parse_primary(parser));
    }
    node->as.apply.arguments = octavo_tpl_adopt(parser, node, arguments);
    return negated ? pair(parser, OCTAVO_TPL_NODE_NOT, offset, node, NULL) : node;
}

static octavo_tpl_node *parse_filters_and_tests(octavo_tpl_parser *parser, octavo_tpl_node *node) {
    while (!octavo_tpl_parse_failed(parser)) {
        if (octavo_tpl_accept(parser, OCTAVO_TPL_PIPE))
            node = octavo_tpl_parse_filter(parser, node);
        else if (octavo_tpl_at_name(parser, "is"))
            node = parse_test(parser, node);
        else if (octavo_tpl_at(parser, OCTAVO_TPL_LEFT_PAREN))
            node = parse_call(parser, node);
        else
            break;
    }
    return node;
}

/* --- operators --- */

static octavo_tpl_node *parse_sign(octavo_tpl_parser *parser) {
    octavo_tpl_token token = parser->token;
    octavo_tpl_advance(parser);
    octavo_tpl_node *node =
        pair(parser, OCTAVO_TPL_NODE_UNARY, token.offset, parse_unary(parser, false), NULL);
    node->operation = (uint8_t)token.kind;
    return node;
}

static octavo_tpl_node *parse_unary(octavo_tpl_parser *parser, bool with_filters) {
    octavo_tpl_node *node;
    if (!octavo_tpl_enter(parser)) return constant(parser, 0, octavo_tpl_none());
    if (octavo_tpl_at(parser, OCTAVO_TPL_MINUS) || octavo_tpl_at(parser, OCTAVO_TPL_PLUS))
        node = parse_sign(parser);
    else
        node = octavo_tpl_parse_primary(parser);
    node = parse_postfix(parser, node);
    if (with_filters) node = parse_filters_and_tests(parser, node);
    octavo_tpl_leave(parser);
    return node;
}

/* Binding strength of the arithmetic operators, 0 for any other token. ~ is apart, see below. */
static int strength(octavo_tpl_token_kind kind) {
    switch (kind) {
    case OCTAVO_TPL_PLUS:
    case OCTAVO_TPL_MINUS:
        return 1;
    case OCTAVO_TPL_TILDE:
        return 2;
    case OCTAVO_TPL_STAR:
    case OCTAVO_TPL_SLASH:
    case OCTAVO_TPL_DOUBLE_SLASH:
    case OCTAVO_TPL_PERCENT:
        return 3;
    case OCTAVO_TPL_DOUBLE_STAR:
        return 4;
    default:
        return 0;
    }
}

/* a ~ b ~ c joins all at once. */
static octavo_tpl_node *parse_arithmetic(octavo_tpl_parser *parser, int weakest);

static octavo_tpl_node *parse_concat(octavo_tpl_parser *parser, octavo_tpl_node *first) {
    octavo_tpl_node *node =
        octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_CONCAT, parser->token.offset);
    octavo_tpl_nodes operands = {0};
    octavo_tpl_append(&operands, first);
    while (octavo_tpl_accept(parser, OCTAVO_TPL_TILDE))
        octavo_tpl_append(&operands, parse_arithmetic(parser, strength(OCTAVO_TPL_TILDE) + 1));
    node->as.children = octavo_tpl_adopt(parser, node, operands.first);
    return node;
}

/* All of it associates to the left, ** too. */
static octavo_tpl_node *parse_arithmetic(octavo_tpl_parser *parser, int weakest) {
    octavo_tpl_node *left = parse_unary(parser, true);
    while (strength(parser->token.kind) >= weakest && !octavo_tpl_parse_failed(parser)) {
        octavo_tpl_token token = parser->token;
        if (token.kind == OCTAVO_TPL_TILDE) {
            left = parse_concat(parser, left);
            continue;
        }
        octavo_tpl_advance(parser);
        octavo_tpl_node *right = parse_arithmetic(parser, strength(token.kind) + 1);
        left = pair(parser, OCTAVO_TPL_NODE_BINARY, token.offset, left, right);
        left->operation = (uint8_t)token.kind;
    }
    return left;
}

/* Takes a comparison operator; false when there is none. `in` is NAME, `not in` is TILDE. */
static bool accept_comparison(octavo_tpl_parser *parser, octavo_tpl_token_kind *operation) {
    *operation = parser->token.kind;
    if (*operation >= OCTAVO_TPL_EQ && *operation <= OCTAVO_TPL_LE) {
        octavo_tpl_advance(parser);
        return true;
    }
    *operation = OCTAVO_TPL_NAME;
    if (octavo_tpl_accept_name(parser, "in")) return true;
    if (!octavo_tpl_at_name(parser, "not") || octavo_tpl_peek(parser) != OCTAVO_TPL_NAME ||
        parser->ahead.size != 2 || memcmp(parser->ahead.text, "in", 2) != 0)
        return false;
    *operation = OCTAVO_TPL_TILDE;
    octavo_tpl_advance(parser);
    octavo_tpl_advance(parser);
    return true;
}

static octavo_tpl_node *parse_comparison(octavo_tpl_parser *parser) {
    octavo_tpl_node *first = parse_arithmetic(parser, 1);
    octavo_tpl_nodes operands = {0};
    octavo_tpl_token_kind operation;
    uint32_t offset = parser->token.offset;
    octavo_tpl_append(&operands, first);
    while (!octavo_tpl_parse_failed(parser) && accept_comparison(parser, &operation)) {
        octavo_tpl_node *operand = pair(parser, OCTAVO_TPL_NODE_OPERAND, parser->token.offset,
                                        parse_arithmetic(parser, 1), NULL);
        operand->operation = (uint8_t)operation;
        octavo_tpl_append(&operands, operand);
    }
    if (operands.count == 1) return first;
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_COMPARE, offset);
    node->as.children = octavo_tpl_adopt(parser, node, operands.first);
    return node;
}

static octavo_tpl_node *parse_not(octavo_tpl_parser *parser) {
    uint32_t offset = parser->token.offset;
    if (!octavo_tpl_accept_name(parser, "not")) return parse_comparison(parser);
    if (!octavo_tpl_enter(parser)) return constant(parser, offset, octavo_tpl_none());
    octavo_tpl_node *node = pair(parser, OCTAVO_TPL_NODE_NOT, offset, parse_not(parser), NULL);
    octavo_tpl_leave(parser);
    return node;
}

static octavo_tpl_node *parse_and(octavo_tpl_parser *parser) {
    octavo_tpl_node *left = parse_not(parser);
    uint32_t offset = parser->token.offset;
    while (octavo_tpl_accept_name(parser, "and"))
        left = pair(parser, OCTAVO_TPL_NODE_AND, offset, left, parse_not(parser));
    return left;
}

static octavo_tpl_node *parse_or(octavo_tpl_parser *parser) {
    octavo_tpl_node *left = parse_and(parser);
    uint32_t offset = parser->token.offset;
    while (octavo_tpl_accept_name(parser, "or"))
        left = pair(parser, OCTAVO_TPL_NODE_OR, offset, left, parse_and(parser));
    return left;
}

octavo_tpl_node *octavo_tpl_parse_expression(octavo_tpl_parser *parser) {
    if (!octavo_tpl_enter(parser)) return constant(parser, 0, octavo_tpl_none());
    octavo_tpl_node *then = parse_or(parser);
    uint32_t offset = parser->token.offset;
    while (octavo_tpl_accept_name(parser, "if")) {
        octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_CONDITION, offset);
        node->as.condition.then = octavo_tpl_adopt(parser, node, then);
        node->as.condition.test = octavo_tpl_adopt(parser, node, parse_or(parser));
        if (octavo_tpl_accept_name(parser, "else"))
            node->as.condition.otherwise =
                octavo_tpl_adopt(parser, node, octavo_tpl_parse_expression(parser));
        then = node;
    }
    octavo_tpl_leave(parser);
    return then;
}

static bool at_tuple_end(const octavo_tpl_parser *parser) {
    return octavo_tpl_at(parser, OCTAVO_TPL_PRINT_END) ||
           octavo_tpl_at(parser, OCTAVO_TPL_BLOCK_END) ||
           octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_PAREN) || octavo_tpl_at(parser, OCTAVO_TPL_END) ||
           octavo_tpl_at_name(parser, "recursive");
}

octavo_tpl_node *octavo_tpl_parse_tuple(octavo_tpl_parser *parser, bool conditional) {
    uint32_t offset = parser->token.offset;
    octavo_tpl_nodes items = {0};
    bool comma = false;
    do {
        if (comma && at_tuple_end(parser)) break;
        octavo_tpl_append(&items,
                          conditional ? octavo_tpl_parse_expression(parser) : parse_or(parser));
        comma = octavo_tpl_accept(parser, OCTAVO_TPL_COMMA);
    } while (comma);
    if (items.count == 1 && !comma) return items.first;
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_TUPLE, offset);
    node->as.children = octavo_tpl_adopt(parser, node, items.first);
    return node;
}
