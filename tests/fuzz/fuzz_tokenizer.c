/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers against hostile texts, ids and vocabularies. The first byte of the input picks what is
 * done; the rest is the text, the ids, or a description of a vocabulary:
 *   text  encoding and decoding must agree where the vocabulary can say every text, the ids must
 *         exist, and feeding a detokenizer must give what decoding gives
 *   ids   any ids decode to valid UTF-8, the same at once and one after another
 *   vocabulary  either refused, with a message, or good enough to encode with
 */
#include "base/compiler.h"
#include "text/tokenizer_utf8.h"
#include "text/vocab.h"

#include <stdbool.h>
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

enum { TOKENS_MAX = 600, SPELLED_MAX = 8, FIXED = 6 };

typedef struct draft {
    octavo_text tokens[TOKENS_MAX], merges[TOKENS_MAX];
    int32_t types[TOKENS_MAX];
    float scores[TOKENS_MAX];
    uint8_t added_flags[TOKENS_MAX];
    char spelled[256][SPELLED_MAX];
    octavo_vocab vocab;
} draft;

static void add(draft *d, const char *text, size_t length, int32_t type, float score) {
    if (d->vocab.n_tokens == TOKENS_MAX) return;
    size_t i = d->vocab.n_tokens++;
    d->tokens[i] = (octavo_text){text, length};
    d->types[i] = type;
    d->scores[i] = score;
}

static void add_merge(draft *d, const char *text, size_t length) {
    if (d->vocab.n_merges < TOKENS_MAX)
        d->merges[d->vocab.n_merges++] = (octavo_text){text, length};
}

static void draft_init(draft *d, const char *model, const char *pre) {
    memset(d, 0, sizeof(*d));
    d->vocab = (octavo_vocab)OCTAVO_VOCAB_INIT;
    d->vocab.model = model;
    d->vocab.pre = pre;
    d->vocab.tokens = d->tokens;
    d->vocab.types = d->types;
    d->vocab.scores = d->scores;
    d->vocab.added_flags = d->added_flags;
    d->vocab.merges = d->merges;
}

/* All bytes in the alphabet of byte-level vocabularies; byte b is token b. */
static void add_alphabet(draft *d) {
    unsigned other = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
        unsigned point = printable ? byte : other++;
        char *text = d->spelled[byte];
        size_t length = point < 0x80 ? 1 : 2;
        text[0] = (char)(length == 1 ? point : 0xc0 | point >> 6);
        text[1] = (char)(0x80 | (point & 0x3f));
        add(d, text, length, OCTAVO_TOKEN_NORMAL, 0);
    }
}

static void add_byte_tokens(draft *d) {
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(d->spelled[byte], SPELLED_MAX, "<0x%02X>", byte);
        add(d, d->spelled[byte], 6, OCTAVO_TOKEN_BYTE, 0);
    }
}

static void add_text(draft *d, const char *text, int32_t type, float score) {
    add(d, text, strlen(text), type, score);
}

static void add_specials(draft *d) {
    add_text(d, "<|end|>", OCTAVO_TOKEN_CONTROL, 0);
    d->vocab.bos = d->vocab.eos = (int32_t)d->vocab.n_tokens - 1;
    d->vocab.add_bos = d->vocab.add_eos = true;
    add_text(d, "<t>", OCTAVO_TOKEN_USER, 0);
    add_text(d, "\n\n", OCTAVO_TOKEN_USER, 0);
    add_text(d, "\n\n\n", OCTAVO_TOKEN_USER, 0);
}

static octavo_tokenizer *make_bytes(const char *pre) {
    static const char *const merges[] = {"a a",
                                         "aa aa",
                                         "t h",
                                         "th e",
                                         "\xc4\xa0 the",
                                         "e r",
                                         "\xc4\x8a \xc4\x8a",
                                         "\xc4\xa0 \xc4\xa0",
                                         "\xc3\x83 \xc2\xa9",
                                         "aaaa aa"};
    static const char *const wholes[] = {"aa",
                                         "aaaa",
                                         "th",
                                         "the",
                                         "\xc4\xa0the",
                                         "er",
                                         "\xc4\x8a\xc4\x8a",
                                         "\xc4\xa0\xc4\xa0",
                                         "\xc3\x83\xc2\xa9",
                                         "aaaaaa"};
    static draft d;
    draft_init(&d, "gpt2", pre);
    add_alphabet(&d);
    for (size_t i = 0; i < OCTAVO_COUNT(merges); i++) {
        add_text(&d, wholes[i], OCTAVO_TOKEN_NORMAL, 0);
        add_merge(&d, merges[i], strlen(merges[i]));
    }
    add_specials(&d);
    octavo_tokenizer *t = NULL;
    REQUIRE(octavo_tokenizer_create(&d.vocab, &t, NULL) == OCTAVO_OK);
    return t;
}

