/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser: recursive descent over the lexer's tokens, statements in template_parse.c and
 * expressions in template_parse_expression.c. After the first error (kept in lexer.status) every
 * token is the end of the text, so that all loops stop.
 */
#ifndef OCTAVO_TEXT_TEMPLATE_PARSE_H
#define OCTAVO_TEXT_TEMPLATE_PARSE_H

#include "text/template_ast.h"
#include "text/template_lex.h"

/* Interned names: open addressing, at most half full. */
typedef struct octavo_tpl_names {
    const octavo_tpl_string **slots; /* [capacity] */
    size_t capacity, count;
} octavo_tpl_names;

typedef struct octavo_tpl_parser {
    octavo_tpl_lexer lexer;
    octavo_tpl_token token, ahead;
    bool has_ahead;
    octavo_arena *arena;
    octavo_tpl_names names;
    unsigned depth;         /* of the recursion */
    uint8_t mentioned;      /* OCTAVO_TPL_MENTIONS_... of the current macro so far */
    unsigned loops;         /* loops around the current statement, within its macro */
    octavo_tpl_node failed; /* stands for every node after an error */
} octavo_tpl_parser;

/* Children in order, for building lists of siblings. */
typedef struct octavo_tpl_nodes {
    octavo_tpl_node *first, *last;
    size_t count;
} octavo_tpl_nodes;

/* Parses all of lexer.source. */
octavo_tpl_node *octavo_tpl_parse(octavo_tpl_parser *parser);
const octavo_tpl_string *octavo_tpl_intern(octavo_tpl_parser *parser, const char *text,
                                           size_t size);

/* --- shared by the two files --- */

static inline bool octavo_tpl_parse_failed(const octavo_tpl_parser *parser) {
    return parser->lexer.status != OCTAVO_OK;
}
void octavo_tpl_advance(octavo_tpl_parser *parser);
octavo_tpl_token_kind octavo_tpl_peek(octavo_tpl_parser *parser); /* the token after this one */
bool octavo_tpl_at(const octavo_tpl_parser *parser, octavo_tpl_token_kind kind);
bool octavo_tpl_at_name(const octavo_tpl_parser *parser, const char *name);
bool octavo_tpl_accept(octavo_tpl_parser *parser, octavo_tpl_token_kind kind);
bool octavo_tpl_accept_name(octavo_tpl_parser *parser, const char *name);
void octavo_tpl_expect(octavo_tpl_parser *parser, octavo_tpl_token_kind kind);
void octavo_tpl_expect_name(octavo_tpl_parser *parser, const char *name);
/* Interned; the empty name after an error. */
const octavo_tpl_string *octavo_tpl_take_name(octavo_tpl_parser *parser);
void octavo_tpl_parse_fail(octavo_tpl_parser *parser, const char *format, ...) OCTAVO_PRINTF(2, 3);
void octavo_tpl_unexpected(octavo_tpl_parser *parser, const char *wanted);
bool octavo_tpl_enter(octavo_tpl_parser *parser); /* false: too deep; else leave afterwards */
void octavo_tpl_leave(octavo_tpl_parser *parser);

/* Never NULL: after an error (no memory, say) the parser's failed node. */
octavo_tpl_node *octavo_tpl_node_new(octavo_tpl_parser *parser, octavo_tpl_node_kind kind,
                                     uint32_t offset);
/* Says that `child` (may be NULL) and its siblings hang below `node`; returns `child`. */
octavo_tpl_node *octavo_tpl_adopt(octavo_tpl_parser *parser, octavo_tpl_node *node,
                                  octavo_tpl_node *child);
void octavo_tpl_append(octavo_tpl_nodes *list, octavo_tpl_node *node);

octavo_tpl_node *octavo_tpl_parse_expression(octavo_tpl_parser *parser);
/* An expression or, with commas, a tuple; `conditional` allows a if b else c in it. */
octavo_tpl_node *octavo_tpl_parse_tuple(octavo_tpl_parser *parser, bool conditional);
octavo_tpl_node *octavo_tpl_parse_primary(octavo_tpl_parser *parser);
/* name{(args)}{|name...} with `input` at the bottom. */
octavo_tpl_node *octavo_tpl_parse_filter(octavo_tpl_parser *parser, octavo_tpl_node *input);

#endif
