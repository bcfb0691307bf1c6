/* SPDX-License-Identifier: Apache-2.0
 *
 * "post_processor" and tokenizer_config.json: which tokens texts begin and end with.
 */
#include "base/error.h"
#include "text/tokenizer_json_reader.h"

#include <string.h>

enum { DEPTH_MAX = 8 }; /* of sequences in sequences */

static octavo_status check_id(octavo_json_reader *r, const json_t *json, int32_t *id) {
    json_int_t value = json_is_integer(json) ? json_integer_value(json) : -1;
    if (value < 0 || (uint64_t)value >= r->vocab.n_tokens)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the post-processor adds token %lld, which does not exist; the file is "
                           "damaged",
                           (long long)value);
    *id = (int32_t)value;
    return OCTAVO_OK;
}

/* Later processors put their tokens outside those of earlier ones. */
static octavo_status put_id(octavo_json_reader *r, int32_t id, bool is_end, size_t at) {
    octavo_pipeline *p = r->pipeline;
    size_t *n = is_end ? &p->n_end : &p->n_begin;
    int32_t *ids = is_end ? p->end_ids : p->begin_ids;
    if (*n == OCTAVO_VOCAB_ENDS_MAX)
        return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                           "the post-processor adds more than %d tokens at an end; this build "
                           "stops there",
                           OCTAVO_VOCAB_ENDS_MAX);
    if (is_end) at = *n;
    memmove(ids + at + 1, ids + at, (*n - at) * sizeof(*ids));
    ids[at] = id;
    (*n)++;
    return OCTAVO_OK;
}

/* "single": special tokens around the sequence A. */
static octavo_status read_template(octavo_json_reader *r, const json_t *json) {
    const json_t *items = json_object_get(json, "single");
    bool is_end = false;
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        if (json_object_get(item, "Sequence") != NULL) {
            is_end = true;
            continue;
        }
        const char *name =
            json_string_value(json_object_get(json_object_get(item, "SpecialToken"), "id"));
        const json_t *ids = json_object_get(
            json_object_get(json_object_get(json, "special_tokens"), name != NULL ? name : ""),
            "ids");
        if (json_array_size(ids) == 0)
            return octavo_fail(
                r->error, OCTAVO_ERROR_FORMAT,
                "the post-processor adds \"%.60s\" without an id; the file is damaged",
                name != NULL ? name : "");
        for (size_t k = 0; k < json_array_size(ids); k++) {
            int32_t id = -1;
            octavo_status status = check_id(r, json_array_get(ids, k), &id);
            if (status == OCTAVO_OK) status = put_id(r, id, is_end, at++);
            if (status != OCTAVO_OK) return status;
        }
    }
    return OCTAVO_OK;
}

/* "cls" in front, "sep" behind; both are [text, id]. */
static octavo_status read_bert(octavo_json_reader *r, const json_t *json) {
    int32_t cls = -1, sep = -1;
    octavo_status status = check_id(r, json_array_get(json_object_get(json, "cls"), 1), &cls);
    if (status == OCTAVO_OK)
        status = check_id(r, json_array_get(json_object_get(json, "sep"), 1), &sep);
    if (status == OCTAVO_OK) status = put_id(r, cls, false, 0);
    if (status == OCTAVO_OK) status = put_id(r, sep, true, 0);
    return status;
}

static octavo_status read_processor(octavo_json_reader *r, const json_t *json, int depth) {
    const char *type = octavo_json_type(json);
    octavo_status status = OCTAVO_OK;
    if (strcmp(type, "Sequence") == 0 && depth < DEPTH_MAX) {
        const json_t *steps = json_object_get(json, "processors");
        for (size_t i = 0; i < json_array_size(steps) && status == OCTAVO_OK; i++)
            status = read_processor(r, json_array_get(steps, i), depth + 1);
        return status;
    }
    if (strcmp(type, "ByteLevel") == 0) return OCTAVO_OK; /* changes offsets only */
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(r, json);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        return read_bert(r, json);
    return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                       "this build does not know the post-processor \"%.60s\"; it knows "
                       "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and "
                       "Sequence",
                       type);
}

/* The token that the configuration names under a key: a text, or an object with "content". */
static octavo_status read_named(octavo_json_reader *r, const char *key, int32_t *id) {
    const json_t *named = octavo_json_get(r->config, key);
    if (json_is_object(named)) named = octavo_json_get(named, "content");
    if (named == NULL) return OCTAVO_OK;
    const char *text = json_string_value(named);
    int32_t found = text != NULL ? octavo_json_token(r, text) : -1;
    if (found < 0)
        return octavo_fail(
            r->error, OCTAVO_ERROR_FORMAT,
            "%s says that \"%s\" is \"%.60s\", which is no token; the two files do not "
            "belong together",
            r->config_name, key, text != NULL ? text : "");
    *id = found;
    return OCTAVO_OK;
}

/* Classes of tokenizers which add begin and end as their configuration says, whatever the
 * post-processor does. */
static bool config_decides(const octavo_json_reader *r) {
    static const char *const classes[] = {"Llama", "CodeLlama", "Gemma", "Cohere"};
    const char *name = json_string_value(json_object_get(r->config, "tokenizer_class"));
    for (size_t i = 0; name != NULL && i < OCTAVO_COUNT(classes); i++)
        if (strncmp(name, classes[i], strlen(classes[i])) == 0) return true;
    return false;
}

static octavo_status apply_switch(octavo_json_reader *r, const char *key, int32_t id, int32_t *ids,
                                  size_t *n) {
    const json_t *found = octavo_json_get(r->config, key);
    bool adds = false;
    octavo_status status = octavo_json_bool(r, r->config, key, false, &adds);
    if (status != OCTAVO_OK || found == NULL) return status;
    *n = adds && id >= 0 ? 1 : 0;
    if (*n == 1) ids[0] = id;
    return OCTAVO_OK;
}

octavo_status octavo_json_read_ends(octavo_json_reader *r) {
    octavo_pipeline *p = r->pipeline;
    const json_t *json = octavo_json_get(r->root, "post_processor");
    octavo_status status = json != NULL ? read_processor(r, json, 0) : OCTAVO_OK;
    if (status == OCTAVO_OK) status = read_named(r, "bos_token", &r->vocab.bos);
    if (status == OCTAVO_OK) status = read_named(r, "eos_token", &r->vocab.eos);
    if (status == OCTAVO_OK) status = read_named(r, "pad_token", &r->vocab.pad);
    if (status == OCTAVO_OK && config_decides(r))
        status = apply_switch(r, "add_bos_token", r->vocab.bos, p->begin_ids, &p->n_begin);
    if (status == OCTAVO_OK && config_decides(r))
        status = apply_switch(r, "add_eos_token", r->vocab.eos, p->end_ids, &p->n_end);
    if (r->vocab.bos < 0 && p->n_begin > 0) r->vocab.bos = p->begin_ids[0];
    if (r->vocab.eos < 0 && p->n_end > 0) r->vocab.eos = p->end_ids[p->n_end - 1];
    return status;
}
