/* SPDX-License-Identifier: Apache-2.0
 *
 * "normalizer" and "decoder": the steps over text that is not cut yet, and over tokens.
 */
#include "base/error.h"
#include "text/tokenizer_charsmap.h"
#include "text/tokenizer_json_reader.h"

#include <string.h>

enum { DEPTH_MAX = 8 }; /* of sequences in sequences */

static octavo_status fail_unknown(octavo_json_reader *r, const char *what, const char *type,
                                  const char *known) {
    return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                       "this build does not know the %s \"%.60s\"; it knows %s", what, type, known);
}

/* The next free step; NULL where there are too many, and then the status says so. */
static octavo_status add_step(octavo_json_reader *r, octavo_normalizer_type type,
                              octavo_normalizer_step **step) {
    octavo_pipeline *p = r->pipeline;
    if (p->n_normalizers == OCTAVO_STEPS_MAX)
        return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                           "it has more than %d normalizers; this build stops there",
                           OCTAVO_STEPS_MAX);
    *step = &p->normalizers[p->n_normalizers++];
    (*step)->type = type;
    return OCTAVO_OK;
}

static octavo_status add_form(octavo_json_reader *r, octavo_normal_form form) {
    octavo_normalizer_step *step = NULL;
    octavo_status status = add_step(r, OCTAVO_NORMALIZER_FORM, &step);
    if (status == OCTAVO_OK) step->form = form;
    return status;
}

static octavo_status add_test(octavo_json_reader *r, octavo_normalizer_type type,
                              octavo_character_test *test) {
    octavo_normalizer_step *step = NULL;
    octavo_status status = add_step(r, type, &step);
    if (status == OCTAVO_OK) step->test = test;
    return status;
}

static octavo_status add_lower(octavo_json_reader *r) {
    octavo_normalizer_step *step = NULL;
    return add_step(r, OCTAVO_NORMALIZER_LOWER, &step);
}

/* A text of the file as a text of the pipeline. */
static octavo_status keep_text(octavo_json_reader *r, const json_t *object, const char *key,
                               octavo_text *text) {
    octavo_text view = {0};
    octavo_status status = octavo_json_text(r, object, key, &view);
    if (status != OCTAVO_OK) return status;
    octavo_text copy = octavo_pipeline_text(r->pipeline, view);
    if (copy.data == NULL) return octavo_fail_memory(r->error, key, view.length);
    *text = copy;
    return OCTAVO_OK;
}

static octavo_status add_replace(octavo_json_reader *r, const json_t *json) {
    octavo_normalizer_step *step = NULL;
    octavo_status status = add_step(r, OCTAVO_NORMALIZER_REPLACE, &step);
    if (status == OCTAVO_OK) status = keep_text(r, json, "content", &step->text);
    if (status == OCTAVO_OK) status = octavo_json_pattern(r, json, &step->pattern);
    return status;
}

static octavo_status add_strip(octavo_json_reader *r, const json_t *json) {
    octavo_normalizer_step *step = NULL;
    octavo_status status = add_step(r, OCTAVO_NORMALIZER_STRIP, &step);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "strip_left", true, &step->left);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "strip_right", true, &step->right);
    return status;
}

static octavo_status add_charsmap(octavo_json_reader *r, const json_t *json) {
    octavo_normalizer_step *step = NULL;
    octavo_text base64 = {0};
    if (octavo_json_get(json, "precompiled_charsmap") == NULL) return OCTAVO_OK;
    octavo_status status = octavo_json_text(r, json, "precompiled_charsmap", &base64);
    if (status != OCTAVO_OK || base64.length == 0) return status;
    status = add_step(r, OCTAVO_NORMALIZER_CHARSMAP, &step);
    if (status == OCTAVO_OK) status = octavo_charsmap_create(base64, &step->charsmap, r->error);
    return status;
}

static bool is_dirt(uint32_t point) {
    return point == 0 || point == 0xfffd || octavo_is_control(point);
}

