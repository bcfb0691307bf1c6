/* SPDX-License-Identifier: Apache-2.0
 *
 * "model" and "added_tokens": which tokens there are, and how pieces become tokens. Ids must be
 * whole: 0 to the last, each once.
 */
#include "base/error.h"
#include "text/tokenizer_json_reader.h"

#include <math.h>
#include <string.h>

int32_t octavo_json_token(const octavo_json_reader *r, const char *text) {
    const json_t *id = NULL;
    size_t length = strlen(text);
    for (size_t i = 0; i < json_array_size(json_object_get(r->root, "added_tokens")); i++) {
        const json_t *added = json_array_get(json_object_get(r->root, "added_tokens"), i);
        const char *content = json_string_value(json_object_get(added, "content"));
        if (content != NULL && strcmp(content, text) == 0) id = json_object_get(added, "id");
    }
    if (id == NULL) id = json_object_get(r->model_vocab, text);
    if (id != NULL) return (int32_t)json_integer_value(id);
    for (size_t i = 0; json_is_array(r->model_vocab) && i < r->vocab.n_tokens; i++)
        if (r->tokens[i].length == length && memcmp(r->tokens[i].data, text, length) == 0)
            return (int32_t)i;
    return -1;
}

/* Enters a token of the model. */
static octavo_status put_token(octavo_json_reader *r, const char *text, size_t length,
                               const json_t *id) {
    if (!json_is_integer(id))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the id of token \"%.60s\" is no whole number; the file is damaged",
                           text);
    json_int_t value = json_integer_value(id);
    if (value < 0 || (uint64_t)value >= r->room)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "token \"%.60s\" has the id %lld, but there are only %zu tokens; the "
                           "file is incomplete",
                           text, (long long)value, r->room);
    octavo_text *token = &r->tokens[value];
    if (token->data != NULL)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "tokens \"%.60s\" and \"%.60s\" have the same id %lld; the file is "
                           "damaged",
                           token->data, text, (long long)value);
    *token = (octavo_text){.data = text, .length = length};
    r->types[value] = OCTAVO_TOKEN_NORMAL;
    if ((size_t)value >= r->vocab.n_tokens) r->vocab.n_tokens = (size_t)value + 1;
    return OCTAVO_OK;
}

static octavo_status put_added_flags(octavo_json_reader *r, const json_t *added, size_t id) {
    static const struct {
        const char *key;
        uint8_t flag;
    } rows[] = {{"lstrip", OCTAVO_ADDED_LSTRIP},
                {"rstrip", OCTAVO_ADDED_RSTRIP},
                {"single_word", OCTAVO_ADDED_SINGLE_WORD},
                {"normalized", OCTAVO_ADDED_NORMALIZED}};
    bool is_special = false;
    octavo_status status = octavo_json_bool(r, added, "special", false, &is_special);
    r->types[id] = is_special ? OCTAVO_TOKEN_CONTROL : OCTAVO_TOKEN_USER;
    for (size_t i = 0; i < OCTAVO_COUNT(rows) && status == OCTAVO_OK; i++) {
        bool value = false;
        status = octavo_json_bool(r, added, rows[i].key, false, &value);
        if (value) r->added_flags[id] |= rows[i].flag;
    }
    return status;
}

/* An added token is one of the model, under the same id, or new. */
static octavo_status put_added(octavo_json_reader *r, const json_t *added) {
    octavo_text content = {0};
    octavo_status status = octavo_json_text(r, added, "content", &content);
    if (status != OCTAVO_OK) return status;
    const json_t *id = json_object_get(added, "id");
    json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    if (value >= 0 && (uint64_t)value < r->room) {
        const octavo_text *token = &r->tokens[value];
        bool is_same = token->data != NULL && token->length == content.length &&
                       memcmp(token->data, content.data, content.length) == 0;
        if (is_same && r->types[value] == OCTAVO_TOKEN_NORMAL) {
            r->added_flags[value] |= OCTAVO_ADDED_IN_MODEL;
            return put_added_flags(r, added, (size_t)value);
        }
    }
    const json_t *other = json_object_get(r->model_vocab, content.data);
    if (other != NULL && json_integer_value(other) != value)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "token \"%.60s\" has the id %lld among \"added_tokens\" and %lld in the "
                           "vocabulary; the file is damaged",
                           content.data, (long long)value, (long long)json_integer_value(other));
    status = put_token(r, content.data, content.length, id);
    if (status == OCTAVO_OK) status = put_added_flags(r, added, (size_t)value);
    return status;
}

