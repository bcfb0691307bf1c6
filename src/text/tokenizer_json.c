/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading tokenizer.json part by part into a vocabulary and a pipeline.
 */
#include "text/tokenizer_json.h"

#include "base/error.h"
#include "text/tokenizer_json_reader.h"

#include <string.h>

json_t *octavo_json_get(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

octavo_status octavo_json_bool(octavo_json_reader *r, const json_t *object, const char *key,
                               bool otherwise, bool *value) {
    const json_t *found = octavo_json_get(object, key);
    if (found != NULL && !json_is_boolean(found))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "\"%s\" is neither true nor false; the file is damaged", key);
    *value = found != NULL ? json_is_true(found) : otherwise;
    return OCTAVO_OK;
}

octavo_status octavo_json_text(octavo_json_reader *r, const json_t *object, const char *key,
                               octavo_text *text) {
    const json_t *found = json_object_get(object, key);
    if (!json_is_string(found))
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "\"%s\" is missing or no text; the file is damaged", key);
    *text = (octavo_text){.data = json_string_value(found), .length = json_string_length(found)};
    return OCTAVO_OK;
}

const char *octavo_json_type(const json_t *step) {
    const char *type = json_string_value(json_object_get(step, "type"));
    return type != NULL ? type : "";
}

octavo_status octavo_json_pattern(octavo_json_reader *r, const json_t *step,
                                  octavo_pattern *pattern) {
    const json_t *found = json_object_get(step, "pattern");
    octavo_text text;
    octavo_status status;
    if (json_object_get(found, "Regex") != NULL) {
        status = octavo_json_text(r, found, "Regex", &text);
        if (status == OCTAVO_OK) status = octavo_pattern_regex(pattern, text, r->error);
    } else {
        status = octavo_json_text(r, found, "String", &text);
        if (status == OCTAVO_OK) status = octavo_pattern_literal(pattern, text, r->error);
    }
    return status;
}

static octavo_status read_all(octavo_json_reader *r, octavo_tokenizer **tokenizer) {
    octavo_status status = octavo_json_read_vocab(r);
    if (status == OCTAVO_OK) status = octavo_json_read_normalizer(r);
    if (status == OCTAVO_OK) status = octavo_json_read_splitter(r);
    if (status == OCTAVO_OK) status = octavo_json_read_decoder(r);
    if (status == OCTAVO_OK) status = octavo_json_read_model(r);
    if (status == OCTAVO_OK) status = octavo_json_read_ends(r);
    if (status == OCTAVO_OK)
        status = octavo_tokenizer_create_piped(&r->vocab, &r->pipeline, tokenizer, r->error);
    return status;
}

/* Messages quote the file: no control character of it may reach the terminal. */
static void blank_controls(char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = ' ';
}

octavo_status octavo_tokenizer_from_json(const octavo_tokenizer_json *source,
                                         octavo_tokenizer **tokenizer, octavo_error *error) {
    octavo_assert(source != NULL && source->tokenizer != NULL && tokenizer != NULL);
    octavo_error inner = {0};
    octavo_json_reader r = {.root = source->tokenizer,
                            .config = source->config,
                            .config_name = source->config_name,
                            .vocab = OCTAVO_VOCAB_INIT,
                            .error = &inner};
    octavo_status status;
    r.pipeline = octavo_alloc_zero(1, sizeof(*r.pipeline));
    if (r.pipeline == NULL)
        status = octavo_fail_memory(&inner, "tokenizer", sizeof(*r.pipeline));
    else
        status = read_all(&r, tokenizer);
    if (status != OCTAVO_OK) {
        blank_controls(inner.message);
        status = octavo_fail(error, status, "tokenizer (%s): %s", source->name, inner.message);
    }
    octavo_pipeline_destroy(&r.pipeline);
    octavo_arena_deinit(&r.arena);
    return status;
}
