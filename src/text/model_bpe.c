/* SPDX-License-Identifier: Apache-2.0
 *
 * BPE of a pipeline: a piece starts as its bytes (where the vocabulary is spelled in the byte
 * alphabet) or as its characters, and pairs merge, best first: those that are listed, or those
 * whose text is a token.
 */
#include "base/error.h"
#include "text/bpe_ranks.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"

#include <string.h>

/* Whether characters may leave no trace, and their neighbours become neighbours. */
static bool drops_characters(const octavo_tokenizer *t) {
    if (t->unk >= 0) return false;
    for (int byte = 0; byte < 256; byte++)
        if (t->byte_ids[byte] < 0) return true;
    return false;
}

/* Words are cut where no merge can reach across. That holds while merges make longer texts out of
 * texts: the tokens that stand in for bytes are spelled otherwise. */
static octavo_status build_neighbours(octavo_tokenizer *t, octavo_error *error) {
    octavo_pipeline *p = t->pipeline;
    if (p->spells_bytes || drops_characters(t)) return OCTAVO_OK;
    if (!octavo_bpe_neighbours_init(&p->neighbours, &t->arena))
        return octavo_fail_memory(error, "merges", p->n_merges);
    p->cuts_words = true;
    for (int32_t id = 0; p->ranks != NULL && id < t->n_tokens; id++) {
        if (p->ranks[id] == OCTAVO_BPE_NONE) continue;
        size_t length;
        const char *text = octavo_token_text(&t->keys, id, &length);
        octavo_bpe_neighbours_add(&p->neighbours, text, length);
    }
    for (size_t i = 0; i < p->n_merges; i++) {
        size_t length;
        const int32_t halves[] = {p->merges[i].left, p->merges[i].right};
        for (size_t k = 0; k < OCTAVO_COUNT(halves); k++) {
            const char *half = octavo_token_text(&t->keys, halves[k], &length);
            if (octavo_byte_token((octavo_text){half, length}) >= 0 || halves[k] == t->unk)
                p->cuts_words = false;
        }
        const char *text = octavo_token_text(&t->keys, p->merges[i].result, &length);
        octavo_bpe_neighbours_add(&p->neighbours, text, length);
    }
    return OCTAVO_OK;
}

/* Merges by the tokens' ranks. What has none, such as the tokens of bytes, takes part in none. */
static void build_ranks(octavo_tokenizer *t) {
    t->ranks = t->pipeline->ranks;
    t->results = t->pipeline->results;
    for (int32_t id = 0; id < t->n_tokens; id++)
        if (t->ranks[id] == OCTAVO_BPE_NONE) t->flags[id] &= (uint8_t)~OCTAVO_TOKEN_MERGES;
    t->rules = (octavo_bpe_rules){.rank = octavo_bpe_text_rank, .table = t, .results = t->results};
}

static octavo_status build_merges(octavo_tokenizer *t, octavo_error *error) {
    octavo_pipeline *p = t->pipeline;
    t->results = octavo_arena_alloc(&t->arena, (p->n_merges + 1) * sizeof(*t->results));
    if (t->results == NULL || !octavo_bpe_pairs_init(&t->pairs, &t->arena, p->n_merges))
        return octavo_fail_memory(error, "merges", p->n_merges * sizeof(*t->results));
    for (size_t i = 0; i < p->n_merges; i++) {
        const octavo_bpe_merge *merge = &p->merges[i];
        octavo_bpe_pairs_set(&t->pairs, merge->left, merge->right, (uint32_t)i);
        t->results[i] = merge->result;
    }
    t->rules = (octavo_bpe_rules){
        .rank = octavo_bpe_pairs_rank, .table = &t->pairs, .results = t->results};
    return OCTAVO_OK;
}

static octavo_status bpe_build(octavo_tokenizer *t, octavo_error *error) {
    if (t->pipeline->ranks != NULL) {
        build_ranks(t);
    } else {
        octavo_status status = build_merges(t, error);
        if (status != OCTAVO_OK) return status;
    }
    for (int c = 0; c < 128; c++) {
        char text = (char)c;
        t->ascii_ids[c] = octavo_model_find(t, &text, 1);
    }
    return build_neighbours(t, error);
}

