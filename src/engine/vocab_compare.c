/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids are compared, and what they read as.
 */
#include "engine/vocab_compare.h"

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

enum { MAX_TEXT = 4096, MAX_IDS = MAX_TEXT + 64, MOST_PIECES = 4096 };

typedef struct comparison {
    const octavo_vocab *vocab;
    const octavo_tokenizer *ours, *truth;
    octavo_error *error;
    bool is_same;
    int32_t a[MAX_IDS], b[MAX_IDS];
    char text_a[MAX_TEXT * 2], text_b[MAX_TEXT * 2];
} comparison;

static octavo_status compare_decoded(comparison *c, size_t n, unsigned flags) {
    size_t n_a = 0, n_b = 0;
    octavo_status status = octavo_tokenizer_decode(c->ours, c->a, n, flags, c->text_a,
                                                   sizeof c->text_a, &n_a, c->error);
    if (status == OCTAVO_OK)
        status = octavo_tokenizer_decode(c->truth, c->a, n, flags, c->text_b, sizeof c->text_b,
                                         &n_b, c->error);
    if (status) return status;
    const size_t shown = n_a < sizeof c->text_a ? n_a : sizeof c->text_a;
    if (n_a != n_b || memcmp(c->text_a, c->text_b, shown) != 0) c->is_same = false;
    return OCTAVO_OK;
}

static octavo_status compare_text(comparison *c, const char *text, size_t length) {
    static const unsigned flags[] = {0, OCTAVO_ENCODE_SPECIAL_TEXT | OCTAVO_ENCODE_BEGIN_END};
    if (length > MAX_TEXT) length = MAX_TEXT;
    for (size_t i = 0; i < OCTAVO_COUNT(flags) && c->is_same; i++) {
        size_t n_a = 0, n_b = 0;
        octavo_status status =
            octavo_tokenizer_encode(c->ours, text, length, flags[i], c->a, MAX_IDS, &n_a, c->error);
        if (status == OCTAVO_OK)
            status = octavo_tokenizer_encode(c->truth, text, length, flags[i], c->b, MAX_IDS, &n_b,
                                             c->error);
        if (status) return status;
        const size_t shown = n_a < MAX_IDS ? n_a : MAX_IDS;
        if (n_a != n_b || memcmp(c->a, c->b, shown * sizeof *c->a) != 0) {
            c->is_same = false;
            return OCTAVO_OK;
        }
        status = compare_decoded(c, shown, i == 0 ? 0 : OCTAVO_DECODE_SKIP_SPECIAL);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static octavo_status compare_texts(comparison *c) {
    static const char *const texts[] = {
        "",
        " ",
        "  two  spaces and\ttabs\t\tand trailing ",
        "\n\n lines\r\n\r\nof  every kind\n   indented\n\n\n",
        "Hello, world! It's we'll they've I'M YOU'RE 'tis don't",
        "0 1 12 123 1234 12345 1234567890 3.14159 1,000,000 v2x 007",
        "price: $5.00 (50% off) #1 @home a_b c-d e/f g\\h ~~~ === ----- ***** ...",
        "int main(void) { return x[i] += 0x1F << 3; } // ok\n\tif (a && b) {}\n",
        "CamelCaseWord HTTPServer snake_case_word ALLCAPS mixedCASE",
        "Grüße aus Köln, ça va? naïve façade Ångström ñandú",
        "e\xcc\x81 a\xcc\x8a \xe2\x84\xab \xef\xac\x81 decomposed and compatible",
        "Привет, мир! Ελληνικά 日本語のテキスト 中文字符测试 한국어 문장 עברית العربية हिन्दी ไทย",
        "😀 👍🏽 👩\xe2\x80\x8d👩\xe2\x80\x8d👧 🇩🇪",
        "∑∫√ ½ ² ③ Ⅳ ٣٤٥ १२३ ４５",
        "\xc2\xa0no-break\xe2\x80\x83space\xe3\x80\x80wide\xe2\x80\x8bzero",
        "https://example.org/a?b=c&d=%20 user@example.com",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbb",
        "▁ lower block and ▁▁two",
        "word\xff\xfe broken \xe2\x82 bytes",
    };
    for (size_t i = 0; i < OCTAVO_COUNT(texts) && c->is_same; i++) {
        octavo_status status = compare_text(c, texts[i], strlen(texts[i]));
        if (status) return status;
    }
    return OCTAVO_OK;
}

/* Tokens as text of their own, and those that steer within text. */
static octavo_status compare_pieces(comparison *c) {
    const size_t n = c->vocab->n_tokens, step = n / MOST_PIECES + 1;
    const bool ends_answers = strcmp(c->vocab->model, "bert") != 0; /* which gives none */
    for (size_t i = 0; i < n && c->is_same; i++) {
        const bool is_added = octavo_vocab_is_added(c->vocab, i);
        size_t length = 0;
        octavo_status status = OCTAVO_OK;
        if (is_added) {
            octavo_buffer text = {0};
            octavo_buffer_puts(&text, "one ");
            octavo_buffer_append(&text, c->vocab->tokens[i].data, c->vocab->tokens[i].length);
            octavo_buffer_puts(&text, " two");
            status = text.failed ? octavo_fail_memory(c->error, "text", text.size)
                                 : compare_text(c, text.data, text.size);
            octavo_buffer_deinit(&text);
        } else if (i % step == 0) {
            const char *piece = octavo_tokenizer_piece(c->ours, (int32_t)i, &length);
            if (piece) status = compare_text(c, piece, length);
        }
        if (status) return status;
        if (ends_answers && (int32_t)i < octavo_tokenizer_size(c->truth) &&
            octavo_tokenizer_is_eog(c->ours, (int32_t)i) !=
                octavo_tokenizer_is_eog(c->truth, (int32_t)i))
            c->is_same = false;
    }
    return OCTAVO_OK;
}

octavo_status octavo_vocab_compare(const octavo_vocab *vocab, const octavo_tokenizer *truth,
                                   bool *is_same, octavo_error *error) {
    octavo_tokenizer *ours = NULL;
    octavo_error why;
    *is_same = false;
    octavo_status status = octavo_tokenizer_create(vocab, &ours, &why);
    if (status == OCTAVO_ERROR_MEMORY) return octavo_fail_memory(error, "tokenizer", 0);
    if (status) return OCTAVO_OK;
    comparison *c = octavo_alloc_zero(1, sizeof *c);
    if (!c) {
        octavo_tokenizer_destroy(&ours);
        return octavo_fail_memory(error, "comparison", sizeof *c);
    }
    c->vocab = vocab;
    c->ours = ours;
    c->truth = truth;
    c->error = error;
    c->is_same = true;
    status = compare_texts(c);
    if (status == OCTAVO_OK && c->is_same) status = compare_pieces(c);
    *is_same = c->is_same;
    octavo_free(c);
    octavo_tokenizer_destroy(&ours);
    return status;
}
