/* SPDX-License-Identifier: Apache-2.0
 *
 * What bytes a token stands for: the decoder steps over one token's text. Decoders that look at the
 * text as a whole come down to two things, which the tokenizer keeps: the first token may be
 * spelled differently, and one space in front may go.
 */
#include "text/bpe_alphabet.h"
#include "text/tokenizer_state.h"

#include <string.h>

static bool starts_with(octavo_text text, size_t at, octavo_text what) {
    return what.length != 0 && text.length - at >= what.length &&
           memcmp(text.data + at, what.data, what.length) == 0;
}

enum { TEXT_MAX = 2 * OCTAVO_VOCAB_TEXT_MAX }; /* steps may not blow a token up without end */

static void replace(octavo_text text, octavo_text what, octavo_text with, octavo_buffer *out) {
    for (size_t at = 0; at < text.length && out->size <= TEXT_MAX;) {
        if (starts_with(text, at, what)) {
            octavo_buffer_append(out, with.data, with.length);
            at += what.length;
        } else {
            octavo_buffer_putc(out, text.data[at++]);
        }
    }
}

/* Whether the text was spelled in the byte alphabet; added tokens never are. */
static void undo_bytes(octavo_text text, bool is_added, octavo_buffer *out) {
    int16_t table[OCTAVO_ALPHABET];
    octavo_alphabet_init(table);
    size_t length = 0;
    if (!octavo_buffer_reserve(out, text.length + 1)) return;
    if (!is_added && octavo_alphabet_unspell(table, text, out->data + out->size, &length))
        out->size += length;
    else
        octavo_buffer_append(out, text.data, text.length);
}

static void strip(const octavo_decoder_step *step, octavo_text text, octavo_buffer *out) {
    size_t n = step->text.length;
    for (size_t i = 0; i < step->start && starts_with(text, 0, step->text); i++) {
        text.data += n;
        text.length -= n;
    }
    for (size_t i = 0; i < step->stop && text.length >= n; i++) {
        if (!starts_with(text, text.length - n, step->text)) break;
        text.length -= n;
    }
    octavo_buffer_append(out, text.data, text.length);
}

/* What stands apart in tokens, but not in English text. In this order, each over the whole token.
 */
static void clean(octavo_text text, octavo_buffer *out) {
    static const char *const rules[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    octavo_buffer buffers[2] = {{0}, {0}};
    for (size_t i = 0; i < OCTAVO_COUNT(rules); i++) {
        octavo_buffer *to = &buffers[i & 1];
        octavo_buffer_clear(to);
        replace(text, (octavo_text){rules[i][0], strlen(rules[i][0])},
                (octavo_text){rules[i][1], strlen(rules[i][1])}, to);
        if (to->failed) out->failed = true;
        text = (octavo_text){to->data, to->failed ? 0 : to->size};
    }
    octavo_buffer_append(out, text.data, text.length);
    octavo_buffer_deinit(&buffers[0]);
    octavo_buffer_deinit(&buffers[1]);
}

static void wordpiece(const octavo_decoder_step *step, octavo_text text, bool is_first,
                      octavo_buffer *out) {
    octavo_buffer word = {0};
    if (!is_first && starts_with(text, 0, step->text)) {
        text.data += step->text.length;
        text.length -= step->text.length;
    } else if (!is_first) {
        octavo_buffer_putc(&word, ' ');
    }
    octavo_buffer_append(&word, text.data, text.length);
    if (word.failed)
        out->failed = true;
    else if (step->cleans)
        clean((octavo_text){word.data, word.size}, out);
    else
        octavo_buffer_append(out, word.data, word.size);
    octavo_buffer_deinit(&word);
}

/* One step over one text. True when nothing after it may look at the text again. */
static bool run_step(const octavo_decoder_step *step, octavo_text text, bool is_added,
                     bool is_first, octavo_buffer *out) {
    static const octavo_text space = {" ", 1}, nothing = {"", 0};
    int byte = -1;
    switch (step->type) {
    case OCTAVO_DECODER_BYTES:
        undo_bytes(text, is_added, out);
        return true;
    case OCTAVO_DECODER_REPLACE:
        replace(text, step->text, step->more, out);
        return false;
    case OCTAVO_DECODER_FALLBACK:
        byte = octavo_byte_token(text);
        if (byte >= 0)
            octavo_buffer_putc(out, (char)byte);
        else
            octavo_buffer_append(out, text.data, text.length);
        return byte >= 0;
    case OCTAVO_DECODER_STRIP:
        strip(step, text, out);
        return false;
    case OCTAVO_DECODER_MARKS:
        replace(text, step->text, is_first && step->drops_first ? nothing : space, out);
        return false;
    case OCTAVO_DECODER_WORDPIECE:
        wordpiece(step, text, is_first, out);
        return false;
    case OCTAVO_DECODER_JOIN:
        if (!is_first) octavo_buffer_putc(out, ' ');
        octavo_buffer_append(out, text.data, text.length);
        return false;
    }
    return false;
}

bool octavo_pipeline_decode(const octavo_pipeline *pipeline, octavo_text token, bool is_added,
                            bool is_first, octavo_buffer *out) {
    octavo_buffer buffers[2] = {{0}, {0}};
    bool is_done = false;
    for (size_t i = 0; i < pipeline->n_decoders && !is_done && token.length <= TEXT_MAX; i++) {
        octavo_buffer *to = &buffers[i & 1];
        octavo_buffer_clear(to);
        is_done = run_step(&pipeline->decoders[i], token, is_added, is_first, to);
        if (to->failed) out->failed = true;
        token = (octavo_text){to->data, to->failed ? 0 : to->size};
    }
    const bool is_short = token.length <= TEXT_MAX;
    if (is_short) octavo_buffer_append(out, token.data, token.length);
    octavo_buffer_deinit(&buffers[0]);
    octavo_buffer_deinit(&buffers[1]);
    return is_short;
}

bool octavo_pipeline_minds_first(const octavo_pipeline *pipeline) {
    for (size_t i = 0; i < pipeline->n_decoders; i++) {
        const octavo_decoder_step *step = &pipeline->decoders[i];
        if (step->type == OCTAVO_DECODER_WORDPIECE || step->type == OCTAVO_DECODER_JOIN ||
            (step->type == OCTAVO_DECODER_MARKS && step->drops_first))
            return true;
    }
    return false;
}
