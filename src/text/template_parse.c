/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements, and what both halves of the parser stand on: tokens, names, nodes.
 */
#include "text/template_parse.h"

#include "base/error.h"
#include "text/template_string.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- tokens --- */

void octavo_tpl_parse_fail(octavo_tpl_parser *parser, const char *format, ...) {
    char why[300];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    octavo_tpl_lex_fail(&parser->lexer, OCTAVO_ERROR_FORMAT, parser->token.offset, "%s", why);
    parser->token.kind = OCTAVO_TPL_END;
    parser->has_ahead = false;
}

void octavo_tpl_unexpected(octavo_tpl_parser *parser, const char *wanted) {
    const octavo_tpl_token *token = &parser->token;
    if (token->kind == OCTAVO_TPL_NAME)
        octavo_tpl_parse_fail(parser, "expected %s, found '%.*s'", wanted,
                              token->size < 40 ? (int)token->size : 40, token->text);
    else
        octavo_tpl_parse_fail(parser, "expected %s, found %s", wanted,
                              octavo_tpl_token_name(token->kind));
}

void octavo_tpl_advance(octavo_tpl_parser *parser) {
    if (octavo_tpl_parse_failed(parser))
        parser->token.kind = OCTAVO_TPL_END;
    else if (parser->has_ahead)
        parser->token = parser->ahead;
    else
        parser->token = octavo_tpl_next(&parser->lexer);
    parser->has_ahead = false;
}

octavo_tpl_token_kind octavo_tpl_peek(octavo_tpl_parser *parser) {
    if (!parser->has_ahead) parser->ahead = octavo_tpl_next(&parser->lexer);
    parser->has_ahead = true;
    return parser->ahead.kind;
}

bool octavo_tpl_at(const octavo_tpl_parser *parser, octavo_tpl_token_kind kind) {
    return parser->token.kind == kind;
}

bool octavo_tpl_at_name(const octavo_tpl_parser *parser, const char *name) {
    return parser->token.kind == OCTAVO_TPL_NAME && parser->token.size == strlen(name) &&
           memcmp(parser->token.text, name, parser->token.size) == 0;
}

bool octavo_tpl_accept(octavo_tpl_parser *parser, octavo_tpl_token_kind kind) {
    if (!octavo_tpl_at(parser, kind)) return false;
    octavo_tpl_advance(parser);
    return true;
}

bool octavo_tpl_accept_name(octavo_tpl_parser *parser, const char *name) {
    if (!octavo_tpl_at_name(parser, name)) return false;
    octavo_tpl_advance(parser);
    return true;
}

void octavo_tpl_expect(octavo_tpl_parser *parser, octavo_tpl_token_kind kind) {
    if (!octavo_tpl_accept(parser, kind))
        octavo_tpl_unexpected(parser, octavo_tpl_token_name(kind));
}

void octavo_tpl_expect_name(octavo_tpl_parser *parser, const char *name) {
    if (!octavo_tpl_accept_name(parser, name)) octavo_tpl_unexpected(parser, name);
}

bool octavo_tpl_enter(octavo_tpl_parser *parser) {
    if (parser->depth < OCTAVO_TEMPLATE_MAX_DEPTH) {
        parser->depth++;
        return true;
    }
    octavo_tpl_lex_fail(&parser->lexer, OCTAVO_ERROR_LIMIT, parser->token.offset,
                        "tags and expressions are nested deeper than %u",
                        OCTAVO_TEMPLATE_MAX_DEPTH);
    parser->token.kind = OCTAVO_TPL_END;
    return false;
}

void octavo_tpl_leave(octavo_tpl_parser *parser) {
    parser->depth--;
}

/* --- names --- */

static void out_of_memory(octavo_tpl_parser *parser, size_t bytes) {
    if (!octavo_tpl_parse_failed(parser))
        parser->lexer.status = octavo_fail_memory(parser->lexer.error, "chat template", bytes);
}

