/* SPDX-License-Identifier: Apache-2.0
 *
 * The two dialects agree on nearly everything that tokenizers use. Where they differ in what a
 * class of characters holds, it is spelled out: \s is White_Space (PCRE2's has U+180E), \w has the
 * marks, \h is a hexadecimal digit. Where they differ in structure (nested and intersected classes,
 * a plus behind a counted repeat) the expression is refused rather than read in another sense. And
 * PCRE2's verbs in front of a pattern, which change its limits, are not let through.
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
    if (!in_class && (letter == 'b' || letter == 'B')) return 0; /* where words end differs */
    if (letter == 'u') {                                         /* four digits */
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

/* Copies the class at text[at] == '['. On success *end is behind it. */
static octavo_status put_class(octavo_text text, size_t at, size_t *end, octavo_buffer *out,
                               octavo_error *error) {
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
        bool is_named = c == '[' && at + 1 < text.length && text.data[at + 1] == ':';
        if (c == '[' && !is_named) return refuse(text, "a class inside a class", error);
        if (c == '&' && at + 1 < text.length && text.data[at + 1] == '&')
            return refuse(text, "an intersection of classes", error);
        if (is_named) { /* [:alpha:], up to and with its own bracket */
            const char *close = memchr(text.data + at, ']', text.length - at);
            if (close == NULL) break;
            size_t size = (size_t)(close - text.data) + 1 - at;
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

octavo_status octavo_regex_translate(octavo_text text, octavo_buffer *out, octavo_error *error) {
    if (text.length != 0 && memchr(text.data, '\0', text.length) != NULL)
        return refuse(text, "a zero byte", error);
    octavo_buffer_append(out, "", 0);
    for (size_t at = 0; at < text.length;) {
        char c = text.data[at];
        if (c == '[') {
            octavo_status status = put_class(text, at, &at, out, error);
            if (status != OCTAVO_OK) return status;
        } else if (c == '\\') {
            size_t size = put_escape(text, at, false, out);
            if (size == 0) return refuse(text, "an escape of it", error);
            at += size;
        } else if (c == '(' && at + 1 < text.length && text.data[at + 1] == '*') {
            return refuse(text, "a verb", error);
        } else if (c == '(' && is_odd_group(text, at)) {
            return refuse(text, "a group of this kind", error);
        } else if (c == '}' && at + 1 < text.length && text.data[at + 1] == '+') {
            return refuse(text, "a plus behind a counted repeat", error);
        } else {
            octavo_buffer_putc(out, c);
            at++;
        }
    }
    octavo_buffer_putc(out, '\0'); /* an empty expression too has text */
    if (out->failed) return octavo_fail_memory(error, "regular expression", text.length);
    return OCTAVO_OK;
}