static octavo_status put_model_tokens(octavo_json_reader *r) {
    octavo_status status = OCTAVO_OK;
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach(r->model_vocab, key, value) {
        status = put_token(r, key, strlen(key), value);
        if (status != OCTAVO_OK) return status;
    }
    json_array_foreach(r->model_vocab, i, value) {
        const json_t *text = json_array_get(value, 0);
        if (!json_is_string(text) || !json_is_number(json_array_get(value, 1)))
            return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                               "entry %zu of the vocabulary is no text and score; the file is "
                               "damaged",
                               i);
        r->tokens[i] = (octavo_text){json_string_value(text), json_string_length(text)};
        r->types[i] = OCTAVO_TOKEN_NORMAL;
        r->vocab.n_tokens = i + 1;
    }
    return OCTAVO_OK;
}

static octavo_status make_room(octavo_json_reader *r, size_t n_model, size_t n_added) {
    r->room = n_model + n_added;
    if (n_model == 0)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "it has no vocabulary; the file is incomplete");
    if (r->room > OCTAVO_VOCAB_TOKENS_MAX)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "it has %zu tokens, the limit is %d; the file is damaged", r->room,
                           OCTAVO_VOCAB_TOKENS_MAX);
    r->tokens = octavo_arena_alloc(&r->arena, r->room * sizeof(*r->tokens));
    r->types = octavo_arena_alloc(&r->arena, r->room * sizeof(*r->types));
    r->added_flags = octavo_arena_alloc(&r->arena, r->room);
    if (r->tokens == NULL || r->types == NULL || r->added_flags == NULL)
        return octavo_fail_memory(r->error, "vocabulary", r->room * sizeof(*r->tokens));
    r->vocab.tokens = r->tokens;
    r->vocab.types = r->types;
    r->vocab.added_flags = r->added_flags;
    return OCTAVO_OK;
}

octavo_status octavo_json_read_vocab(octavo_json_reader *r) {
    const json_t *model = json_object_get(r->root, "model");
    json_t *added = octavo_json_get(r->root, "added_tokens");
    if (!json_is_object(model))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "\"model\" is missing; this is no file of a tokenizer");
    if (added != NULL && !json_is_array(added))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "\"added_tokens\" is no array; the file is damaged");
    r->model_vocab = json_object_get(model, "vocab");
    octavo_status status =
        make_room(r, json_object_size(r->model_vocab) + json_array_size(r->model_vocab),
                  json_array_size(added));
    if (status == OCTAVO_OK) status = put_model_tokens(r);
    for (size_t i = 0; i < json_array_size(added) && status == OCTAVO_OK; i++)
        status = put_added(r, json_array_get(added, i));
    for (size_t i = 0; i < r->vocab.n_tokens && status == OCTAVO_OK; i++)
        if (r->tokens[i].data == NULL)
            return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                               "no token has the id %zu, though there are higher ones; the file "
                               "is incomplete",
                               i);
    return status;
}

/* What is in use is an option that changes the ids; empty is the same as absent. */
static octavo_status refuse_option(octavo_json_reader *r, const json_t *model, const char *key) {
    const json_t *value = octavo_json_get(model, key);
    bool is_off = value == NULL || (json_is_string(value) && json_string_length(value) == 0) ||
                  (json_is_number(value) && !(json_number_value(value) > 0));
    if (is_off) return OCTAVO_OK;
    return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                       "this build does not support the model's \"%s\"", key);
}

static octavo_status read_unknown(octavo_json_reader *r, const json_t *model) {
    const json_t *name = octavo_json_get(model, "unk_token");
    if (name == NULL) return OCTAVO_OK;
    const char *text = json_string_value(name);
    int32_t id = text != NULL ? octavo_json_token(r, text) : -1;
    if (id < 0)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the model's \"unk_token\" (%.60s) is no token; the file is damaged",
                           text != NULL ? text : "not a text");
    r->vocab.unk = id;
    return OCTAVO_OK;
}

