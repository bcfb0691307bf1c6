/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a tokenizer against files of golden lines, encode.jsonl and stream.jsonl, whose fields are
 * described in tests/data/tokenizers/README.md. Shared by the tests of text and of engine.
 */
#ifndef OCTAVO_TESTS_TOKEN_GOLDEN_H
#define OCTAVO_TESTS_TOKEN_GOLDEN_H

#include "../unit.h"

#include "octavo/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Encodes with as much room as it takes; the caller frees. */
static inline int32_t *golden_encode(const octavo_tokenizer *t, const char *text, size_t length,
                                     unsigned flags, size_t *n) {
    octavo_error error = {0};
    size_t needed = 0;
    if (octavo_tokenizer_encode(t, text, length, flags, NULL, 0, &needed, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    int32_t *ids = malloc((needed + 1) * sizeof(*ids));
    assert_non_null(ids);
    if (octavo_tokenizer_encode(t, text, length, flags, ids, needed, n, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    assert_int_equal(*n, needed);
    return ids;
}

/* Decodes with as much room as it takes; the caller frees. */
static inline char *golden_decode(const octavo_tokenizer *t, const int32_t *ids, size_t n,
                                  unsigned flags, size_t *length) {
    octavo_error error = {0};
    size_t needed = 0;
    if (octavo_tokenizer_decode(t, ids, n, flags, NULL, 0, &needed, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    char *text = malloc(needed + 1);
    assert_non_null(text);
    if (octavo_tokenizer_decode(t, ids, n, flags, text, needed, length, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    assert_int_equal(*length, needed);
    text[needed] = '\0';
    return text;
}

static inline int32_t *golden_ids(const json_t *array, size_t *n) {
    *n = json_array_size(array);
    int32_t *ids = malloc((*n + 1) * sizeof(*ids));
    assert_non_null(ids);
    for (size_t i = 0; i < *n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return ids;
}

static inline void golden_check_encode(const octavo_tokenizer *t, const json_t *line,
                                       const char *field, unsigned flags, const char *where) {
    const json_t *expected = json_object_get(line, field);
    const json_t *text = json_object_get(line, "text");
    size_t n, n_expected;
    int32_t *want = golden_ids(expected, &n_expected);
    int32_t *ids = golden_encode(t, json_string_value(text), json_string_length(text), flags, &n);
    size_t same = 0;
    while (same < n && same < n_expected && ids[same] == want[same])
        same++;
    if (n != n_expected || same != n)
        fail_msg("%s, %s: %zu ids, expected %zu; the first %zu agree, then %d for %d; text: %s",
                 where, field, n, n_expected, same, same < n ? (int)ids[same] : -1,
                 same < n_expected ? (int)want[same] : -1, json_string_value(text));
    free(want);
    free(ids);
}

static inline void golden_check_decode(const octavo_tokenizer *t, const json_t *line,
                                       const char *ids_field, const char *text_field,
                                       unsigned flags, const char *where) {
    const json_t *expected = json_object_get(line, text_field);
    size_t n, length;
    int32_t *ids = golden_ids(json_object_get(line, ids_field), &n);
    char *text = golden_decode(t, ids, n, flags, &length);
    if (length != json_string_length(expected) ||
        memcmp(text, json_string_value(expected), length) != 0)
        fail_msg("%s, %s: \"%s\", expected \"%s\"", where, text_field, text,
                 json_string_value(expected));
    free(text);
    free(ids);
}

static inline void golden_check_line(const octavo_tokenizer *t, const json_t *line,
                                     const char *where) {
    const char *plain = json_object_get(line, "ids_plain") != NULL ? "ids_plain" : "ids";
    golden_check_encode(t, line, "ids", OCTAVO_ENCODE_SPECIAL_TEXT, where);
    golden_check_encode(t, line, "ids_special",
                        OCTAVO_ENCODE_SPECIAL_TEXT | OCTAVO_ENCODE_BEGIN_END, where);
    golden_check_encode(t, line, plain, 0, where);
    golden_check_decode(t, line, "ids", "decode", 0, where);
    golden_check_decode(t, line, "ids_special", "decode_skip", OCTAVO_DECODE_SKIP_SPECIAL, where);
}

/* The same of a line whose ids take special tokens for text and add nothing. */
static inline void golden_check_plain(const octavo_tokenizer *t, const json_t *line,
                                      const char *where) {
    golden_check_encode(t, line, "ids", 0, where);
    golden_check_decode(t, line, "ids", "decode", 0, where);
}

/* The chunks and the tail of a run of ids, and that they joined are what decode gives. */
static inline void golden_check_stream(const octavo_tokenizer *t, const json_t *line,
                                       const char *where) {
    octavo_error error = {0};
    size_t n, length, joined = 0, decoded_length;
    int32_t *ids = golden_ids(json_object_get(line, "ids"), &n);
    char *decoded = golden_decode(t, ids, n, 0, &decoded_length);
    octavo_detokenizer *d = NULL;
    assert_int_equal(octavo_detokenizer_create(t, 0, &d, &error), OCTAVO_OK);
    for (size_t i = 0; i <= n; i++) {
        const json_t *expected = i < n ? json_array_get(json_object_get(line, "chunks"), i)
                                       : json_object_get(line, "tail");
        const char *text = NULL;
        if (i == n)
            text = octavo_detokenizer_finish(d, &length);
        else
            assert_int_equal(octavo_detokenizer_feed(d, ids[i], &text, &length, &error), OCTAVO_OK);
        if (length != json_string_length(expected) ||
            memcmp(text, json_string_value(expected), length) != 0)
            fail_msg("%s, chunk %zu: \"%s\", expected \"%s\"", where, i, text,
                     json_string_value(expected));
        assert_true(joined + length <= decoded_length);
        assert_memory_equal(decoded + joined, text, length);
        joined += length;
    }
    assert_int_equal(joined, decoded_length);
    octavo_detokenizer_destroy(&d);
    free(decoded);
    free(ids);
}

/* Runs `check` on every line of a file. Returns the number of lines, 0 where there is no file. */
static inline size_t golden_run(const octavo_tokenizer *t, const char *path,
                                void (*check)(const octavo_tokenizer *, const json_t *,
                                              const char *)) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 0;
    size_t n = 0;
    for (;;) {
        json_error_t problem;
        json_t *line = json_loadf(file, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &problem);
        if (line == NULL) break;
        char where[700];
        snprintf(where, sizeof(where), "%s line %zu", path, ++n);
        check(t, line, where);
        json_decref(line);
    }
    assert_true(feof(file));
    fclose(file);
    return n;
}

/* The ids of a prompt as the model gets it, begin of text included where the model wants it. */
static inline void golden_check_prompt(const octavo_tokenizer *t, json_t *text, json_t *ids,
                                       const char *where) {
    json_t *line = json_object();
    assert_int_equal(json_object_set(line, "text", text), 0);
    assert_int_equal(json_object_set(line, "ids", ids), 0);
    golden_check_encode(t, line, "ids", OCTAVO_ENCODE_SPECIAL_TEXT | OCTAVO_ENCODE_BEGIN_END,
                        where);
    json_decref(line);
}

/* The prompts of a small model's golden file: prompt_texts and prompt_ids. */
static inline void golden_check_prompts(const octavo_tokenizer *t, const char *path) {
    json_error_t problem;
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &problem);
    if (json == NULL) fail_msg("%s: %s", path, problem.text);
    size_t k;
    json_t *text;
    assert_true(json_array_size(json_object_get(json, "prompt_texts")) > 0);
    json_array_foreach(json_object_get(json, "prompt_texts"), k, text) {
        golden_check_prompt(t, text, json_array_get(json_object_get(json, "prompt_ids"), k), path);
    }
    json_decref(json);
}

#endif
