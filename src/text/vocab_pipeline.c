/* SPDX-License-Identifier: Apache-2.0
 *
 * One function a kind fills the pipeline; what kinds share stands first.
 */
#include "text/vocab_pipeline.h"

#include "base/error.h"
#include "text/bpe_ranks.h"
#include "text/tokenizer_charsmap.h"

#include <math.h>
#include <string.h>

#define MARK OCTAVO_SPACE_MARK

typedef struct builder {
    const octavo_vocab *vocab;
    octavo_vocab *piped;
    octavo_pipeline *p;
    octavo_error *error;
} builder;

static octavo_text text_of(const char *literal) {
    return (octavo_text){literal, strlen(literal)};
}

static octavo_normalizer_step *add_normalizer(builder *b, octavo_normalizer_type type) {
    octavo_normalizer_step *step = &b->p->normalizers[b->p->n_normalizers++];
    step->type = type;
    return step;
}

static void add_test(builder *b, octavo_normalizer_type type, octavo_character_test *test) {
    add_normalizer(b, type)->test = test;
}

static octavo_splitter_step *add_splitter(builder *b, octavo_split_behavior behavior) {
    octavo_splitter_step *step = &b->p->splitters[b->p->n_splitters++];
    step->type = OCTAVO_SPLITTER_PATTERN;
    step->behavior = behavior;
    return step;
}

static octavo_decoder_step *add_decoder(builder *b, octavo_decoder_type type) {
    octavo_decoder_step *step = &b->p->decoders[b->p->n_decoders++];
    step->type = type;
    return step;
}

static void add_ends(builder *b) {
    if (b->vocab->add_bos) b->p->begin_ids[b->p->n_begin++] = b->vocab->bos;
    if (b->vocab->add_eos) b->p->end_ids[b->p->n_end++] = b->vocab->eos;
}

static bool is_normal(const octavo_vocab *vocab, size_t i) {
    return vocab->types == NULL || vocab->types[i] == OCTAVO_TOKEN_NORMAL;
}

static bool starts_with_mark(octavo_text text) {
    return text.length >= strlen(MARK) && memcmp(text.data, MARK, strlen(MARK)) == 0;
}

/* --- WordPiece --- */

/* Files of the kind mark what begins a word; here what goes on in one is marked, as BERT's own
 * vocabularies have it. Tokens in brackets are neither. */
static octavo_status respell_words(builder *b) {
    const octavo_vocab *vocab = b->vocab;
    octavo_text *tokens = octavo_arena_alloc(&b->p->arena, vocab->n_tokens * sizeof(*tokens));
    if (tokens == NULL)
        return octavo_fail_memory(b->error, "vocabulary", vocab->n_tokens * sizeof(*tokens));
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        octavo_text text = vocab->tokens[i];
        bool is_name = text.length >= 2 && text.data[0] == '[' && text.data[text.length - 1] == ']';
        tokens[i] = text;
        if (!is_normal(vocab, i) || is_name) continue;
        if (starts_with_mark(text)) {
            tokens[i].data += strlen(MARK);
            tokens[i].length -= strlen(MARK);
            continue;
        }
        char *spelled = octavo_arena_alloc(&b->p->arena, text.length + 3);
        if (spelled == NULL) return octavo_fail_memory(b->error, "vocabulary", text.length);
        memcpy(spelled, "##", 2);
        if (text.length != 0) memcpy(spelled + 2, text.data, text.length);
        tokens[i] = (octavo_text){spelled, text.length + 2};
    }
    b->piped->tokens = tokens;
    return OCTAVO_OK;
}

/* A vocabulary with upper case in it is of a model that minds it. */
static bool lowers(const octavo_vocab *vocab) {
    if (vocab->lowers >= 0) return vocab->lowers != 0;
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        octavo_text text = vocab->tokens[i];
        if (!is_normal(vocab, i) || !starts_with_mark(text)) continue;
        for (size_t k = 0; k < text.length; k++)
            if (text.data[k] >= 'A' && text.data[k] <= 'Z') return false;
    }
    return true;
}

