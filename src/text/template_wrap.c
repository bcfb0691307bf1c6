/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter `wordwrap`: lines are cut into chunks (white space, words, parts of words with
 * hyphens), and chunks are put into new lines while they fit, as Python's textwrap does it.
 */
#include "text/template_eval.h"
#include "text/template_string.h"

#include <string.h>
#include <utf8proc.h>

typedef struct wrapper {
    octavo_tpl_run *run;
    size_t width;
    bool breaks_words, breaks_on_hyphens;
    const octavo_tpl_string *between; /* what goes between lines */
    /* the line that is being cut */
    bool has_output;
    const octavo_tpl_string *line;
    int32_t *points;     /* [n] */
    size_t *offsets;     /* [n + 1] */
    size_t n, chunk_end; /* the chunk that is being taken ends here */
} wrapper;

static bool is_blank(int32_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(const wrapper *w, size_t at) {
    return at < w->n && octavo_utf8_is_name(w->points[at], false);
}

static bool is_letter(const wrapper *w, size_t at) {
    return is_word(w, at) && utf8proc_category(w->points[at]) != UTF8PROC_CATEGORY_ND;
}

static bool is_hyphen(const wrapper *w, size_t at) {
    return at < w->n && w->points[at] == '-';
}

/* The end of a dash of two hyphens or more between words at `at`; `at` where there is none. */
static size_t dash_end(const wrapper *w, size_t at) {
    int32_t before = at > 0 ? w->points[at - 1] : 0;
    bool follows = at > 0 && (is_word(w, at - 1) ||
                              (before > 0 && before < 0x80 && strchr("!\"'&.,?", before) != NULL));
    size_t end = at;
    while (follows && is_hyphen(w, end))
        end++;
    return end - at >= 2 && is_word(w, end) ? end : at;
}

/* Whether a word may be broken behind the hyphen at `at`: letters on both sides. */
static bool breaks_behind(const wrapper *w, size_t at) {
    bool before = (at >= 2 && is_letter(w, at - 1) && is_letter(w, at - 2)) ||
                  (at >= 3 && is_letter(w, at - 1) && is_hyphen(w, at - 2) && is_letter(w, at - 3));
    bool behind = is_letter(w, at + 1) &&
                  (is_letter(w, at + 2) || (is_hyphen(w, at + 2) && is_letter(w, at + 3)));
    return before && behind;
}

static size_t find_chunk_end(const wrapper *w, size_t at) {
    size_t end = at;
    while (end < w->n && is_blank(w->points[end]))
        end++;
    if (end > at) return end;
    if (w->breaks_on_hyphens && (end = dash_end(w, at)) > at) return end;
    for (end = at + 1; end < w->n && !is_blank(w->points[end]); end++) {
        if (!w->breaks_on_hyphens) continue;
        if (is_hyphen(w, end) && breaks_behind(w, end)) return end + 1;
        if (dash_end(w, end) > end) return end;
    }
    return end;
}

/* The end of the chunk at `at`, of which the beginning may have been taken already. */
static size_t chunk_end(wrapper *w, size_t at) {
    if (w->chunk_end <= at && octavo_tpl_charge(w->run, 1)) w->chunk_end = find_chunk_end(w, at);
    return w->chunk_end > at ? w->chunk_end : w->n;
}

static bool is_space(const wrapper *w, size_t begin, size_t end) {
    while (begin < end && octavo_utf8_is_space(w->points[begin]))
        begin++;
    return begin == end;
}

/* How much of a chunk that is longer than a line goes into what is left of this one. */
static size_t long_part(const wrapper *w, size_t at, size_t room) {
    size_t part = room;
    for (size_t i = room; w->breaks_on_hyphens && i > 1 && part == room; i--) {
        bool has_other = false;
        if (!is_hyphen(w, at + i - 1)) continue;
        for (size_t k = at; k < at + i - 1; k++)
            has_other = has_other || !is_hyphen(w, k);
        if (!has_other) break;
        part = i;
        break;
    }
    return part;
}

static void put_line(wrapper *w, size_t begin, size_t end) {
    if (w->has_output) octavo_tpl_put(w->run, w->between->data, w->between->size);
    w->has_output = true;
    octavo_tpl_put(w->run, w->line->data + w->offsets[begin], w->offsets[end] - w->offsets[begin]);
}

/* One new line from `at` on; returns where the next begins. */
static size_t take_line(wrapper *w, size_t at) {
    if (w->has_output && is_space(w, at, chunk_end(w, at))) at = chunk_end(w, at);
    size_t begin = at, last = at; /* of the last chunk that was taken */
    bool drops = true;
    while (at < w->n && chunk_end(w, at) - begin <= w->width) {
        last = at;
        at = chunk_end(w, at);
    }
    size_t end = at < w->n ? chunk_end(w, at) : at;
    if (end - at > w->width) {
        size_t part = w->breaks_words ? long_part(w, at, w->width - (at - begin))
                      : at == begin   ? end - at
                                      : 0;
        /* nothing of it: Python puts an empty piece there, behind which space stays */
        drops = part > 0 || !w->breaks_words;
        if (part > 0) last = at;
        at += part;
    }
    size_t stop = drops && last < at && is_space(w, last, at) ? last : at;
    if (stop > begin) put_line(w, begin, stop);
    return at;
}

static void wrap_line(wrapper *w, const octavo_tpl_string *line) {
    w->line = line;
    w->n = line->length;
    w->chunk_end = 0;
    w->has_output = false;
    w->points = octavo_tpl_alloc(w->run, w->n + 1, sizeof *w->points);
    w->offsets = octavo_tpl_alloc(w->run, w->n + 1, sizeof *w->offsets);
    if (octavo_tpl_failed(w->run)) return;
    size_t at = 0;
    for (size_t i = 0; i < w->n && octavo_tpl_charge(w->run, 1); i++) {
        w->points[i] = octavo_utf8_codepoint(line->data, line->size, at);
        at = octavo_utf8_next(line->data, line->size, at);
        w->offsets[i + 1] = at;
    }
    for (size_t begin = 0; begin < w->n && !octavo_tpl_failed(w->run);)
        begin = take_line(w, begin);
}

/* width, break_long_words, wrapstring, break_on_hyphens */
octavo_tpl_value octavo_tpl_filter_wordwrap(octavo_tpl_run *run, octavo_tpl_value input,
                                            const octavo_tpl_args *args) {
    static const octavo_tpl_string newline = {"\n", 1, 1};
    int64_t width = octavo_tpl_integer_argument(run, args->items[0], 79);
    if (octavo_tpl_failed(run)) return input;
    if (input.kind != OCTAVO_TPL_STRING)
        return octavo_tpl_fail(run, "wordwrap wants a string, not %s", octavo_tpl_type(input));
    if (width < 1) return octavo_tpl_fail(run, "wordwrap: a width under 1");
    wrapper w = {.run = run,
                 .width = (size_t)width,
                 .breaks_words =
                     args->items[1].kind == OCTAVO_TPL_ABSENT || octavo_tpl_truth(args->items[1]),
                 .breaks_on_hyphens =
                     args->items[3].kind == OCTAVO_TPL_ABSENT || octavo_tpl_truth(args->items[3]),
                 .between = args->items[2].kind == OCTAVO_TPL_STRING ? args->items[2].as.string
                                                                     : &newline};
    octavo_tpl_list *lines = octavo_tpl_split_lines(run, input.as.string, false);
    size_t mark = octavo_tpl_open(run);
    for (size_t i = 0; lines != NULL && i < lines->count && !octavo_tpl_failed(run); i++) {
        if (i > 0) octavo_tpl_put(run, w.between->data, w.between->size);
        wrap_line(&w, lines->items[i].as.string);
    }
    return octavo_tpl_close(run, mark);
}
