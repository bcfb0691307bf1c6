/* SPDX-License-Identifier: Apache-2.0
 *
 * The file is one protobuf message (sentencepiece_model.proto): pieces, what trained them, and how
 * text is normalised. Fields are read by number; those that do not matter are stepped over.
 */
#include "text/sentencepiece.h"

#include "base/error.h"

#include <string.h>

/* A message, or what is left of it. */
typedef struct reader {
    const unsigned char *data;
    size_t size, at;
    bool is_bad;
} reader;

/* One field: a number, or bytes. */
typedef struct field {
    uint32_t number;
    uint64_t value;    /* of kind 0; of kind 5 its four bytes */
    octavo_text bytes; /* of kind 2 */
    unsigned kind;
} field;

static uint64_t read_varint(reader *r) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && r->at < r->size; shift += 7) {
        unsigned char byte = r->data[r->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    r->is_bad = true;
    return 0;
}

/* The next field. False at the end, and where the message is cut short. */
static bool next_field(reader *r, field *f) {
    if (r->at >= r->size || r->is_bad) return false;
    uint64_t tag = read_varint(r);
    *f = (field){.number = (uint32_t)(tag >> 3), .kind = (unsigned)(tag & 7)};
    uint64_t length = 0;
    if (f->kind == 0)
        f->value = read_varint(r);
    else if (f->kind == 1 || f->kind == 5)
        length = f->kind == 1 ? 8 : 4;
    else if (f->kind == 2)
        length = read_varint(r);
    else
        r->is_bad = true;
    if (tag > UINT32_MAX || length > r->size - r->at) r->is_bad = true;
    if (r->is_bad) return false;
    const unsigned char *bytes = r->data + r->at;
    if (f->kind == 5)
        f->value = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                   (uint32_t)bytes[3] << 24;
    f->bytes = (octavo_text){(const char *)bytes, (size_t)length};
    r->at += (size_t)length;
    return true;
}

static reader reader_of(octavo_text bytes) {
    return (reader){.data = (const unsigned char *)bytes.data, .size = bytes.length};
}

/* The fields of the messages that matter. */
enum { PIECES = 1, TRAINER = 2, NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum {
    MODEL_TYPE = 3,
    SPACE_IS_SUFFIX = 24,
    UNKNOWN_ID = 40,
    BOS_ID = 41,
    EOS_ID = 42,
    PAD_ID = 43
};
enum { CHARSMAP = 2, SPACE_PREFIX = 3, EXTRA_SPACES = 4, ESCAPES_SPACES = 5 };
enum { UNIGRAM = 1, BPE = 2 };

typedef struct model_file {
    octavo_vocab_draft draft;
    uint64_t model_type;
    bool space_is_suffix, escapes_spaces;
} model_file;

bool octavo_is_sentencepiece(const void *data, size_t size) {
    reader r = {.data = data, .size = size};
    field f;
    if (!next_field(&r, &f) || f.number != PIECES || f.kind != 2) return false;
    reader piece = reader_of(f.bytes);
    return next_field(&piece, &f) && f.number == PIECE_TEXT && f.kind == 2;
}

static octavo_status fail_cut(octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "it is cut short or no file of SentencePiece; fetch it again");
}

static octavo_status put_piece(model_file *m, octavo_text bytes, octavo_error *error) {
    reader r = reader_of(bytes);
    field f;
    octavo_text text = {"", 0};
    union {
        uint32_t u;
        float f;
    } score = {.u = 0};
    uint64_t type = OCTAVO_TOKEN_NORMAL;
    while (next_field(&r, &f)) {
        if (f.number == PIECE_TEXT && f.kind == 2) text = f.bytes;
        if (f.number == PIECE_SCORE && f.kind == 5) score.u = (uint32_t)f.value;
        if (f.number == PIECE_TYPE && f.kind == 0) type = f.value;
    }
    if (r.is_bad) return fail_cut(error);
    if (type < OCTAVO_TOKEN_NORMAL || type > OCTAVO_TOKEN_BYTE)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "piece %zu is of no known type; the file is damaged",
                           m->draft.vocab.n_tokens);
    if (type == OCTAVO_TOKEN_UNKNOWN) type = OCTAVO_TOKEN_CONTROL; /* text never spells it */
    octavo_vocab_draft_put(&m->draft, text, (int32_t)type, score.f);
    return OCTAVO_OK;
}

