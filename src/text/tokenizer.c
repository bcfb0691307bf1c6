/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a tokenizer from a vocabulary, and the questions about single tokens. All checks of
 * hostile vocabularies that do not depend on the kind are in check_vocab.
 */
#include "base/error.h"
#include "text/tokenizer_normalize.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"
#include "text/vocab_pipeline.h"

#include <string.h>

static const octavo_tokenizer_kind *const kinds[] = {&octavo_tokenizer_bytes,
                                                     &octavo_tokenizer_spm};

/* Special tokens of these names end an answer. */
static const char *const end_names[] = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>",   "<|endoftext|>",   "</s>",
    "<|end|>",    "<|return|>", "<|call|>",   "<|end_of_text|>", "<|end_of_turn|>", "<|eot|>",
    "<eos>",
};

static octavo_status find_kind(const char *model, const octavo_tokenizer_kind **kind,
                               octavo_error *error) {
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++)
        if (model != NULL && strcmp(kinds[i]->model, model) == 0) {
            *kind = kinds[i];
            return OCTAVO_OK;
        }
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                       "tokenizer (%.60s): this build does not know the kind; it knows gpt2 "
                       "(byte-level BPE), llama (SentencePiece BPE), bert (WordPiece) and t5 "
                       "(Unigram)",
                       model != NULL ? model : "of no kind");
}

static octavo_status check_text(octavo_text text, const char *what, size_t i, octavo_error *error) {
    if (text.length > OCTAVO_VOCAB_TEXT_MAX)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary (%s %zu): its text has %zu bytes, the limit is %d; the file "
                           "is damaged",
                           what, i, text.length, OCTAVO_VOCAB_TEXT_MAX);
    if (text.length != 0 && text.data == NULL)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT, "vocabulary (%s %zu): its text is missing",
                           what, i);
    if (octavo_utf8_valid_prefix(text.data, text.length) != text.length)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary (%s %zu): its text is not UTF-8; the file is damaged", what,
                           i);
    return OCTAVO_OK;
}

static octavo_status check_counts(const octavo_vocab *vocab, octavo_error *error) {
    if (vocab->n_tokens == 0 || vocab->tokens == NULL)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary: it has no tokens; the file is incomplete");
    if (vocab->n_tokens > OCTAVO_VOCAB_TOKENS_MAX || vocab->n_merges > OCTAVO_VOCAB_TOKENS_MAX)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary: %zu tokens and %zu merges, the limit is %d; the file is "
                           "damaged",
                           vocab->n_tokens, vocab->n_merges, OCTAVO_VOCAB_TOKENS_MAX);
    return OCTAVO_OK;
}

static octavo_status check_ids(const octavo_vocab *vocab, octavo_error *error) {
    const struct {
        const char *name;
        int32_t id;
    } ids[] = {{"bos", vocab->bos},     {"eos", vocab->eos}, {"unknown", vocab->unk},
               {"padding", vocab->pad}, {"eot", vocab->eot}, {"eom", vocab->eom}};
    for (size_t i = 0; i < OCTAVO_COUNT(ids); i++)
        if (ids[i].id < -1 || (ids[i].id >= 0 && (size_t)ids[i].id >= vocab->n_tokens))
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "vocabulary (%s): token %d does not exist, there are %zu; the file "
                               "is damaged",
                               ids[i].name, (int)ids[i].id, vocab->n_tokens);
    if ((vocab->add_bos && vocab->bos < 0) || (vocab->add_eos && vocab->eos < 0))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary (%s): the token is to be added but not named; the file is "
                           "incomplete",
                           vocab->add_bos && vocab->bos < 0 ? "bos" : "eos");
    return OCTAVO_OK;
}

static octavo_status check_vocab(const octavo_vocab *vocab, octavo_error *error) {
    octavo_status status = check_counts(vocab, error);
    if (status == OCTAVO_OK) status = check_ids(vocab, error);
    uint64_t bytes = 0;
    for (size_t i = 0; i < vocab->n_tokens && status == OCTAVO_OK; i++) {
        status = check_text(vocab->tokens[i], "token", i, error);
        if (status != OCTAVO_OK) break;
        bytes += vocab->tokens[i].length;
        int32_t type = vocab->types != NULL ? vocab->types[i] : OCTAVO_TOKEN_NORMAL;
        if (type < OCTAVO_TOKEN_NORMAL || type > OCTAVO_TOKEN_BYTE)
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "vocabulary (token %zu): there is no type %d; the file is damaged",
                               i, (int)type);
    }
    if (status == OCTAVO_OK && bytes > UINT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "vocabulary: its texts have %llu bytes; the file is damaged",
                           (unsigned long long)bytes);
    for (size_t i = 0; vocab->merges != NULL && i < vocab->n_merges && status == OCTAVO_OK; i++)
        status = check_text(vocab->merges[i], "merge", i, error);
    return status;
}

