/* SPDX-License-Identifier: Apache-2.0
 *
 * The lexer of templates: text, tags, comments and raw blocks. Tokens inside tags are in
 * template_lex_tag.c.
 */
#include "text/template_lex.h"

#include "base/error.h"
#include "text/template_lex_tag.h"
#include "text/template_string.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

octavo_tpl_place octavo_tpl_find_place(const char *source, size_t offset) {
    octavo_tpl_place place = {1, 1};
    for (size_t i = 0; i < offset; i++) {
        if (source[i] == '\n')
            place = (octavo_tpl_place){place.line + 1, 1};
        else
            place.column += ((unsigned char)source[i] & 0xc0) != 0x80;
    }
    return place;
}

void octavo_tpl_lex_fail(octavo_tpl_lexer *lexer, octavo_status status, size_t offset,
                         const char *format, ...) {
    char why[300];
    va_list args;
    if (lexer->status != OCTAVO_OK) return;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    octavo_tpl_place place = octavo_tpl_find_place(lexer->source, offset);
    lexer->status =
        octavo_fail_at(lexer->error, status, (int64_t)offset,
                       "chat template (line %zu, column %zu): %s", place.line, place.column, why);
}

const char *octavo_tpl_token_name(octavo_tpl_token_kind kind) {
    static const char *const names[] = {
        "the end of the template",
        "text",
        "'{%'",
        "'%}'",
        "'{{'",
        "'}}'",
        "a name",
        "a string",
        "a number",
        "a number",
        "'+'",
        "'-'",
        "'/'",
        "'//'",
        "'*'",
        "'**'",
        "'%'",
        "'~'",
        "'['",
        "']'",
        "'('",
        "')'",
        "'{'",
        "'}'",
        "'=='",
        "'!='",
        "'>'",
        "'>='",
        "'<'",
        "'<='",
        "'='",
        "'.'",
        "':'",
        "'|'",
        "','",
        "';'",
    };
    return names[kind];
}

static bool at_text(const octavo_tpl_lexer *lexer, size_t at, const char *text) {
    size_t size = strlen(text);
    return lexer->size - at >= size && memcmp(lexer->source + at, text, size) == 0;
}

/* The next "{%", "{{" or "{#" from `at` on, or the end. */
static size_t find_tag(const octavo_tpl_lexer *lexer, size_t at) {
    while (at + 1 < lexer->size) {
        const char *brace = memchr(lexer->source + at, '{', lexer->size - 1 - at);
        if (brace == NULL) break;
        at = (size_t)(brace - lexer->source);
        if (brace[1] == '%' || brace[1] == '{' || brace[1] == '#') return at;
        at++;
    }
    return lexer->size;
}

static char sign_at(const octavo_tpl_lexer *lexer, size_t at) {
    if (at < lexer->size && (lexer->source[at] == '-' || lexer->source[at] == '+'))
        return lexer->source[at];
    return '\0';
}

/* End of the text [from, tag) after what the tag's sign, or lstrip_blocks, takes away. */
static size_t strip_before(const octavo_tpl_lexer *lexer, size_t from, size_t tag, char sign,
                           bool is_print) {
    const char *text = lexer->source + from;
    if (sign == '-') return from + octavo_utf8_trim_end(text, tag - from);
    if (sign == '+' || is_print) return tag;
    size_t line = tag;
    while (line > from && lexer->source[line - 1] != '\n')
        line--;
    if (line == from && from > 0 && lexer->source[from - 1] != '\n') return tag;
    size_t blank = octavo_utf8_skip_space(lexer->source, tag, line);
    return blank == tag ? line : tag;
}

/* Behind the end of a block tag or comment ("%}" or "#}") at `at`; 0 when there is none. */
static size_t end_of(const octavo_tpl_lexer *lexer, size_t at, const char *end) {
    char sign = sign_at(lexer, at);
    if (!at_text(lexer, at + (sign != '\0'), end)) return 0;
    at += (sign != '\0') + 2;
    if (sign == '-') return octavo_utf8_skip_space(lexer->source, lexer->size, at);
    if (sign == '\0' && at < lexer->size && lexer->source[at] == '\n') at++;
    return at;
}

size_t octavo_tpl_tag_end(const octavo_tpl_lexer *lexer) {
    size_t at = lexer->at;
    if (lexer->mode == OCTAVO_TPL_LEX_BLOCK) return end_of(lexer, at, "%}");
    if (at_text(lexer, at, "-}}"))
        return octavo_utf8_skip_space(lexer->source, lexer->size, at + 3);
    return at_text(lexer, at, "}}") ? at + 2 : 0;
}