static octavo_status read_trainer(model_file *m, octavo_text bytes, octavo_error *error) {
    octavo_vocab *vocab = &m->draft.vocab;
    reader r = reader_of(bytes);
    field f;
    while (next_field(&r, &f)) {
        if (f.kind != 0) continue;
        int64_t id = (int64_t)f.value; /* -1 where there is none */
        int32_t known = id >= 0 && (uint64_t)id < vocab->n_tokens ? (int32_t)id : -1;
        if (f.number == MODEL_TYPE) m->model_type = f.value;
        if (f.number == SPACE_IS_SUFFIX) m->space_is_suffix = f.value != 0;
        if (f.number == UNKNOWN_ID) vocab->unk = known;
        if (f.number == BOS_ID) vocab->bos = known;
        if (f.number == EOS_ID) vocab->eos = known;
        if (f.number == PAD_ID) vocab->pad = known;
    }
    return r.is_bad ? fail_cut(error) : OCTAVO_OK;
}

static octavo_status read_normalizer(model_file *m, octavo_text bytes, octavo_error *error) {
    octavo_vocab *vocab = &m->draft.vocab;
    reader r = reader_of(bytes);
    field f;
    while (next_field(&r, &f)) {
        if (f.number == CHARSMAP && f.kind == 2) vocab->charsmap = f.bytes;
        if (f.number == SPACE_PREFIX && f.kind == 0) vocab->add_space_prefix = f.value != 0;
        if (f.number == EXTRA_SPACES && f.kind == 0) vocab->merges_spaces = f.value != 0;
        if (f.number == ESCAPES_SPACES && f.kind == 0) m->escapes_spaces = f.value != 0;
    }
    return r.is_bad ? fail_cut(error) : OCTAVO_OK;
}

/* What holds where the file does not say. */
static void set_defaults(model_file *m) {
    octavo_vocab *vocab = &m->draft.vocab;
    m->model_type = UNIGRAM;
    m->escapes_spaces = true;
    vocab->add_space_prefix = true;
    vocab->merges_spaces = true;
    vocab->unk = 0;
    vocab->bos = vocab->n_tokens > 1 ? 1 : -1;
    vocab->eos = vocab->n_tokens > 2 ? 2 : -1;
}

/* The pieces first: what follows them speaks of their ids. */
static octavo_status read_file(model_file *m, const octavo_vocab_source *source, octavo_text bytes,
                               octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    size_t n_pieces = 0;
    field f;
    reader r = reader_of(bytes);
    while (next_field(&r, &f))
        if (f.number == PIECES && f.kind == 2) n_pieces++;
    if (r.is_bad || n_pieces == 0) return fail_cut(error);
    status = octavo_vocab_draft_init(&m->draft, n_pieces, source, error);
    for (r.at = 0; status == OCTAVO_OK && next_field(&r, &f);)
        if (f.number == PIECES && f.kind == 2) status = put_piece(m, f.bytes, error);
    set_defaults(m);
    for (r.at = 0; status == OCTAVO_OK && next_field(&r, &f);) {
        if (f.number == TRAINER && f.kind == 2) status = read_trainer(m, f.bytes, error);
        if (f.number == NORMALIZER && f.kind == 2) status = read_normalizer(m, f.bytes, error);
    }
    return status;
}

static octavo_status choose_model(model_file *m, octavo_error *error) {
    octavo_vocab *vocab = &m->draft.vocab;
    if (m->model_type != UNIGRAM && m->model_type != BPE)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "its model cuts text into %s; this build knows BPE and Unigram",
                           m->model_type == 3 ? "words" : "characters");
    if (m->space_is_suffix || !m->escapes_spaces)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "it marks white space %s; this build knows marks in front of words",
                           m->space_is_suffix ? "behind words" : "nowhere");
    vocab->model = m->model_type == BPE ? "spm" : "t5";
    vocab->add_bos = vocab->bos >= 0;
    vocab->add_eos = vocab->bos < 0 && vocab->eos >= 0;
    return OCTAVO_OK;
}

octavo_status octavo_tokenizer_from_sentencepiece(const octavo_vocab_source *source,
                                                  const void *data, size_t size,
                                                  octavo_tokenizer **tokenizer,
                                                  octavo_error *error) {
    octavo_error inner = {0};
    model_file m = {0};
    octavo_status status = read_file(&m, source, (octavo_text){data, size}, &inner);
    if (status == OCTAVO_OK) status = choose_model(&m, &inner);
    if (status == OCTAVO_OK) status = octavo_vocab_configure(&m.draft, source, &inner);
    if (status == OCTAVO_OK) status = octavo_tokenizer_create(&m.draft.vocab, tokenizer, &inner);
    octavo_vocab_draft_deinit(&m.draft);
    if (status != OCTAVO_OK)
        status = octavo_fail(error, status, "tokenizer (%s): %s", source->name, inner.message);
    return status;
}
