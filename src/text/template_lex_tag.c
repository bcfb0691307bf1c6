/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens inside tags: names, numbers, strings and operators as Python spells them.
 */
#include "text/template_lex_tag.h"

#include "base/error.h"
#include "text/template_string.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Behind a run of digits with single underscores between them; `at` when there is no digit. */
static size_t skip_digits(const char *text, size_t size, size_t at) {
    size_t end = at;
    while (end < size &&
           (is_digit(text[end]) || (text[end] == '_' && end > at && end + 1 < size &&
                                    is_digit(text[end + 1]) && is_digit(text[end - 1]))))
        end++;
    return end;
}

bool octavo_tpl_read_float(const char *text, size_t size, double *real) {
    char small[64], *copy = small, *end = NULL;
    const char *point = localeconv()->decimal_point;
    size_t point_size = strlen(point), n = 0;
    bool good = false;
    if (size > 4096) return false;
    if (size + point_size >= sizeof small) copy = octavo_alloc(size + point_size + 1);
    if (copy == NULL) return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '.') {
            if (memchr(text, '.', i) != NULL) goto done;
            memcpy(copy + n, point, point_size);
            n += point_size;
        } else if (is_digit(text[i]) || text[i] == 'e' || text[i] == 'E' || text[i] == '+' ||
                   text[i] == '-') {
            copy[n++] = text[i];
        } else if (text[i] != '_') {
            goto done;
        }
    }
    copy[n] = '\0';
    *real = strtod(copy, &end);
    good = n > 0 && *end == '\0';
done:
    if (copy != small) octavo_free(copy);
    return good;
}

/* Behind a float that starts at `at`, or `at` when it is none. */
static size_t skip_float(const octavo_tpl_lexer *lexer, size_t at) {
    const char *text = lexer->source;
    size_t size = lexer->size, whole = skip_digits(text, size, at), end = whole;
    if (at > 0 && text[at - 1] == '.') return at; /* x.0.1: items 0 and 1 */
    if (end + 1 < size && text[end] == '.' && is_digit(text[end + 1]))
        end = skip_digits(text, size, end + 1);
    size_t exponent = end;
    if (exponent < size && (text[exponent] == 'e' || text[exponent] == 'E')) {
        exponent++;
        if (exponent < size && (text[exponent] == '+' || text[exponent] == '-')) exponent++;
        size_t behind = skip_digits(text, size, exponent);
        if (behind > exponent) end = behind;
    }
    return end > whole ? end : at;
}

static int digit_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

static int64_t read_integer(octavo_tpl_lexer *lexer, size_t *end) {
    const char *text = lexer->source;
    size_t start = lexer->at, at = start;
    int base = 10;
    int64_t value = 0;
    if (text[at] == '0' && at + 2 < lexer->size) {
        char letter = (char)(text[at + 1] | 0x20);
        int prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
        if (prefixed != 10 && digit_value(text[at + 2]) < prefixed) {
            base = prefixed;
            at += 2;
        }
    }
    bool zero = base == 10 && text[at] == '0'; /* 012 is a 0 and a 12 */
    for (; at < lexer->size; at++) {
        if (text[at] == '_' && at + 1 < lexer->size && digit_value(text[at + 1]) < base) continue;
        int digit = digit_value(text[at]);
        if (digit >= base || (zero && digit != 0)) break;
        if (value > (INT64_MAX - digit) / base) {
            octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_UNSUPPORTED, start,
                                "an integer has more than 64 bits");
            break;
        }
        value = value * base + digit;
    }
    *end = at;
    return value;
}

static octavo_tpl_token lex_number(octavo_tpl_lexer *lexer) {
    octavo_tpl_token token = {.offset = (uint32_t)lexer->at};
    size_t end = skip_float(lexer, lexer->at);
    if (end > lexer->at) {
        token.kind = OCTAVO_TPL_FLOAT_LITERAL;
        if (!octavo_tpl_read_float(lexer->source + lexer->at, end - lexer->at, &token.real))
            octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, lexer->at, "a number cannot be read");
    } else {
        token.kind = OCTAVO_TPL_INTEGER_LITERAL;
        token.integer = read_integer(lexer, &end);
    }
    lexer->at = end;
    return token;
}

