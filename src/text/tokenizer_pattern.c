/* SPDX-License-Identifier: Apache-2.0
 *
 * Searching. Regular expressions come from files: what a search may cost is bounded by the length
 * of the text, with a margin that patterns which run forward only never need.
 */
#include "text/tokenizer_pattern.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "text/tokenizer_regex.h"
#include "text/tokenizer_utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <string.h>

enum {
    STEPS_FIXED = 1000000, /* backtracking steps of one match, whatever the text */
    STEPS_PER_BYTE = 64,
    HEAP_KIB = 1 << 20, /* PCRE2's own memory in one match */
};

struct octavo_regex {
    pcre2_general_context *memory;
    pcre2_code *code;
};

static void *context_alloc(PCRE2_SIZE bytes, void *cookie) {
    (void)cookie;
    return octavo_alloc(bytes);
}

static void context_free(void *p, void *cookie) {
    (void)cookie;
    octavo_free(p);
}

static void regex_destroy(struct octavo_regex *regex) {
    if (regex == NULL) return;
    pcre2_code_free(regex->code);
    pcre2_general_context_free(regex->memory);
    octavo_free(regex);
}

static octavo_status regex_compile(struct octavo_regex *regex, const char *text,
                                   octavo_error *error) {
    pcre2_compile_context *context = NULL;
    regex->memory = pcre2_general_context_create(context_alloc, context_free, NULL);
    if (regex->memory != NULL) context = pcre2_compile_context_create(regex->memory);
    if (context == NULL) return octavo_fail_memory(error, "regular expression", sizeof(*regex));
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    int code = 0;
    PCRE2_SIZE offset = 0;
    regex->code = pcre2_compile((PCRE2_SPTR)text, strlen(text),
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (regex->code == NULL && code == PCRE2_ERROR_NOMEMORY)
        return octavo_fail_memory(error, "regular expression", strlen(text));
    if (regex->code == NULL) {
        char why[120] = "";
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why));
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "regular expression \"%.80s\": %s (at %zu); the file is damaged", text,
                           why, (size_t)offset);
    }
    /* Without JIT (no memory may be executable) the interpreter gives the same pieces. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return OCTAVO_OK;
}

octavo_status octavo_pattern_regex(octavo_pattern *pattern, octavo_text text, octavo_error *error) {
    octavo_buffer translated = {0};
    struct octavo_regex *regex = octavo_alloc_zero(1, sizeof(*regex));
    octavo_status status = OCTAVO_OK;
    if (regex == NULL) return octavo_fail_memory(error, "regular expression", sizeof(*regex));
    status = octavo_regex_translate(text, &translated, error);
    if (status == OCTAVO_OK) status = regex_compile(regex, translated.data, error);
    if (status == OCTAVO_OK) {
        pattern->regex = regex;
        regex = NULL;
    }
    regex_destroy(regex);
    octavo_buffer_deinit(&translated);
    return status;
}

octavo_status octavo_pattern_literal(octavo_pattern *pattern, octavo_text text,
                                     octavo_error *error) {
    if (text.length == 0)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "pattern: an empty text matches everywhere; the file is damaged");
    pattern->literal = octavo_strndup(text.data, text.length);
    if (pattern->literal == NULL) return octavo_fail_memory(error, "pattern", text.length);
    pattern->literal_length = text.length;
    return OCTAVO_OK;
}

void octavo_pattern_deinit(octavo_pattern *pattern) {
    octavo_free(pattern->literal);
    regex_destroy(pattern->regex);
    *pattern = (octavo_pattern){0};
}

/* One run over one text. */
typedef struct searcher {
    const char *text;
    size_t length;
    octavo_span_sink *sink;
    void *cookie;
    octavo_error *error;
} searcher;

/* Gives what lies between `done` and the match at [begin, end), then the match. */
static octavo_status give(const searcher *s, size_t done, size_t begin, size_t end) {
    octavo_status status = OCTAVO_OK;
    if (begin > done) status = s->sink(s->cookie, s->text, done, begin, false, s->error);
    if (status == OCTAVO_OK) status = s->sink(s->cookie, s->text, begin, end, true, s->error);
    return status;
}

static octavo_status give_rest(const searcher *s, size_t done) {
    if (done >= s->length) return OCTAVO_OK;
    return s->sink(s->cookie, s->text, done, s->length, false, s->error);
}

