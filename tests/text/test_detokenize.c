/* SPDX-License-Identifier: Apache-2.0
 *
 * The detokenizer on bytes: with one token for every byte, whatever the portions, what comes out is
 * whole characters, and joined it is what the reference for ill-formed UTF-8 says.
 */
#include "../unit.h"
#include "text/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACED "\xef\xbf\xbd"

/* SentencePiece: byte tokens 0..255, then a mark, a control token and a word. */
enum { MARK = 256, CONTROL = 257, WORD = 258, N_TOKENS = 259 };

static octavo_tokenizer *create(bool add_space_prefix) {
    static char spelled[256][8];
    static float scores[N_TOKENS];
    static int32_t types[N_TOKENS];
    static octavo_text tokens[N_TOKENS];
    for (int byte = 0; byte < 256; byte++) {
        snprintf(spelled[byte], sizeof(spelled[byte]), "<0x%02X>", (unsigned)byte);
        tokens[byte] = (octavo_text){spelled[byte], 6};
        types[byte] = OCTAVO_TOKEN_BYTE;
    }
    tokens[MARK] = (octavo_text){"\xe2\x96\x81", 3};
    tokens[CONTROL] = (octavo_text){"<c>", 3};
    tokens[WORD] = (octavo_text){"\xe2\x96\x81w\xe2\x96\x81w", 8};
    types[MARK] = types[WORD] = OCTAVO_TOKEN_NORMAL;
    types[CONTROL] = OCTAVO_TOKEN_CONTROL;
    octavo_vocab vocab = OCTAVO_VOCAB_INIT;
    vocab.model = "llama";
    vocab.n_tokens = N_TOKENS;
    vocab.tokens = tokens;
    vocab.types = types;
    vocab.scores = scores;
    vocab.add_space_prefix = add_space_prefix;
    octavo_tokenizer *t = NULL;
    assert_int_equal(octavo_tokenizer_create(&vocab, &t, NULL), OCTAVO_OK);
    return t;
}

static octavo_detokenizer *begin(const octavo_tokenizer *t, unsigned flags) {
    octavo_detokenizer *d = NULL;
    assert_int_equal(octavo_detokenizer_create(t, flags, &d, NULL), OCTAVO_OK);
    return d;
}

static void feed(octavo_detokenizer *d, int32_t id, const char *expected) {
    const char *text = NULL;
    size_t length = 0;
    assert_int_equal(octavo_detokenizer_feed(d, id, &text, &length, NULL), OCTAVO_OK);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static void finish(octavo_detokenizer *d, const char *expected) {
    size_t length = 0;
    assert_string_equal(octavo_detokenizer_finish(d, &length), expected);
    assert_int_equal(length, strlen(expected));
}

static void test_whole_characters(void **state) {
    (void)state;
    octavo_tokenizer *t = create(false);
    octavo_detokenizer *d = begin(t, 0);
    feed(d, 0xf0, "");
    feed(d, 0x9f, "");
    feed(d, 0x98, "");
    feed(d, 0x80, "\xf0\x9f\x98\x80");
    feed(d, 'a', "a");
    feed(d, 0xe2, "");
    feed(d, 'b', REPLACED "b");
    feed(d, 0xc3, "");
    feed(d, 0xc3, REPLACED);
    feed(d, WORD, REPLACED " w w");
    feed(d, 0xe4, "");
    feed(d, 0xbd, "");
    finish(d, REPLACED);
    feed(d, 0xa0, REPLACED); /* nothing is left of what was before */
    finish(d, "");
    octavo_detokenizer_destroy(&d);
    octavo_tokenizer_destroy(&t);
}

/* Both bytes of half a surrogate wait for a third, then each is replaced. */
static void test_surrogates(void **state) {
    (void)state;
    octavo_tokenizer *t = create(false);
    octavo_detokenizer *d = begin(t, 0);
    feed(d, 0xed, "");
    feed(d, 0xa0, "");
    feed(d, 0x80, REPLACED REPLACED REPLACED);
    feed(d, 0xed, "");
    feed(d, 0xbf, "");
    feed(d, 'x', REPLACED REPLACED "x");
    feed(d, 0xed, "");
    feed(d, 0xbf, "");
    finish(d, REPLACED REPLACED);
    feed(d, 0xed, "");
    feed(d, 0x9f, "");
    feed(d, 0xbf, "\xed\x9f\xbf"); /* U+D7FF, the last before them */
    octavo_detokenizer_destroy(&d);
    octavo_tokenizer_destroy(&t);
}

static void test_first_space(void **state) {
    (void)state;
    octavo_tokenizer *t = create(true);
    octavo_detokenizer *d = begin(t, OCTAVO_DECODE_SKIP_SPECIAL);
    feed(d, CONTROL, "");
    feed(d, WORD, "w w");
    feed(d, MARK, " ");
    finish(d, "");
    feed(d, MARK, ""); /* a new text */
    feed(d, MARK, " ");
    octavo_detokenizer_destroy(&d);

    d = begin(t, 0);
    feed(d, CONTROL, "<c>");
    feed(d, WORD, " w w");
    octavo_detokenizer_destroy(&d);

    d = begin(t, OCTAVO_DECODE_CONTINUE);
    feed(d, WORD, " w w");
    octavo_detokenizer_destroy(&d);
    octavo_tokenizer_destroy(&t);
}

static void test_arguments(void **state) {
    (void)state;
    octavo_tokenizer *t = create(false);
    octavo_detokenizer *d = begin(t, 0);
    const char *text = NULL;
    size_t length = 7;
    feed(d, 0xc3, "");
    assert_int_equal(octavo_detokenizer_feed(d, N_TOKENS, &text, &length, NULL),
                     OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_detokenizer_feed(d, -1, &text, &length, NULL), OCTAVO_ERROR_INVALID);
    assert_null(text);
    assert_int_equal(length, 7);
    feed(d, 0xa9, "\xc3\xa9"); /* nothing changed */
    octavo_detokenizer_destroy(&d);
    octavo_detokenizer_destroy(&d);
    octavo_detokenizer_destroy(NULL);
    assert_int_equal(octavo_detokenizer_create(NULL, 0, &d, NULL), OCTAVO_ERROR_INVALID);
    octavo_tokenizer_destroy(&t);
}

/* What a code point is in UTF-8, or 0 bytes for a surrogate: the witness for all that follows. */
static size_t spell(uint32_t point, unsigned char bytes[4]) {
    if (point >= 0xd800 && point < 0xe000) return 0;
    if (point < 0x80) {
        bytes[0] = (unsigned char)point;
        return 1;
    }
    size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; point >>= 6)
        bytes[i] = (unsigned char)(0x80 | (point & 0x3f));
    bytes[0] = (unsigned char)((0xf00 >> size) | point);
    return size;
}

