/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.model and tekken.json from hostile hands: either refused with a message, or a tokenizer
 * whose ids exist and can be decoded.
 */
#include "text/sentencepiece.h"
#include "text/tekken.h"
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

static void check_text(const octavo_tokenizer *t, const char *text, size_t length) {
    static int32_t ids[IDS_MAX];
    static char back[TEXT_MAX];
    size_t n = 0, n_back = 0;
    octavo_error error = {0};
    octavo_status status = octavo_tokenizer_encode(
        t, text, length,
        OCTAVO_ENCODE_BEGIN_END | OCTAVO_ENCODE_SPECIAL_TEXT | OCTAVO_ENCODE_MARKED, ids, IDS_MAX,
        &n, &error);
    if (status != OCTAVO_OK) { /* an endless regular expression */
        REQUIRE(status == OCTAVO_ERROR_LIMIT && error.message[0] != '\0');
        return;
    }
    if (n > IDS_MAX) n = IDS_MAX;
    for (size_t i = 0; i < n; i++)
        REQUIRE(ids[i] >= 0 && ids[i] < octavo_tokenizer_size(t));
    REQUIRE(octavo_tokenizer_decode(t, ids, n, 0, back, sizeof(back), &n_back, NULL) == OCTAVO_OK);
}

static octavo_status build(const uint8_t *data, size_t size, octavo_tokenizer **t,
                           octavo_error *error) {
    octavo_vocab_source source = {.name = "the file", .config_name = "the configuration"};
    if (octavo_is_sentencepiece(data, size))
        return octavo_tokenizer_from_sentencepiece(&source, data, size, t, error);
    json_t *root =
        json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    octavo_status status =
        root == NULL ? OCTAVO_ERROR_FORMAT : octavo_tokenizer_from_tekken(&source, root, t, error);
    if (root == NULL) snprintf(error->message, sizeof(error->message), "no JSON");
    json_decref(root);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char text[] = " ab  12\n<s>\xc3\xa9\xe4\xb8\xad<" OCTAVO_ENCODE_MARK "s> ";
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (build(data, size, &t, &error) != OCTAVO_OK) {
        REQUIRE(t == NULL && error.message[0] != '\0');
        REQUIRE(octavo_utf8_valid_prefix(error.message, strlen(error.message)) ==
                strlen(error.message));
        return 0;
    }
    check_text(t, text, sizeof(text) - 1);
    check_text(t, (const char *)data, size < 512 ? size : 512);
    octavo_tokenizer_destroy(&t);
    return 0;
}