static const octavo_tpl_string **name_slot(const octavo_tpl_names *names, const char *text,
                                           size_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    size_t at = (size_t)(hash ^ (hash >> 32)) & (names->capacity - 1);
    while (names->slots[at] != NULL &&
           (names->slots[at]->size != size || memcmp(names->slots[at]->data, text, size) != 0))
        at = (at + 1) & (names->capacity - 1);
    return &names->slots[at];
}

/* The table grows in the arena; what it leaves behind is as much as what it keeps. */
static bool names_reserve(octavo_tpl_parser *parser) {
    octavo_tpl_names *names = &parser->names, bigger = {0};
    if (names->count * 2 < names->capacity) return true;
    bigger.capacity = names->capacity > 0 ? names->capacity * 2 : 64;
    bigger.count = names->count;
    bigger.slots = octavo_arena_alloc(parser->arena, bigger.capacity * sizeof *bigger.slots);
    if (bigger.slots == NULL) return false;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i] != NULL)
            *name_slot(&bigger, names->slots[i]->data, names->slots[i]->size) = names->slots[i];
    *names = bigger;
    return true;
}

const octavo_tpl_string *octavo_tpl_intern(octavo_tpl_parser *parser, const char *text,
                                           size_t size) {
    static const octavo_tpl_string empty = {"", 0, 0};
    if (octavo_tpl_parse_failed(parser)) return &empty;
    if (names_reserve(parser)) {
        const octavo_tpl_string **slot = name_slot(&parser->names, text, size);
        if (*slot != NULL) return *slot;
        octavo_tpl_string *name = octavo_arena_alloc(parser->arena, sizeof *name);
        const char *copy = octavo_arena_strndup(parser->arena, text, size);
        if (name != NULL && copy != NULL) {
            *name = (octavo_tpl_string){copy, size, octavo_utf8_length(text, size)};
            *slot = name;
            parser->names.count++;
            return name;
        }
    }
    out_of_memory(parser, size);
    return &empty;
}

const octavo_tpl_string *octavo_tpl_take_name(octavo_tpl_parser *parser) {
    octavo_tpl_token token = parser->token;
    octavo_tpl_expect(parser, OCTAVO_TPL_NAME);
    return octavo_tpl_intern(parser, token.text, token.size);
}

/* --- nodes --- */

octavo_tpl_node *octavo_tpl_node_new(octavo_tpl_parser *parser, octavo_tpl_node_kind kind,
                                     uint32_t offset) {
    octavo_tpl_node *node = NULL;
    if (!octavo_tpl_parse_failed(parser)) {
        node = octavo_arena_alloc(parser->arena, sizeof *node);
        if (node == NULL) out_of_memory(parser, sizeof *node);
    }
    if (node == NULL) return &parser->failed;
    node->kind = (uint8_t)kind;
    node->offset = offset;
    return node;
}

octavo_tpl_node *octavo_tpl_adopt(octavo_tpl_parser *parser, octavo_tpl_node *node,
                                  octavo_tpl_node *child) {
    if (octavo_tpl_parse_failed(parser)) return child;
    for (const octavo_tpl_node *c = child; c != NULL; c = c->next)
        if (c->height >= node->height) node->height = (uint16_t)(c->height + 1);
    if (node->height > OCTAVO_TPL_MAX_HEIGHT) {
        octavo_tpl_lex_fail(&parser->lexer, OCTAVO_ERROR_LIMIT, node->offset,
                            "an expression or a chain of elif is longer than %u",
                            OCTAVO_TPL_MAX_HEIGHT);
        parser->token.kind = OCTAVO_TPL_END;
    }
    return child;
}

void octavo_tpl_append(octavo_tpl_nodes *list, octavo_tpl_node *node) {
    list->count++;
    if (list->first == NULL)
        list->first = node;
    else if (list->last != node)
        list->last->next = node; /* the failed node may come twice */
    list->last = node;
}

/* --- targets of assignments --- */

