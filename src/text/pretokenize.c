/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-tokenizers: a table of patterns, run by PCRE2.
 *
 * Two things differ from the patterns as they are published. White space is spelled out, because
 * PCRE2's \s is not Unicode's White_Space (it has U+180E). And limits on matching are lifted: a run
 * of ten million spaces is a long text, not an attack, and backtracking in these patterns is
 * bounded by the length of one run of white space.
 */
#include "text/pretokenize.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "text/tokenizer_utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

/* White_Space, as the inside of a class. */
#define SPACE                                                                                      \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"

/* Letters, numbers, others, each with a space before; runs of white space without their last. */
#define PATTERN_GPT2                                                                               \
    CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE "\\p{L}\\p{N}]+|[" SPACE "]+(?![^" SPACE        \
                 "])|[" SPACE "]+"

/* The later family; `digits` is how many of them stay together. */
#define PATTERN_LATER(digits)                                                                      \
    "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits "| ?[^" SPACE              \
    "\\p{L}\\p{N}]+[\\r\\n]*|[" SPACE "]*[\\r\\n]+|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"

typedef struct pretokenizer_row {
    const char *name;
    const char *pattern;
    bool single_numbers; /* every number character is a piece, before the pattern sees the rest */
    octavo_pretokenizer_traits traits;
} pretokenizer_row;

static const pretokenizer_row rows[] = {
    {"default", PATTERN_GPT2, false, {false, false}},
    {"gpt-2", PATTERN_GPT2, false, {false, false}},
    {"smollm", PATTERN_GPT2, true, {false, false}},
    {"qwen2", PATTERN_LATER(""), false, {true, false}},
    {"llama-bpe", PATTERN_LATER("{1,3}"), false, {false, true}},
    {"llama3", PATTERN_LATER("{1,3}"), false, {false, true}},
};

struct octavo_pretokenizer {
    pcre2_general_context *memory;
    pcre2_code *code;
    pcre2_match_context *limits;
    bool single_numbers;
};

static void *context_alloc(PCRE2_SIZE bytes, void *cookie) {
    (void)cookie;
    return octavo_alloc(bytes);
}

static void context_free(void *p, void *cookie) {
    (void)cookie;
    octavo_free(p);
}

static const pretokenizer_row *find_row(const char *name) {
    for (size_t i = 0; i < OCTAVO_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

static octavo_status fail_unknown(const char *name, octavo_error *error) {
    octavo_buffer names = {0};
    for (size_t i = 0; i < OCTAVO_COUNT(rows); i++)
        octavo_buffer_printf(&names, "%s%s", i == 0 ? "" : ", ", rows[i].name);
    octavo_status status =
        octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                    "pre-tokenizer (%.60s): this build does not know it; it knows %s", name,
                    names.failed ? "others" : names.data);
    octavo_buffer_deinit(&names);
    return status;
}

octavo_status octavo_pretokenizer_create(const char *name, octavo_pretokenizer **pretokenizer,
                                         octavo_pretokenizer_traits *traits, octavo_error *error) {
    const pretokenizer_row *row = find_row(name);
    if (row == NULL) return fail_unknown(name, error);

    octavo_status status = OCTAVO_OK;
    octavo_pretokenizer *made = octavo_alloc_zero(1, sizeof(*made));
    if (made == NULL) return octavo_fail_memory(error, "pre-tokenizer", sizeof(*made));
    made->single_numbers = row->single_numbers;
    made->memory = pcre2_general_context_create(context_alloc, context_free, NULL);
    if (made->memory != NULL) made->limits = pcre2_match_context_create(made->memory);
    pcre2_compile_context *compile = NULL;
    if (made->limits != NULL) compile = pcre2_compile_context_create(made->memory);
    if (compile == NULL) {
        status = octavo_fail_memory(error, "pre-tokenizer", sizeof(*made));
        goto cleanup;
    }
    pcre2_set_match_limit(made->limits, UINT32_MAX);
    pcre2_set_heap_limit(made->limits, UINT32_MAX);

    int code = 0;
    PCRE2_SIZE offset = 0;
    made->code = pcre2_compile((PCRE2_SPTR)row->pattern, PCRE2_ZERO_TERMINATED,
                               PCRE2_UTF | PCRE2_UCP, &code, &offset, compile);
    if (made->code == NULL) {
        status = code == PCRE2_ERROR_NOMEMORY
                     ? octavo_fail_memory(error, "pre-tokenizer", strlen(row->pattern))
                     : octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                                   "pre-tokenizer (%s): PCRE2 refuses the pattern at %zu (error "
                                   "%d); it must be built with Unicode",
                                   name, (size_t)offset, code);
        goto cleanup;
    }
    /* Without JIT (no memory may be executable) the interpreter gives the same pieces. */
    (void)pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE);

    *traits = row->traits;
    *pretokenizer = made;
    made = NULL;
