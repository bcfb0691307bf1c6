/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.json from hostile hands: either refused with a message, or a tokenizer whose ids exist
 * and whose detokenizer gives what decoding gives. The input is the JSON, a zero byte, and a text.
 */
#include "text/tokenizer_json.h"
#include "text/tokenizer_utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { IDS_MAX = 4096, TEXT_MAX = 1 << 16 };

static void check_stream(const octavo_tokenizer *t, const int32_t *ids, size_t n) {
    static char text[TEXT_MAX];
    size_t length = 0, at = 0;
    REQUIRE(octavo_tokenizer_decode(t, ids, n, 0, text, sizeof(text), &length, NULL) == OCTAVO_OK);
    if (length > sizeof(text)) return;
    REQUIRE(octavo_utf8_valid_prefix(text, length) == length);
    octavo_detokenizer *d = NULL;
    REQUIRE(octavo_detokenizer_create(t, 0, &d, NULL) == OCTAVO_OK);
    for (size_t i = 0; i <= n; i++) {
        const char *chunk = NULL;
        size_t chunk_length = 0;
        if (i == n)
            chunk = octavo_detokenizer_finish(d, &chunk_length);
        else
            REQUIRE(octavo_detokenizer_feed(d, ids[i], &chunk, &chunk_length, NULL) == OCTAVO_OK);
        REQUIRE(chunk_length <= length - at && memcmp(text + at, chunk, chunk_length) == 0);
        at += chunk_length;
    }
    REQUIRE(at == length);
    octavo_detokenizer_destroy(&d);
}

static void check_text(const octavo_tokenizer *t, const char *text, size_t length) {
    static int32_t ids[IDS_MAX];
    size_t n = 0;
    octavo_error error = {0};
    octavo_status status = octavo_tokenizer_encode(
        t, text, length, OCTAVO_ENCODE_BEGIN_END | OCTAVO_ENCODE_SPECIAL_TEXT, ids, IDS_MAX, &n,
        &error);
    if (status != OCTAVO_OK) { /* an endless regular expression */
        REQUIRE(status == OCTAVO_ERROR_LIMIT && error.message[0] != '\0');
        return;
    }
    if (n > IDS_MAX) n = IDS_MAX;
    for (size_t i = 0; i < n; i++)
        REQUIRE(ids[i] >= 0 && ids[i] < octavo_tokenizer_size(t));
    check_stream(t, ids, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *zero = size != 0 ? memchr(data, 0, size) : NULL;
    size_t json_size = zero != NULL ? (size_t)(zero - data) : size;
    octavo_tokenizer_json source = {.name = "tokenizer.json"};
    source.tokenizer =
        json_loadb((const char *)data, json_size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (source.tokenizer == NULL) return 0;
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (octavo_tokenizer_from_json(&source, &t, &error) != OCTAVO_OK) {
        REQUIRE(t == NULL && error.message[0] != '\0');
        REQUIRE(octavo_utf8_valid_prefix(error.message, strlen(error.message)) ==
                strlen(error.message));
    } else {
        check_text(t, " ab 12\n<s>\xc3\xa9\xe4\xb8\xad ", 17);
        if (zero != NULL) check_text(t, (const char *)zero + 1, size - json_size - 1);
    }
    octavo_tokenizer_destroy(&t);
    json_decref(source.tokenizer);
    return 0;
}