static octavo_tpl_node *parse_name_target(octavo_tpl_parser *parser) {
    static const char *const fixed[] = {"true", "false", "none", "True", "False", "None"};
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_NAME, parser->token.offset);
    for (size_t i = 0; i < OCTAVO_COUNT(fixed); i++)
        if (octavo_tpl_at_name(parser, fixed[i]))
            octavo_tpl_parse_fail(parser, "'%s' cannot be assigned to", fixed[i]);
    node->as.name = octavo_tpl_take_name(parser);
    return node;
}

static octavo_tpl_node *parse_targets(octavo_tpl_parser *parser, bool with_namespace);

static octavo_tpl_node *parse_one_target(octavo_tpl_parser *parser, bool with_namespace) {
    if (octavo_tpl_accept(parser, OCTAVO_TPL_LEFT_PAREN)) {
        octavo_tpl_node *inner = parse_targets(parser, with_namespace);
        octavo_tpl_expect(parser, OCTAVO_TPL_RIGHT_PAREN);
        return inner;
    }
    if (!with_namespace || !octavo_tpl_at(parser, OCTAVO_TPL_NAME) ||
        octavo_tpl_peek(parser) != OCTAVO_TPL_DOT)
        return parse_name_target(parser);
    octavo_tpl_node *node =
        octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_NAMESPACE_TARGET, parser->token.offset);
    node->as.member.name = octavo_tpl_take_name(parser);
    octavo_tpl_expect(parser, OCTAVO_TPL_DOT);
    node->as.member.member = octavo_tpl_take_name(parser);
    return node;
}

static octavo_tpl_node *parse_targets(octavo_tpl_parser *parser, bool with_namespace) {
    uint32_t offset = parser->token.offset;
    octavo_tpl_nodes targets = {0};
    bool comma = false;
    if (!octavo_tpl_enter(parser)) return &parser->failed;
    do {
        if (comma && !octavo_tpl_at(parser, OCTAVO_TPL_LEFT_PAREN) &&
            (!octavo_tpl_at(parser, OCTAVO_TPL_NAME) || octavo_tpl_at_name(parser, "in")))
            break;
        octavo_tpl_append(&targets, parse_one_target(parser, with_namespace));
        comma = octavo_tpl_accept(parser, OCTAVO_TPL_COMMA);
    } while (comma);
    octavo_tpl_leave(parser);
    if (targets.count == 1 && !comma) return targets.first;
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_TUPLE, offset);
    node->as.children = octavo_tpl_adopt(parser, node, targets.first);
    return node;
}

/* --- statements --- */

/* Statements up to a tag whose name is one of `ends` (NULL-terminated; NULL: the end of the text).
 * Leaves the parser at that name. */
static octavo_tpl_node *parse_body(octavo_tpl_parser *parser, const char *const *ends);

/* The rest of a tag, its body and the name of its end tag. */
static octavo_tpl_node *parse_block_body(octavo_tpl_parser *parser, const char *end) {
    const char *const ends[] = {end, NULL};
    octavo_tpl_accept(parser, OCTAVO_TPL_COLON);
    octavo_tpl_expect(parser, OCTAVO_TPL_BLOCK_END);
    octavo_tpl_node *body = parse_body(parser, ends);
    octavo_tpl_expect_name(parser, end);
    return body;
}

static octavo_tpl_node *parse_branch(octavo_tpl_parser *parser, const char *const *ends) {
    octavo_tpl_accept(parser, OCTAVO_TPL_COLON);
    octavo_tpl_expect(parser, OCTAVO_TPL_BLOCK_END);
    return parse_body(parser, ends);
}

static octavo_tpl_node *parse_if(octavo_tpl_parser *parser, uint32_t offset) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_IF, offset);
    if (!octavo_tpl_enter(parser)) return node;
    node->as.condition.test = octavo_tpl_adopt(parser, node, octavo_tpl_parse_tuple(parser, false));
    node->as.condition.then = octavo_tpl_adopt(parser, node, parse_branch(parser, ends));
    octavo_tpl_node *otherwise = NULL;
    if (octavo_tpl_at_name(parser, "elif")) {
        uint32_t at = parser->token.offset;
        octavo_tpl_advance(parser);
        otherwise = parse_if(parser, at);
    } else if (octavo_tpl_accept_name(parser, "else")) {
        otherwise = parse_block_body(parser, "endif");
    } else {
        octavo_tpl_expect_name(parser, "endif");
    }
    node->as.condition.otherwise = octavo_tpl_adopt(parser, node, otherwise);
    octavo_tpl_leave(parser);
    return node;
}