/* --- strings --- */

/* `count` hexadecimal digits at `at`, or -1. */
static int32_t read_hex(const char *text, size_t size, size_t at, size_t count) {
    int64_t value = 0;
    if (size - at < count) return -1;
    for (size_t i = 0; i < count; i++) {
        int digit = digit_value(text[at + i]);
        if (digit > 15) return -1;
        value = value * 16 + digit;
    }
    return value <= 0x10ffff ? (int32_t)value : -1;
}

static int simple_escape(char c) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    return found != NULL ? to[found - from] : -1;
}

/* Resolves the escape at text[at] (behind the backslash); the bytes go to `out`, *at moves behind
 * it. False for a malformed one. */
static bool resolve_escape(const char *text, size_t size, size_t *at, char *out, size_t *n) {
    char c = text[*at];
    int simple = simple_escape(c);
    int32_t codepoint = -1;
    if (simple >= 0) {
        out[(*n)++] = (char)simple;
        *at += 1;
        return true;
    }
    if (c == '\n') { /* a line continued */
        *at += 1;
        return true;
    }
    if (c >= '0' && c <= '7') {
        codepoint = 0;
        for (int i = 0; i < 3 && *at < size && text[*at] >= '0' && text[*at] <= '7'; i++)
            codepoint = codepoint * 8 + (text[(*at)++] - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        codepoint = read_hex(text, size, *at + 1, digits);
        if (codepoint < 0) return false;
        *at += 1 + digits;
        if (codepoint >= 0xd800 && codepoint < 0xdc00 && size - *at >= 6 && text[*at] == '\\' &&
            text[*at + 1] == 'u') {
            int32_t low = read_hex(text, size, *at + 2, 4);
            if (low >= 0xdc00 && low < 0xe000) {
                codepoint = 0x10000 + ((codepoint - 0xd800) << 10) + (low - 0xdc00);
                *at += 6;
            }
        }
    } else if (c == 'N') {
        return false;
    } else { /* not an escape: the backslash stays */
        out[(*n)++] = '\\';
        return true;
    }
    *n += octavo_utf8_encode(codepoint, out + *n);
    return true;
}

static octavo_tpl_token lex_string(octavo_tpl_lexer *lexer) {
    const char *source = lexer->source;
    size_t start = lexer->at, end = start + 1;
    bool escaped = false;
    while (end < lexer->size && source[end] != source[start]) {
        if (source[end] == '\\') {
            escaped = true;
            end++;
        }
        end++;
    }
    octavo_tpl_token token = {.kind = OCTAVO_TPL_STRING_LITERAL, .offset = (uint32_t)start};
    if (end >= lexer->size) {
        octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, start, "a string is not closed");
        return token;
    }
    lexer->at = end + 1;
    token.text = source + start + 1;
    token.size = end - start - 1;
    if (!escaped) return token;
    /* no escape resolves to more bytes than it is written with; + 4 for the encoder's slack */
    char *out = octavo_arena_alloc(lexer->arena, token.size + 4);
    size_t n = 0;
    if (out == NULL) {
        lexer->status = octavo_fail_memory(lexer->error, "template string", token.size);
        return token;
    }
    for (size_t at = 0; at < token.size;) {
        if (token.text[at] != '\\') {
            out[n++] = token.text[at++];
            continue;
        }
        at++;
        if (!resolve_escape(token.text, token.size, &at, out, &n)) {
            octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, start + at,
                                "a string has a malformed escape");
            return token;
        }
    }
    token.text = out;
    token.size = n;
    return token;
}

/* --- names and operators --- */

static octavo_tpl_token lex_name(octavo_tpl_lexer *lexer) {
    size_t start = lexer->at, end = start;
    while (
        end < lexer->size &&
        octavo_utf8_is_name(octavo_utf8_codepoint(lexer->source, lexer->size, end), end == start))
        end = octavo_utf8_next(lexer->source, lexer->size, end);
    lexer->at = end;
    return (octavo_tpl_token){.kind = OCTAVO_TPL_NAME,
                              .offset = (uint32_t)start,
                              .text = lexer->source + start,
                              .size = end - start};
}