static bool is_dirt(uint32_t point) {
    return point == 0 || point == 0xfffd || octavo_is_control(point);
}

static octavo_status build_wordpiece(builder *b) {
    if (b->vocab->unk < 0)
        return octavo_fail(b->error, OCTAVO_ERROR_FORMAT,
                           "vocabulary (%s): it names no token for unknown words; the file is "
                           "incomplete",
                           b->vocab->model);
    octavo_pipeline *p = b->p;
    p->model = &octavo_model_wordpiece;
    p->continuing_prefix = text_of("##");
    p->max_characters = 100;
    add_test(b, OCTAVO_NORMALIZER_REMOVE, is_dirt);
    add_test(b, OCTAVO_NORMALIZER_SPACES, octavo_is_space);
    add_test(b, OCTAVO_NORMALIZER_SPREAD, octavo_is_ideograph);
    if (lowers(b->vocab)) {
        add_normalizer(b, OCTAVO_NORMALIZER_FORM)->form = OCTAVO_NFD;
        add_test(b, OCTAVO_NORMALIZER_REMOVE, octavo_is_nonspacing);
        (void)add_normalizer(b, OCTAVO_NORMALIZER_LOWER);
    }
    add_splitter(b, OCTAVO_SPLIT_REMOVED)->pattern.test = octavo_is_space;
    add_splitter(b, OCTAVO_SPLIT_ISOLATED)->pattern.test = octavo_is_punctuation;
    octavo_decoder_step *decoder = add_decoder(b, OCTAVO_DECODER_WORDPIECE);
    decoder->text = text_of("##");
    decoder->cleans = true;
    add_ends(b);
    return respell_words(b);
}

/* --- SentencePiece --- */

static octavo_status add_replacement(builder *b, const char *pattern, const char *text) {
    octavo_normalizer_step *step = add_normalizer(b, OCTAVO_NORMALIZER_REPLACE);
    step->text = text_of(text);
    return octavo_pattern_regex(&step->pattern, text_of(pattern), b->error);
}

/* What the table says, no more spaces than needed, and marks for those that are left. */
static octavo_status add_sentencepiece_steps(builder *b) {
    octavo_status status = OCTAVO_OK;
    if (b->vocab->charsmap.length != 0)
        status = octavo_charsmap_create_raw(
            b->vocab->charsmap, &add_normalizer(b, OCTAVO_NORMALIZER_CHARSMAP)->charsmap, b->error);
    if (status == OCTAVO_OK && b->vocab->merges_spaces) status = add_replacement(b, "\\A +", "");
    if (status == OCTAVO_OK && b->vocab->merges_spaces) status = add_replacement(b, " {2,}", " ");
    if (status != OCTAVO_OK) return status;
    if (b->vocab->add_space_prefix)
        add_normalizer(b, OCTAVO_NORMALIZER_PREPEND)->text = text_of(MARK);
    octavo_normalizer_step *marks = add_normalizer(b, OCTAVO_NORMALIZER_REPLACE);
    marks->text = text_of(MARK);
    status = octavo_pattern_literal(&marks->pattern, text_of(" "), b->error);
    if (status == OCTAVO_OK && b->vocab->merges_spaces)
        status = add_replacement(b, "(?:" MARK ")+\\z", "");
    octavo_decoder_step *spaces = add_decoder(b, OCTAVO_DECODER_REPLACE);
    spaces->text = text_of(MARK);
    spaces->more = text_of(" ");
    (void)add_decoder(b, OCTAVO_DECODER_FALLBACK);
    b->p->drops_space = b->vocab->add_space_prefix;
    for (size_t i = 0; b->vocab->types != NULL && i < b->vocab->n_tokens; i++)
        if (b->vocab->types[i] == OCTAVO_TOKEN_BYTE) b->p->byte_fallback = true;
    add_ends(b);
    return status;
}

