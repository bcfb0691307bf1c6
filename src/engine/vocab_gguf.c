/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.ggml.* to octavo_vocab. One function per kind of entry; absent entries keep what
 * OCTAVO_VOCAB_INIT says, or read_switches.
 */
#include "engine/vocab_gguf.h"

#include "base/error.h"
#include "text/pretokenize.h"

#include <string.h>

#define KEY(name) "tokenizer.ggml." name

static bool has(const octavo_gguf *gguf, const char *key) {
    return octavo_gguf_metadata_find(gguf, key) >= 0;
}

/* A string entry as terminated text of the arena. */
static octavo_status read_name(const octavo_gguf *gguf, const char *key, octavo_arena *arena,
                               const char **name, octavo_error *error) {
    octavo_gguf_string text = {0};
    octavo_status status = octavo_gguf_get_string(gguf, key, &text, error);
    if (status != OCTAVO_OK) return status;
    if (text.size != 0 && memchr(text.data, '\0', text.size) != NULL)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "metadata key \"%s\" (%s): it holds a zero byte; the file is damaged",
                           key, octavo_gguf_part_path(gguf, 0));
    char *copy = octavo_arena_strndup(arena, text.data, text.size);
    if (copy == NULL) return octavo_fail_memory(error, key, text.size);
    *name = copy;
    return OCTAVO_OK;
}

static octavo_status read_texts(const octavo_gguf *gguf, const char *key, octavo_arena *arena,
                                const octavo_text **texts, size_t *n, octavo_error *error) {
    octavo_gguf_array array = {0};
    octavo_status status = octavo_gguf_get_strings(gguf, key, &array, error);
    if (status != OCTAVO_OK) return status;
    size_t bytes = 0;
    octavo_text *copy = NULL;
    if (octavo_size_mul(array.count, sizeof(*copy), &bytes))
        copy = octavo_arena_alloc(arena, bytes);
    if (copy == NULL) return octavo_fail_memory(error, key, bytes);
    for (size_t i = 0; i < array.count; i++) {
        octavo_gguf_string text = octavo_gguf_array_string(&array, i);
        copy[i] = (octavo_text){.data = text.data, .length = text.size};
    }
    *texts = copy;
    *n = array.count;
    return OCTAVO_OK;
}

static octavo_status check_count(const octavo_gguf *gguf, const octavo_gguf_array *array,
                                 const octavo_vocab *vocab, const char *key, octavo_error *error) {
    if (array->count == vocab->n_tokens) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "metadata key \"%s\" (%s): it has %zu elements for %zu tokens; the file is "
                       "damaged",
                       key, octavo_gguf_part_path(gguf, 0), array->count, vocab->n_tokens);
}

static octavo_status read_types(const octavo_gguf *gguf, octavo_arena *arena, octavo_vocab *vocab,
                                octavo_error *error) {
    static const char key[] = KEY("token_type");
    octavo_gguf_array array = {0};
    if (!has(gguf, key)) return OCTAVO_OK;
    octavo_status status = octavo_gguf_get_integers(gguf, key, &array, error);
    if (status == OCTAVO_OK) status = check_count(gguf, &array, vocab, key, error);
    if (status != OCTAVO_OK) return status;
    int32_t *types = octavo_arena_alloc(arena, array.count * sizeof(*types));
    if (types == NULL) return octavo_fail_memory(error, key, array.count * sizeof(*types));
    for (size_t i = 0; i < array.count; i++)
        types[i] = octavo_gguf_array_i32(&array, i);
    vocab->types = types;
    return OCTAVO_OK;
}

static octavo_status read_flags(const octavo_gguf *gguf, octavo_arena *arena, octavo_vocab *vocab,
                                octavo_error *error) {
    static const char key[] = OCTAVO_VOCAB_FLAGS_KEY;
    const int32_t all = OCTAVO_ADDED_LSTRIP | OCTAVO_ADDED_RSTRIP | OCTAVO_ADDED_SINGLE_WORD |
                        OCTAVO_ADDED_NORMALIZED;
    octavo_gguf_array array = {0};
    if (!has(gguf, key)) return OCTAVO_OK;
    octavo_status status = octavo_gguf_get_integers(gguf, key, &array, error);
    if (status == OCTAVO_OK) status = check_count(gguf, &array, vocab, key, error);
    if (status != OCTAVO_OK) return status;
    uint8_t *flags = octavo_arena_alloc(arena, array.count ? array.count : 1);
    if (flags == NULL) return octavo_fail_memory(error, key, array.count);
    for (size_t i = 0; i < array.count; i++)
        flags[i] = (uint8_t)(octavo_gguf_array_i32(&array, i) & all);
    vocab->added_flags = flags;
    return OCTAVO_OK;
}