/* Every character there is, byte by byte, comes out at its last byte. */
static void test_every_character(void **state) {
    (void)state;
    octavo_tokenizer *t = create(false);
    octavo_detokenizer *d = begin(t, 0);
    for (uint32_t point = 1; point < 0x110000; point++) {
        unsigned char bytes[4];
        size_t size = spell(point, bytes);
        for (size_t i = 0; i < size; i++) {
            const char *text = NULL;
            size_t length = 0;
            assert_int_equal(octavo_detokenizer_feed(d, bytes[i], &text, &length, NULL), OCTAVO_OK);
            if (length != (i + 1 == size ? size : 0)) fail_msg("U+%04X", (unsigned)point);
            if (length != 0 && memcmp(text, bytes, size) != 0) fail_msg("U+%04X", (unsigned)point);
        }
    }
    finish(d, "");
    octavo_detokenizer_destroy(&d);
    octavo_tokenizer_destroy(&t);
}

/* Any two bytes before a letter: decode and the stream agree, and the letter survives. */
static void test_every_pair(void **state) {
    (void)state;
    octavo_tokenizer *t = create(false);
    octavo_detokenizer *d = begin(t, 0);
    for (int32_t pair = 0; pair < 65536; pair++) {
        int32_t ids[3] = {pair >> 8, pair & 0xff, 'z'};
        char whole[32], joined[32];
        size_t n_whole = 0, n_joined = 0, length;
        assert_int_equal(
            octavo_tokenizer_decode(t, ids, 3, 0, whole, sizeof(whole), &n_whole, NULL), OCTAVO_OK);
        for (int i = 0; i < 3; i++) {
            const char *text = NULL;
            assert_int_equal(octavo_detokenizer_feed(d, ids[i], &text, &length, NULL), OCTAVO_OK);
            memcpy(joined + n_joined, text, length);
            n_joined += length;
        }
        finish(d, "");
        assert_int_equal(n_joined, n_whole);
        assert_memory_equal(joined, whole, n_whole);
        assert_int_equal(whole[n_whole - 1], 'z');
    }
    octavo_detokenizer_destroy(&d);
    octavo_tokenizer_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_characters), cmocka_unit_test(test_surrogates),
        cmocka_unit_test(test_first_space),      cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_every_character),  cmocka_unit_test(test_every_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
