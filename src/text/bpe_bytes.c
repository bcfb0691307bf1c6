/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-level BPE. Vocabularies of this kind spell every byte as a printable character; that
 * spelling is undone once, when the tokenizer is made, and everything after works on bytes: keys
 * and pieces are the same text. A token whose spelling is not of that alphabet can be decoded but
 * not found, and a byte without a token is left out of the ids.
 */
#include "base/error.h"
#include "text/bpe_alphabet.h"
#include "text/bpe_ranks.h"
#include "text/tokenizer_normalize.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"

#include <string.h>

static octavo_status bytes_spell(octavo_tokenizer *t, const octavo_vocab *vocab,
                                 octavo_error *error) {
    int16_t table[OCTAVO_ALPHABET];
    octavo_alphabet_init(table);
    octavo_status status = octavo_token_texts_init(&t->keys, &t->arena, vocab, error);
    if (status != OCTAVO_OK) return status;

    uint32_t end = 0;
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        octavo_text text = vocab->tokens[i];
        size_t length = text.length;
        if (!octavo_vocab_is_added(vocab, i) &&
            octavo_alphabet_unspell(table, text, t->keys.bytes + end, &length))
            t->flags[i] |= OCTAVO_TOKEN_MERGES;
        else if (length != 0)
            memcpy(t->keys.bytes + end, text.data, length);
        end += (uint32_t)length;
        t->keys.offsets[i + 1] = end;
    }
    t->pieces = t->keys;
    octavo_tokenizer_fill_index(t, vocab);
    return OCTAVO_OK;
}

static octavo_status fail_merge(const octavo_vocab *vocab, size_t i, const char *why,
                                octavo_error *error) {
    octavo_text merge = vocab->merges[i];
    size_t shown = octavo_utf8_valid_prefix(merge.data, merge.length < 60 ? merge.length : 60);
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "vocabulary (merge %zu, \"%.*s\"): %s; the file is damaged", i, (int)shown,
                       merge.data, why);
}

/* The token that merge i makes. Most vocabularies list tokens in the order of the merges, so the
 * one after the last is tried first: the index of a large vocabulary is slow to walk at random. */
static int32_t find_result(const octavo_tokenizer *t, size_t i, const char *text, size_t length) {
    int32_t next = i > 0 ? t->results[i - 1] + 1 : t->n_tokens;
    if (next < t->n_tokens && !t->index.has_twins && (t->flags[next] & OCTAVO_TOKEN_MERGES) != 0) {
        size_t next_length;
        const char *next_text = octavo_token_text(&t->keys, next, &next_length);
        if (next_length == length && memcmp(next_text, text, length) == 0) return next;
    }
    return octavo_token_index_find(&t->index, text, length);
}

/* Enters one merge. `scratch` has room for the text of any. */
static octavo_status add_merge(octavo_tokenizer *t, const int16_t table[OCTAVO_ALPHABET],
                               const octavo_vocab *vocab, size_t i, char *scratch,
                               octavo_error *error) {
    octavo_text merge = vocab->merges[i];
    const char *space = merge.length != 0 ? memchr(merge.data, ' ', merge.length) : NULL;
    if (space == NULL) return fail_merge(vocab, i, "it has no space", error);
    octavo_text left = {merge.data, (size_t)(space - merge.data)};
    octavo_text right = {space + 1, merge.length - left.length - 1};
    size_t left_length, right_length;
    if (!octavo_alphabet_unspell(table, left, scratch, &left_length) ||
        !octavo_alphabet_unspell(table, right, scratch + left_length, &right_length))
        return fail_merge(vocab, i, "it is not spelled in the byte alphabet", error);

    int32_t left_id = octavo_token_index_find(&t->index, scratch, left_length);
    int32_t right_id = octavo_token_index_find(&t->index, scratch + left_length, right_length);
    int32_t result = find_result(t, i, scratch, left_length + right_length);
    if (left_id < 0 || right_id < 0) return fail_merge(vocab, i, "a half is no token", error);
    if (result < 0) return fail_merge(vocab, i, "the whole is no token", error);
    octavo_bpe_pairs_set(&t->pairs, left_id, right_id, (uint32_t)i);
    t->results[i] = result;
    return OCTAVO_OK;
}

