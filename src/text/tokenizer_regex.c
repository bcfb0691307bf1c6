/* SPDX-License-Identifier: Apache-2.0
 *
 * The two dialects agree on nearly everything that tokenizers use. Where they differ in what a
 * class of characters holds, it is spelled out: \s is White_Space (PCRE2's has U+180E), \w has the
 * marks, \h is a hexadecimal digit, \b goes by that \w. A class inside a class is its letters, an
 * intersection of two becomes a look-ahead for one before the other, and a plus behind a counted
 * repeat repeats that, as a question mark behind a count of one number makes it optional. Where the
 * structure cannot be said the expression is refused rather than read in another sense. And PCRE2's
 * verbs in front of a pattern, which change its limits, are not let through.
 */
#include "text/tokenizer_regex.h"

#include "base/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#define SPACE                                                                                      \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define WORD                                                                                       \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}"                                         \
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define NUMBERS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" /* words too, but not inside classes */
#define HEX     "0-9A-Fa-f"

#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
#define ALPHABETIC "\\p{Alphabetic}"
#else
#define ALPHABETIC "\\p{L}\\p{Nl}\\p{M}" /* nearly */
#endif

#define WORD_END   "(?<=[" WORD NUMBERS "])(?![" WORD NUMBERS "])"
#define WORD_START "(?<![" WORD NUMBERS "])(?=[" WORD NUMBERS "])"

static octavo_status refuse(octavo_text text, const char *what, octavo_error *error) {
    int shown = text.length < 80 ? (int)text.length : 80;
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                       "regular expression \"%.*s\": %s is not supported", shown, text.data, what);
}

/* An escape that stands for a class. Returns false for any other. */
static bool put_class_escape(octavo_buffer *out, char letter, bool in_class) {
    const char *inside = NULL;
    switch (letter) {
    case 's':
    case 'S':
        inside = SPACE;
        break;
    case 'w':
    case 'W':
        inside = in_class ? WORD : WORD NUMBERS;
        break;
    case 'h':
    case 'H':
        inside = HEX;
        break;
    default:
        return false;
    }
    bool negated = letter < 'a';
    if (in_class && negated) return false;
    if (in_class)
        octavo_buffer_puts(out, inside);
    else
        octavo_buffer_printf(out, "[%s%s]", negated ? "^" : "", inside);
    return true;
}

/* Whether a property is a script. To PCRE2 from 10.40 on its name alone means more: the characters
 * that are used in it too. */
static bool is_script(const char *name, size_t length) {
    static const char *const scripts[] = {
        "Arabic",  "Armenian", "Bengali",  "Bopomofo", "Cyrillic", "Devanagari", "Georgian",
        "Greek",   "Gujarati", "Gurmukhi", "Han",      "Hangul",   "Hebrew",     "Hiragana",
        "Kannada", "Katakana", "Khmer",    "Lao",      "Latin",    "Malayalam",  "Mongolian",
        "Myanmar", "Sinhala",  "Tamil",    "Telugu",   "Thai",     "Tibetan",
    };
#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
    for (size_t i = 0; i < OCTAVO_COUNT(scripts); i++)
        if (strlen(scripts[i]) == length && memcmp(scripts[i], name, length) == 0) return true;
#else
    (void)scripts, (void)name, (void)length;
#endif
    return false;
}

/* Copies the escape at text[at], outside or inside a class. Returns its bytes, or 0. */
static size_t put_escape(octavo_text text, size_t at, bool in_class, octavo_buffer *out) {
    static const char refused_anywhere[] = "KGQENCgkRXM";
    if (at + 1 >= text.length) return 0;
    char letter = text.data[at + 1];
    if (put_class_escape(out, letter, in_class)) return 2;
    if (in_class && letter == 'S') { /* PCRE2 has the property from 10.40 on */
        octavo_buffer_puts(out, "\\P{White_Space}");
        return 2;
    }
    if (in_class && (letter == 'W' || letter == 'H')) return 0;
    if (letter == '\0' || strchr(refused_anywhere, letter) != NULL) return 0;
    if (!in_class && (letter == 'b' || letter == 'B')) {
        octavo_buffer_puts(out, letter == 'b' ? "(?:" WORD_END "|" WORD_START ")"
                                              : "(?!" WORD_END "|" WORD_START ")");
        return 2;
    }
    if (letter == 'u') { /* four digits */
        if (text.length - at < 6) return 0;
        octavo_buffer_printf(out, "\\x{%.4s}", text.data + at + 2);
        return 6;
    }
    size_t size = 2;
    if (at + 2 < text.length && text.data[at + 2] == '{' && strchr("pPxo", letter) != NULL) {
        const char *close = memchr(text.data + at, '}', text.length - at);
        if (close == NULL) return 0;
        size = (size_t)(close - text.data) + 1 - at;
        if ((letter == 'p' || letter == 'P') && is_script(text.data + at + 3, size - 4)) {
            octavo_buffer_printf(out, "\\%c{sc:%.*s}", letter, (int)size - 4, text.data + at + 3);
            return size;
        }
    }
    octavo_buffer_append(out, text.data + at, size);
    return size;
}