static octavo_tpl_node *parse_for(octavo_tpl_parser *parser, uint32_t offset) {
    static const char *const ends[] = {"else", "endfor", NULL};
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_FOR, offset);
    node->as.loop.target = octavo_tpl_adopt(parser, node, parse_targets(parser, false));
    octavo_tpl_expect_name(parser, "in");
    node->as.loop.iterable = octavo_tpl_adopt(parser, node, octavo_tpl_parse_tuple(parser, false));
    if (octavo_tpl_accept_name(parser, "if"))
        node->as.loop.test = octavo_tpl_adopt(parser, node, octavo_tpl_parse_expression(parser));
    node->as.loop.recursive = octavo_tpl_accept_name(parser, "recursive");
    parser->loops++;
    node->as.loop.body = octavo_tpl_adopt(parser, node, parse_branch(parser, ends));
    parser->loops--;
    if (octavo_tpl_accept_name(parser, "else"))
        node->as.loop.otherwise =
            octavo_tpl_adopt(parser, node, parse_block_body(parser, "endfor"));
    else
        octavo_tpl_expect_name(parser, "endfor");
    return node;
}

static octavo_tpl_node *captured(octavo_tpl_parser *parser) {
    return octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_CAPTURED, parser->token.offset);
}

static octavo_tpl_node *parse_set(octavo_tpl_parser *parser, uint32_t offset) {
    octavo_tpl_node *target = parse_targets(parser, true);
    bool is_block = !octavo_tpl_accept(parser, OCTAVO_TPL_ASSIGN);
    octavo_tpl_node *node = octavo_tpl_node_new(
        parser, is_block ? OCTAVO_TPL_NODE_SET_BLOCK : OCTAVO_TPL_NODE_SET, offset);
    node->as.assign.target = octavo_tpl_adopt(parser, node, target);
    octavo_tpl_node *value;
    if (!is_block)
        value = octavo_tpl_parse_tuple(parser, true);
    else if (octavo_tpl_accept(parser, OCTAVO_TPL_PIPE))
        value = octavo_tpl_parse_filter(parser, captured(parser));
    else
        value = captured(parser);
    node->as.assign.value = octavo_tpl_adopt(parser, node, value);
    if (is_block)
        node->as.assign.body = octavo_tpl_adopt(parser, node, parse_block_body(parser, "endset"));
    return node;
}

static octavo_tpl_node *parse_filter_block(octavo_tpl_parser *parser, uint32_t offset) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_FILTER_BLOCK, offset);
    node->as.assign.value =
        octavo_tpl_adopt(parser, node, octavo_tpl_parse_filter(parser, captured(parser)));
    node->as.assign.body = octavo_tpl_adopt(parser, node, parse_block_body(parser, "endfilter"));
    return node;
}

static octavo_tpl_node *parse_parameters(octavo_tpl_parser *parser) {
    octavo_tpl_nodes list = {0};
    bool has_default = false;
    octavo_tpl_expect(parser, OCTAVO_TPL_LEFT_PAREN);
    while (!octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_PAREN) && !octavo_tpl_parse_failed(parser)) {
        octavo_tpl_node *node =
            octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_PARAMETER, parser->token.offset);
        node->as.keyword.name = octavo_tpl_take_name(parser);
        if (octavo_tpl_accept(parser, OCTAVO_TPL_ASSIGN)) {
            node->as.keyword.value =
                octavo_tpl_adopt(parser, node, octavo_tpl_parse_expression(parser));
            has_default = true;
        } else if (has_default) {
            octavo_tpl_parse_fail(parser, "a parameter without default follows one with it");
        }
        octavo_tpl_append(&list, node);
        if (!octavo_tpl_at(parser, OCTAVO_TPL_RIGHT_PAREN))
            octavo_tpl_expect(parser, OCTAVO_TPL_COMMA);
    }
    octavo_tpl_expect(parser, OCTAVO_TPL_RIGHT_PAREN);
    return list.first;
}

