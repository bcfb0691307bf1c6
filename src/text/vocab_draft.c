/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that a configuration adds go behind those of the file, each under the id it names; where
 * the file has that id already, the configuration says how the token is found in text.
 */
#include "text/vocab_draft.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const json_t *added_tokens(const octavo_vocab_source *source) {
    const json_t *added = json_object_get(source->config, "added_tokens_decoder");
    return json_is_object(added) ? added : NULL;
}

octavo_status octavo_vocab_draft_init(octavo_vocab_draft *draft, size_t n,
                                      const octavo_vocab_source *source, octavo_error *error) {
    size_t room = n + json_object_size(added_tokens(source));
    *draft = (octavo_vocab_draft){.vocab = OCTAVO_VOCAB_INIT, .room = room};
    if (n == 0 || room > OCTAVO_VOCAB_TOKENS_MAX)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "it has %zu tokens, where 1 to %d may be; the file is damaged", room,
                           OCTAVO_VOCAB_TOKENS_MAX);
    draft->tokens = octavo_arena_alloc(&draft->arena, room * sizeof(*draft->tokens));
    draft->types = octavo_arena_alloc(&draft->arena, room * sizeof(*draft->types));
    draft->scores = octavo_arena_alloc(&draft->arena, room * sizeof(*draft->scores));
    draft->added_flags = octavo_arena_alloc(&draft->arena, room);
    if (draft->tokens == NULL || draft->types == NULL || draft->scores == NULL ||
        draft->added_flags == NULL)
        return octavo_fail_memory(error, "vocabulary", room * sizeof(*draft->tokens));
    draft->vocab.tokens = draft->tokens;
    draft->vocab.types = draft->types;
    draft->vocab.scores = draft->scores;
    draft->vocab.added_flags = draft->added_flags;
    return OCTAVO_OK;
}

void octavo_vocab_draft_deinit(octavo_vocab_draft *draft) {
    octavo_arena_deinit(&draft->arena);
    *draft = (octavo_vocab_draft){0};
}

void octavo_vocab_draft_put(octavo_vocab_draft *draft, octavo_text text, int32_t type,
                            float score) {
    size_t i = draft->vocab.n_tokens++;
    octavo_assert(i < draft->room);
    draft->tokens[i] = text;
    draft->types[i] = type;
    draft->scores[i] = score;
}

static bool is_same(octavo_text a, octavo_text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static octavo_status add_token(octavo_vocab_draft *draft, const octavo_vocab_source *source,
                               size_t id, const json_t *added, octavo_error *error) {
    static const struct {
        const char *key;
        uint8_t flag;
    } rows[] = {{"lstrip", OCTAVO_ADDED_LSTRIP},
                {"rstrip", OCTAVO_ADDED_RSTRIP},
                {"single_word", OCTAVO_ADDED_SINGLE_WORD}};
    const json_t *content = json_object_get(added, "content");
    octavo_text text = {json_string_value(content), json_string_length(content)};
    if (text.length == 0)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "%s adds token %zu without \"content\"; the file is damaged",
                           source->config_name, id);
    if (id == draft->vocab.n_tokens) octavo_vocab_draft_put(draft, text, OCTAVO_TOKEN_USER, 0);
    if (!is_same(draft->tokens[id], text))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "%s says that token %zu is \"%.60s\", which it is not; the two files do "
                           "not belong together",
                           source->config_name, id, text.data);
    bool is_special = json_is_true(json_object_get(added, "special"));
    if (draft->types[id] != OCTAVO_TOKEN_CONTROL)
        draft->types[id] = is_special ? OCTAVO_TOKEN_CONTROL : OCTAVO_TOKEN_USER;
    for (size_t i = 0; i < OCTAVO_COUNT(rows); i++)
        if (json_is_true(json_object_get(added, rows[i].key)))
            draft->added_flags[id] |= rows[i].flag;
    return OCTAVO_OK;
}

/* By ascending id: the object's order is not to be relied on. */
static octavo_status add_tokens(octavo_vocab_draft *draft, const octavo_vocab_source *source,
                                octavo_error *error) {
    const json_t *added = added_tokens(source);
    size_t n_left = json_object_size(added);
    octavo_status status = OCTAVO_OK;
    for (size_t id = 0; id < draft->room && n_left > 0 && status == OCTAVO_OK; id++) {
        char key[24];
        (void)snprintf(key, sizeof key, "%zu", id);
        const json_t *token = json_object_get(added, key);
        if (token == NULL) continue;
        if (id > draft->vocab.n_tokens) break;
        status = add_token(draft, source, id, token, error);
        n_left--;
    }
    if (status == OCTAVO_OK && n_left > 0)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "%s adds tokens (\"added_tokens_decoder\") whose ids leave a gap behind "
                           "the %zu there are; the two files do not belong together",
                           source->config_name, draft->vocab.n_tokens);
    return status;
}

/* The token that the configuration names under a key: a text, or an object with "content". */
static octavo_status read_named(const octavo_vocab_draft *draft, const octavo_vocab_source *source,
                                const char *key, int32_t *id, octavo_error *error) {
    const json_t *named = json_object_get(source->config, key);
    if (json_is_object(named)) named = json_object_get(named, "content");
    if (named == NULL || json_is_null(named)) return OCTAVO_OK;
    octavo_text text = {json_string_value(named), json_string_length(named)};
    for (size_t i = draft->vocab.n_tokens; i > 0 && text.data != NULL; i--)
        if (is_same(draft->tokens[i - 1], text)) {
            *id = (int32_t)(i - 1);
            return OCTAVO_OK;
        }
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "%s says that \"%s\" is \"%.60s\", which is no token; the two files do not "
                       "belong together",
                       source->config_name, key, text.data != NULL ? text.data : "");
}

static octavo_status read_switch(const octavo_vocab_source *source, const char *key, bool *value,
                                 octavo_error *error) {
    const json_t *found = json_object_get(source->config, key);
    if (found == NULL || json_is_null(found)) return OCTAVO_OK;
    if (!json_is_boolean(found))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "\"%s\" in %s is neither true nor false; the file is damaged", key,
                           source->config_name);
    *value = json_is_true(found);
    return OCTAVO_OK;
}

octavo_status octavo_vocab_configure(octavo_vocab_draft *draft, const octavo_vocab_source *source,
                                     octavo_error *error) {
    octavo_vocab *vocab = &draft->vocab;
    if (source->config == NULL) return OCTAVO_OK;
    octavo_status status = add_tokens(draft, source, error);
    const struct {
        const char *key;
        int32_t *id;
    } ids[] = {{"bos_token", &vocab->bos},
               {"eos_token", &vocab->eos},
               {"unk_token", &vocab->unk},
               {"pad_token", &vocab->pad}};
    for (size_t i = 0; i < OCTAVO_COUNT(ids) && status == OCTAVO_OK; i++)
        status = read_named(draft, source, ids[i].key, ids[i].id, error);
    if (status == OCTAVO_OK) status = read_switch(source, "add_bos_token", &vocab->add_bos, error);
    if (status == OCTAVO_OK) status = read_switch(source, "add_eos_token", &vocab->add_eos, error);
    return status;
}
