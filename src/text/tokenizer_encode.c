/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to ids: ill-formed UTF-8 is replaced, added tokens are found in the text as it came, what is
 * between them is normalised, added tokens that want normalised text are found in that, and the
 * rest goes to the kind of tokenizer.
 */
#include "base/error.h"
#include "text/tokenizer_characters.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"

#include <string.h>

#define TEXT_MAX ((size_t)1 << 30) /* normalising makes it at most three times as long */

/* A text in which added tokens are looked for. */
typedef struct haystack {
    const char *text;
    size_t length;
    const octavo_added *added;
    /* Takes what lies between the tokens. */
    octavo_status (*between)(octavo_encoder *encoder, const char *text, size_t length,
                             octavo_error *error);
} haystack;

static bool is_single_word(const haystack *hay, size_t begin, size_t end) {
    size_t size;
    if (begin > 0 &&
        octavo_is_word(octavo_utf8_read(hay->text + octavo_utf8_before(hay->text, begin), &size)))
        return false;
    return end == hay->length || !octavo_is_word(octavo_utf8_read(hay->text + end, &size));
}

/* Where the white space starts that ends at `end`, but not before `from`. */
static size_t space_before(const haystack *hay, size_t from, size_t end) {
    while (end > from) {
        size_t size, before = octavo_utf8_before(hay->text, end);
        if (!octavo_is_space(octavo_utf8_read(hay->text + before, &size))) break;
        end = before;
    }
    return end;
}

/* Where the white space ends that starts at `begin`. */
static size_t space_behind(const haystack *hay, size_t begin) {
    while (begin < hay->length) {
        size_t size;
        if (!octavo_is_space(octavo_utf8_read(hay->text + begin, &size))) break;
        begin += size;
    }
    return begin;
}

