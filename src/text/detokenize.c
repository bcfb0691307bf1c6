/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids to text, all at once or one after another: the same stream of bytes either way, of which only
 * whole characters come out.
 */
#include "base/error.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"

#include <string.h>

struct octavo_detokenizer {
    const octavo_tokenizer *tokenizer;
    unsigned flags;
    bool started;  /* the first character came, and with it the space that is dropped */
    bool is_first; /* the next token is the first, and that matters */
    octavo_utf8_stream stream;
    octavo_buffer text; /* room for what one token can complete */
};

/* Whether the next character, if it is a space, was put there by the tokenizer. */
static bool starts_with_prefix(const octavo_tokenizer *t, unsigned flags) {
    return t->drops_space && (flags & OCTAVO_DECODE_CONTINUE) == 0;
}

/* Whether the next token is the first of a text, where some vocabularies spell it differently. */
static bool starts_text(const octavo_tokenizer *t, unsigned flags) {
    return t->first_pieces.offsets != NULL && (flags & OCTAVO_DECODE_CONTINUE) == 0;
}

/* Appends what the token completes. */
static void push_token(const octavo_tokenizer *t, int32_t id, unsigned flags, bool *is_first,
                       octavo_utf8_stream *stream, octavo_buffer *out) {
    if ((flags & OCTAVO_DECODE_SKIP_SPECIAL) != 0 && (t->flags[id] & OCTAVO_TOKEN_IS_SPECIAL) != 0)
        return;
    size_t length;
    const char *piece = octavo_token_text(*is_first ? &t->first_pieces : &t->pieces, id, &length);
    octavo_utf8_stream_push(stream, piece, length, out);
    *is_first = false;
}

static octavo_status fail_id(const octavo_tokenizer *t, int32_t id, octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_INVALID, "token (%d): there is none, ids are 0 to %d",
                       (int)id, (int)t->n_tokens - 1);
}

octavo_status octavo_tokenizer_decode(const octavo_tokenizer *tokenizer, const int32_t *ids,
                                      size_t n_ids, unsigned flags, char *text, size_t capacity,
                                      size_t *length, octavo_error *error) {
    if (tokenizer == NULL || length == NULL || (ids == NULL && n_ids != 0) ||
        (text == NULL && capacity != 0))
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "tokenizer: an argument is NULL");
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || ids[i] >= tokenizer->n_tokens) return fail_id(tokenizer, ids[i], error);

    octavo_buffer out = {0};
    octavo_utf8_stream stream = {0};
    bool is_first = starts_text(tokenizer, flags);
    for (size_t i = 0; i < n_ids; i++)
        push_token(tokenizer, ids[i], flags, &is_first, &stream, &out);
    octavo_utf8_stream_finish(&stream, &out);
    if (out.failed) {
        octavo_buffer_deinit(&out);
        return octavo_fail_memory(error, "text", n_ids);
    }
    size_t skip =
        out.size > 0 && out.data[0] == ' ' && starts_with_prefix(tokenizer, flags) ? 1 : 0;
    size_t size = out.size - skip;
    size_t copied = size < capacity ? size : capacity;
    if (copied != 0) memcpy(text, out.data + skip, copied);
    *length = size;
    octavo_buffer_deinit(&out);
    return OCTAVO_OK;
}

static void detokenizer_restart(octavo_detokenizer *d) {
    d->started = !starts_with_prefix(d->tokenizer, d->flags);
    d->is_first = starts_text(d->tokenizer, d->flags);
    d->stream = (octavo_utf8_stream){0};
}

octavo_status octavo_detokenizer_create(const octavo_tokenizer *tokenizer, unsigned flags,
                                        octavo_detokenizer **detokenizer, octavo_error *error) {
    if (tokenizer == NULL || detokenizer == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "detokenizer: an argument is NULL");
    octavo_detokenizer *d = octavo_alloc_zero(1, sizeof(*d));
    size_t room = 3 * (tokenizer->longest_piece + 3);
    if (d == NULL || !octavo_buffer_reserve(&d->text, room)) {
        octavo_detokenizer_destroy(&d);
        return octavo_fail_memory(error, "detokenizer", sizeof(*d) + room);
    }
    d->tokenizer = tokenizer;
    d->flags = flags;
    detokenizer_restart(d);
    *detokenizer = d;
    return OCTAVO_OK;
}

void octavo_detokenizer_destroy(octavo_detokenizer **detokenizer) {
    if (detokenizer == NULL || *detokenizer == NULL) return;
    octavo_buffer_deinit(&(*detokenizer)->text);
    octavo_free(*detokenizer);
    *detokenizer = NULL;
}

octavo_status octavo_detokenizer_feed(octavo_detokenizer *detokenizer, int32_t id,
                                      const char **text, size_t *length, octavo_error *error) {
    octavo_detokenizer *d = detokenizer;
    if (d == NULL || text == NULL || length == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "detokenizer: an argument is NULL");
    if (id < 0 || id >= d->tokenizer->n_tokens) return fail_id(d->tokenizer, id, error);

    octavo_buffer_clear(&d->text);
    push_token(d->tokenizer, id, d->flags, &d->is_first, &d->stream, &d->text);
    octavo_assert(!d->text.failed);
    size_t skip = !d->started && d->text.size > 0 && d->text.data[0] == ' ' ? 1 : 0;
    if (d->text.size > 0) d->started = true;
    *text = d->text.data + skip;
    *length = d->text.size - skip;
    return OCTAVO_OK;
}

const char *octavo_detokenizer_finish(octavo_detokenizer *detokenizer, size_t *length) {
    octavo_detokenizer *d = detokenizer;
    octavo_assert(d != NULL && length != NULL);
    octavo_buffer_clear(&d->text);
    octavo_utf8_stream_finish(&d->stream, &d->text);
    detokenizer_restart(d);
    *length = d->text.size;
    return d->text.data;
}