/* The body of a macro is apart from the loops around it. */
static octavo_tpl_node *parse_macro_body(octavo_tpl_parser *parser, const char *end) {
    unsigned loops = parser->loops;
    parser->loops = 0;
    octavo_tpl_node *body = parse_block_body(parser, end);
    parser->loops = loops;
    return body;
}

/* The body of a macro or call block; notes which of the special names it mentions. */
static void parse_callable_body(octavo_tpl_parser *parser, octavo_tpl_node *node, const char *end) {
    uint8_t outside = parser->mentioned;
    parser->mentioned = 0;
    node->as.macro.body = octavo_tpl_adopt(parser, node, parse_macro_body(parser, end));
    node->operation = parser->mentioned;
    parser->mentioned |= outside;
}

static octavo_tpl_node *parse_macro(octavo_tpl_parser *parser, uint32_t offset) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_MACRO, offset);
    node->as.macro.name = octavo_tpl_take_name(parser);
    node->as.macro.parameters = octavo_tpl_adopt(parser, node, parse_parameters(parser));
    parse_callable_body(parser, node, "endmacro");
    return node;
}

static octavo_tpl_node *parse_call_block(octavo_tpl_parser *parser, uint32_t offset) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_CALL_BLOCK, offset);
    if (octavo_tpl_at(parser, OCTAVO_TPL_LEFT_PAREN))
        node->as.macro.parameters = octavo_tpl_adopt(parser, node, parse_parameters(parser));
    octavo_tpl_node *call = octavo_tpl_adopt(parser, node, octavo_tpl_parse_expression(parser));
    if (call->kind != OCTAVO_TPL_NODE_CALL)
        octavo_tpl_parse_fail(parser, "a call block needs a call of a macro");
    node->as.macro.call = call;
    parse_callable_body(parser, node, "endcall");
    return node;
}

static octavo_tpl_node *parse_with(octavo_tpl_parser *parser, uint32_t offset) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_WITH, offset);
    octavo_tpl_nodes targets = {0}, values = {0};
    while (!octavo_tpl_at(parser, OCTAVO_TPL_BLOCK_END) && !octavo_tpl_parse_failed(parser)) {
        octavo_tpl_append(&targets, parse_one_target(parser, false));
        octavo_tpl_expect(parser, OCTAVO_TPL_ASSIGN);
        octavo_tpl_append(&values, octavo_tpl_parse_expression(parser));
        if (!octavo_tpl_accept(parser, OCTAVO_TPL_COMMA)) break;
    }
    node->as.assign.target = octavo_tpl_adopt(parser, node, targets.first);
    node->as.assign.value = octavo_tpl_adopt(parser, node, values.first);
    node->as.assign.body = octavo_tpl_adopt(parser, node, parse_block_body(parser, "endwith"));
    return node;
}

static octavo_tpl_node *parse_generation(octavo_tpl_parser *parser, uint32_t offset) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_SCOPE, offset);
    node->as.children = octavo_tpl_adopt(parser, node, parse_macro_body(parser, "endgeneration"));
    return node;
}

static octavo_tpl_node *parse_print(octavo_tpl_parser *parser, uint32_t offset) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_PRINT, offset);
    node->as.pair.left = octavo_tpl_adopt(parser, node, octavo_tpl_parse_tuple(parser, true));
    return node;
}

static octavo_tpl_node *parse_jump(octavo_tpl_parser *parser, octavo_tpl_node_kind kind,
                                   uint32_t offset) {
    if (parser->loops == 0) octavo_tpl_parse_fail(parser, "break or continue outside of a loop");
    return octavo_tpl_node_new(parser, kind, offset);
}