static octavo_tokenizer *make_spm(bool add_space_prefix) {
    static const char *const pieces[] = {"\xe2\x96\x81",
                                         "a",
                                         "b",
                                         "e",
                                         "h",
                                         "t",
                                         "th",
                                         "he",
                                         "the",
                                         "\xe2\x96\x81the",
                                         "aa",
                                         "ab",
                                         "aaa",
                                         "aaaa",
                                         "ba",
                                         "ee",
                                         "\xc3\xa9",
                                         "a\xc3\xa9",
                                         "bab",
                                         "\xe2\x96\x81\xe2\x96\x81",
                                         "\xe2\x96\x81\xe2\x96\x81\xe2\x96\x81"};
    static draft d;
    draft_init(&d, "llama", NULL);
    add_byte_tokens(&d);
    add_text(&d, "<unk>", OCTAVO_TOKEN_UNKNOWN, 0);
    for (size_t i = 0; i < OCTAVO_COUNT(pieces); i++)
        add_text(&d, pieces[i], OCTAVO_TOKEN_NORMAL, (float)(i % 3));
    add_specials(&d);
    d.vocab.add_space_prefix = add_space_prefix;
    octavo_tokenizer *t = NULL;
    REQUIRE(octavo_tokenizer_create(&d.vocab, &t, NULL) == OCTAVO_OK);
    return t;
}

static const octavo_tokenizer *fixed(unsigned which) {
    static octavo_tokenizer *made[FIXED];
    if (made[which] == NULL) {
        static const char *const pres[] = {"gpt-2", "smollm", "qwen2", "llama-bpe"};
        made[which] = which < 4 ? make_bytes(pres[which]) : make_spm(which == 5);
    }
    return made[which];
}

static char *decode(const octavo_tokenizer *t, const int32_t *ids, size_t n, unsigned flags,
                    size_t *length) {
    REQUIRE(octavo_tokenizer_decode(t, ids, n, flags, NULL, 0, length, NULL) == OCTAVO_OK);
    size_t capacity = *length;
    char *text = malloc(capacity + 1);
    REQUIRE(text != NULL);
    REQUIRE(octavo_tokenizer_decode(t, ids, n, flags, text, capacity, length, NULL) == OCTAVO_OK);
    REQUIRE(*length == capacity);
    REQUIRE(octavo_utf8_valid_prefix(text, capacity) == capacity);
    return text;
}

/* One after another the ids give the text that they give at once, always in whole characters. */
static void check_stream(const octavo_tokenizer *t, const int32_t *ids, size_t n, unsigned flags) {
    size_t length = 0, at = 0, chunk_length = 0;
    char *text = decode(t, ids, n, flags, &length);
    octavo_detokenizer *d = NULL;
    REQUIRE(octavo_detokenizer_create(t, flags, &d, NULL) == OCTAVO_OK);
    for (size_t i = 0; i <= n; i++) {
        const char *chunk = NULL;
        if (i == n)
            chunk = octavo_detokenizer_finish(d, &chunk_length);
        else
            REQUIRE(octavo_detokenizer_feed(d, ids[i], &chunk, &chunk_length, NULL) == OCTAVO_OK);
        REQUIRE(chunk_length <= length - at && memcmp(text + at, chunk, chunk_length) == 0);
        REQUIRE(octavo_utf8_valid_prefix(chunk, chunk_length) == chunk_length);
        at += chunk_length;
    }
    REQUIRE(at == length);
    octavo_detokenizer_destroy(&d);
    free(text);
}

static int32_t *encode(const octavo_tokenizer *t, const char *text, size_t length, unsigned flags,
                       size_t *n) {
    REQUIRE(octavo_tokenizer_encode(t, text, length, flags, NULL, 0, n, NULL) == OCTAVO_OK);
    size_t capacity = *n;
    int32_t *ids = malloc((capacity + 1) * sizeof(*ids));
    REQUIRE(ids != NULL);
    REQUIRE(octavo_tokenizer_encode(t, text, length, flags, ids, capacity, n, NULL) == OCTAVO_OK);
    REQUIRE(*n == capacity);
    for (size_t i = 0; i < *n; i++)
        REQUIRE(ids[i] >= 0 && ids[i] < octavo_tokenizer_size(t));
    return ids;
}

/* `exact`: decoding must give back the text. */
static void check_text(const octavo_tokenizer *t, const char *text, size_t length, unsigned flags,
                       bool exact) {
    size_t n = 0, back_length = 0;
    int32_t *ids = encode(t, text, length, flags, &n);
    unsigned skip = (flags & OCTAVO_ENCODE_SPECIAL_TEXT) != 0 ? 0 : OCTAVO_DECODE_SKIP_SPECIAL;
    check_stream(t, ids, n, skip);
    if (exact && (skip != 0 || (flags & OCTAVO_ENCODE_BEGIN_END) == 0)) {
        char *back = decode(t, ids, n, skip, &back_length);
        REQUIRE(back_length == length && memcmp(back, text, length) == 0);
        free(back);
    }
    free(ids);
}