static octavo_status fail_merge(octavo_json_reader *r, size_t i, const char *why,
                                const char *text) {
    return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                       "merge %zu (\"%.60s\"): %s; the file is damaged", i, text, why);
}

/* A token of the model by its text; added tokens take no part in merges. */
static int32_t model_token(const octavo_json_reader *r, const char *text) {
    const json_t *id = json_object_get(r->model_vocab, text);
    return id != NULL ? (int32_t)json_integer_value(id) : -1;
}

/* A merge is "left right" or, in newer files, ["left", "right"]. `text` is scratch. */
static octavo_status read_merge(octavo_json_reader *r, const json_t *entry, size_t i,
                                octavo_buffer *text, octavo_bpe_merge *merge) {
    octavo_buffer_clear(text);
    size_t left_length, right_at;
    if (json_is_string(entry)) {
        octavo_buffer_append(text, json_string_value(entry), json_string_length(entry));
        const char *space = text->failed ? NULL : memchr(text->data, ' ', text->size);
        if (space == NULL) return fail_merge(r, i, "it has no space", json_string_value(entry));
        left_length = (size_t)(space - text->data);
        right_at = left_length + 1;
        if (strchr(space + 1, ' ') != NULL)
            return fail_merge(r, i, "it has two spaces", text->data);
    } else {
        const char *left = json_string_value(json_array_get(entry, 0));
        const char *right = json_string_value(json_array_get(entry, 1));
        if (left == NULL || right == NULL || json_array_size(entry) != 2)
            return fail_merge(r, i, "it is no pair of texts", "");
        octavo_buffer_puts(text, left);
        left_length = text->size;
        octavo_buffer_putc(text, '\0');
        right_at = text->size;
        octavo_buffer_puts(text, right);
    }
    if (text->failed) return octavo_fail_memory(r->error, "merges", left_length);
    text->data[left_length] = '\0';
    merge->left = model_token(r, text->data);
    merge->right = model_token(r, text->data + right_at);
    if (merge->left < 0) return fail_merge(r, i, "this half is no token", text->data);
    if (merge->right < 0) return fail_merge(r, i, "this half is no token", text->data + right_at);
    memmove(text->data + left_length, text->data + right_at, text->size - right_at + 1);
    merge->result = model_token(r, text->data);
    if (merge->result < 0) return fail_merge(r, i, "the whole is no token", text->data);
    return OCTAVO_OK;
}

static octavo_status read_merges(octavo_json_reader *r, const json_t *model) {
    const json_t *list = json_object_get(model, "merges");
    size_t n = json_array_size(list);
    octavo_status status = OCTAVO_OK;
    if (n == 0)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the model has no \"merges\"; the file is incomplete");
    if (n > OCTAVO_VOCAB_TOKENS_MAX)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "it has %zu merges, the limit is %d; the file is damaged", n,
                           OCTAVO_VOCAB_TOKENS_MAX);
    octavo_bpe_merge *merges = octavo_arena_alloc(&r->pipeline->arena, n * sizeof(*merges));
    octavo_buffer text = {0};
    if (merges == NULL) return octavo_fail_memory(r->error, "merges", n * sizeof(*merges));
    for (size_t i = 0; i < n && status == OCTAVO_OK; i++)
        status = read_merge(r, json_array_get(list, i), i, &text, &merges[i]);
    octavo_buffer_deinit(&text);
    r->pipeline->merges = merges;
    r->pipeline->n_merges = n;
    return status;
}

static octavo_status read_bpe(octavo_json_reader *r, const json_t *model) {
    octavo_pipeline *p = r->pipeline;
    p->model = &octavo_model_bpe;
    octavo_status status = refuse_option(r, model, "dropout");
    if (status == OCTAVO_OK) status = refuse_option(r, model, "continuing_subword_prefix");
    if (status == OCTAVO_OK) status = refuse_option(r, model, "end_of_word_suffix");
    if (status == OCTAVO_OK)
        status = octavo_json_bool(r, model, "fuse_unk", false, &p->fuse_unknown);
    if (status == OCTAVO_OK)
        status = octavo_json_bool(r, model, "byte_fallback", false, &p->byte_fallback);
    if (status == OCTAVO_OK)
        status = octavo_json_bool(r, model, "ignore_merges", false, &p->ignore_merges);
    if (status == OCTAVO_OK && !json_is_object(r->model_vocab))
        status = octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                             "the vocabulary is no object; the file is damaged");
    if (status == OCTAVO_OK) status = read_unknown(r, model);
    if (status == OCTAVO_OK) status = read_merges(r, model);
    return status;
}