octavo_status octavo_token_texts_init(octavo_token_texts *texts, octavo_arena *arena,
                                      const octavo_vocab *vocab, octavo_error *error) {
    size_t bytes = 0;
    for (size_t i = 0; i < vocab->n_tokens; i++)
        bytes += vocab->tokens[i].length;
    texts->offsets = octavo_arena_alloc(arena, (vocab->n_tokens + 1) * sizeof(*texts->offsets));
    texts->bytes = octavo_arena_alloc(arena, bytes);
    if (texts->offsets == NULL || texts->bytes == NULL)
        return octavo_fail_memory(error, "vocabulary", bytes);
    return OCTAVO_OK;
}

void octavo_tokenizer_fill_index(octavo_tokenizer *t, const octavo_vocab *vocab) {
    for (int32_t id = 0; id < t->n_tokens; id++)
        if (octavo_vocab_is_added(vocab, (size_t)id)) octavo_token_index_add(&t->index, id);
    for (int32_t id = 0; id < t->n_tokens; id++)
        if ((t->flags[id] & OCTAVO_TOKEN_MERGES) != 0) octavo_token_index_add(&t->index, id);
}

int32_t octavo_tokenizer_find_marked(const octavo_tokenizer *t, const char *text, size_t length) {
    if (length > t->index.longest) return -1;
    octavo_buffer spelled = {0};
    octavo_normalize_spaces(&spelled, text, length, false);
    int32_t id =
        spelled.failed ? -1 : octavo_token_index_find(&t->index, spelled.data, spelled.size);
    octavo_buffer_deinit(&spelled);
    return id;
}

/* Special tokens and where answers end. */
static octavo_status build_flags(octavo_tokenizer *t, const octavo_vocab *vocab,
                                 octavo_error *error) {
    t->flags = octavo_arena_alloc(&t->arena, vocab->n_tokens);
    t->added_flags = octavo_arena_alloc(&t->arena, vocab->n_tokens);
    if (t->flags == NULL || t->added_flags == NULL)
        return octavo_fail_memory(error, "vocabulary", vocab->n_tokens);
    if (vocab->added_flags != NULL) memcpy(t->added_flags, vocab->added_flags, vocab->n_tokens);

    int32_t return_id = -1, end_id = -1;
    for (size_t i = 0; vocab->types != NULL && i < vocab->n_tokens; i++) {
        if (vocab->types[i] != OCTAVO_TOKEN_CONTROL) continue;
        t->flags[i] |= OCTAVO_TOKEN_IS_SPECIAL;
        octavo_text text = vocab->tokens[i];
        for (size_t k = 0; k < OCTAVO_COUNT(end_names); k++) {
            if (strlen(end_names[k]) != text.length ||
                memcmp(end_names[k], text.data, text.length) != 0)
                continue;
            t->flags[i] |= OCTAVO_TOKEN_IS_EOG;
            if (strcmp(end_names[k], "<|return|>") == 0) return_id = (int32_t)i;
            if (strcmp(end_names[k], "<|end|>") == 0) end_id = (int32_t)i;
        }
    }
    /* Where "<|return|>" ends an answer, "<|end|>" ends a message inside it. */
    if (return_id >= 0 && end_id >= 0) t->flags[end_id] &= (uint8_t)~OCTAVO_TOKEN_IS_EOG;

    const int32_t ends[] = {vocab->eos, vocab->eot, vocab->eom};
    for (size_t i = 0; i < OCTAVO_COUNT(ends); i++)
        if (ends[i] >= 0) t->flags[ends[i]] |= OCTAVO_TOKEN_IS_EOG;
    return OCTAVO_OK;
}

