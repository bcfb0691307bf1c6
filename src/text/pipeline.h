/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer as a pipeline of steps, as tokenizer.json describes it: normalizers change the
 * text, splitters cut it, a model gives the pieces ids, decoder steps say what bytes a token stands
 * for. Whoever reads a description fills a pipeline; octavo_tokenizer_create_piped takes it over.
 */
#ifndef OCTAVO_TEXT_PIPELINE_H
#define OCTAVO_TEXT_PIPELINE_H

#include "base/buffer.h"
#include "base/memory.h"
#include "text/bpe_neighbours.h"
#include "text/tokenizer_added.h"
#include "text/tokenizer_normalize.h"
#include "text/tokenizer_pattern.h"
#include "text/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct octavo_encoder octavo_encoder;

enum { OCTAVO_STEPS_MAX = 24 }; /* of each kind */

typedef enum octavo_normalizer_type {
    OCTAVO_NORMALIZER_FORM,     /* a Unicode normalisation form */
    OCTAVO_NORMALIZER_LOWER,    /* lower case, character by character */
    OCTAVO_NORMALIZER_REMOVE,   /* characters that pass `test` go */
    OCTAVO_NORMALIZER_SPACES,   /* all white space becomes ' ' */
    OCTAVO_NORMALIZER_SPREAD,   /* a space before and behind characters that pass `test` */
    OCTAVO_NORMALIZER_REPLACE,  /* matches of `pattern` become `text` */
    OCTAVO_NORMALIZER_PREPEND,  /* `text` goes in front, unless nothing is there */
    OCTAVO_NORMALIZER_STRIP,    /* white space at the ends goes */
    OCTAVO_NORMALIZER_CHARSMAP, /* SentencePiece's own table */
} octavo_normalizer_type;

typedef struct octavo_normalizer_step {
    octavo_normalizer_type type;
    octavo_normal_form form;
    octavo_character_test *test;
    octavo_pattern pattern;
    octavo_text text;
    bool left, right; /* STRIP: which ends */
    struct octavo_charsmap *charsmap;
} octavo_normalizer_step;

typedef enum octavo_splitter_type {
    OCTAVO_SPLITTER_PATTERN, /* cuts at matches of `pattern` */
    OCTAVO_SPLITTER_MARKS,   /* spaces become marks, one more may go in front; cuts before marks */
    OCTAVO_SPLITTER_PREFIX,  /* a space goes in front, unless one is there */
} octavo_splitter_type;

/* What becomes of a match. */
typedef enum octavo_split_behavior {
    OCTAVO_SPLIT_REMOVED,
    OCTAVO_SPLIT_ISOLATED,
    OCTAVO_SPLIT_MERGED_PREVIOUS,
    OCTAVO_SPLIT_MERGED_NEXT,
    OCTAVO_SPLIT_CONTIGUOUS, /* neighbouring matches are one piece */
} octavo_split_behavior;

typedef enum octavo_prepend_scheme {
    OCTAVO_PREPEND_NEVER,
    OCTAVO_PREPEND_FIRST, /* only where the whole text starts */
    OCTAVO_PREPEND_ALWAYS,
} octavo_prepend_scheme;

typedef struct octavo_splitter_step {
    octavo_splitter_type type;
    octavo_pattern pattern; /* MARKS: the mark */
    octavo_split_behavior behavior;
    bool invert; /* what lies between the matches counts as the matches */
    octavo_prepend_scheme prepend;
    bool cuts; /* MARKS: pieces start at marks; else it only writes them */
} octavo_splitter_step;

typedef enum octavo_decoder_type {
    OCTAVO_DECODER_BYTES,     /* the byte alphabet is undone */
    OCTAVO_DECODER_REPLACE,   /* `text` becomes `more` */
    OCTAVO_DECODER_FALLBACK,  /* "<0x0A>" is a byte */
    OCTAVO_DECODER_STRIP,     /* `text` goes from the ends of a token */
    OCTAVO_DECODER_MARKS,     /* `text` becomes a space, or nothing in the first token */
    OCTAVO_DECODER_WORDPIECE, /* tokens are words, unless they start with `text` */
    OCTAVO_DECODER_JOIN,      /* tokens are words */
} octavo_decoder_type;

typedef struct octavo_decoder_step {
    octavo_decoder_type type;
    octavo_text text, more;
    size_t start, stop; /* STRIP: how often, at most */
    bool drops_first;   /* MARKS: see there */
    bool cleans;        /* WORDPIECE: no space before punctuation */
} octavo_decoder_step;