/* Only marks, added tokens in between and NFC keep a text from coming back as it was. */
static bool is_exact(unsigned which, const char *text, size_t length) {
    if (which == 2 || octavo_utf8_valid_prefix(text, length) != length) return false;
    if (which < 4) return true;
    for (size_t i = 0; i + 2 < length; i++)
        if (memcmp(text + i, "\xe2\x96\x81", 3) == 0) return false;
    return which == 4;
}

static void fuzz_ids(const octavo_tokenizer *t, const uint8_t *data, size_t size, unsigned flags) {
    size_t n = size / 2;
    int32_t *ids = malloc((n + 1) * sizeof(*ids));
    REQUIRE(ids != NULL);
    for (size_t i = 0; i < n; i++)
        ids[i] = (data[2 * i] | (data[2 * i + 1] & 1) << 8) % octavo_tokenizer_size(t);
    check_stream(t, ids, n, flags);
    free(ids);
}

/* Takes a text of up to 15 bytes from the input. */
static octavo_text take_text(const uint8_t **data, size_t *size) {
    size_t length = 0;
    if (*size > 0) {
        length = **data & 15;
        (*data)++, (*size)--;
    }
    if (length > *size) length = *size;
    octavo_text text = {(const char *)*data, length};
    *data += length, *size -= length;
    return text;
}

static int take(const uint8_t **data, size_t *size) {
    if (*size == 0) return 0;
    (*size)--;
    return *(*data)++;
}

/* A vocabulary as the input says, on top of the alphabet or of byte tokens or of nothing. */
static void fuzz_vocabulary(const uint8_t *data, size_t size) {
    static const char *const models[] = {"gpt2", "llama", "gpt2", "llama",
                                         "bert", "",      NULL,   "gpt2"};
    static const char *const pres[] = {NULL, "smollm", "qwen2", "llama-bpe", "llama3", "x"};
    static draft d;
    int choice = take(&data, &size);
    draft_init(&d, models[choice & 7], pres[(choice >> 3) % (int)OCTAVO_COUNT(pres)]);
    int base = take(&data, &size);
    if ((base & 3) == 1) add_alphabet(&d);
    if ((base & 3) == 2) add_byte_tokens(&d);
    if ((base & 4) != 0) d.vocab.types = NULL;
    if ((base & 8) != 0) d.vocab.scores = NULL;
    if ((base & 16) != 0) d.vocab.added_flags = NULL;
    d.vocab.add_bos = (base & 32) != 0;
    d.vocab.add_eos = (base & 64) != 0;
    d.vocab.add_space_prefix = (base & 128) != 0;
    d.vocab.bos = take(&data, &size) * 3 - 1;
    d.vocab.unk = take(&data, &size) * 3 - 1;

    for (int n = take(&data, &size); n > 0 && size > 0; n--) {
        int kind = take(&data, &size);
        octavo_text text = take_text(&data, &size);
        if ((kind & 0x80) != 0) {
            add_merge(&d, text.data, text.length);
        } else {
            d.added_flags[d.vocab.n_tokens % TOKENS_MAX] = (uint8_t)(kind >> 3);
            add(&d, text.data, text.length, kind & 7, (float)(kind >> 3 & 3));
        }
    }
    octavo_tokenizer *t = NULL;
    octavo_error error = {0};
    if (octavo_tokenizer_create(&d.vocab, &t, &error) != OCTAVO_OK) {
        REQUIRE(t == NULL && error.message[0] != '\0');
        return;
    }
    check_text(t, (const char *)data, size, OCTAVO_ENCODE_BEGIN_END, false);
    check_text(t, (const char *)data, size, OCTAVO_ENCODE_SPECIAL_TEXT, false);
    for (int32_t id = 0; id < octavo_tokenizer_size(t); id++) {
        size_t length;
        const char *piece = octavo_tokenizer_piece(t, id, &length);
        REQUIRE(octavo_tokenizer_find(t, piece, length) < octavo_tokenizer_size(t));
    }
    octavo_tokenizer_destroy(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    unsigned choice = data[0];
    data++, size--;
    unsigned which = choice % (FIXED + 2);
    unsigned flags = choice / (FIXED + 2);
    if (which >= FIXED) {
        fuzz_vocabulary(data, size);
    } else if ((flags & 4) != 0) {
        fuzz_ids(fixed(which), data, size, flags & 3);
    } else {
        const char *text = (const char *)data;
        check_text(fixed(which), text, size, flags & 3, is_exact(which, text, size));
    }
    return 0;
}