static void fail_tag(octavo_tpl_parser *parser, octavo_tpl_token tag) {
    static const char *const known[] = {"block", "extends",    "include", "import", "from",
                                        "do",    "autoescape", "trans",   "debug",  "print"};
    int size = tag.size < 40 ? (int)tag.size : 40;
    for (size_t i = 0; i < OCTAVO_COUNT(known); i++)
        if (strlen(known[i]) == tag.size && memcmp(known[i], tag.text, tag.size) == 0)
            octavo_tpl_lex_fail(&parser->lexer, OCTAVO_ERROR_UNSUPPORTED, tag.offset,
                                "the tag '%s' is not offered here", known[i]);
    parser->token.offset = tag.offset;
    octavo_tpl_parse_fail(parser, "unexpected tag '%.*s'; is a block not closed?", size, tag.text);
}

static octavo_tpl_node *parse_statement(octavo_tpl_parser *parser) {
    static const struct {
        const char *name;
        octavo_tpl_node *(*parse)(octavo_tpl_parser *parser, uint32_t offset);
    } statements[] = {
        {"if", parse_if},           {"for", parse_for},
        {"set", parse_set},         {"macro", parse_macro},
        {"call", parse_call_block}, {"filter", parse_filter_block},
        {"with", parse_with},       {"generation", parse_generation},
    };
    octavo_tpl_token tag = parser->token;
    if (tag.kind != OCTAVO_TPL_NAME) {
        octavo_tpl_unexpected(parser, "the name of a tag");
        return &parser->failed;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(statements); i++)
        if (octavo_tpl_accept_name(parser, statements[i].name))
            return statements[i].parse(parser, tag.offset);
    if (octavo_tpl_accept_name(parser, "break"))
        return parse_jump(parser, OCTAVO_TPL_NODE_BREAK, tag.offset);
    if (octavo_tpl_accept_name(parser, "continue"))
        return parse_jump(parser, OCTAVO_TPL_NODE_CONTINUE, tag.offset);
    fail_tag(parser, tag);
    return &parser->failed;
}

static bool at_end_tag(const octavo_tpl_parser *parser, const char *const *ends) {
    for (; ends != NULL && *ends != NULL; ends++)
        if (octavo_tpl_at_name(parser, *ends)) return true;
    return false;
}

static octavo_tpl_node *parse_data(octavo_tpl_parser *parser) {
    octavo_tpl_node *node = octavo_tpl_node_new(parser, OCTAVO_TPL_NODE_DATA, parser->token.offset);
    node->as.data.text = parser->token.text;
    node->as.data.size = parser->token.size;
    octavo_tpl_advance(parser);
    return node;
}

static octavo_tpl_node *parse_body(octavo_tpl_parser *parser, const char *const *ends) {
    octavo_tpl_nodes body = {0};
    if (!octavo_tpl_enter(parser)) return NULL;
    while (!octavo_tpl_at(parser, OCTAVO_TPL_END)) {
        uint32_t offset = parser->token.offset;
        if (octavo_tpl_at(parser, OCTAVO_TPL_DATA)) {
            octavo_tpl_append(&body, parse_data(parser));
        } else if (octavo_tpl_accept(parser, OCTAVO_TPL_PRINT_BEGIN)) {
            octavo_tpl_append(&body, parse_print(parser, offset));
            octavo_tpl_expect(parser, OCTAVO_TPL_PRINT_END);
        } else {
            octavo_tpl_expect(parser, OCTAVO_TPL_BLOCK_BEGIN);
            if (at_end_tag(parser, ends)) break;
            octavo_tpl_append(&body, parse_statement(parser));
            octavo_tpl_expect(parser, OCTAVO_TPL_BLOCK_END);
        }
    }
    octavo_tpl_leave(parser);
    return body.first;
}

octavo_tpl_node *octavo_tpl_parse(octavo_tpl_parser *parser) {
    octavo_tpl_advance(parser);
    return parse_body(parser, NULL);
}
