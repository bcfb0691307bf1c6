/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece BPE with byte fallback. The vocabulary has no list of merges: a pair of neighbours
 * merges when its text is a token, the token of the best score first. Keys are the tokens' own
 * spelling, with U+2581 for a space; pieces have the space.
 *
 * There is no pre-tokenizer, so in principle a whole text is one word. In fact two characters which
 * stand side by side in no token can never end up in one, and the text is cut between them. That
 * gives the same ids and short words.
 */
#include "base/error.h"
#include "text/bpe_ranks.h"
#include "text/tokenizer_normalize.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"

#include <string.h>

int octavo_byte_token(octavo_text text) {
    if (text.length != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        char c = text.data[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static int32_t type_of(const octavo_vocab *vocab, size_t i) {
    return vocab->types != NULL ? vocab->types[i] : OCTAVO_TOKEN_NORMAL;
}

/* The bytes a token stands for, into `out`. Returns how many; never more than the text has. */
static size_t spell_piece(octavo_text text, int32_t type, char *out) {
    int byte = octavo_byte_token(text);
    if (byte >= 0 && type != OCTAVO_TOKEN_CONTROL && type != OCTAVO_TOKEN_USER) {
        out[0] = (char)byte;
        return 1;
    }
    size_t n = 0;
    for (size_t at = 0; at < text.length;) {
        if (text.length - at >= 3 && memcmp(text.data + at, OCTAVO_SPACE_MARK, 3) == 0) {
            out[n++] = ' ';
            at += 3;
        } else {
            out[n++] = text.data[at++];
        }
    }
    return n;
}

static octavo_status spm_spell(octavo_tokenizer *t, const octavo_vocab *vocab,
                               octavo_error *error) {
    octavo_status status = octavo_token_texts_init(&t->keys, &t->arena, vocab, error);
    if (status == OCTAVO_OK) status = octavo_token_texts_init(&t->pieces, &t->arena, vocab, error);
    if (status != OCTAVO_OK) return status;

    uint32_t key_end = 0, piece_end = 0;
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        octavo_text text = vocab->tokens[i];
        if (text.length != 0) memcpy(t->keys.bytes + key_end, text.data, text.length);
        key_end += (uint32_t)text.length;
        t->keys.offsets[i + 1] = key_end;
        piece_end += (uint32_t)spell_piece(text, type_of(vocab, i), t->pieces.bytes + piece_end);
        t->pieces.offsets[i + 1] = piece_end;
        octavo_token_index_add(&t->index, (int32_t)i);
    }
    return OCTAVO_OK;
}

static octavo_status build_neighbours(octavo_tokenizer *t, octavo_error *error) {
    if (!octavo_bpe_neighbours_init(&t->neighbours, &t->arena))
        return octavo_fail_memory(error, "vocabulary", (uint64_t)t->n_tokens);
    for (int32_t id = 0; id < t->n_tokens; id++) {
        if (t->ranks[id] == OCTAVO_BPE_NONE) continue;
        size_t length;
        const char *text = octavo_token_text(&t->keys, id, &length);
        octavo_bpe_neighbours_add(&t->neighbours, text, length);
    }
    return OCTAVO_OK;
}

static octavo_status spm_build(octavo_tokenizer *t, const octavo_vocab *vocab,
                               octavo_error *error) {
    static const char digits[] = "0123456789ABCDEF";
    if (vocab->scores == NULL)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary (%s): it has no scores; the file is incomplete",
                           vocab->model);
    octavo_status status = octavo_bpe_rank_tokens(vocab, &t->arena, &t->ranks, &t->results, error);
    if (status == OCTAVO_OK) status = build_neighbours(t, error);
    if (status != OCTAVO_OK) return status;

    if (t->unk < 0) t->unk = octavo_token_index_find(&t->index, "<unk>", 5);
    for (int32_t id = 0; id < t->n_tokens; id++) {
        int32_t type = type_of(vocab, (size_t)id);
        if (id != t->unk && (type == OCTAVO_TOKEN_NORMAL || type == OCTAVO_TOKEN_USER))
            t->flags[id] |= OCTAVO_TOKEN_MERGES;
    }
    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
        t->byte_ids[byte] = octavo_token_index_find(&t->index, text, sizeof(text));
    }
    for (int c = 0; c < 128; c++) {
        char text = (char)c;
        t->ascii_ids[c] = octavo_token_index_find(&t->index, &text, 1);
    }
    t->rules = (octavo_bpe_rules){.rank = octavo_bpe_text_rank, .table = t, .results = t->results};
    return OCTAVO_OK;
}