static octavo_status check_scores(const builder *b) {
    if (b->vocab->scores != NULL) return OCTAVO_OK;
    return octavo_fail(b->error, OCTAVO_ERROR_FORMAT,
                       "vocabulary (%s): it has no scores; the file is incomplete",
                       b->vocab->model);
}

static octavo_status build_unigram(builder *b) {
    const octavo_vocab *vocab = b->vocab;
    octavo_status status = check_scores(b);
    if (status != OCTAVO_OK) return status;
    double *scores = octavo_arena_alloc(&b->p->arena, vocab->n_tokens * sizeof(*scores));
    if (scores == NULL)
        return octavo_fail_memory(b->error, "vocabulary", vocab->n_tokens * sizeof(*scores));
    double least = 0;
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        scores[i] = (double)vocab->scores[i];
        if (isnan(scores[i]))
            return octavo_fail(b->error, OCTAVO_ERROR_FORMAT,
                               "vocabulary (token %zu): its score is not a number; the file is "
                               "damaged",
                               i);
        if (!is_normal(vocab, i))
            scores[i] = -HUGE_VAL;
        else if (scores[i] < least)
            least = scores[i];
    }
    b->p->model = &octavo_model_unigram;
    b->p->scores = scores;
    b->p->sums_floats = true;
    b->p->unknown_score = least - 10; /* as SentencePiece has it */
    return add_sentencepiece_steps(b);
}

static octavo_status build_ranked(builder *b) {
    octavo_status status = check_scores(b);
    b->p->model = &octavo_model_bpe;
    b->p->fuse_unknown = true;
    if (status == OCTAVO_OK)
        status =
            octavo_bpe_rank_tokens(b->vocab, &b->p->arena, &b->p->ranks, &b->p->results, b->error);
    if (status == OCTAVO_OK) status = add_sentencepiece_steps(b);
    return status;
}

/* --- Tekken --- */

static octavo_status build_tekken(builder *b) {
    octavo_pipeline *p = b->p;
    octavo_text pattern = text_of(b->vocab->pre != NULL ? b->vocab->pre : "");
    p->model = &octavo_model_bpe;
    p->ignore_merges = true;
    p->spells_bytes = true;
    (void)add_decoder(b, OCTAVO_DECODER_BYTES);
    add_ends(b);
    octavo_status status =
        octavo_bpe_rank_tokens(b->vocab, &p->arena, &p->ranks, &p->results, b->error);
    octavo_splitter_step *splitter = add_splitter(b, OCTAVO_SPLIT_ISOLATED);
    if (status == OCTAVO_OK) status = octavo_pattern_regex(&splitter->pattern, pattern, b->error);
    return status;
}

static const struct {
    const char *model;
    octavo_status (*build)(builder *b);
} kinds[] = {
    {"bert", build_wordpiece},
    {"t5", build_unigram},
    {"spm", build_ranked},
    {"tekken", build_tekken},
};

bool octavo_vocab_is_piped(const octavo_vocab *vocab) {
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++)
        if (vocab->model != NULL && strcmp(kinds[i].model, vocab->model) == 0) return true;
    return false;
}

octavo_status octavo_vocab_pipeline(const octavo_vocab *vocab, octavo_pipeline **pipeline,
                                    octavo_vocab *piped, octavo_error *error) {
    octavo_pipeline *p = octavo_alloc_zero(1, sizeof(*p));
    if (p == NULL) return octavo_fail_memory(error, "tokenizer", sizeof(*p));
    builder b = {.vocab = vocab, .piped = piped, .p = p, .error = error};
    octavo_status status = OCTAVO_OK;
    *piped = *vocab;
    for (size_t i = 0; i < OCTAVO_COUNT(kinds) && status == OCTAVO_OK; i++)
        if (strcmp(kinds[i].model, vocab->model) == 0) status = kinds[i].build(&b);
    if (status == OCTAVO_OK) {
        *pipeline = p;
        p = NULL;
    }
    octavo_pipeline_destroy(&p);
    return status;
}
