/* SPDX-License-Identifier: Apache-2.0
 *
 * Template text to tokens, one at a time. White space control (the signs on tags, trim_blocks,
 * lstrip_blocks), comments and raw blocks are over with here: what comes out as DATA is printed as
 * it is.
 */
#ifndef OCTAVO_TEXT_TEMPLATE_LEX_H
#define OCTAVO_TEXT_TEMPLATE_LEX_H

#include "base/compiler.h"
#include "base/memory.h"

#include "octavo/template.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum octavo_tpl_token_kind {
    OCTAVO_TPL_END, /* of the text, or after an error */
    OCTAVO_TPL_DATA,
    OCTAVO_TPL_BLOCK_BEGIN,
    OCTAVO_TPL_BLOCK_END,
    OCTAVO_TPL_PRINT_BEGIN,
    OCTAVO_TPL_PRINT_END,
    OCTAVO_TPL_NAME,
    OCTAVO_TPL_STRING_LITERAL,
    OCTAVO_TPL_INTEGER_LITERAL,
    OCTAVO_TPL_FLOAT_LITERAL,
    OCTAVO_TPL_PLUS,
    OCTAVO_TPL_MINUS,
    OCTAVO_TPL_SLASH,
    OCTAVO_TPL_DOUBLE_SLASH,
    OCTAVO_TPL_STAR,
    OCTAVO_TPL_DOUBLE_STAR,
    OCTAVO_TPL_PERCENT,
    OCTAVO_TPL_TILDE,
    OCTAVO_TPL_LEFT_BRACKET,
    OCTAVO_TPL_RIGHT_BRACKET,
    OCTAVO_TPL_LEFT_PAREN,
    OCTAVO_TPL_RIGHT_PAREN,
    OCTAVO_TPL_LEFT_BRACE,
    OCTAVO_TPL_RIGHT_BRACE,
    OCTAVO_TPL_EQ,
    OCTAVO_TPL_NE,
    OCTAVO_TPL_GT,
    OCTAVO_TPL_GE,
    OCTAVO_TPL_LT,
    OCTAVO_TPL_LE,
    OCTAVO_TPL_ASSIGN,
    OCTAVO_TPL_DOT,
    OCTAVO_TPL_COLON,
    OCTAVO_TPL_PIPE,
    OCTAVO_TPL_COMMA,
    OCTAVO_TPL_SEMICOLON,
} octavo_tpl_token_kind;

typedef struct octavo_tpl_token {
    octavo_tpl_token_kind kind;
    uint32_t offset;  /* in the normalised text */
    const char *text; /* DATA, NAME, literal of a string (escapes resolved): [size] */
    size_t size;
    int64_t integer;
    double real;
} octavo_tpl_token;

typedef enum octavo_tpl_lex_mode {
    OCTAVO_TPL_LEX_DATA,
    OCTAVO_TPL_LEX_BLOCK,
    OCTAVO_TPL_LEX_PRINT,
    OCTAVO_TPL_LEX_RAW,
} octavo_tpl_lex_mode;

/* Zero-initialise, then set source, size, arena and error. The first error sticks in `status`. */
typedef struct octavo_tpl_lexer {
    const char *source; /* [size], valid UTF-8, all line ends are \n */
    size_t size;
    size_t at;
    octavo_tpl_lex_mode mode;
    bool begin_pending;                      /* the tag whose data was just given out */
    size_t tag;                              /* where that tag, or the raw block, starts */
    char nesting[OCTAVO_TEMPLATE_MAX_DEPTH]; /* closing brackets that are still due */
    size_t nested;
    octavo_arena *arena;
    octavo_status status;
    octavo_error *error;
} octavo_tpl_lexer;

octavo_tpl_token octavo_tpl_next(octavo_tpl_lexer *lexer);

/* How a token is called in a message: "'('", "the end of the template". */
const char *octavo_tpl_token_name(octavo_tpl_token_kind kind);

/* Keeps the first error: "chat template (line N, column M): ...". */
void octavo_tpl_lex_fail(octavo_tpl_lexer *lexer, octavo_status status, size_t offset,
                         const char *format, ...) OCTAVO_PRINTF(4, 5);
/* Where a byte of a template stands for its reader: both from 1, columns in characters. */
typedef struct octavo_tpl_place {
    size_t line, column;
} octavo_tpl_place;
octavo_tpl_place octavo_tpl_find_place(const char *source, size_t offset);

/* The number that digits, point and exponent say, whatever the locale; false when it is none. */
bool octavo_tpl_read_float(const char *text, size_t size, double *real);

#endif