static octavo_status read_scores(const octavo_gguf *gguf, octavo_arena *arena, octavo_vocab *vocab,
                                 octavo_error *error) {
    static const char key[] = KEY("scores");
    octavo_gguf_array array = {0};
    if (!has(gguf, key)) return OCTAVO_OK;
    octavo_status status = octavo_gguf_get_floats(gguf, key, &array, error);
    if (status == OCTAVO_OK) status = check_count(gguf, &array, vocab, key, error);
    if (status != OCTAVO_OK) return status;
    float *scores = octavo_arena_alloc(arena, array.count * sizeof(*scores));
    if (scores == NULL) return octavo_fail_memory(error, key, array.count * sizeof(*scores));
    for (size_t i = 0; i < array.count; i++)
        scores[i] = octavo_gguf_array_f32(&array, i);
    vocab->scores = scores;
    return OCTAVO_OK;
}

/* Ids of single tokens. All ones means none in some files. BERT's texts begin and end with tokens
 * of their own names. */
static octavo_status read_ids(const octavo_gguf *gguf, octavo_vocab *vocab, octavo_error *error) {
    bool is_bert = strcmp(vocab->model, "bert") == 0;
    int32_t unused;
    const struct {
        const char *key;
        int32_t *id;
    } ids[] = {
        {KEY("bos_token_id"), &vocab->bos},
        {KEY("eos_token_id"), &vocab->eos},
        {KEY("unknown_token_id"), &vocab->unk},
        {KEY("padding_token_id"), &vocab->pad},
        {KEY("eot_token_id"), &vocab->eot},
        {KEY("eom_token_id"), &vocab->eom},
        {KEY("cls_token_id"), is_bert ? &vocab->bos : &unused},
        {KEY("seperator_token_id"), is_bert ? &vocab->eos : &unused}, /* spelled as files have it */
    };
    for (size_t i = 0; i < OCTAVO_COUNT(ids); i++) {
        uint32_t id = UINT32_MAX;
        octavo_status status = octavo_gguf_get_u32_or(gguf, ids[i].key, UINT32_MAX, &id, error);
        if (status != OCTAVO_OK) return status;
        if (id == UINT32_MAX) continue;
        if (id >= vocab->n_tokens)
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "metadata key \"%s\" (%s): token %u does not exist, there are %zu; "
                               "the file is damaged",
                               ids[i].key, octavo_gguf_part_path(gguf, 0), id, vocab->n_tokens);
        *ids[i].id = (int32_t)id;
    }
    return OCTAVO_OK;
}

/* What is added to a text. Without an entry: as the kind of vocabulary, or the name of its
 * pre-tokenizer, has it. */
static octavo_status read_switches(const octavo_gguf *gguf, octavo_vocab *vocab,
                                   octavo_error *error) {
    bool is_spm = strcmp(vocab->model, "llama") == 0;
    bool is_bert = strcmp(vocab->model, "bert") == 0;
    bool is_unigram = strcmp(vocab->model, "t5") == 0;
    octavo_pretokenizer_traits traits = {0};
    if (strcmp(vocab->model, "gpt2") == 0 && vocab->pre != NULL &&
        octavo_pretokenizer_find(vocab->pre, &traits, NULL) != OCTAVO_OK)
        traits = (octavo_pretokenizer_traits){0}; /* making the tokenizer says so */
    bool adds_bos = (is_spm || is_bert || traits.adds_bos) && vocab->bos >= 0;
    bool adds_eos = (is_unigram || is_bert || traits.adds_eos) && vocab->eos >= 0;
    const struct {
        const char *key;
        bool otherwise, *value;
    } rows[] = {
        {KEY("add_bos_token"), adds_bos, &vocab->add_bos},
        {is_bert && has(gguf, KEY("add_sep_token")) ? KEY("add_sep_token") : KEY("add_eos_token"),
         adds_eos, &vocab->add_eos},
        {KEY("add_space_prefix"), is_spm || is_unigram, &vocab->add_space_prefix},
        {KEY("remove_extra_whitespaces"), false, &vocab->merges_spaces},
    };
    octavo_status status = OCTAVO_OK;
    for (size_t i = 0; i < OCTAVO_COUNT(rows) && status == OCTAVO_OK; i++)
        status =
            octavo_gguf_get_bool_or(gguf, rows[i].key, rows[i].otherwise, rows[i].value, error);
    static const char lower[] = KEY("normalizer.lowercase");
    if (status != OCTAVO_OK || !has(gguf, lower)) return status;
    bool lowers = false;
    status = octavo_gguf_get_bool(gguf, lower, &lowers, error);
    vocab->lowers = lowers;
    return status;
}