static octavo_status read_words(octavo_json_reader *r, const json_t *model, bool is_wordpiece) {
    octavo_pipeline *p = r->pipeline;
    p->model = is_wordpiece ? &octavo_model_wordpiece : &octavo_model_wordlevel;
    octavo_status status = read_unknown(r, model);
    if (status != OCTAVO_OK || !is_wordpiece) return status;
    octavo_text prefix = {0};
    status = octavo_json_text(r, model, "continuing_subword_prefix", &prefix);
    if (status != OCTAVO_OK) return status;
    p->continuing_prefix = octavo_pipeline_text(p, prefix);
    if (p->continuing_prefix.data == NULL)
        return octavo_fail_memory(r->error, "vocabulary", prefix.length);
    const json_t *most = octavo_json_get(model, "max_input_chars_per_word");
    if (most != NULL && (!json_is_integer(most) || json_integer_value(most) < 0))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the model's \"max_input_chars_per_word\" is no count; the file is "
                           "damaged");
    p->max_characters = most != NULL ? (size_t)json_integer_value(most) : 100;
    return OCTAVO_OK;
}

static octavo_status read_unigram(octavo_json_reader *r, const json_t *model) {
    octavo_pipeline *p = r->pipeline;
    p->model = &octavo_model_unigram;
    octavo_status status = octavo_json_bool(r, model, "byte_fallback", false, &p->byte_fallback);
    if (status != OCTAVO_OK) return status;
    if (!json_is_array(r->model_vocab))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the vocabulary is no array; the file is damaged");
    double *scores = octavo_arena_alloc(&p->arena, r->room * sizeof(*scores));
    if (scores == NULL)
        return octavo_fail_memory(r->error, "vocabulary", r->room * sizeof(*scores));
    double least = 0;
    for (size_t i = 0; i < json_array_size(r->model_vocab); i++) {
        scores[i] = json_number_value(json_array_get(json_array_get(r->model_vocab, i), 1));
        if (i == 0 || scores[i] < least) least = scores[i];
    }
    p->scores = scores;
    p->unknown_score = least - 10;
    const json_t *unknown = octavo_json_get(model, "unk_id");
    if (unknown == NULL) return OCTAVO_OK;
    json_int_t id = json_is_integer(unknown) ? json_integer_value(unknown) : -1;
    if (id < 0 || (uint64_t)id >= json_array_size(r->model_vocab))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the model's \"unk_id\" is no token; the file is damaged");
    r->vocab.unk = (int32_t)id;
    return OCTAVO_OK;
}

octavo_status octavo_json_read_model(octavo_json_reader *r) {
    const json_t *model = json_object_get(r->root, "model");
    const char *type = octavo_json_type(model);
    if (type[0] == '\0') /* old files do not say */
        type = json_object_get(model, "merges") != NULL ? "BPE"
               : json_is_array(r->model_vocab)          ? "Unigram"
                                                        : "of no type";
    octavo_status status;
    if (strcmp(type, "BPE") == 0)
        status = read_bpe(r, model);
    else if (strcmp(type, "Unigram") == 0)
        status = read_unigram(r, model);
    else if (strcmp(type, "WordPiece") == 0 || strcmp(type, "WordLevel") == 0)
        status = read_words(r, model, type[4] == 'P');
    else
        return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                           "this build does not know the model \"%.60s\"; it knows BPE, Unigram, "
                           "WordPiece and WordLevel",
                           type);
    if (status == OCTAVO_OK && r->pipeline->spells_bytes && strcmp(type, "BPE") != 0)
        return octavo_fail(
            r->error, OCTAVO_ERROR_UNSUPPORTED,
            "this build does not know the pre-tokenizer \"ByteLevel\" before a model "
            "\"%s\"",
            type);
    return status;
}
