/* SPDX-License-Identifier: Apache-2.0
 *
 * A vocabulary as plain arrays: what a model file says about its tokenizer, before anything is
 * built from it. All of it is hostile until octavo_tokenizer_create has accepted it.
 */
#ifndef OCTAVO_TEXT_VOCAB_H
#define OCTAVO_TEXT_VOCAB_H

#include "octavo/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest text of one token or merge, and most tokens and merges, that are accepted. */
#define OCTAVO_VOCAB_TEXT_MAX   65535
#define OCTAVO_VOCAB_TOKENS_MAX (1 << 24)
/* Most tokens that are put in front of a text, and behind it. */
#define OCTAVO_VOCAB_ENDS_MAX   8

/* The numbers are those of GGUF's tokenizer.ggml.token_type. */
typedef enum octavo_token_type {
    OCTAVO_TOKEN_NORMAL = 1,
    OCTAVO_TOKEN_UNKNOWN = 2,
    OCTAVO_TOKEN_CONTROL = 3, /* special: recognised in text only on request */
    OCTAVO_TOKEN_USER = 4,    /* recognised in text as a whole, always */
    OCTAVO_TOKEN_UNUSED = 5,
    OCTAVO_TOKEN_BYTE = 6, /* "<0x0A>": one byte, where a character has no token */
} octavo_token_type;

/* How a control or user token is recognised in text. */
enum {
    OCTAVO_ADDED_LSTRIP = 1 << 0,      /* white space before it belongs to it */
    OCTAVO_ADDED_RSTRIP = 1 << 1,      /* white space behind it belongs to it */
    OCTAVO_ADDED_SINGLE_WORD = 1 << 2, /* only where no word character touches it */
    OCTAVO_ADDED_NORMALIZED = 1 << 3,  /* looked for in the normalised text */
    OCTAVO_ADDED_IN_MODEL = 1 << 4,    /* of a pipeline: text between added tokens may be it too */
};

/* Bytes that someone else owns; not terminated. */
typedef struct octavo_text {
    const char *data;
    size_t length;
} octavo_text;

typedef struct octavo_vocab {
    /* "gpt2": byte-level BPE; "llama": SentencePiece BPE; "bert": WordPiece, words marked with
     * U+2581; "t5": Unigram; "spm": SentencePiece BPE with the fields of Unigram; "tekken":
     * byte-level BPE by the order of the tokens */
    const char *model;
    const char *pre; /* pre-tokenizer of byte-level BPE; NULL is "default"; of tekken its pattern */

    size_t n_tokens;
    const octavo_text *tokens;  /* [n_tokens], UTF-8 in the vocabulary's own spelling */
    const int32_t *types;       /* [n_tokens], octavo_token_type; NULL: all normal */
    const float *scores;        /* [n_tokens], SentencePiece and Unigram only */
    const uint8_t *added_flags; /* [n_tokens], OCTAVO_ADDED_...; NULL: none */

    size_t n_merges;
    const octavo_text *merges; /* [n_merges], "left right", best first; byte-level only */

    int32_t bos, eos, unk, pad, eot, eom; /* -1: none */
    bool add_bos, add_eos;
    bool add_space_prefix; /* SentencePiece: every text starts with a space */
    bool merges_spaces;    /* "t5", "spm": runs of spaces are one, and none at the ends */
    octavo_text charsmap;  /* "t5", "spm": SentencePiece's table of normalisations, raw */
    int8_t lowers;         /* "bert": text becomes lower case; -1: where all tokens are */
} octavo_vocab;

static inline bool octavo_vocab_is_added(const octavo_vocab *vocab, size_t i) {
    return vocab->types != NULL &&
           (vocab->types[i] == OCTAVO_TOKEN_CONTROL || vocab->types[i] == OCTAVO_TOKEN_USER);
}

/* An empty vocabulary: no arrays, no ids. */
#define OCTAVO_VOCAB_INIT                                                                          \
    { .bos = -1, .eos = -1, .unk = -1, .pad = -1, .eot = -1, .eom = -1, .lowers = -1 }

/* Builds a tokenizer. Copies what it needs: `vocab` and its arrays may go afterwards. An empty
 * token is kept but never found; of tokens with one text the last is found.
 *
 * Statuses: FORMAT (an array is missing, a text is no UTF-8, a type or id is out of range, a score
 * is not a number, a merge is malformed or makes no token), UNSUPPORTED (model or pre-tokenizer
 * unknown), MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_create(const octavo_vocab *vocab,
                                                        octavo_tokenizer **tokenizer,
                                                        octavo_error *error);

/* Makes a token one that ends an answer. Only while nobody else has the tokenizer. */
void octavo_tokenizer_mark_end(octavo_tokenizer *tokenizer, int32_t id);

#endif