/* SentencePiece's table, an array of bytes. */
static octavo_status read_charsmap(const octavo_gguf *gguf, octavo_vocab *vocab,
                                   octavo_error *error) {
    static const char key[] = KEY("precompiled_charsmap");
    octavo_gguf_array array = {0};
    if (!has(gguf, key)) return OCTAVO_OK;
    octavo_status status = octavo_gguf_get_integers(gguf, key, &array, error);
    if (status != OCTAVO_OK) return status;
    if (array.type != OCTAVO_GGUF_I8 && array.type != OCTAVO_GGUF_U8)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "metadata key \"%s\" (%s): its elements are no bytes; the file is "
                           "damaged",
                           key, octavo_gguf_part_path(gguf, 0));
    vocab->charsmap = (octavo_text){(const char *)array.data, array.count};
    return OCTAVO_OK;
}

bool octavo_vocab_is_none(const octavo_gguf *gguf) {
    octavo_gguf_string model;
    octavo_error ignored;
    octavo_status status = octavo_gguf_get_string(gguf, KEY("model"), &model, &ignored);
    return status == OCTAVO_OK && model.size == 4 && memcmp(model.data, "none", 4) == 0;
}

octavo_status octavo_vocab_from_gguf(const octavo_gguf *gguf, octavo_arena *arena,
                                     octavo_vocab *out, octavo_error *error) {
    octavo_vocab vocab = OCTAVO_VOCAB_INIT;
    octavo_status status = read_name(gguf, KEY("model"), arena, &vocab.model, error);
    if (status == OCTAVO_OK && has(gguf, KEY("pre")))
        status = read_name(gguf, KEY("pre"), arena, &vocab.pre, error);
    if (status == OCTAVO_OK)
        status = read_texts(gguf, KEY("tokens"), arena, &vocab.tokens, &vocab.n_tokens, error);
    if (status == OCTAVO_OK && has(gguf, KEY("merges")))
        status = read_texts(gguf, KEY("merges"), arena, &vocab.merges, &vocab.n_merges, error);
    if (status == OCTAVO_OK) status = read_types(gguf, arena, &vocab, error);
    if (status == OCTAVO_OK) status = read_flags(gguf, arena, &vocab, error);
    if (status == OCTAVO_OK) status = read_scores(gguf, arena, &vocab, error);
    if (status == OCTAVO_OK) status = read_ids(gguf, &vocab, error);
    if (status == OCTAVO_OK) status = read_switches(gguf, &vocab, error);
    if (status == OCTAVO_OK) status = read_charsmap(gguf, &vocab, error);
    if (status == OCTAVO_OK) *out = vocab;
    return status;
}

octavo_status octavo_tokenizer_from_gguf(const octavo_gguf *gguf, octavo_tokenizer **tokenizer,
                                         octavo_error *error) {
    octavo_arena arena = {0};
    octavo_vocab vocab = OCTAVO_VOCAB_INIT;
    octavo_error why = {0};
    octavo_status status = octavo_vocab_from_gguf(gguf, &arena, &vocab, error);
    if (status == OCTAVO_OK) {
        status = octavo_tokenizer_create(&vocab, tokenizer, &why);
        if (status != OCTAVO_OK)
            status =
                octavo_fail(error, status, "%s (%s)", why.message, octavo_gguf_part_path(gguf, 0));
    }
    octavo_arena_deinit(&arena);
    return status;
}