cleanup:
    pcre2_compile_context_free(compile);
    octavo_pretokenizer_destroy(&made);
    return status;
}

void octavo_pretokenizer_destroy(octavo_pretokenizer **pretokenizer) {
    if (pretokenizer == NULL || *pretokenizer == NULL) return;
    octavo_pretokenizer *p = *pretokenizer;
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    pcre2_general_context_free(p->memory);
    octavo_free(p);
    *pretokenizer = NULL;
}

/* One run over one text. */
typedef struct cutter {
    const octavo_pretokenizer *pretokenizer;
    pcre2_match_data *match;
    octavo_piece_sink *sink;
    void *cookie;
    octavo_error *error;
} cutter;

/* The match at or after `at`: 1, or 0 when there is none, or PCRE2's error. */
static int cutter_match(const cutter *cut, const char *text, size_t length, size_t at) {
    const octavo_pretokenizer *p = cut->pretokenizer;
    int found = pcre2_match(p->code, (PCRE2_SPTR)text, length, at, PCRE2_NO_UTF_CHECK, cut->match,
                            p->limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(p->code, (PCRE2_SPTR)text, length, at,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, cut->match, p->limits);
    if (found == PCRE2_ERROR_NOMATCH) return 0;
    return found < 0 ? found : 1;
}

/* Cuts by the pattern. What it does not match would be a piece of its own. */
static octavo_status cut_by_pattern(const cutter *cut, const char *text, size_t length) {
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(cut->match);
    octavo_status status = OCTAVO_OK;
    size_t at = 0;
    while (at < length && status == OCTAVO_OK) {
        int found = cutter_match(cut, text, length, at);
        if (found == PCRE2_ERROR_NOMEMORY || found == PCRE2_ERROR_HEAPLIMIT)
            return octavo_fail_memory(cut->error, "pre-tokenizer", length);
        if (found < 0)
            return octavo_fail(cut->error, OCTAVO_ERROR_LIMIT,
                               "pre-tokenizer: PCRE2 gives up at byte %zu (error %d); cut the text "
                               "into shorter ones",
                               at, found);
        size_t begin = found != 0 ? bounds[0] : length;
        size_t end = found != 0 ? bounds[1] : length;
        if (begin > at) status = cut->sink(cut->cookie, text + at, begin - at, cut->error);
        if (end > begin && status == OCTAVO_OK)
            status = cut->sink(cut->cookie, text + begin, end - begin, cut->error);
        at = end > at ? end : length;
    }
    return status;
}

static bool is_number(uint32_t point) {
    if (point < 0x80) return point >= '0' && point <= '9';
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)point);
    return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
           category == UTF8PROC_CATEGORY_NO;
}

/* Every number character is a piece; the pattern sees the text between them, each alone. */
static octavo_status cut_by_numbers(const cutter *cut, const char *text, size_t length) {
    octavo_status status = OCTAVO_OK;
    size_t done = 0;
    for (size_t at = 0; at < length && status == OCTAVO_OK;) {
        size_t size;
        if (!is_number(octavo_utf8_read(text + at, &size))) {
            at += size;
            continue;
        }
        status = cut_by_pattern(cut, text + done, at - done);
        if (status == OCTAVO_OK) status = cut->sink(cut->cookie, text + at, size, cut->error);
        done = at += size;
    }
    if (status == OCTAVO_OK) status = cut_by_pattern(cut, text + done, length - done);
    return status;
}

octavo_status octavo_pretokenizer_run(const octavo_pretokenizer *pretokenizer, const char *text,
                                      size_t length, octavo_piece_sink *sink, void *cookie,
                                      octavo_error *error) {
    cutter cut = {.pretokenizer = pretokenizer, .sink = sink, .cookie = cookie, .error = error};
    cut.match = pcre2_match_data_create_from_pattern(pretokenizer->code, pretokenizer->memory);
    if (cut.match == NULL) return octavo_fail_memory(error, "pre-tokenizer", length);
    octavo_status status = pretokenizer->single_numbers ? cut_by_numbers(&cut, text, length)
                                                        : cut_by_pattern(&cut, text, length);
    pcre2_match_data_free(cut.match);
    return status;
}
