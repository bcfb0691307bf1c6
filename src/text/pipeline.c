/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline as a kind of tokenizer. Keys of the index are the texts that pieces are compared
 * with: in a vocabulary of the byte alphabet the bytes that it spells, else the tokens' own texts.
 */
#include "text/pipeline.h"

#include "base/error.h"
#include "text/bpe_alphabet.h"
#include "text/tokenizer_charsmap.h"
#include "text/tokenizer_state.h"

#include <string.h>

octavo_text octavo_pipeline_text(octavo_pipeline *pipeline, octavo_text text) {
    char *copy = octavo_arena_strndup(&pipeline->arena, text.data, text.length);
    return (octavo_text){.data = copy, .length = text.length};
}

void octavo_pipeline_destroy(octavo_pipeline **pipeline) {
    if (pipeline == NULL || *pipeline == NULL) return;
    octavo_pipeline *p = *pipeline;
    for (size_t i = 0; i < p->n_normalizers; i++) {
        octavo_pattern_deinit(&p->normalizers[i].pattern);
        octavo_charsmap_destroy(&p->normalizers[i].charsmap);
    }
    for (size_t i = 0; i < p->n_splitters; i++)
        octavo_pattern_deinit(&p->splitters[i].pattern);
    octavo_added_deinit(&p->trie);
    octavo_arena_deinit(&p->arena);
    octavo_free(p);
    *pipeline = NULL;
}

void octavo_pipeline_scratch_deinit(octavo_pipeline_scratch *scratch) {
    for (size_t i = 0; i < OCTAVO_STEPS_MAX; i++)
        octavo_buffer_deinit(&scratch->texts[i]);
    octavo_buffer_deinit(&scratch->word);
    octavo_free(scratch->nodes);
    scratch->nodes = NULL;
}

static bool is_in_model(const octavo_tokenizer *t, const octavo_vocab *vocab, size_t i) {
    return !octavo_vocab_is_added(vocab, i) || (t->added_flags[i] & OCTAVO_ADDED_IN_MODEL) != 0;
}

/* Fills t->keys, and flags the tokens that the model may find. */
static octavo_status spell_keys(octavo_tokenizer *t, const octavo_vocab *vocab,
                                octavo_error *error) {
    int16_t table[OCTAVO_ALPHABET];
    octavo_alphabet_init(table);
    octavo_status status = octavo_token_texts_init(&t->keys, &t->arena, vocab, error);
    if (status != OCTAVO_OK) return status;

    bool spells_bytes = t->pipeline->spells_bytes;
    uint32_t end = 0;
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        octavo_text text = vocab->tokens[i];
        size_t length = text.length;
        bool is_found = is_in_model(t, vocab, i);
        bool unspells = is_found && spells_bytes && !octavo_vocab_is_added(vocab, i) &&
                        octavo_alphabet_unspell(table, text, t->keys.bytes + end, &length);
        if (!unspells && length != 0) memcpy(t->keys.bytes + end, text.data, length);
        if (spells_bytes ? unspells : is_found) t->flags[i] |= OCTAVO_TOKEN_MERGES;
        end += (uint32_t)length;
        t->keys.offsets[i + 1] = end;
    }
    return OCTAVO_OK;
}

/* What every token stands for, as the first of a text or as another. */
static octavo_status spell_pieces(octavo_tokenizer *t, const octavo_vocab *vocab, bool is_first,
                                  octavo_token_texts *pieces, octavo_error *error) {
    octavo_buffer bytes = {0};
    octavo_status status = OCTAVO_OK;
    uint32_t *offsets = octavo_arena_alloc(&t->arena, (vocab->n_tokens + 1) * sizeof(*offsets));
    for (size_t i = 0; i < vocab->n_tokens && offsets != NULL; i++) {
        if (!octavo_pipeline_decode(t->pipeline, vocab->tokens[i], octavo_vocab_is_added(vocab, i),
                                    is_first, &bytes)) {
            octavo_buffer_deinit(&bytes);
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "decoder: it makes a text of token %zu that is too long; the file "
                               "is damaged",
                               i);
        }
        if (bytes.size > UINT32_MAX / 2) break;
        offsets[i + 1] = (uint32_t)bytes.size;
    }
    char *copy = NULL;
    if (offsets != NULL && !bytes.failed && bytes.size <= UINT32_MAX / 2)
        copy = octavo_arena_alloc(&t->arena, bytes.size + 1);
    if (copy == NULL)
        status = octavo_fail_memory(error, "vocabulary", bytes.size);
    else if (bytes.size != 0)
        memcpy(copy, bytes.data, bytes.size);
    octavo_buffer_deinit(&bytes);
    if (status == OCTAVO_OK) *pieces = (octavo_token_texts){.bytes = copy, .offsets = offsets};
    return status;
}

static octavo_status piped_spell(octavo_tokenizer *t, const octavo_vocab *vocab,
                                 octavo_error *error) {
    const octavo_pipeline *p = t->pipeline;
    octavo_status status = spell_keys(t, vocab, error);
    bool only_bytes = p->n_decoders == 1 && p->decoders[0].type == OCTAVO_DECODER_BYTES;
    if (status == OCTAVO_OK && p->spells_bytes && only_bytes)
        t->pieces = t->keys;
    else if (status == OCTAVO_OK)
        status = spell_pieces(t, vocab, false, &t->pieces, error);
    if (status == OCTAVO_OK && octavo_pipeline_minds_first(p))
        status = spell_pieces(t, vocab, true, &t->first_pieces, error);
    if (status != OCTAVO_OK) return status;
    octavo_tokenizer_fill_index(t, vocab);
    return OCTAVO_OK;
}

int32_t octavo_model_find(const octavo_tokenizer *t, const char *text, size_t length) {
    int32_t id = octavo_token_index_find(&t->index, text, length);
    return id >= 0 && (t->flags[id] & OCTAVO_TOKEN_MERGES) != 0 ? id : -1;
}

/* Tokens of single bytes: of the byte alphabet, or "<0x0A>" where those stand in. */
static void find_bytes(octavo_tokenizer *t) {
    static const char digits[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        const char spelled[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
        if (t->pipeline->spells_bytes)
            t->byte_ids[byte] = octavo_model_find(t, &c, 1);
        else if (t->pipeline->byte_fallback)
            t->byte_ids[byte] = octavo_model_find(t, spelled, sizeof(spelled));
        else
            t->byte_ids[byte] = -1;
    }
}

static octavo_status piped_build(octavo_tokenizer *t, const octavo_vocab *vocab,
                                 octavo_error *error) {
    (void)vocab;
    t->drops_space = t->pipeline->drops_space;
    find_bytes(t);
    return t->pipeline->model->build(t, error);
}

static octavo_status piped_normalize(const octavo_tokenizer *t, const char *text, size_t length,
                                     octavo_buffer *out, octavo_error *error) {
    return octavo_pipeline_normalize(t->pipeline, text, length, out, error);
}

/* A text with spaces may be a token that is spelled with marks. */
static int32_t piped_find(const octavo_tokenizer *t, const char *text, size_t length) {
    if (t->pipeline->spells_bytes || length > t->index.longest) return -1;
    if (length == 1 && t->byte_ids[(unsigned char)text[0]] >= 0)
        return t->byte_ids[(unsigned char)text[0]];
    return octavo_tokenizer_find_marked(t, text, length);
}

const octavo_tokenizer_kind octavo_tokenizer_piped = {
    .model = "pipeline",
    .spell = piped_spell,
    .build = piped_build,
    .normalize = piped_normalize,
    .encode = octavo_pipeline_split,
    .find = piped_find,
};
