/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 validation and the stream with substitution of maximal subparts. Both know a character by
 * its first byte: how many bytes follow and what range the second one has.
 */
#include "text/tokenizer_utf8.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

/* What a first byte promises: the whole size and the range of the second byte; 0 for none. */
static uint8_t lead_size(unsigned char lead, uint8_t *low, uint8_t *high) {
    *low = 0x80;
    *high = 0xbf;
    if (lead < 0x80) return 1;
    if (lead < 0xc2) return 0;
    if (lead < 0xe0) return 2;
    if (lead < 0xf0) {
        if (lead == 0xe0) *low = 0xa0;
        if (lead == 0xed) *high = 0x9f;
        return 3;
    }
    if (lead > 0xf4) return 0;
    if (lead == 0xf0) *low = 0x90;
    if (lead == 0xf4) *high = 0x8f;
    return 4;
}

static bool is_ascii8(const char *text) {
    uint64_t word;
    memcpy(&word, text, sizeof(word));
    return (word & 0x8080808080808080u) == 0;
}

size_t octavo_utf8_valid_prefix(const char *text, size_t length) {
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0;
    while (at < length) {
        if (p[at] < 0x80) {
            at += length - at >= 8 && is_ascii8(text + at) ? 8 : 1;
            continue;
        }
        uint8_t low, high;
        size_t size = lead_size(p[at], &low, &high);
        if (size == 0 || size > length - at) break;
        if (p[at + 1] < low || p[at + 1] > high) break;
        if (size > 2 && (p[at + 2] & 0xc0) != 0x80) break;
        if (size > 3 && (p[at + 3] & 0xc0) != 0x80) break;
        at += size;
    }
    return at;
}

/* Whether what is held starts a surrogate. It is ill-formed already, in two parts, but that is said
 * only with the next byte: portions of text then come out as they do from the decoders that may be
 * told to let surrogates pass. */
static bool holds_surrogate(const octavo_utf8_stream *stream) {
    return stream->n_held == 2 && (unsigned char)stream->held[0] == 0xed &&
           (unsigned char)stream->held[1] >= 0xa0;
}

/* Takes a byte into the character that is held. False when it does not belong there. */
static bool stream_continue(octavo_utf8_stream *stream, unsigned char byte, octavo_buffer *out) {
    if (byte < stream->low || byte > stream->high || holds_surrogate(stream)) {
        octavo_utf8_stream_finish(stream, out);
        return false;
    }
    stream->held[stream->n_held++] = (char)byte;
    stream->low = 0x80;
    stream->high = 0xbf;
    if (stream->n_held == stream->n_whole) {
        octavo_buffer_append(out, stream->held, stream->n_held);
        stream->n_held = 0;
    }
    return true;
}

void octavo_utf8_stream_push(octavo_utf8_stream *stream, const char *bytes, size_t length,
                             octavo_buffer *out) {
    size_t at = 0;
    while (at < length) {
        if (stream->n_held != 0) {
            if (stream_continue(stream, (unsigned char)bytes[at], out)) at++;
            continue;
        }
        size_t valid = octavo_utf8_valid_prefix(bytes + at, length - at);
        octavo_buffer_append(out, bytes + at, valid);
        at += valid;
        if (at == length) break;

        /* Not the start of a whole character: the start of one that comes later, or nothing. */
        stream->n_whole = lead_size((unsigned char)bytes[at], &stream->low, &stream->high);
        if ((unsigned char)bytes[at] == 0xed) stream->high = 0xbf; /* see holds_surrogate */
        if (stream->n_whole == 0)
            octavo_buffer_append(out, replacement, 3);
        else
            stream->held[stream->n_held++] = bytes[at];
        at++;
    }
}

void octavo_utf8_stream_finish(octavo_utf8_stream *stream, octavo_buffer *out) {
    if (stream->n_held != 0) octavo_buffer_append(out, replacement, 3);
    if (holds_surrogate(stream)) octavo_buffer_append(out, replacement, 3);
    stream->n_held = 0;
}