/* BERT's normalizer is several. */
static octavo_status add_bert(octavo_json_reader *r, const json_t *json) {
    bool cleans = true, spreads = true, strips = false, lowers = true;
    octavo_status status = octavo_json_bool(r, json, "clean_text", true, &cleans);
    if (status == OCTAVO_OK)
        status = octavo_json_bool(r, json, "handle_chinese_chars", true, &spreads);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "lowercase", true, &lowers);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "strip_accents", lowers, &strips);
    if (status == OCTAVO_OK && cleans) status = add_test(r, OCTAVO_NORMALIZER_REMOVE, is_dirt);
    if (status == OCTAVO_OK && cleans)
        status = add_test(r, OCTAVO_NORMALIZER_SPACES, octavo_is_space);
    if (status == OCTAVO_OK && spreads)
        status = add_test(r, OCTAVO_NORMALIZER_SPREAD, octavo_is_ideograph);
    if (status == OCTAVO_OK && strips) status = add_form(r, OCTAVO_NFD);
    if (status == OCTAVO_OK && strips)
        status = add_test(r, OCTAVO_NORMALIZER_REMOVE, octavo_is_nonspacing);
    if (status == OCTAVO_OK && lowers) status = add_lower(r);
    return status;
}

static octavo_status read_normalizer(octavo_json_reader *r, const json_t *json, int depth) {
    static const char *const forms[] = {
        [OCTAVO_NFC] = "NFC", [OCTAVO_NFD] = "NFD", [OCTAVO_NFKC] = "NFKC", [OCTAVO_NFKD] = "NFKD"};
    const char *type = octavo_json_type(json);
    for (size_t i = 0; i < OCTAVO_COUNT(forms); i++)
        if (strcmp(type, forms[i]) == 0) return add_form(r, (octavo_normal_form)i);
    if (strcmp(type, "Sequence") == 0 && depth < DEPTH_MAX) {
        const json_t *steps = json_object_get(json, "normalizers");
        octavo_status status = OCTAVO_OK;
        for (size_t i = 0; i < json_array_size(steps) && status == OCTAVO_OK; i++)
            status = read_normalizer(r, json_array_get(steps, i), depth + 1);
        return status;
    }
    if (strcmp(type, "Lowercase") == 0) return add_lower(r);
    if (strcmp(type, "StripAccents") == 0)
        return add_test(r, OCTAVO_NORMALIZER_REMOVE, octavo_is_mark);
    if (strcmp(type, "Replace") == 0) return add_replace(r, json);
    if (strcmp(type, "Strip") == 0) return add_strip(r, json);
    if (strcmp(type, "BertNormalizer") == 0) return add_bert(r, json);
    if (strcmp(type, "Precompiled") == 0) return add_charsmap(r, json);
    if (strcmp(type, "Prepend") == 0) {
        octavo_normalizer_step *step = NULL;
        octavo_status status = add_step(r, OCTAVO_NORMALIZER_PREPEND, &step);
        if (status == OCTAVO_OK) status = keep_text(r, json, "prepend", &step->text);
        return status;
    }
    return fail_unknown(r, "normalizer", type,
                        "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Replace, Prepend, Strip, "
                        "BertNormalizer, Precompiled and Sequence");
}

octavo_status octavo_json_read_normalizer(octavo_json_reader *r) {
    const json_t *json = octavo_json_get(r->root, "normalizer");
    return json != NULL ? read_normalizer(r, json, 0) : OCTAVO_OK;
}

/* How a decoder is read: once the tokens are fused, steps see the text as a whole. */
typedef struct decoder_state {
    bool is_fused;
    int depth;
} decoder_state;

static octavo_status add_decoder(octavo_json_reader *r, octavo_decoder_type type,
                                 octavo_decoder_step **step) {
    octavo_pipeline *p = r->pipeline;
    if (p->n_decoders == OCTAVO_STEPS_MAX)
        return octavo_fail(r->error, OCTAVO_ERROR_UNSUPPORTED,
                           "it has more than %d decoders; this build stops there",
                           OCTAVO_STEPS_MAX);
    *step = &p->decoders[p->n_decoders++];
    (*step)->type = type;
    return OCTAVO_OK;
}

static octavo_status add_decoder_replace(octavo_json_reader *r, const json_t *json) {
    octavo_decoder_step *step = NULL;
    octavo_status status = add_decoder(r, OCTAVO_DECODER_REPLACE, &step);
    if (status == OCTAVO_OK)
        status = keep_text(r, json_object_get(json, "pattern"), "String", &step->text);
    if (status == OCTAVO_OK) status = keep_text(r, json, "content", &step->more);
    return status;
}