/* Merges as the file lists them. */
static octavo_status build_merges(octavo_tokenizer *t, const octavo_vocab *vocab,
                                  octavo_error *error) {
    bool has_pairs = octavo_bpe_pairs_init(&t->pairs, &t->arena, vocab->n_merges);
    t->results = octavo_arena_alloc(&t->arena, vocab->n_merges * sizeof(*t->results));
    char *scratch = octavo_alloc(OCTAVO_VOCAB_TEXT_MAX);
    octavo_status status = OCTAVO_OK;
    if (!has_pairs || t->results == NULL || scratch == NULL)
        status = octavo_fail_memory(error, "merges", vocab->n_merges * sizeof(*t->results));
    int16_t table[OCTAVO_ALPHABET];
    octavo_alphabet_init(table);
    for (size_t i = 0; i < vocab->n_merges && status == OCTAVO_OK; i++)
        status = add_merge(t, table, vocab, i, scratch, error);
    octavo_free(scratch);
    t->rules = (octavo_bpe_rules){
        .rank = octavo_bpe_pairs_rank, .table = &t->pairs, .results = t->results};
    return status;
}

/* Merges as the order of the tokens has them. */
static octavo_status build_ranks(octavo_tokenizer *t, const octavo_vocab *vocab,
                                 octavo_error *error) {
    octavo_vocab unscored = *vocab;
    unscored.scores = NULL;
    octavo_status status =
        octavo_bpe_rank_tokens(&unscored, &t->arena, &t->ranks, &t->results, error);
    t->rules = (octavo_bpe_rules){.rank = octavo_bpe_text_rank, .table = t, .results = t->results};
    return status;
}

static octavo_status bytes_build(octavo_tokenizer *t, const octavo_vocab *vocab,
                                 octavo_error *error) {
    octavo_status status = octavo_pretokenizer_create(vocab->pre != NULL ? vocab->pre : "default",
                                                      &t->pretokenizer, &t->traits, error);
    if (status != OCTAVO_OK) return status;
    bool has_merges = vocab->merges != NULL && vocab->n_merges != 0;
    if (!has_merges && !t->traits.ranked)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary (%s): it has no merges; the file is incomplete",
                           vocab->model);
    status = has_merges ? build_merges(t, vocab, error) : build_ranks(t, vocab, error);
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        t->byte_ids[byte] = octavo_token_index_find(&t->index, &c, 1);
    }
    return status;
}

static octavo_status bytes_normalize(const octavo_tokenizer *t, const char *text, size_t length,
                                     octavo_buffer *out, octavo_error *error) {
    (void)error;
    if (t->traits.nfc)
        octavo_normalize_nfc(out, text, length);
    else
        octavo_buffer_append(out, text, length);
    return OCTAVO_OK;
}

static octavo_status encode_piece(void *cookie, const char *piece, size_t length,
                                  octavo_error *error) {
    octavo_encoder *encoder = cookie;
    const octavo_tokenizer *t = encoder->tokenizer;
    if (t->traits.ignore_merges) {
        int32_t id = octavo_token_index_find(&t->index, piece, length);
        if (id >= 0 && (t->flags[id] & OCTAVO_TOKEN_IS_SPECIAL) == 0) {
            octavo_encoder_emit(encoder, id);
            return OCTAVO_OK;
        }
    }
    octavo_bpe_word *word = &encoder->word;
    octavo_status status =
        octavo_bpe_word_begin(word, piece, (uint32_t)length, (uint32_t)length, error);
    if (status != OCTAVO_OK) return status;
    for (size_t i = 0; i < length; i++) {
        int32_t id = t->byte_ids[(unsigned char)piece[i]];
        if (id >= 0) octavo_bpe_word_push(word, id, (uint32_t)i);
    }
    status = octavo_bpe_word_merge(word, &t->rules, error);
    if (status != OCTAVO_OK || word->n_symbols == 0) return status;
    for (uint32_t at = 0; at != OCTAVO_BPE_NONE; at = word->symbols[at].next)
        octavo_encoder_emit(encoder, word->symbols[at].id);
    return OCTAVO_OK;
}

static octavo_status bytes_encode(octavo_encoder *encoder, const char *text, size_t length,
                                  octavo_error *error) {
    return octavo_pretokenizer_run(encoder->tokenizer->pretokenizer, text, length, encode_piece,
                                   encoder, error);
}

static int32_t bytes_find(const octavo_tokenizer *t, const char *text, size_t length) {
    (void)t, (void)text, (void)length;
    return -1;
}

const octavo_tokenizer_kind octavo_tokenizer_bytes = {
    .model = "gpt2",
    .spell = bytes_spell,
    .build = bytes_build,
    .normalize = bytes_normalize,
    .encode = bytes_encode,
    .find = bytes_find,
};
