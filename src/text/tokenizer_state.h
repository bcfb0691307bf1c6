/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer from the inside: what all kinds share, what each kind adds, and the state of one
 * call to encode. Everything in octavo_tokenizer is written while it is created and only read
 * afterwards.
 */
#ifndef OCTAVO_TEXT_TOKENIZER_STATE_H
#define OCTAVO_TEXT_TOKENIZER_STATE_H

#include "base/buffer.h"
#include "base/memory.h"
#include "text/bpe.h"
#include "text/bpe_pairs.h"
#include "text/pipeline.h"
#include "text/pretokenize.h"
#include "text/tokenizer_added.h"
#include "text/tokenizer_index.h"
#include "text/vocab.h"

#include <stdint.h>

/* What a kind of tokenizer (byte-level BPE, SentencePiece BPE, ...) has to supply. */
typedef struct octavo_tokenizer_kind {
    const char *model; /* value of tokenizer.ggml.model */
    /* Fills t->keys, t->pieces and the index from the texts in vocab; the flags are there. */
    octavo_status (*spell)(octavo_tokenizer *t, const octavo_vocab *vocab, octavo_error *error);
    /* Builds what encoding needs; the index is there. */
    octavo_status (*build)(octavo_tokenizer *t, const octavo_vocab *vocab, octavo_error *error);
    /* Appends the normalised form of a text without added tokens. Without memory out->failed. */
    octavo_status (*normalize)(const octavo_tokenizer *t, const char *text, size_t length,
                               octavo_buffer *out, octavo_error *error);
    /* Encodes a normalised text without added tokens. */
    octavo_status (*encode)(octavo_encoder *encoder, const char *text, size_t length,
                            octavo_error *error);
    /* The token of a text that the index does not have as it is, or -1. */
    int32_t (*find)(const octavo_tokenizer *t, const char *text, size_t length);
} octavo_tokenizer_kind;

extern const octavo_tokenizer_kind octavo_tokenizer_bytes; /* bpe_bytes.c */
extern const octavo_tokenizer_kind octavo_tokenizer_spm;   /* spm.c */
extern const octavo_tokenizer_kind octavo_tokenizer_piped; /* pipeline.c */

enum {
    OCTAVO_TOKEN_IS_SPECIAL = 1 << 0,
    OCTAVO_TOKEN_IS_EOG = 1 << 1,
    OCTAVO_TOKEN_MERGES = 1 << 2, /* may be part of a merge */
};

struct octavo_tokenizer {
    const octavo_tokenizer_kind *kind;
    octavo_arena arena; /* every array below unless it says otherwise */
    int32_t n_tokens;
    int32_t bos, eos, unk;
    int32_t begin_ids[OCTAVO_VOCAB_ENDS_MAX], end_ids[OCTAVO_VOCAB_ENDS_MAX];
    size_t n_begin, n_end; /* what OCTAVO_ENCODE_BEGIN_END adds */
    bool add_space_prefix;
    bool drops_space; /* a space in front of a whole text is none of it */

    uint8_t *flags;            /* [n_tokens], OCTAVO_TOKEN_IS_..., OCTAVO_TOKEN_MERGES */
    uint8_t *added_flags;      /* [n_tokens], OCTAVO_ADDED_... */
    octavo_token_texts keys;   /* spelled as the index looks for them */
    octavo_token_texts pieces; /* the bytes that tokens stand for; may share memory with keys */
    octavo_token_texts first_pieces; /* the same at the start of a text; no offsets: as pieces */
    size_t longest_piece;
    octavo_token_index index;
    octavo_added added;            /* own memory: looked for in the text as it came */
    octavo_added added_normalized; /* own memory: looked for in the normalised text */

    octavo_bpe_rules rules;
    int32_t *results;      /* [ranks]: rules.results */
    int32_t byte_ids[256]; /* token of a single byte, or -1 */

    /* byte-level BPE */
    octavo_pretokenizer *pretokenizer; /* own memory; NULL for other kinds */
    octavo_pretokenizer_traits traits;
    octavo_bpe_pairs pairs;

    /* SentencePiece BPE */
    int32_t ascii_ids[128]; /* token of an ASCII character as text, or -1 */
    uint32_t *ranks;        /* [n_tokens]: rank of a merge that makes the token, or none */
    octavo_bpe_neighbours neighbours;

    octavo_pipeline *pipeline; /* own; NULL for other kinds */
};

/* State of one call to octavo_tokenizer_encode. */
struct octavo_encoder {
    const octavo_tokenizer *tokenizer;
    bool special_text;      /* special tokens are recognised */
    bool after_unknown;     /* the last id stands for an unknown character, which swallows more */
    bool section_is_first;  /* what is normalised starts where the whole text does */
    bool section_is_marked; /* some special token is plain text in what is normalised */
    bool is_first;          /* and what is encoded starts where that does */
    const char *text;       /* the whole text */
    octavo_buffer plain;    /* size_t, ascending: where in it no special token begins */
    size_t n_plain;
    int32_t *ids; /* [capacity] */
    size_t capacity, count;
    octavo_bpe_word word;
    octavo_buffer normalized;
    octavo_pipeline_scratch scratch;
};

static inline void octavo_encoder_emit(octavo_encoder *encoder, int32_t id) {
    if (encoder->count < encoder->capacity) encoder->ids[encoder->count] = id;
    encoder->count++;
}

/* The value of "<0x0A>", or -1 for a text of another form. */
int octavo_byte_token(octavo_text text);

/* Makes room for as many texts as the vocabulary has, together no longer than its own. */
OCTAVO_MUST_CHECK octavo_status octavo_token_texts_init(octavo_token_texts *texts,
                                                        octavo_arena *arena,
                                                        const octavo_vocab *vocab,
                                                        octavo_error *error);

/* Enters the added tokens into the index and then those that merge, so that a piece that is spelled
 * like an added token is what is found. */
void octavo_tokenizer_fill_index(octavo_tokenizer *t, const octavo_vocab *vocab);

/* The token of a text whose spaces are spelled with marks, or -1. */
int32_t octavo_tokenizer_find_marked(const octavo_tokenizer *t, const char *text, size_t length);

#endif
