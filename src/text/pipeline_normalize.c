/* SPDX-License-Identifier: Apache-2.0
 *
 * Changing text, step by step, from one buffer into another.
 */
#include "base/error.h"
#include "text/pipeline.h"
#include "text/tokenizer_charsmap.h"
#include "text/tokenizer_utf8.h"

#include <string.h>
#include <utf8proc.h>

/* Steps may not blow a text up without end. */
#define MORE_MAX ((size_t)64 << 10)
enum { TIMES_MAX = 64 };

static void put_point(octavo_buffer *out, uint32_t point) {
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t size = utf8proc_encode_char((utf8proc_int32_t)point, bytes);
    octavo_buffer_append(out, bytes, (size_t)size);
}

static void lower(const char *text, size_t length, octavo_buffer *out) {
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t more[2];
        int n = octavo_lower_case(octavo_utf8_read(text + at, &size), more);
        for (int i = 0; i < n; i++)
            put_point(out, more[i]);
    }
}

/* The steps that look at one character at a time. */
static void map_characters(const octavo_normalizer_step *step, const char *text, size_t length,
                           octavo_buffer *out) {
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t point = octavo_utf8_read(text + at, &size);
        bool passes = step->test(point);
        bool spreads = passes && step->type == OCTAVO_NORMALIZER_SPREAD;
        if (passes && step->type == OCTAVO_NORMALIZER_REMOVE) continue;
        if (spreads) octavo_buffer_putc(out, ' ');
        if (passes && step->type == OCTAVO_NORMALIZER_SPACES)
            octavo_buffer_putc(out, ' ');
        else
            octavo_buffer_append(out, text + at, size);
        if (spreads) octavo_buffer_putc(out, ' ');
    }
}

static void strip(const octavo_normalizer_step *step, const char *text, size_t length,
                  octavo_buffer *out) {
    size_t begin = 0, end = length, size;
    while (step->left && begin < end && octavo_is_space(octavo_utf8_read(text + begin, &size)))
        begin += size;
    while (step->right && end > begin) {
        size_t before = octavo_utf8_before(text, end);
        if (!octavo_is_space(octavo_utf8_read(text + before, &size))) break;
        end = before;
    }
    octavo_buffer_append(out, text + begin, end - begin);
}

typedef struct replacer {
    octavo_text content;
    octavo_buffer *out;
    size_t most; /* bytes */
} replacer;

static octavo_status replace_span(void *cookie, const char *text, size_t begin, size_t end,
                                  bool is_match, octavo_error *error) {
    replacer *r = cookie;
    if (is_match)
        octavo_buffer_append(r->out, r->content.data, r->content.length);
    else
        octavo_buffer_append(r->out, text + begin, end - begin);
    if (r->out->size > r->most)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "tokenizer: its normalizers make more than %zu bytes of the text; is "
                           "tokenizer.json damaged?",
                           r->most);
    return OCTAVO_OK;
}

static octavo_status run_step(const octavo_normalizer_step *step, const char *text, size_t length,
                              size_t most, octavo_buffer *out, octavo_error *error) {
    replacer r = {.content = step->text, .out = out, .most = most};
    switch (step->type) {
    case OCTAVO_NORMALIZER_FORM:
        octavo_normalize(out, step->form, text, length);
        break;
    case OCTAVO_NORMALIZER_LOWER:
        lower(text, length, out);
        break;
    case OCTAVO_NORMALIZER_REMOVE:
    case OCTAVO_NORMALIZER_SPACES:
    case OCTAVO_NORMALIZER_SPREAD:
        map_characters(step, text, length, out);
        break;
    case OCTAVO_NORMALIZER_REPLACE:
        return octavo_pattern_run(&step->pattern, text, length, replace_span, &r, error);
    case OCTAVO_NORMALIZER_PREPEND:
        octavo_buffer_append(out, step->text.data, step->text.length);
        octavo_buffer_append(out, text, length);
        break;
    case OCTAVO_NORMALIZER_STRIP:
        strip(step, text, length, out);
        break;
    case OCTAVO_NORMALIZER_CHARSMAP:
        octavo_charsmap_apply(step->charsmap, text, length, out);
        break;
    }
    return OCTAVO_OK;
}

octavo_status octavo_pipeline_normalize(const octavo_pipeline *pipeline, const char *text,
                                        size_t length, octavo_buffer *out, octavo_error *error) {
    octavo_buffer buffers[2] = {{0}, {0}};
    const size_t most = out->size + TIMES_MAX * length + MORE_MAX;
    octavo_status status = OCTAVO_OK;
    for (size_t i = 0; i < pipeline->n_normalizers && length != 0 && status == OCTAVO_OK; i++) {
        bool is_last = i + 1 == pipeline->n_normalizers;
        octavo_buffer *to = is_last ? out : &buffers[i & 1];
        if (!is_last) octavo_buffer_clear(to);
        status = run_step(&pipeline->normalizers[i], text, length, most, to, error);
        if (status == OCTAVO_OK && to->failed) status = octavo_fail_memory(error, "text", length);
        text = to->data;
        length = to->size;
    }
    if (pipeline->n_normalizers == 0) octavo_buffer_append(out, text, length);
    octavo_buffer_deinit(&buffers[0]);
    octavo_buffer_deinit(&buffers[1]);
    return status;
}
