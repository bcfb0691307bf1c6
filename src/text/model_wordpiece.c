/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece: the longest token that a piece starts with, then the longest continuing one, and so
 * on; a piece that does not come out even is unknown. And WordLevel: a piece is a token, or
 * unknown.
 */
#include "base/error.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"

static octavo_status fail_unknown(octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "vocabulary: its token for unknown words does not exist; the file is "
                       "damaged");
}

static octavo_status words_build(octavo_tokenizer *t, octavo_error *error) {
    return t->unk < 0 ? fail_unknown(error) : OCTAVO_OK;
}

static size_t count_characters(const char *text, size_t length) {
    size_t n = 0;
    for (size_t at = 0; at < length; at += octavo_utf8_size(text[at]))
        n++;
    return n;
}

/* The longest token at the start of the text, behind the first piece with the prefix. */
static int32_t longest(octavo_encoder *encoder, const char *text, size_t length, bool continues,
                       size_t *end) {
    const octavo_tokenizer *t = encoder->tokenizer;
    octavo_text prefix = t->pipeline->continuing_prefix;
    if (!continues) prefix.length = 0;
    octavo_buffer *word = &encoder->scratch.word;
    size_t most = t->index.longest;
    *end = length > most ? most : length;
    while (*end<length && * end> 0 && ((unsigned char)text[*end] & 0xc0) == 0x80)
        (*end)--;
    octavo_buffer_clear(word);
    octavo_buffer_append(word, prefix.data, prefix.length);
    octavo_buffer_append(word, text, *end);
    if (word->failed) return -1;
    while (*end > 0) {
        int32_t id = octavo_model_find(t, word->data, prefix.length + *end);
        if (id >= 0) return id;
        *end = octavo_utf8_before(text, *end);
    }
    return -1;
}

static octavo_status wordpiece_encode(octavo_encoder *encoder, const char *piece, size_t length,
                                      octavo_error *error) {
    const octavo_tokenizer *t = encoder->tokenizer;
    size_t before = encoder->count;
    bool is_known = count_characters(piece, length) <= t->pipeline->max_characters;
    for (size_t at = 0, size; at < length && is_known; at += size) {
        int32_t id = longest(encoder, piece + at, length - at, at > 0, &size);
        if (encoder->scratch.word.failed) return octavo_fail_memory(error, "text", length);
        is_known = id >= 0;
        if (is_known) octavo_encoder_emit(encoder, id);
    }
    if (is_known) return OCTAVO_OK;
    encoder->count = before; /* what it started with does not count */
    octavo_encoder_emit(encoder, t->unk);
    return OCTAVO_OK;
}

static octavo_status wordlevel_encode(octavo_encoder *encoder, const char *piece, size_t length,
                                      octavo_error *error) {
    (void)error;
    int32_t id = octavo_model_find(encoder->tokenizer, piece, length);
    octavo_encoder_emit(encoder, id >= 0 ? id : encoder->tokenizer->unk);
    return OCTAVO_OK;
}

const octavo_piece_model octavo_model_wordpiece = {.build = words_build,
                                                   .encode = wordpiece_encode};
const octavo_piece_model octavo_model_wordlevel = {.build = words_build,
                                                   .encode = wordlevel_encode};