static void skip_comment(octavo_tpl_lexer *lexer, size_t at) {
    size_t start = lexer->tag;
    for (; at < lexer->size; at++) {
        char c = lexer->source[at];
        size_t end = c == '#' || c == '-' || c == '+' ? end_of(lexer, at, "#}") : 0;
        if (end != 0) {
            lexer->at = end;
            return;
        }
    }
    octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, start, "a comment is not closed; add '#}'");
}

/* A whole tag that holds only `word`: behind it, or 0. `raw` begins without trim_blocks. */
static size_t word_tag(const octavo_tpl_lexer *lexer, size_t at, const char *word, bool is_end) {
    at += 2;
    at += sign_at(lexer, at) != '\0';
    at = octavo_utf8_skip_space(lexer->source, lexer->size, at);
    if (!at_text(lexer, at, word)) return 0;
    at = octavo_utf8_skip_space(lexer->source, lexer->size, at + strlen(word));
    if (is_end) return end_of(lexer, at, "%}");
    if (at_text(lexer, at, "-%}"))
        return octavo_utf8_skip_space(lexer->source, lexer->size, at + 3);
    return at_text(lexer, at, "%}") ? at + 2 : 0;
}

static octavo_tpl_token data_token(const octavo_tpl_lexer *lexer, size_t from, size_t end) {
    return (octavo_tpl_token){.kind = OCTAVO_TPL_DATA,
                              .offset = (uint32_t)from,
                              .text = lexer->source + from,
                              .size = end - from};
}

/* Text up to the next tag; leaves the lexer behind the tag's opening. */
static octavo_tpl_token lex_data(octavo_tpl_lexer *lexer) {
    size_t from = lexer->at, tag = find_tag(lexer, from), raw;
    if (tag == lexer->size) {
        lexer->at = lexer->size;
        return data_token(lexer, from, tag);
    }
    char kind = lexer->source[tag + 1], sign = sign_at(lexer, tag + 2);
    size_t end = strip_before(lexer, from, tag, sign, kind == '{');
    lexer->tag = tag;
    lexer->at = tag + 2 + (sign != '\0');
    if (kind == '#') {
        skip_comment(lexer, lexer->at);
    } else if (kind == '%' && (raw = word_tag(lexer, tag, "raw", false)) != 0) {
        lexer->at = raw;
        lexer->mode = OCTAVO_TPL_LEX_RAW;
    } else {
        lexer->mode = kind == '%' ? OCTAVO_TPL_LEX_BLOCK : OCTAVO_TPL_LEX_PRINT;
        lexer->begin_pending = true;
    }
    return data_token(lexer, from, end);
}

static octavo_tpl_token lex_raw(octavo_tpl_lexer *lexer) {
    size_t from = lexer->at;
    for (size_t tag = from; tag + 1 < lexer->size; tag++) {
        if (lexer->source[tag] != '{' || lexer->source[tag + 1] != '%') continue;
        size_t behind = word_tag(lexer, tag, "endraw", true);
        if (behind == 0) continue;
        lexer->at = behind;
        lexer->mode = OCTAVO_TPL_LEX_DATA;
        return data_token(lexer, from,
                          strip_before(lexer, from, tag, sign_at(lexer, tag + 2), false));
    }
    octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, lexer->tag,
                        "a raw block is not closed; add '{%% endraw %%}'");
    return (octavo_tpl_token){.kind = OCTAVO_TPL_END};
}

octavo_tpl_token octavo_tpl_next(octavo_tpl_lexer *lexer) {
    octavo_tpl_token token = {.kind = OCTAVO_TPL_END, .offset = (uint32_t)lexer->at};
    while (lexer->status == OCTAVO_OK) {
        if (lexer->begin_pending) {
            lexer->begin_pending = false;
            token.kind = lexer->mode == OCTAVO_TPL_LEX_BLOCK ? OCTAVO_TPL_BLOCK_BEGIN
                                                             : OCTAVO_TPL_PRINT_BEGIN;
            token.offset = (uint32_t)lexer->tag;
            return token;
        }
        if (lexer->mode == OCTAVO_TPL_LEX_BLOCK || lexer->mode == OCTAVO_TPL_LEX_PRINT) {
            token = octavo_tpl_next_in_tag(lexer);
            if (lexer->status == OCTAVO_OK) return token;
            break;
        }
        if (lexer->mode == OCTAVO_TPL_LEX_DATA && lexer->at == lexer->size) break;
        token = lexer->mode == OCTAVO_TPL_LEX_RAW ? lex_raw(lexer) : lex_data(lexer);
        if (token.size > 0 && lexer->status == OCTAVO_OK) return token;
    }
    return (octavo_tpl_token){.kind = OCTAVO_TPL_END, .offset = (uint32_t)lexer->at};
}