/* Two tokens and what they merge to; the first of a list merges first. */
typedef struct octavo_bpe_merge {
    int32_t left, right, result;
} octavo_bpe_merge;

/* What a model supplies. */
typedef struct octavo_piece_model {
    octavo_status (*build)(octavo_tokenizer *t, octavo_error *error);
    octavo_status (*encode)(octavo_encoder *encoder, const char *piece, size_t length,
                            octavo_error *error);
} octavo_piece_model;

extern const octavo_piece_model octavo_model_bpe;       /* model_bpe.c */
extern const octavo_piece_model octavo_model_unigram;   /* model_unigram.c */
extern const octavo_piece_model octavo_model_wordpiece; /* model_wordpiece.c */
extern const octavo_piece_model octavo_model_wordlevel; /* model_wordpiece.c */

typedef struct octavo_pipeline {
    octavo_arena arena; /* texts and arrays below */
    octavo_normalizer_step normalizers[OCTAVO_STEPS_MAX];
    octavo_splitter_step splitters[OCTAVO_STEPS_MAX];
    octavo_decoder_step decoders[OCTAVO_STEPS_MAX];
    size_t n_normalizers, n_splitters, n_decoders;
    bool spells_bytes; /* the vocabulary is spelled in the byte alphabet */
    bool drops_space;  /* a decoder takes one space from the start of the whole text */
    int32_t begin_ids[OCTAVO_VOCAB_ENDS_MAX], end_ids[OCTAVO_VOCAB_ENDS_MAX];
    size_t n_begin, n_end;

    const octavo_piece_model *model;
    bool byte_fallback; /* a character without a token is its bytes' tokens */
    /* BPE */
    bool ignore_merges; /* a piece that is a token as a whole becomes that token */
    bool fuse_unknown;  /* unknown characters side by side are one unknown token */
    const octavo_bpe_merge *merges;
    size_t n_merges;
    uint32_t *ranks;  /* [tokens]: where no merges are listed; see bpe_ranks.h */
    int32_t *results; /* [ranks] */
    octavo_bpe_neighbours neighbours;
    bool cuts_words; /* neighbours may be asked */
    /* Unigram */
    const double *scores; /* [tokens]; text becomes none of -INFINITY */
    double unknown_score;
    bool sums_floats;  /* sums of scores are rounded as SentencePiece's are, which decides ties */
    octavo_added trie; /* own memory */
    /* WordPiece */
    octavo_text continuing_prefix;
    size_t max_characters; /* a longer piece is unknown */
} octavo_pipeline;

/* A copy of the text that lives as long as the pipeline; data is NULL without memory. */
octavo_text octavo_pipeline_text(octavo_pipeline *pipeline, octavo_text text);
/* Frees everything and sets the handle to NULL. */
void octavo_pipeline_destroy(octavo_pipeline **pipeline);

/* Memory of one call to encode. */
typedef struct octavo_pipeline_scratch {
    octavo_buffer texts[OCTAVO_STEPS_MAX]; /* what each splitter has written */
    octavo_buffer word;
    struct octavo_lattice_node *nodes; /* [n_nodes]: of Unigram */
    size_t n_nodes;
} octavo_pipeline_scratch;

void octavo_pipeline_scratch_deinit(octavo_pipeline_scratch *scratch);

/* The steps. Normalizing appends to `out`, what decoding gives for a token too; false where that is
 * longer than a token may be. */
OCTAVO_MUST_CHECK octavo_status octavo_pipeline_normalize(const octavo_pipeline *pipeline,
                                                          const char *text, size_t length,
                                                          octavo_buffer *out, octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_pipeline_split(octavo_encoder *encoder, const char *text,
                                                      size_t length, octavo_error *error);
OCTAVO_MUST_CHECK bool octavo_pipeline_decode(const octavo_pipeline *pipeline, octavo_text token,
                                              bool is_added, bool is_first, octavo_buffer *out);
/* Whether the first token of a text may be spelled differently from the others. */
bool octavo_pipeline_minds_first(const octavo_pipeline *pipeline);

/* Makes a tokenizer of a vocabulary and a pipeline, which it takes over in any case (*pipeline is
 * NULL afterwards). Of the vocabulary it takes tokens, types, added_flags and ids. Statuses as
 * octavo_tokenizer_create. */
OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_create_piped(const octavo_vocab *vocab,
                                                              octavo_pipeline **pipeline,
                                                              octavo_tokenizer **tokenizer,
                                                              octavo_error *error);

/* The token of the model itself (not an added one) with this text, or -1. */
int32_t octavo_model_find(const octavo_tokenizer *t, const char *text, size_t length);

#endif