static octavo_status add_decoder_strip(octavo_json_reader *r, const json_t *json, bool is_fused) {
    octavo_text content = {0};
    octavo_status status = keep_text(r, json, "content", &content);
    if (status != OCTAVO_OK) return status;
    json_int_t start = json_integer_value(json_object_get(json, "start"));
    json_int_t stop = json_integer_value(json_object_get(json, "stop"));
    if (start < 0 || stop < 0)
        return octavo_fail(r->error, OCTAVO_ERROR_FORMAT,
                           "the decoder \"Strip\" has a negative count; the file is damaged");
    if (is_fused) {
        bool is_space = content.length == 1 && content.data[0] == ' ';
        if (!is_space || start > 1 || stop > 0)
            return octavo_fail(
                r->error, OCTAVO_ERROR_UNSUPPORTED,
                "this build knows the decoder \"Strip\" behind \"Fuse\" only for one "
                "space at the start");
        r->pipeline->drops_space = start == 1;
        return OCTAVO_OK;
    }
    octavo_decoder_step *step = NULL;
    status = add_decoder(r, OCTAVO_DECODER_STRIP, &step);
    if (status != OCTAVO_OK) return status;
    step->text = content;
    step->start = (size_t)start;
    step->stop = (size_t)stop;
    return OCTAVO_OK;
}

static octavo_status add_decoder_marks(octavo_json_reader *r, const json_t *json) {
    octavo_decoder_step *step = NULL;
    octavo_status status = add_decoder(r, OCTAVO_DECODER_MARKS, &step);
    if (status == OCTAVO_OK) status = keep_text(r, json, "replacement", &step->text);
    bool adds = true;
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "add_prefix_space", true, &adds);
    if (status != OCTAVO_OK) return status;
    const char *scheme = json_string_value(json_object_get(json, "prepend_scheme"));
    step->drops_first = scheme != NULL ? strcmp(scheme, "never") != 0 : adds;
    return OCTAVO_OK;
}

static octavo_status add_decoder_words(octavo_json_reader *r, const json_t *json) {
    octavo_decoder_step *step = NULL;
    octavo_status status = add_decoder(r, OCTAVO_DECODER_WORDPIECE, &step);
    if (status == OCTAVO_OK) status = keep_text(r, json, "prefix", &step->text);
    if (status == OCTAVO_OK) status = octavo_json_bool(r, json, "cleanup", true, &step->cleans);
    return status;
}

static octavo_status read_decoder(octavo_json_reader *r, const json_t *json, decoder_state *state) {
    const char *type = octavo_json_type(json);
    octavo_decoder_step *step = NULL;
    if (strcmp(type, "Sequence") == 0 && state->depth < DEPTH_MAX) {
        const json_t *steps = json_object_get(json, "decoders");
        octavo_status status = OCTAVO_OK;
        state->depth++;
        for (size_t i = 0; i < json_array_size(steps) && status == OCTAVO_OK; i++)
            status = read_decoder(r, json_array_get(steps, i), state);
        state->depth--;
        return status;
    }
    if (strcmp(type, "Fuse") == 0) {
        state->is_fused = true;
        return OCTAVO_OK;
    }
    if (strcmp(type, "Strip") == 0) return add_decoder_strip(r, json, state->is_fused);
    if (strcmp(type, "Replace") == 0) return add_decoder_replace(r, json);
    if (strcmp(type, "ByteLevel") == 0) return add_decoder(r, OCTAVO_DECODER_BYTES, &step);
    if (strcmp(type, "ByteFallback") == 0) return add_decoder(r, OCTAVO_DECODER_FALLBACK, &step);
    if (strcmp(type, "Metaspace") == 0 && !state->is_fused) return add_decoder_marks(r, json);
    if (strcmp(type, "WordPiece") == 0 && !state->is_fused) return add_decoder_words(r, json);
    return fail_unknown(
        r, "decoder", type,
        "ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and WordPiece (not "
        "behind Fuse) and Sequence");
}

octavo_status octavo_json_read_decoder(octavo_json_reader *r) {
    const json_t *json = octavo_json_get(r->root, "decoder");
    decoder_state state = {0};
    octavo_decoder_step *step = NULL;
    if (json == NULL) return add_decoder(r, OCTAVO_DECODER_JOIN, &step);
    return read_decoder(r, json, &state);
}