/* Whether a group opens at text[at] that means something else to PCRE2, or is not known to both:
 * recursion, conditions, callouts, and options other than i and x. */
static bool is_odd_group(octavo_text text, size_t at) {
    if (text.length - at < 3 || text.data[at + 1] != '?') return false;
    if (strchr("CR&P(+0123456789", text.data[at + 2]) != NULL) return true;
    for (at += 2; at < text.length; at++) {
        char c = text.data[at];
        if ((c < 'a' || c > 'z') && c != '-') return false;
        if (c != 'i' && c != 'x' && c != '-') return true;
    }
    return false;
}

enum { DEPTH_MAX = 8 }; /* of classes in classes */

static octavo_status put_class(octavo_text text, size_t at, int depth, size_t *end,
                               octavo_buffer *out, octavo_error *error);

/* Copies the class at text[at] that stands in another: its letters belong to that one. */
static octavo_status put_inner_class(octavo_text text, size_t at, int depth, size_t *end,
                                     octavo_buffer *out, octavo_error *error) {
    octavo_buffer inner = {0};
    octavo_status status = put_class(text, at, depth + 1, end, &inner, error);
    if (status == OCTAVO_OK && inner.failed)
        status = octavo_fail_memory(error, "regular expression", text.length);
    if (status == OCTAVO_OK && (inner.data[0] != '[' || inner.data[1] == '^'))
        status = refuse(text, "a negated class inside a class", error);
    if (status == OCTAVO_OK) octavo_buffer_append(out, inner.data + 1, inner.size - 2);
    octavo_buffer_deinit(&inner);
    return status;
}

/* Ends the class `out[from..)` at the "&&" of text[at]: what follows must be one class, then "]".
 */
static octavo_status put_intersection(octavo_text text, size_t at, int depth, size_t *end,
                                      octavo_buffer *out, size_t from, octavo_error *error) {
    octavo_buffer left = {0}, right = {0};
    octavo_status status = OCTAVO_OK;
    bool is_plain = !out->failed && out->data[from + 1] != '^';
    if (!is_plain || at + 2 >= text.length || text.data[at + 2] != '[')
        return refuse(text, "an intersection of this kind", error);
    status = put_class(text, at + 2, depth + 1, end, &right, error);
    if (status == OCTAVO_OK && (*end >= text.length || text.data[*end] != ']'))
        status = refuse(text, "an intersection of more than two classes", error);
    if (status == OCTAVO_OK) {
        (*end)++;
        octavo_buffer_append(&left, out->data + from, out->size - from);
        out->size = from;
        if (left.failed || right.failed)
            status = octavo_fail_memory(error, "regular expression", text.length);
    }
    if (status == OCTAVO_OK)
        octavo_buffer_printf(out, "(?:(?=%.*s)%.*s])", (int)right.size, right.data, (int)left.size,
                             left.data);
    octavo_buffer_deinit(&left);
    octavo_buffer_deinit(&right);
    return status;
}

/* Copies the class at text[at] == '['. On success *end is behind it. */
static octavo_status put_class(octavo_text text, size_t at, int depth, size_t *end,
                               octavo_buffer *out, octavo_error *error) {
    size_t from = out->size;
    if (depth == DEPTH_MAX) return refuse(text, "a class in so many others", error);
    octavo_buffer_putc(out, '[');
    at++;
    if (at < text.length && text.data[at] == '^') octavo_buffer_putc(out, text.data[at++]);
    for (bool first = true; at < text.length; first = false) {
        char c = text.data[at];
        if (c == ']' && !first) {
            octavo_buffer_putc(out, c);
            *end = at + 1;
            return OCTAVO_OK;
        }
        if (c == '\\') {
            size_t size = put_escape(text, at, true, out);
            if (size == 0) return refuse(text, "an escape in a class of it", error);
            at += size;
            continue;
        }
        if (c == '&' && at + 1 < text.length && text.data[at + 1] == '&')
            return put_intersection(text, at, depth, end, out, from, error);
        bool is_named = c == '[' && at + 1 < text.length && text.data[at + 1] == ':';
        if (c == '[' && !is_named) {
            octavo_status status = put_inner_class(text, at, depth, &at, out, error);
            if (status != OCTAVO_OK) return status;
            continue;
        }
        if (is_named) { /* [:alpha:], up to and with its own bracket */
            const char *close = memchr(text.data + at, ']', text.length - at);
            if (close == NULL) break;
            size_t size = (size_t)(close - text.data) + 1 - at;
            if (size == 9 && memcmp(text.data + at, "[:alpha:]", 9) == 0)
                octavo_buffer_puts(out, ALPHABETIC);
            else
                octavo_buffer_append(out, text.data + at, size);
            at += size;
            continue;
        }
        octavo_buffer_putc(out, c);
        at++;
    }
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "regular expression \"%.*s\": a class has no end; the file is damaged",
                       text.length < 80 ? (int)text.length : 80, text.data);
}

