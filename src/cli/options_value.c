/* SPDX-License-Identifier: Apache-2.0
 *
 * From an argument's text to a field of an options struct. Every refusal names the option, the text
 * and what would be taken.
 */
#include "cli/options_value.h"

#include "base/memory.h"
#include "cli/report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Decimal digits only: no sign, no white space, no hexadecimal. */
static bool parse_digits(const char *text, const char **end, uint64_t *value) {
    uint64_t sum = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        unsigned digit = (unsigned)(*p - '0');
        if (sum > (UINT64_MAX - digit) / 10) return false;
        sum = sum * 10 + digit;
    }
    *end = p;
    *value = sum;
    return p != text;
}

static bool parse_int(const char *text, int64_t *value) {
    const char *end;
    uint64_t digits;
    bool is_negative = *text == '-';
    if (!parse_digits(text + is_negative, &end, &digits) || *end || digits > INT64_MAX)
        return false;
    *value = is_negative ? -(int64_t)digits : (int64_t)digits;
    return true;
}

static bool parse_real(const char *text, double *value) {
    char *end;
    if (text[strspn(text, "0123456789.eE+-")] || isspace((unsigned char)*text)) return false;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

/* Units count by 1024, with or without "iB": that is what caches and pages are made of. */
static bool parse_size(const char *text, uint64_t *value) {
    const char *unit;
    uint64_t digits;
    if (!parse_digits(text, &unit, &digits)) return false;
    unsigned shift = 0;
    if (*unit && strcmp(unit, "B") != 0) {
        const char *letters = "KMGT", *letter = strchr(letters, toupper((unsigned char)*unit));
        if (!letter || (unit[1] && strcmp(unit + 1, "iB") != 0)) return false;
        shift = 10 * (unsigned)(letter - letters + 1);
    }
    if (digits == 0 || digits > UINT64_MAX >> shift) return false;
    *value = digits << shift;
    return true;
}

int octavo_words_find(const char *words, const char *word) {
    size_t length = strlen(word);
    for (int i = 0; words; i++) {
        const char *bar = strchr(words, '|');
        size_t n = bar ? (size_t)(bar - words) : strlen(words);
        if (n == length && memcmp(words, word, n) == 0) return i;
        words = bar ? bar + 1 : NULL;
    }
    return -1;
}

static int store_int(const octavo_option *option, const char *text, void *field) {
    int64_t value;
    if (!parse_int(text, &value) || (double)value < option->min || (double)value > option->max)
        return octavo_cli_usage("option %s (%s): not a whole number in its range; give %.0f to "
                                "%.0f",
                                option->name, text, option->min, option->max);
    memcpy(field, &value, sizeof value);
    return -1;
}

static int store_seed(const octavo_option *option, const char *text, void *field) {
    uint64_t value;
    const char *end;
    if (!parse_digits(text, &end, &value) || *end)
        return octavo_cli_usage("option %s (%s): not a whole number in its range; give 0 to %llu",
                                option->name, text, (unsigned long long)UINT64_MAX);
    memcpy(field, &value, sizeof value);
    return -1;
}

static int store_real(const octavo_option *option, const char *text, void *field) {
    double value;
    if (!parse_real(text, &value) || value < option->min || value > option->max)
        return octavo_cli_usage("option %s (%s): not a number in its range; give %g to %g",
                                option->name, text, option->min, option->max);
    memcpy(field, &value, sizeof value);
    return -1;
}

static int store_size(const octavo_option *option, const char *text, void *field) {
    uint64_t value;
    if (!parse_size(text, &value))
        return octavo_cli_usage("option %s (%s): not a size; give a whole number of bytes such as "
                                "512MiB or 4GiB",
                                option->name, text);
    memcpy(field, &value, sizeof value);
    return -1;
}

static int append_text(const octavo_option *option, const char *text, octavo_texts *texts) {
    const char **items = octavo_realloc(texts->items, (texts->n + 1) * sizeof *items);
    if (!items) return octavo_cli_usage("option %s (%s): out of memory", option->name, text);
    texts->items = items;
    texts->items[texts->n++] = text;
    return -1;
}

void octavo_texts_deinit(octavo_texts *texts) {
    octavo_free(texts->items);
    *texts = (octavo_texts){0};
}

static int store_choice(const octavo_option *option, const char *text, void *field) {
    int index = octavo_words_find(option->value, text);
    if (index < 0)
        return octavo_cli_usage("option %s (%s): no such choice; give one of %s", option->name,
                                text, option->value);
    memcpy(field, &index, sizeof index);
    return -1;
}

static int check_later(const octavo_option *option, const char *text) {
    if (octavo_words_find(option->value, text) >= 0) return -1;
    octavo_cli_usage("option %s (%s): not in this version; leave it out or give %s", option->name,
                     text, option->value);
    return OCTAVO_EXIT_FAILED;
}

int octavo_option_store(const octavo_option *option, const char *text, void *values) {
    void *field = (char *)values + option->offset;
    switch (option->kind) {
    case OCTAVO_OPTION_FLAG:
        *(bool *)field = true;
        return -1;
    case OCTAVO_OPTION_INT:
        return store_int(option, text, field);
    case OCTAVO_OPTION_SEED:
        return store_seed(option, text, field);
    case OCTAVO_OPTION_REAL:
        return store_real(option, text, field);
    case OCTAVO_OPTION_SIZE:
        return store_size(option, text, field);
    case OCTAVO_OPTION_TEXT:
        *(const char **)field = text;
        return -1;
    case OCTAVO_OPTION_PAIR: {
        const char **pair = field;
        if (pair[1]) pair[0] = pair[1] = NULL; /* given again */
        pair[pair[0] ? 1 : 0] = text;
        return -1;
    }
    case OCTAVO_OPTION_TEXTS:
        return append_text(option, text, field);
    case OCTAVO_OPTION_CHOICE:
        return store_choice(option, text, field);
    case OCTAVO_OPTION_LATER:
        return check_later(option, text);
    }
    return OCTAVO_EXIT_USAGE;
}
