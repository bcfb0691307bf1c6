/* SPDX-License-Identifier: Apache-2.0
 *
 * "pre_tokenizer": where text is cut. Most of the named ones are one or two cuts at a kind of
 * character.
 */
#include "base/error.h"
#include "text/tokenizer_json_reader.h"

#include <string.h>

enum { DEPTH_MAX = 8 }; /* of sequences in sequences */

/* How GPT-2 cuts: contractions; letters, numbers and others, each with a space before; white
 * space without its last. */
#define PATTERN_GPT2                                                                               \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static octavo_status add_step(octavo_json_reader *r, octavo_splitter_type type,
                              octavo_splitter_step **step) {
    octavo_pipeline *p = r->pipeline;
    if (p->n_splitters == OCTAVO_STEPS_MAX)
        return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                           "it has more than %d pre-tokenizers; this build stops there",
                           OCTAVO_STEPS_MAX);
    if (p->spells_bytes)
        return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                           "this build knows the pre-tokenizer \"ByteLevel\" only as the last one");
    *step = &p->splitters[p->n_splitters++];
    (*step)->type = type;
    return OCTAVO_OK;
}

static octavo_status add_test(octavo_json_reader *r, octavo_character_test *test,
                              octavo_split_behavior behavior) {
    octavo_splitter_step *step = NULL;
    octavo_status status = add_step(r, OCTAVO_SPLITTER_PATTERN, &step);
    if (status != OCTAVO_OK) return status;
    step->pattern.test = test;
    step->behavior = behavior;
    return OCTAVO_OK;
}

static octavo_status read_behavior(octavo_json_reader *r, const json_t *json,
                                   octavo_split_behavior *behavior) {
    static const char *const names[] = {
        [OCTAVO_SPLIT_REMOVED] = "Removed",
        [OCTAVO_SPLIT_ISOLATED] = "Isolated",
        [OCTAVO_SPLIT_MERGED_PREVIOUS] = "MergedWithPrevious",
        [OCTAVO_SPLIT_MERGED_NEXT] = "MergedWithNext",
        [OCTAVO_SPLIT_CONTIGUOUS] = "Contiguous",
    };
    const char *name = json_string_value(json_object_get(json, "behavior"));
    if (name == NULL) return OCTAVO_OK; /* as the caller has set it */
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *behavior = (octavo_split_behavior)i;
            return OCTAVO_OK;
        }
    return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                       "there is no split behavior \"%.60s\"; the file is damaged", name);
}

static octavo_status add_split(octavo_json_reader *r, const json_t *json) {
    octavo_splitter_step *step = NULL;
    octavo_status status = add_step(r, OCTAVO_SPLITTER_PATTERN, &step);
    if (status != OCTAVO_OK) return status;
    step->behavior = OCTAVO_SPLIT_ISOLATED;
    status = read_behavior(r, json, &step->behavior);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "invert", false, &step->invert);
    if (status == OCTAVO_OK) status = octavo_json_pattern(r, json, &step->pattern);
    return status;
}

static octavo_status add_delimiter(octavo_json_reader *r, const json_t *json) {
    octavo_splitter_step *step = NULL;
    octavo_text delimiter = {0};
    octavo_status status = octavo_json_text(r, json, "delimiter", &delimiter);
    if (status == OCTAVO_OK) status = add_step(r, OCTAVO_SPLITTER_PATTERN, &step);
    if (status != OCTAVO_OK) return status;
    step->behavior = OCTAVO_SPLIT_REMOVED;
    return octavo_pattern_literal(&step->pattern, delimiter, r->error);
}

/* A space in front, then the pattern of GPT-2, then bytes; each but the last on request. */
static octavo_status add_bytes(octavo_json_reader *r, const json_t *json) {
    static const octavo_text pattern = {PATTERN_GPT2, sizeof(PATTERN_GPT2) - 1};
    bool has_prefix = true, has_regex = true;
    octavo_splitter_step *step = NULL;
    octavo_status status = octavo_json_bool(r, json, "add_prefix_space", true, &has_prefix);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "use_regex", true, &has_regex);
    if (status == OCTAVO_OK && has_prefix) status = add_step(r, OCTAVO_SPLITTER_PREFIX, &step);
    if (status == OCTAVO_OK && has_regex) {
        status = add_step(r, OCTAVO_SPLITTER_PATTERN, &step);
        if (status == OCTAVO_OK) {
            step->behavior = OCTAVO_SPLIT_ISOLATED;
            status = octavo_pattern_regex(&step->pattern, pattern, r->error);
        }
    }
    if (status == OCTAVO_OK && r->pipeline->spells_bytes)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "it has the pre-tokenizer \"ByteLevel\" twice; the file is damaged");
    r->pipeline->spells_bytes = true;
    return status;
}