enum { GROUPS_MAX = 64 }; /* open at once */

/* Where in the translation the last thing that can be repeated begins. */
typedef struct atoms {
    size_t last;
    size_t groups[GROUPS_MAX]; /* where the open ones begin */
    size_t n_groups;
} atoms;

/* What stands behind a counted repeat and repeats the whole again: the atom and its count become a
 * group. */
static void repeat_again(octavo_buffer *out, size_t from, const char *how) {
    static const char open[] = "(?:";
    const size_t size = sizeof(open) - 1;
    octavo_buffer_puts(out, open);
    if (out->failed) return;
    memmove(out->data + from + size, out->data + from, out->size - size - from);
    memcpy(out->data + from, open, size);
    octavo_buffer_puts(out, how);
}

/* The bytes of a counted repeat, such as "{1,3}", at text[at]; 0 where the brace is a letter. */
static size_t count_size(octavo_text text, size_t at) {
    size_t end = at + 1, n_digits = 0;
    for (; end < text.length && text.data[end] != '}'; end++) {
        bool is_digit = text.data[end] >= '0' && text.data[end] <= '9';
        if (!is_digit && text.data[end] != ',') return 0;
        n_digits += is_digit;
    }
    return end < text.length && n_digits > 0 ? end + 1 - at : 0;
}

/* Copies one part of the expression and moves on. */
static octavo_status put_part(octavo_text text, size_t *at, atoms *a, octavo_buffer *out,
                              octavo_error *error) {
    char c = text.data[*at], next = *at + 1 < text.length ? text.data[*at + 1] : '\0';
    size_t start = out->size;
    if (c == '[') {
        a->last = start;
        return put_class(text, *at, 0, at, out, error);
    }
    if (c == '\\') {
        size_t size = put_escape(text, *at, false, out);
        if (size == 0) return refuse(text, "an escape of it", error);
        a->last = start;
        *at += size;
        return OCTAVO_OK;
    }
    if (c == '(' && next == '*') return refuse(text, "a verb", error);
    if (c == '(' && is_odd_group(text, *at)) return refuse(text, "a group of this kind", error);
    if (c == '(') {
        if (a->n_groups == GROUPS_MAX) return refuse(text, "so many groups in groups", error);
        a->groups[a->n_groups++] = start;
    } else if (c == ')') {
        if (a->n_groups > 0) a->last = a->groups[--a->n_groups];
    } else if (c == '{' && count_size(text, *at) > 0) {
        size_t size = count_size(text, *at);
        bool is_fixed = memchr(text.data + *at, ',', size) == NULL;
        octavo_buffer_append(out, text.data + *at, size);
        *at += size;
        char behind = *at < text.length ? text.data[*at] : '\0';
        if (behind != '+' && !(behind == '?' && is_fixed)) return OCTAVO_OK;
        repeat_again(out, a->last, behind == '+' ? ")+" : ")?");
        (*at)++;
        return OCTAVO_OK;
    } else if (strchr("*+?|", c) == NULL && ((unsigned char)c & 0xc0) != 0x80) {
        a->last = start;
    }
    octavo_buffer_putc(out, c);
    (*at)++;
    return OCTAVO_OK;
}

octavo_status octavo_regex_translate(octavo_text text, octavo_buffer *out, octavo_error *error) {
    atoms a = {.last = out->size};
    if (text.length != 0 && memchr(text.data, '\0', text.length) != NULL)
        return refuse(text, "a zero byte", error);
    octavo_buffer_append(out, "", 0);
    for (size_t at = 0; at < text.length;) {
        octavo_status status = put_part(text, &at, &a, out, error);
        if (status != OCTAVO_OK) return status;
    }
    octavo_buffer_putc(out, '\0'); /* an empty expression too has text */
    if (out->failed) return octavo_fail_memory(error, "regular expression", text.length);
    return OCTAVO_OK;
}