static int32_t character_id(const octavo_tokenizer *t, const char *text, size_t size) {
    unsigned char lead = (unsigned char)text[0];
    return lead < 0x80 ? t->ascii_ids[lead] : octavo_model_find(t, text, size);
}

static bool has_bytes(const octavo_tokenizer *t, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (t->byte_ids[(unsigned char)text[i]] < 0) return false;
    return true;
}

/* Pushes the character text[begin..begin + size): as itself, as bytes, or as unknown. Returns
 * whether it is unknown. */
static bool push_character(const octavo_tokenizer *t, octavo_bpe_word *word, const char *text,
                           size_t begin, size_t size, bool after_unknown) {
    int32_t id = character_id(t, text + begin, size);
    if (id >= 0) {
        octavo_bpe_word_push(word, id, (uint32_t)begin);
        return false;
    }
    if (has_bytes(t, text + begin, size)) {
        for (size_t i = begin; i < begin + size; i++)
            octavo_bpe_word_push(word, t->byte_ids[(unsigned char)text[i]], (uint32_t)i);
        return false;
    }
    bool is_swallowed = after_unknown && t->pipeline->fuse_unknown;
    if (t->unk >= 0 && !is_swallowed) octavo_bpe_word_push(word, t->unk, (uint32_t)begin);
    return true;
}

/* How many symbols the text may start as. Exact for long texts, where room is dear. */
static size_t count_symbols(const octavo_tokenizer *t, const char *text, size_t length) {
    if (length < 4096 || t->pipeline->spells_bytes) return length;
    size_t n = 0;
    for (size_t at = 0, size; at < length; at += size) {
        size = octavo_utf8_size(text[at]);
        n += size == 1 || character_id(t, text + at, size) >= 0 ? 1 : size;
    }
    return n;
}

/* Encodes a part of a piece that nothing merges out of. */
static octavo_status encode_word(octavo_encoder *encoder, const char *text, size_t length,
                                 octavo_error *error) {
    const octavo_tokenizer *t = encoder->tokenizer;
    octavo_bpe_word *word = &encoder->word;
    octavo_status status = octavo_bpe_word_begin(word, text, (uint32_t)length,
                                                 (uint32_t)count_symbols(t, text, length), error);
    if (status != OCTAVO_OK) return status;
    if (t->pipeline->spells_bytes) {
        for (size_t i = 0; i < length; i++) {
            int32_t id = t->byte_ids[(unsigned char)text[i]];
            if (id >= 0) octavo_bpe_word_push(word, id, (uint32_t)i);
        }
    } else {
        bool after_unknown = encoder->after_unknown;
        for (size_t at = 0, size; at < length; at += size) {
            size = octavo_utf8_size(text[at]);
            after_unknown = push_character(t, word, text, at, size, after_unknown);
        }
        encoder->after_unknown = after_unknown;
    }
    status = octavo_bpe_word_merge(word, &t->rules, error);
    if (status != OCTAVO_OK || word->n_symbols == 0) return status;
    for (uint32_t at = 0; at != OCTAVO_BPE_NONE; at = word->symbols[at].next)
        octavo_encoder_emit(encoder, word->symbols[at].id);
    return OCTAVO_OK;
}

static octavo_status bpe_encode(octavo_encoder *encoder, const char *piece, size_t length,
                                octavo_error *error) {
    const octavo_tokenizer *t = encoder->tokenizer;
    const octavo_pipeline *p = t->pipeline;
    if (p->ignore_merges) {
        int32_t id = octavo_model_find(t, piece, length);
        if (id >= 0) {
            octavo_encoder_emit(encoder, id);
            return OCTAVO_OK;
        }
    }
    if (!p->cuts_words) return encode_word(encoder, piece, length, error);
    octavo_status status = OCTAVO_OK;
    size_t begin = 0;
    uint32_t left = 0;
    for (size_t at = 0, size; at < length && status == OCTAVO_OK; at += size) {
        uint32_t right = octavo_utf8_read(piece + at, &size);
        if (at > begin && !octavo_bpe_neighbours_has(&p->neighbours, left, right)) {
            status = encode_word(encoder, piece + begin, at - begin, error);
            begin = at;
        }
        left = right;
    }
    if (status == OCTAVO_OK) status = encode_word(encoder, piece + begin, length - begin, error);
    return status;
}

const octavo_piece_model octavo_model_bpe = {.build = bpe_build, .encode = bpe_encode};