/* What is looked for in normalised text must be normalised itself; nothing may be left of it. */
static octavo_status add_normalized(octavo_tokenizer *t, octavo_text text, int32_t id,
                                    octavo_error *error) {
    octavo_buffer normal = {0};
    octavo_status status = t->kind->normalize(t, text.data, text.length, &normal, error);
    if (status == OCTAVO_OK &&
        (normal.failed || (normal.size != 0 && !octavo_added_insert(&t->added_normalized,
                                                                    normal.data, normal.size, id))))
        status = octavo_fail_memory(error, "added tokens", text.length);
    octavo_buffer_deinit(&normal);
    return status;
}

static octavo_status build_added(octavo_tokenizer *t, const octavo_vocab *vocab,
                                 octavo_error *error) {
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        octavo_text text = vocab->tokens[i];
        if (text.length == 0 || !octavo_vocab_is_added(vocab, i)) continue;
        bool normalized = (t->added_flags[i] & OCTAVO_ADDED_NORMALIZED) != 0;
        octavo_status status = OCTAVO_OK;
        if (normalized)
            status = add_normalized(t, text, (int32_t)i, error);
        else if (!octavo_added_insert(&t->added, text.data, text.length, (int32_t)i))
            status = octavo_fail_memory(error, "added tokens", text.length);
        if (status != OCTAVO_OK) return status;
    }
    return OCTAVO_OK;
}

/* The ids that are put around a text. A pipeline says them itself. */
static void set_ends(octavo_tokenizer *t, const octavo_vocab *vocab) {
    const octavo_pipeline *pipeline = t->pipeline;
    if (pipeline != NULL) {
        memcpy(t->begin_ids, pipeline->begin_ids, sizeof(t->begin_ids));
        memcpy(t->end_ids, pipeline->end_ids, sizeof(t->end_ids));
        t->n_begin = pipeline->n_begin;
        t->n_end = pipeline->n_end;
        return;
    }
    if (vocab->add_bos) t->begin_ids[t->n_begin++] = vocab->bos;
    if (vocab->add_eos) t->end_ids[t->n_end++] = vocab->eos;
}

static octavo_status build(octavo_tokenizer *t, const octavo_vocab *vocab, octavo_error *error) {
    t->n_tokens = (int32_t)vocab->n_tokens;
    t->bos = vocab->bos;
    t->eos = vocab->eos;
    t->unk = vocab->unk;
    t->add_space_prefix = vocab->add_space_prefix;
    t->drops_space = t->kind == &octavo_tokenizer_spm && vocab->add_space_prefix;
    set_ends(t, vocab);

    octavo_status status = OCTAVO_OK;
    if (!octavo_token_index_init(&t->index, &t->arena, &t->keys, vocab->n_tokens))
        status = octavo_fail_memory(error, "vocabulary", vocab->n_tokens);
    if (status == OCTAVO_OK) status = build_flags(t, vocab, error);
    if (status == OCTAVO_OK) status = t->kind->spell(t, vocab, error);
    if (status == OCTAVO_OK) status = t->kind->build(t, vocab, error);
    if (status == OCTAVO_OK) status = build_added(t, vocab, error);
    if (status != OCTAVO_OK) return status;
    for (int32_t id = 0; id < t->n_tokens; id++) {
        size_t length;
        (void)octavo_token_text(&t->pieces, id, &length);
        if (length > t->longest_piece) t->longest_piece = length;
        if (t->first_pieces.offsets != NULL) (void)octavo_token_text(&t->first_pieces, id, &length);
        if (length > t->longest_piece) t->longest_piece = length;
    }
    return OCTAVO_OK;
}

static octavo_status create(const octavo_tokenizer_kind *kind, const octavo_vocab *vocab,
                            octavo_pipeline **pipeline, octavo_tokenizer **tokenizer,
                            octavo_error *error) {
    octavo_tokenizer *t = octavo_alloc_zero(1, sizeof(*t));
    if (t == NULL) return octavo_fail_memory(error, "tokenizer", sizeof(*t));
    t->kind = kind;
    if (pipeline != NULL) {
        t->pipeline = *pipeline;
        *pipeline = NULL;
    }
    octavo_status status = build(t, vocab, error);
    if (status == OCTAVO_OK) {
        *tokenizer = t;
        t = NULL;
    }
    octavo_tokenizer_destroy(&t);
    return status;
}