static octavo_status search_test(const searcher *s, octavo_character_test *test) {
    size_t done = 0;
    for (size_t at = 0, size; at < s->length; at += size) {
        if (!test(octavo_utf8_read(s->text + at, &size))) continue;
        octavo_status status = give(s, done, at, at + size);
        if (status != OCTAVO_OK) return status;
        done = at + size;
    }
    return give_rest(s, done);
}

static octavo_status search_literal(const searcher *s, const octavo_pattern *pattern) {
    size_t done = 0, n = pattern->literal_length;
    for (size_t at = 0; n <= s->length - at;) {
        const char *first = memchr(s->text + at, pattern->literal[0], s->length - at - n + 1);
        if (first == NULL) break;
        at = (size_t)(first - s->text);
        if (memcmp(first, pattern->literal, n) != 0) {
            at++;
            continue;
        }
        octavo_status status = give(s, done, at, at + n);
        if (status != OCTAVO_OK) return status;
        done = at += n;
    }
    return give_rest(s, done);
}

static octavo_status fail_match(const searcher *s, size_t at, int code) {
    if (code == PCRE2_ERROR_NOMEMORY) return octavo_fail_memory(s->error, "text", s->length);
    if (code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_HEAPLIMIT ||
        code == PCRE2_ERROR_DEPTHLIMIT)
        return octavo_fail(s->error, OCTAVO_ERROR_LIMIT,
                           "tokenizer: a regular expression of it finds no end at byte %zu of the "
                           "text; cut the text, or mend the expression",
                           at);
    return octavo_fail(s->error, OCTAVO_ERROR_LIMIT,
                       "tokenizer: PCRE2 gives up at byte %zu of the text (error %d); cut the text "
                       "into shorter ones",
                       at, code);
}

/* An empty match directly behind a match does not count; behind an empty one the search goes on one
 * character further. */
static octavo_status search_loop(const searcher *s, const pcre2_code *code,
                                 pcre2_match_context *limits, pcre2_match_data *match) {
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(match);
    size_t done = 0, at = 0, last_end = SIZE_MAX;
    while (at <= s->length) {
        PCRE2_SPTR subject = (PCRE2_SPTR)s->text;
        int found = pcre2_match(code, subject, s->length, at, PCRE2_NO_UTF_CHECK, match, limits);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = pcre2_match(code, subject, s->length, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                                match, limits);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) return fail_match(s, at, found);
        size_t begin = bounds[0], end = bounds[1];
        if (begin < at || end < begin) break; /* \K inside a look-behind; never of use here */
        if (end > begin || begin != last_end) {
            octavo_status status = give(s, done, begin, end);
            if (status != OCTAVO_OK) return status;
            done = last_end = end;
        }
        at = end;
        if (end == begin) at += end < s->length ? octavo_utf8_size(s->text[end]) : 1;
    }
    return give_rest(s, done);
}

static octavo_status search_regex(const searcher *s, const struct octavo_regex *regex) {
    pcre2_match_context *limits = pcre2_match_context_create(regex->memory);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(regex->code, regex->memory);
    octavo_status status;
    if (limits == NULL || match == NULL) {
        status = octavo_fail_memory(s->error, "text", s->length);
        goto cleanup;
    }
    uint64_t steps = STEPS_FIXED + (uint64_t)s->length * STEPS_PER_BYTE;
    pcre2_set_match_limit(limits, steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
    pcre2_set_heap_limit(limits, HEAP_KIB);
    status = search_loop(s, regex->code, limits, match);
cleanup:
    pcre2_match_data_free(match);
    pcre2_match_context_free(limits);
    return status;
}

octavo_status octavo_pattern_run(const octavo_pattern *pattern, const char *text, size_t length,
                                 octavo_span_sink *sink, void *cookie, octavo_error *error) {
    searcher s = {.text = text, .length = length, .sink = sink, .cookie = cookie, .error = error};
    if (length == 0) return OCTAVO_OK;
    if (pattern->test != NULL) return search_test(&s, pattern->test);
    if (pattern->literal != NULL) return search_literal(&s, pattern);
    if (pattern->regex != NULL) return search_regex(&s, pattern->regex);
    return give_rest(&s, 0);
}