static const struct {
    char text[3];
    octavo_tpl_token_kind kind;
} operators[] = {
    {"//", OCTAVO_TPL_DOUBLE_SLASH},
    {"**", OCTAVO_TPL_DOUBLE_STAR},
    {"==", OCTAVO_TPL_EQ},
    {"!=", OCTAVO_TPL_NE},
    {">=", OCTAVO_TPL_GE},
    {"<=", OCTAVO_TPL_LE},
    {"+", OCTAVO_TPL_PLUS},
    {"-", OCTAVO_TPL_MINUS},
    {"/", OCTAVO_TPL_SLASH},
    {"*", OCTAVO_TPL_STAR},
    {"%", OCTAVO_TPL_PERCENT},
    {"~", OCTAVO_TPL_TILDE},
    {"[", OCTAVO_TPL_LEFT_BRACKET},
    {"]", OCTAVO_TPL_RIGHT_BRACKET},
    {"(", OCTAVO_TPL_LEFT_PAREN},
    {")", OCTAVO_TPL_RIGHT_PAREN},
    {"{", OCTAVO_TPL_LEFT_BRACE},
    {"}", OCTAVO_TPL_RIGHT_BRACE},
    {">", OCTAVO_TPL_GT},
    {"<", OCTAVO_TPL_LT},
    {"=", OCTAVO_TPL_ASSIGN},
    {".", OCTAVO_TPL_DOT},
    {":", OCTAVO_TPL_COLON},
    {"|", OCTAVO_TPL_PIPE},
    {",", OCTAVO_TPL_COMMA},
    {";", OCTAVO_TPL_SEMICOLON},
};

/* Tags end only outside of brackets, so that {{ {"a": {}} }} is whole. */
static void track_nesting(octavo_tpl_lexer *lexer, char c) {
    if (c == '(' || c == '[' || c == '{') {
        if (lexer->nested == sizeof lexer->nesting) {
            octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_LIMIT, lexer->at,
                                "brackets are nested deeper than %u", OCTAVO_TEMPLATE_MAX_DEPTH);
            return;
        }
        lexer->nesting[lexer->nested++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (lexer->nested == 0)
            octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, lexer->at, "'%c' closes nothing", c);
        else if (lexer->nesting[--lexer->nested] != c)
            octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, lexer->at, "'%c' where '%c' is due", c,
                                lexer->nesting[lexer->nested]);
    }
}

static octavo_tpl_token lex_operator(octavo_tpl_lexer *lexer) {
    octavo_tpl_token token = {.offset = (uint32_t)lexer->at};
    for (size_t i = 0; i < OCTAVO_COUNT(operators); i++) {
        size_t size = strlen(operators[i].text);
        if (lexer->size - lexer->at < size ||
            memcmp(lexer->source + lexer->at, operators[i].text, size) != 0)
            continue;
        track_nesting(lexer, lexer->source[lexer->at]);
        token.kind = operators[i].kind;
        lexer->at += size;
        return token;
    }
    octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, lexer->at, "unexpected character");
    return token;
}

octavo_tpl_token octavo_tpl_next_in_tag(octavo_tpl_lexer *lexer) {
    lexer->at = octavo_utf8_skip_space(lexer->source, lexer->size, lexer->at);
    octavo_tpl_token token = {.offset = (uint32_t)lexer->at};
    if (lexer->at == lexer->size) {
        octavo_tpl_lex_fail(lexer, OCTAVO_ERROR_FORMAT, lexer->tag, "a tag is not closed");
        return token;
    }
    size_t end = lexer->nested == 0 ? octavo_tpl_tag_end(lexer) : 0;
    if (end != 0) {
        token.kind =
            lexer->mode == OCTAVO_TPL_LEX_BLOCK ? OCTAVO_TPL_BLOCK_END : OCTAVO_TPL_PRINT_END;
        lexer->at = end;
        lexer->mode = OCTAVO_TPL_LEX_DATA;
        return token;
    }
    char c = lexer->source[lexer->at];
    if (is_digit(c)) return lex_number(lexer);
    if (c == '\'' || c == '"') return lex_string(lexer);
    if (octavo_utf8_is_name(octavo_utf8_codepoint(lexer->source, lexer->size, lexer->at), true))
        return lex_name(lexer);
    return lex_operator(lexer);
}