static octavo_status create_by_pipeline(const octavo_vocab *vocab, octavo_tokenizer **tokenizer,
                                        octavo_error *error) {
    octavo_pipeline *pipeline = NULL;
    octavo_vocab piped;
    octavo_status status = check_vocab(vocab, error);
    if (status == OCTAVO_OK) status = octavo_vocab_pipeline(vocab, &pipeline, &piped, error);
    if (status == OCTAVO_OK)
        status = create(&octavo_tokenizer_piped, &piped, &pipeline, tokenizer, error);
    octavo_pipeline_destroy(&pipeline);
    return status;
}

octavo_status octavo_tokenizer_create(const octavo_vocab *vocab, octavo_tokenizer **tokenizer,
                                      octavo_error *error) {
    octavo_assert(vocab != NULL && tokenizer != NULL);
    if (octavo_vocab_is_piped(vocab)) return create_by_pipeline(vocab, tokenizer, error);
    const octavo_tokenizer_kind *kind = NULL;
    octavo_status status = find_kind(vocab->model, &kind, error);
    if (status == OCTAVO_OK) status = check_vocab(vocab, error);
    if (status == OCTAVO_OK) status = create(kind, vocab, NULL, tokenizer, error);
    return status;
}

octavo_status octavo_tokenizer_create_piped(const octavo_vocab *vocab, octavo_pipeline **pipeline,
                                            octavo_tokenizer **tokenizer, octavo_error *error) {
    octavo_assert(vocab != NULL && pipeline != NULL && *pipeline != NULL && tokenizer != NULL);
    octavo_status status = check_vocab(vocab, error);
    if (status == OCTAVO_OK)
        status = create(&octavo_tokenizer_piped, vocab, pipeline, tokenizer, error);
    octavo_pipeline_destroy(pipeline);
    return status;
}

void octavo_tokenizer_destroy(octavo_tokenizer **tokenizer) {
    if (tokenizer == NULL || *tokenizer == NULL) return;
    octavo_tokenizer *t = *tokenizer;
    octavo_pretokenizer_destroy(&t->pretokenizer);
    octavo_pipeline_destroy(&t->pipeline);
    octavo_added_deinit(&t->added);
    octavo_added_deinit(&t->added_normalized);
    octavo_arena_deinit(&t->arena);
    octavo_free(t);
    *tokenizer = NULL;
}

static bool exists(const octavo_tokenizer *t, int32_t id) {
    octavo_assert(t != NULL);
    return id >= 0 && id < t->n_tokens;
}

void octavo_tokenizer_mark_end(octavo_tokenizer *tokenizer, int32_t id) {
    octavo_assert(exists(tokenizer, id));
    tokenizer->flags[id] |= OCTAVO_TOKEN_IS_EOG;
}

int32_t octavo_tokenizer_size(const octavo_tokenizer *tokenizer) {
    octavo_assert(tokenizer != NULL);
    return tokenizer->n_tokens;
}

const char *octavo_tokenizer_piece(const octavo_tokenizer *tokenizer, int32_t id, size_t *length) {
    if (!exists(tokenizer, id)) return NULL;
    return octavo_token_text(&tokenizer->pieces, id, length);
}

int32_t octavo_tokenizer_find(const octavo_tokenizer *tokenizer, const char *text, size_t length) {
    octavo_assert(tokenizer != NULL && (text != NULL || length == 0));
    if (length == 0) return -1;
    int32_t id = octavo_token_index_find(&tokenizer->index, text, length);
    return id >= 0 ? id : tokenizer->kind->find(tokenizer, text, length);
}

int32_t octavo_tokenizer_bos(const octavo_tokenizer *tokenizer) {
    octavo_assert(tokenizer != NULL);
    return tokenizer->bos;
}

int32_t octavo_tokenizer_eos(const octavo_tokenizer *tokenizer) {
    octavo_assert(tokenizer != NULL);
    return tokenizer->eos;
}

bool octavo_tokenizer_adds_bos(const octavo_tokenizer *tokenizer) {
    octavo_assert(tokenizer != NULL);
    return tokenizer->n_begin > 0 && tokenizer->begin_ids[0] == tokenizer->bos;
}

bool octavo_tokenizer_is_special(const octavo_tokenizer *tokenizer, int32_t id) {
    return exists(tokenizer, id) && (tokenizer->flags[id] & OCTAVO_TOKEN_IS_SPECIAL) != 0;
}

bool octavo_tokenizer_is_eog(const octavo_tokenizer *tokenizer, int32_t id) {
    return exists(tokenizer, id) && (tokenizer->flags[id] & OCTAVO_TOKEN_IS_EOG) != 0;
}
