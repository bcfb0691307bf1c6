/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of a parsed template. Immutable once parsed; all of it lives in the template's arena.
 * Names are interned: two equal names are one pointer. No path down the tree is longer than
 * OCTAVO_TPL_MAX_HEIGHT, which bounds every recursion over it.
 */
#ifndef OCTAVO_TEXT_TEMPLATE_AST_H
#define OCTAVO_TEXT_TEMPLATE_AST_H

#include "text/template_lex.h"
#include "text/template_value.h"

#define OCTAVO_TPL_MAX_HEIGHT 400u

typedef enum octavo_tpl_node_kind {
    /* expressions */
    OCTAVO_TPL_NODE_CONSTANT,
    OCTAVO_TPL_NODE_NAME,
    OCTAVO_TPL_NODE_LIST,  /* children: items */
    OCTAVO_TPL_NODE_TUPLE, /* the same; also a target */
    OCTAVO_TPL_NODE_DICT,  /* children: key, value, key, value, ... */
    OCTAVO_TPL_NODE_ATTRIBUTE,
    OCTAVO_TPL_NODE_ITEM,
    OCTAVO_TPL_NODE_SLICE, /* only as the index of an ITEM */
    OCTAVO_TPL_NODE_CALL,
    OCTAVO_TPL_NODE_FILTER,
    OCTAVO_TPL_NODE_TEST,
    OCTAVO_TPL_NODE_UNARY,  /* left; operation: PLUS or MINUS */
    OCTAVO_TPL_NODE_NOT,    /* left */
    OCTAVO_TPL_NODE_BINARY, /* left, right; operation: an arithmetic token */
    OCTAVO_TPL_NODE_AND,
    OCTAVO_TPL_NODE_OR,
    OCTAVO_TPL_NODE_CONCAT,  /* children: operands */
    OCTAVO_TPL_NODE_COMPARE, /* children: first operand, then OPERANDs */
    OCTAVO_TPL_NODE_OPERAND, /* left; operation: EQ..LE, or NAME for in, TILDE for not in */
    OCTAVO_TPL_NODE_CONDITION,
    OCTAVO_TPL_NODE_CAPTURED, /* what the enclosing filter or set block collected */
    /* arguments of a call; plain expressions are positional */
    OCTAVO_TPL_NODE_KEYWORD,     /* name = value */
    OCTAVO_TPL_NODE_SPREAD,      /* *left */
    OCTAVO_TPL_NODE_SPREAD_DICT, /* **left */
    /* statements */
    OCTAVO_TPL_NODE_DATA,
    OCTAVO_TPL_NODE_PRINT, /* left */
    OCTAVO_TPL_NODE_IF,    /* a CONDITION whose branches are statements */
    OCTAVO_TPL_NODE_FOR,
    OCTAVO_TPL_NODE_SET,
    OCTAVO_TPL_NODE_SET_BLOCK,
    OCTAVO_TPL_NODE_FILTER_BLOCK,
    OCTAVO_TPL_NODE_MACRO,
    OCTAVO_TPL_NODE_CALL_BLOCK,
    OCTAVO_TPL_NODE_PARAMETER, /* a KEYWORD whose value may be NULL */
    OCTAVO_TPL_NODE_WITH,      /* assign: target list, value list, body */
    OCTAVO_TPL_NODE_SCOPE,     /* body in children: the generation tag */
    OCTAVO_TPL_NODE_BREAK,
    OCTAVO_TPL_NODE_CONTINUE,
    OCTAVO_TPL_NODE_NAMESPACE_TARGET, /* attribute.name of the variable keyword.name */
} octavo_tpl_node_kind;

/* Bits of a macro's `operation`: what else than its parameters its body asks for. A macro that
 * mentions none of them takes no surplus arguments. */
#define OCTAVO_TPL_MENTIONS_CALLER  1u
#define OCTAVO_TPL_MENTIONS_VARARGS 2u
#define OCTAVO_TPL_MENTIONS_KWARGS  4u

typedef struct octavo_tpl_node octavo_tpl_node;

/* A name that a scope hides from its start, until it is assigned: see template_scope.c. */
typedef struct octavo_tpl_hidden {
    const octavo_tpl_string **names; /* [count] */
    size_t count;
} octavo_tpl_hidden;

struct octavo_tpl_node {
    uint8_t kind;      /* octavo_tpl_node_kind */
    uint8_t operation; /* octavo_tpl_token_kind; of a macro OCTAVO_TPL_MENTIONS_... */
    uint16_t height;   /* longest path below */
    uint32_t offset;
    octavo_tpl_node *next;     /* sibling in a list */
    octavo_tpl_hidden *hidden; /* of the scope that a statement with a body opens; or NULL */
    union {
        octavo_tpl_value constant;
        const octavo_tpl_string *name;
        octavo_tpl_node *children;
        struct {
            octavo_tpl_node *left, *right;
        } pair;
        struct {
            octavo_tpl_node *object;
            const octavo_tpl_string *name;
        } attribute;
        struct {
            octavo_tpl_node *object, *index;
        } item;
        struct {
            octavo_tpl_node *start, *stop, *step; /* NULL when left out */
        } slice;
        struct {
            octavo_tpl_node *callee, *arguments;
        } call;
        struct {
            octavo_tpl_node *input, *arguments;
            const octavo_tpl_string *name;
            const octavo_tpl_builtin *builtin; /* NULL: no such filter or test */
        } apply;
        struct {
            octavo_tpl_node *test, *then, *otherwise; /* otherwise may be NULL */
        } condition;
        struct {
            const octavo_tpl_string *name;
            octavo_tpl_node *value;
        } keyword;
        struct {
            const octavo_tpl_string *name, *member;
        } member;
        struct {
            const char *text;
            size_t size;
        } data;
        struct {
            octavo_tpl_node *target, *iterable, *test, *body, *otherwise;
            bool recursive;
        } loop;
        struct {
            octavo_tpl_node *target, *value, *body; /* of blocks: value filters the CAPTURED body */
        } assign;
        struct {
            const octavo_tpl_string *name; /* of a macro */
            octavo_tpl_node *parameters, *body;
            octavo_tpl_node *call; /* of a call block */
        } macro;
    } as;
};

/* Filters and tests by name (template_filters.c, template_tests.c); NULL when there is none. */
const octavo_tpl_builtin *octavo_tpl_filter_find(const octavo_tpl_string *name);
const octavo_tpl_builtin *octavo_tpl_test_find(const octavo_tpl_string *name);

struct octavo_template {
    octavo_arena arena;
    char *source; /* [size], normalised line ends */
    size_t size;
    octavo_tpl_node *body;
    octavo_tpl_hidden *hidden; /* of the outermost scope */
    /* names that calls look for */
    const octavo_tpl_string *name_caller, *name_varargs, *name_kwargs, *name_loop;
};

#endif