static octavo_status add_marks(octavo_json_reader *r, const json_t *json) {
    static const char *const schemes[] = {[OCTAVO_PREPEND_NEVER] = "never",
                                          [OCTAVO_PREPEND_FIRST] = "first",
                                          [OCTAVO_PREPEND_ALWAYS] = "always"};
    octavo_splitter_step *step = NULL;
    octavo_text mark = {0};
    bool adds = true; /* what old files say instead of a scheme */
    octavo_status status = octavo_json_text(r, json, "replacement", &mark);
    if (status == OCTAVO_OK) status = add_step(r, OCTAVO_SPLITTER_MARKS, &step);
    if (status != OCTAVO_OK) return status;
    step->behavior = OCTAVO_SPLIT_MERGED_NEXT;
    status = octavo_pattern_literal(&step->pattern, mark, r->error);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "add_prefix_space", true, &adds);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "split", true, &step->cuts);
    if (status != OCTAVO_OK) return status;
    step->prepend = adds ? OCTAVO_PREPEND_ALWAYS : OCTAVO_PREPEND_NEVER;
    const json_t *scheme = octavo_json_get(json, "prepend_scheme");
    if (scheme == NULL) return OCTAVO_OK;
    for (size_t i = 0; i < OCTAVO_COUNT(schemes); i++)
        if (json_is_string(scheme) && strcmp(json_string_value(scheme), schemes[i]) == 0) {
            step->prepend = (octavo_prepend_scheme)i;
            return OCTAVO_OK;
        }
    return octavo_fail(
        r->error, OCTAVO_ERROR_FORMAT,
        "the \"prepend_scheme\" of \"Metaspace\" is none of never, first, always; the "
        "file is damaged");
}

static octavo_status add_digits(octavo_json_reader *r, const json_t *json) {
    bool individual = false;
    octavo_status status = octavo_json_bool(r, json, "individual_digits", false, &individual);
    if (status != OCTAVO_OK) return status;
    return add_test(r, octavo_is_number,
                    individual ? OCTAVO_SPLIT_ISOLATED : OCTAVO_SPLIT_CONTIGUOUS);
}

static octavo_status add_punctuation(octavo_json_reader *r, const json_t *json) {
    octavo_split_behavior behavior = OCTAVO_SPLIT_ISOLATED;
    octavo_status status = read_behavior(r, json, &behavior);
    if (status != OCTAVO_OK) return status;
    return add_test(r, octavo_is_punctuation, behavior);
}

static octavo_status read_splitter(octavo_json_reader *r, const json_t *json, int depth) {
    const char *type = octavo_json_type(json);
    octavo_status status = OCTAVO_OK;
    if (strcmp(type, "Sequence") == 0 && depth < DEPTH_MAX) {
        const json_t *steps = json_object_get(json, "pretokenizers");
        for (size_t i = 0; i < json_array_size(steps) && status == OCTAVO_OK; i++)
            status = read_splitter(r, json_array_get(steps, i), depth + 1);
        return status;
    }
    if (strcmp(type, "Split") == 0) return add_split(r, json);
    if (strcmp(type, "ByteLevel") == 0) return add_bytes(r, json);
    if (strcmp(type, "Metaspace") == 0) return add_marks(r, json);
    if (strcmp(type, "Digits") == 0) return add_digits(r, json);
    if (strcmp(type, "Punctuation") == 0) return add_punctuation(r, json);
    if (strcmp(type, "CharDelimiterSplit") == 0) return add_delimiter(r, json);
    bool is_bert = strcmp(type, "BertPreTokenizer") == 0;
    bool is_words = strcmp(type, "Whitespace") == 0;
    if (!is_bert && !is_words && strcmp(type, "WhitespaceSplit") != 0)
        return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                           "this build does not know the pre-tokenizer \"%.60s\"; it knows "
                           "ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, "
                           "WhitespaceSplit, CharDelimiterSplit, BertPreTokenizer and Sequence",
                           type);
    status = add_test(r, octavo_is_space, OCTAVO_SPLIT_REMOVED);
    if (status == OCTAVO_OK && is_bert)
        status = add_test(r, octavo_is_punctuation, OCTAVO_SPLIT_ISOLATED);
    if (status == OCTAVO_OK && is_words)
        status = add_test(r, octavo_is_word, OCTAVO_SPLIT_CONTIGUOUS);
    return status;
}

octavo_status octavo_json_read_splitter(octavo_json_reader *r) {
    const json_t *json = octavo_json_get(r->root, "pre_tokenizer");
    return json != NULL ? read_splitter(r, json, 0) : OCTAVO_OK;
}