/* The number of places before `offset` where no special token begins. */
static size_t count_plain(const octavo_encoder *encoder, size_t offset) {
    size_t low = 0, high = encoder->n_plain;
    while (low < high) {
        size_t middle = low + (high - low) / 2, place;
        memcpy(&place, encoder->plain.data + middle * sizeof(place), sizeof(place));
        if (place < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether such a place lies in text[begin..end) of the whole text. */
static bool has_plain(const octavo_encoder *encoder, size_t begin, size_t end) {
    return encoder->n_plain > 0 && count_plain(encoder, begin) < count_plain(encoder, end);
}

/* Whether what begins there is plain text by a mark. In normalised text, where places have moved,
 * one mark speaks for all. */
static bool is_plain(const octavo_encoder *encoder, const haystack *hay, size_t begin) {
    if (hay->text == encoder->text) return has_plain(encoder, begin, begin + 1);
    return encoder->section_is_marked;
}

/* Where a search stands: what is given out ends at `done`, and the last token itself at `from`,
 * which is before that where white space behind it belongs to it. */
typedef struct search {
    size_t from, done;
    size_t begin, end; /* of the token that was found, with its white space */
} search;

/* The next added token that counts, or -1. A match that does not count is passed over as a whole.
 */
static int32_t next_added(const octavo_encoder *encoder, const haystack *hay, search *s) {
    const octavo_tokenizer *t = encoder->tokenizer;
    for (;;) {
        size_t begin = 0, end = 0;
        int32_t id = octavo_added_find(hay->added, hay->text, hay->length, s->from, &begin, &end);
        if (id < 0) return -1;
        s->from = end;
        unsigned flags = t->added_flags[id];
        bool is_special = (t->flags[id] & OCTAVO_TOKEN_IS_SPECIAL) != 0;
        if (is_special && (!encoder->special_text || is_plain(encoder, hay, begin))) continue;
        if ((flags & OCTAVO_ADDED_SINGLE_WORD) != 0 && !is_single_word(hay, begin, end)) continue;
        if ((flags & OCTAVO_ADDED_LSTRIP) != 0) begin = space_before(hay, s->done, begin);
        if ((flags & OCTAVO_ADDED_RSTRIP) != 0) end = space_behind(hay, end);
        s->begin = begin;
        s->end = end;
        return id;
    }
}

static octavo_status split_added(octavo_encoder *encoder, const haystack *hay,
                                 octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    search s = {0};
    while (s.from < hay->length && status == OCTAVO_OK) {
        int32_t id = next_added(encoder, hay, &s);
        if (id < 0) break;
        if (s.begin > s.done)
            status = hay->between(encoder, hay->text + s.done, s.begin - s.done, error);
        if (status == OCTAVO_OK) octavo_encoder_emit(encoder, id);
        s.done = s.end;
    }
    if (s.done < hay->length && status == OCTAVO_OK)
        status = hay->between(encoder, hay->text + s.done, hay->length - s.done, error);
    return status;
}

static octavo_status encode_plain(octavo_encoder *encoder, const char *text, size_t length,
                                  octavo_error *error) {
    encoder->after_unknown = false;
    encoder->is_first = encoder->section_is_first && text == encoder->normalized.data;
    return encoder->tokenizer->kind->encode(encoder, text, length, error);
}

static octavo_status encode_normalized(octavo_encoder *encoder, const char *text, size_t length,
                                       octavo_error *error) {
    const octavo_tokenizer *t = encoder->tokenizer;
    octavo_buffer_clear(&encoder->normalized);
    octavo_status status = t->kind->normalize(t, text, length, &encoder->normalized, error);
    if (status != OCTAVO_OK) return status;
    if (encoder->normalized.failed) return octavo_fail_memory(error, "text", length);
    encoder->section_is_first = text == encoder->text;
    size_t begin = (size_t)(text - encoder->text);
    encoder->section_is_marked = has_plain(encoder, begin, begin + length);
    haystack hay = {.text = encoder->normalized.data,
                    .length = encoder->normalized.size,
                    .added = &t->added_normalized,
                    .between = encode_plain};
    return split_added(encoder, &hay, error);
}

/* Takes the marks out of a text, which is valid UTF-8, and remembers where they speak of. */
static void take_marks(octavo_encoder *encoder, const haystack *hay, octavo_buffer *out) {
    static const char mark[] = OCTAVO_ENCODE_MARK;
    const size_t size = sizeof(mark) - 1;
    octavo_buffer_append(out, "", 0);
    for (size_t at = 0; at < hay->length;) {
        if (hay->length - at >= size && memcmp(hay->text + at, mark, size) == 0) {
            if (out->size > 0 && !out->failed) {
                size_t place = octavo_utf8_before(out->data, out->size);
                octavo_buffer_append(&encoder->plain, &place, sizeof(place));
                encoder->n_plain++;
            }
            at += size;
            continue;
        }
        octavo_buffer_putc(out, hay->text[at++]);
    }
}

octavo_status octavo_tokenizer_encode(const octavo_tokenizer *tokenizer, const char *text,
                                      size_t length, unsigned flags, int32_t *ids, size_t capacity,
                                      size_t *n_ids, octavo_error *error) {
    if (tokenizer == NULL || n_ids == NULL || (text == NULL && length != 0) ||
        (ids == NULL && capacity != 0))
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "tokenizer: an argument is NULL");
    if (length > TEXT_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "text (%zu bytes): at most %zu can be encoded at once; cut it", length,
                           TEXT_MAX);

    octavo_status status = OCTAVO_OK;
    octavo_buffer repaired = {0}, unmarked = {0};
    octavo_encoder encoder = {.tokenizer = tokenizer,
                              .special_text = (flags & OCTAVO_ENCODE_SPECIAL_TEXT) != 0,
                              .ids = ids,
                              .capacity = capacity};
    haystack hay = {
        .text = text, .length = length, .added = &tokenizer->added, .between = encode_normalized};
    if (octavo_utf8_valid_prefix(text, length) != length) {
        octavo_utf8_stream stream = {0};
        octavo_utf8_stream_push(&stream, text, length, &repaired);
        octavo_utf8_stream_finish(&stream, &repaired);
        if (repaired.failed) {
            status = octavo_fail_memory(error, "text", length);
            goto cleanup;
        }
        hay.text = repaired.data;
        hay.length = repaired.size;
    }
    if ((flags & OCTAVO_ENCODE_MARKED) != 0) {
        take_marks(&encoder, &hay, &unmarked);
        if (unmarked.failed || encoder.plain.failed) {
            status = octavo_fail_memory(error, "text", length);
            goto cleanup;
        }
        hay.text = unmarked.data;
        hay.length = unmarked.size;
    }
    encoder.text = hay.text;
    bool begin_end = (flags & OCTAVO_ENCODE_BEGIN_END) != 0;
    for (size_t i = 0; begin_end && i < tokenizer->n_begin; i++)
        octavo_encoder_emit(&encoder, tokenizer->begin_ids[i]);
    status = split_added(&encoder, &hay, error);
    for (size_t i = 0; begin_end && i < tokenizer->n_end; i++)
        octavo_encoder_emit(&encoder, tokenizer->end_ids[i]);
    if (status == OCTAVO_OK) *n_ids = encoder.count;
cleanup:
    octavo_buffer_deinit(&repaired);
    octavo_buffer_deinit(&unmarked);
    octavo_buffer_deinit(&encoder.plain);
    octavo_buffer_deinit(&encoder.normalized);
    octavo_bpe_word_deinit(&encoder.word);
    octavo_pipeline_scratch_deinit(&encoder.scratch);
    return status;
}