static octavo_status spm_normalize(const octavo_tokenizer *t, const char *text, size_t length,
                                   octavo_buffer *out, octavo_error *error) {
    (void)error;
    octavo_normalize_spaces(out, text, length, t->add_space_prefix);
    return OCTAVO_OK;
}

/* Pushes the character text[begin..begin + size): as itself, as bytes, or as unknown. */
static void push_character(const octavo_tokenizer *t, octavo_bpe_word *word, const char *text,
                           uint32_t begin, size_t size) {
    const unsigned char *bytes = (const unsigned char *)text + begin;
    int32_t id = bytes[0] < 0x80 ? t->ascii_ids[bytes[0]]
                                 : octavo_token_index_find(&t->index, text + begin, size);
    if (id >= 0) {
        octavo_bpe_word_push(word, id, begin);
        return;
    }
    bool has_bytes = true;
    for (size_t i = 0; i < size; i++)
        if (t->byte_ids[bytes[i]] < 0) has_bytes = false;
    if (!has_bytes) {
        if (t->unk >= 0) octavo_bpe_word_push(word, t->unk, begin);
        return;
    }
    for (size_t i = 0; i < size; i++)
        octavo_bpe_word_push(word, t->byte_ids[bytes[i]], begin + (uint32_t)i);
}

/* How many symbols the text may start as. Exact for long texts, where room is dear. */
static uint32_t count_symbols(const octavo_tokenizer *t, const char *text, size_t length) {
    if (length < 4096) return (uint32_t)length;
    size_t n = 0;
    for (size_t at = 0, size; at < length; at += size) {
        size = octavo_utf8_size(text[at]);
        n += size == 1 || octavo_token_index_find(&t->index, text + at, size) >= 0 ? 1 : size;
    }
    return (uint32_t)n;
}

/* Encodes a part of the text that nothing merges out of. */
static octavo_status encode_word(octavo_encoder *encoder, const char *text, size_t length,
                                 octavo_error *error) {
    const octavo_tokenizer *t = encoder->tokenizer;
    octavo_bpe_word *word = &encoder->word;
    octavo_status status =
        octavo_bpe_word_begin(word, text, (uint32_t)length, count_symbols(t, text, length), error);
    if (status != OCTAVO_OK) return status;
    for (size_t at = 0, size; at < length; at += size) {
        size = octavo_utf8_size(text[at]);
        push_character(t, word, text, (uint32_t)at, size);
    }
    status = octavo_bpe_word_merge(word, &t->rules, error);
    if (status != OCTAVO_OK || word->n_symbols == 0) return status;
    for (uint32_t at = 0; at != OCTAVO_BPE_NONE; at = word->symbols[at].next) {
        int32_t id = word->symbols[at].id;
        if (id != t->unk || !encoder->after_unknown) octavo_encoder_emit(encoder, id);
        encoder->after_unknown = id == t->unk;
    }
    return OCTAVO_OK;
}

static octavo_status spm_encode(octavo_encoder *encoder, const char *text, size_t length,
                                octavo_error *error) {
    const octavo_tokenizer *t = encoder->tokenizer;
    octavo_status status = OCTAVO_OK;
    size_t begin = 0;
    uint32_t left = 0;
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t right = octavo_utf8_read(text + at, &size);
        if (at > begin && !octavo_bpe_neighbours_has(&t->neighbours, left, right)) {
            status = encode_word(encoder, text + begin, at - begin, error);
            if (status != OCTAVO_OK) return status;
            begin = at;
        }
        left = right;
    }
    return encode_word(encoder, text + begin, length - begin, error);
}

/* Texts with spaces in them are spelled with marks. */
static int32_t spm_find(const octavo_tokenizer *t, const char *text, size_t length) {
    if (length == 1 && memchr(text, ' ', 1) == NULL) return t->byte_ids[(unsigned char)text[0]];
    return octavo_tokenizer_find_marked(t, text, length);
}

const octavo_tokenizer_kind octavo_tokenizer_spm = {
    .model = "llama",
    .spell = spm_spell,
    .build = spm_build,
    .normalize = spm_normalize,
    .encode = spm_encode,
    .find = spm_find,
};
