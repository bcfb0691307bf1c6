/* SPDX-License-Identifier: Apache-2.0
 *
 * Cutting text, step by step: every splitter hands its pieces to the next as it finds them, the
 * last to the model. No list of pieces is ever held.
 */
#include "base/error.h"
#include "text/tokenizer_state.h"

#include <string.h>

static octavo_status run_step(octavo_encoder *encoder, size_t step, const char *text, size_t length,
                              bool is_first, octavo_error *error);

/* One step over one text. What is held may still grow. */
typedef struct cutter {
    octavo_encoder *encoder;
    const octavo_splitter_step *splitter;
    size_t next_step;
    bool is_first;       /* the text is the start of all text */
    bool holds;          /* text[begin..end) is held */
    bool held_is_match;  /* what it is, or ends with */
    bool previous_match; /* the span before was a match */
    size_t begin, end;
} cutter;

static octavo_status give(const cutter *cut, const char *text, size_t begin, size_t end,
                          octavo_error *error) {
    if (begin == end) return OCTAVO_OK;
    return run_step(cut->encoder, cut->next_step, text + begin, end - begin,
                    cut->is_first && begin == 0, error);
}

static octavo_status release(cutter *cut, const char *text, octavo_error *error) {
    if (!cut->holds) return OCTAVO_OK;
    cut->holds = false;
    return give(cut, text, cut->begin, cut->end, error);
}

/* Lets go what is held, and holds the span instead. */
static octavo_status hold(cutter *cut, const char *text, size_t begin, size_t end, bool is_match,
                          octavo_error *error) {
    octavo_status status = release(cut, text, error);
    cut->holds = true;
    cut->held_is_match = is_match;
    cut->begin = begin;
    cut->end = end;
    return status;
}

static octavo_status take_span(void *cookie, const char *text, size_t begin, size_t end,
                               bool is_match, octavo_error *error) {
    cutter *cut = cookie;
    if (cut->splitter->invert) is_match = !is_match;
    bool previous_match = cut->previous_match;
    cut->previous_match = is_match;
    bool joins = false;
    switch (cut->splitter->behavior) {
    case OCTAVO_SPLIT_REMOVED:
        return is_match ? OCTAVO_OK : give(cut, text, begin, end, error);
    case OCTAVO_SPLIT_ISOLATED:
        return give(cut, text, begin, end, error);
    case OCTAVO_SPLIT_MERGED_PREVIOUS:
        joins = is_match && !previous_match;
        break;
    case OCTAVO_SPLIT_MERGED_NEXT:
        joins = !is_match && cut->held_is_match;
        break;
    case OCTAVO_SPLIT_CONTIGUOUS:
        joins = is_match == cut->held_is_match;
        break;
    }
    if (!joins || !cut->holds) return hold(cut, text, begin, end, is_match, error);
    cut->end = end;
    cut->held_is_match = is_match;
    return OCTAVO_OK;
}

static octavo_status cut_text(cutter *cut, const char *text, size_t length, octavo_error *error) {
    octavo_status status =
        octavo_pattern_run(&cut->splitter->pattern, text, length, take_span, cut, error);
    if (status == OCTAVO_OK) status = release(cut, text, error);
    return status;
}

/* Writes the text with marks for spaces, and one in front where the scheme wants it. */
static octavo_status cut_marks(cutter *cut, octavo_buffer *out, const char *text, size_t length,
                               octavo_error *error) {
    const octavo_splitter_step *splitter = cut->splitter;
    const char *mark = splitter->pattern.literal;
    size_t mark_length = splitter->pattern.literal_length;
    bool starts_with_mark =
        text[0] == ' ' || (length >= mark_length && memcmp(text, mark, mark_length) == 0);
    bool prepends = splitter->prepend == OCTAVO_PREPEND_ALWAYS ||
                    (splitter->prepend == OCTAVO_PREPEND_FIRST && cut->is_first);
    octavo_buffer_clear(out);
    if (prepends && !starts_with_mark) octavo_buffer_append(out, mark, mark_length);
    for (size_t at = 0; at < length;) {
        const char *space = memchr(text + at, ' ', length - at);
        size_t end = space != NULL ? (size_t)(space - text) : length;
        octavo_buffer_append(out, text + at, end - at);
        if (space != NULL) octavo_buffer_append(out, mark, mark_length);
        at = end + 1;
    }
    if (out->failed) return octavo_fail_memory(error, "text", length);
    if (splitter->cuts) return cut_text(cut, out->data, out->size, error);
    return give(cut, out->data, 0, out->size, error);
}

static octavo_status cut_prefix(cutter *cut, octavo_buffer *out, const char *text, size_t length,
                                octavo_error *error) {
    if (text[0] == ' ') return give(cut, text, 0, length, error);
    octavo_buffer_clear(out);
    octavo_buffer_putc(out, ' ');
    octavo_buffer_append(out, text, length);
    if (out->failed) return octavo_fail_memory(error, "text", length);
    return give(cut, out->data, 0, out->size, error);
}

static octavo_status run_step(octavo_encoder *encoder, size_t step, const char *text, size_t length,
                              bool is_first, octavo_error *error) {
    const octavo_pipeline *p = encoder->tokenizer->pipeline;
    if (step == p->n_splitters) {
        encoder->after_unknown = false;
        return p->model->encode(encoder, text, length, error);
    }
    cutter cut = {.encoder = encoder,
                  .splitter = &p->splitters[step],
                  .next_step = step + 1,
                  .is_first = is_first};
    octavo_buffer *out = &encoder->scratch.texts[step];
    switch (cut.splitter->type) {
    case OCTAVO_SPLITTER_MARKS:
        return cut_marks(&cut, out, text, length, error);
    case OCTAVO_SPLITTER_PREFIX:
        return cut_prefix(&cut, out, text, length, error);
    default:
        return cut_text(&cut, text, length, error);
    }
}

octavo_status octavo_pipeline_split(octavo_encoder *encoder, const char *text, size_t length,
                                    octavo_error *error) {
    if (length == 0) return OCTAVO_OK;
    return run_step(encoder, 0, text, length, encoder->is_first, error);
}
