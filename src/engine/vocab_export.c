/* SPDX-License-Identifier: Apache-2.0
 *
 * From tokenizer.json to the flat vocabulary of GGUF. Of the steps around it GGUF knows only names;
 * which name is meant is found by trying (vocab_compare.h).
 */
#include "engine/vocab_export.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "engine/vocab_compare.h"
#include "engine/vocab_gguf.h"
#include "formats/hf_folder_file.h"
#include "text/pretokenize.h"
#include "text/tokenizer_normalize.h"

#include <stdio.h>
#include <string.h>

typedef struct exporter {
    const octavo_hf_folder *folder;
    json_t *json, *config;
    octavo_tokenizer *truth; /* the folder's */
    octavo_arena arena;
    octavo_vocab vocab;
    octavo_text *tokens;
    int32_t *types;
    float *scores;
    uint8_t *flags;
    char pre[OCTAVO_PRETOKENIZER_NAME_SIZE];
    octavo_error *error;
} exporter;

static octavo_status fail(const exporter *e, const char *what) {
    return octavo_fail(
        e->error, OCTAVO_ERROR_UNSUPPORTED,
        "tokenizer (%s): %s; take it out of the folder for a model that takes ids only",
        octavo_hf_shown_path(e->folder->tokenizer), what);
}

/* ---- tokens ---- */

static octavo_text text_of(const json_t *text) {
    return (octavo_text){json_string_value(text), json_string_length(text)};
}

/* What the folder has beyond the model's rows can never be fed, and is left out. */
static void put_token(exporter *e, const json_t *id, octavo_text text, octavo_token_type type) {
    const json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
    if (at < 0 || (uint64_t)at >= e->vocab.n_tokens || !text.data) return;
    e->tokens[at] = text;
    e->types[at] = type;
}

static void put_flags(exporter *e, const json_t *added) {
    static const struct {
        const char *key;
        uint8_t flag;
    } rows[] = {
        {"lstrip", OCTAVO_ADDED_LSTRIP},
        {"rstrip", OCTAVO_ADDED_RSTRIP},
        {"single_word", OCTAVO_ADDED_SINGLE_WORD},
        {"normalized", OCTAVO_ADDED_NORMALIZED},
    };
    const json_t *id = json_object_get(added, "id");
    const json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
    if (at < 0 || (uint64_t)at >= e->vocab.n_tokens) return;
    for (size_t i = 0; i < OCTAVO_COUNT(rows); i++)
        if (json_is_true(json_object_get(added, rows[i].key))) {
            e->flags[at] |= rows[i].flag;
            e->vocab.added_flags = e->flags;
        }
}

static bool is_byte(octavo_text text) {
    return text.length == 6 && memcmp(text.data, "<0x", 3) == 0 && text.data[5] == '>';
}

static octavo_status put_padding(exporter *e) {
    for (size_t i = 0; i < e->vocab.n_tokens; i++) {
        char name[32];
        if (e->tokens[i].data) continue;
        const int length = snprintf(name, sizeof name, "[PAD%zu]", i);
        const char *copy = octavo_arena_strndup(&e->arena, name, (size_t)length);
        if (!copy) return octavo_fail_memory(e->error, "vocabulary", (uint64_t)length);
        e->tokens[i] = (octavo_text){copy, (size_t)length};
        e->types[i] = OCTAVO_TOKEN_UNUSED;
    }
    return OCTAVO_OK;
}

static octavo_status read_tokens(exporter *e, const json_t *model, bool is_spm) {
    const size_t n = e->vocab.n_tokens;
    const json_t *unk = json_object_get(model, "unk_token");
    const char *text;
    json_t *id, *added;
    size_t i;
    e->tokens = octavo_arena_alloc(&e->arena, n * sizeof *e->tokens);
    e->types = octavo_arena_alloc(&e->arena, n * sizeof *e->types);
    e->scores = octavo_arena_alloc(&e->arena, n * sizeof *e->scores);
    e->flags = octavo_arena_alloc(&e->arena, n);
    if (!e->tokens || !e->types || !e->scores || !e->flags)
        return octavo_fail_memory(e->error, "vocabulary", n * sizeof *e->tokens);
    memset(e->tokens, 0, n * sizeof *e->tokens);
    memset(e->types, 0, n * sizeof *e->types);
    memset(e->scores, 0, n * sizeof *e->scores);
    memset(e->flags, 0, n);
    json_object_foreach(json_object_get(model, "vocab"), text, id) {
        const octavo_text token = {text, strlen(text)};
        const bool is_unk = json_is_string(unk) && strcmp(text, json_string_value(unk)) == 0;
        put_token(e, id, token,
                  is_unk                     ? OCTAVO_TOKEN_UNKNOWN
                  : is_spm && is_byte(token) ? OCTAVO_TOKEN_BYTE
                                             : OCTAVO_TOKEN_NORMAL);
    }
    json_array_foreach(json_object_get(e->json, "added_tokens"), i, added) {
        const octavo_text token = text_of(json_object_get(added, "content"));
        const bool is_special = json_is_true(json_object_get(added, "special"));
        put_token(e, json_object_get(added, "id"), token,
                  is_special ? OCTAVO_TOKEN_CONTROL : OCTAVO_TOKEN_USER);
        put_flags(e, added);
    }
    e->vocab.tokens = e->tokens;
    e->vocab.types = e->types;
    return put_padding(e);
}

/* ---- merges ---- */

/* "left right", from a text or, in newer files, a pair. */
static octavo_status join(exporter *e, const json_t *merge, octavo_text *joined) {
    const octavo_text left = text_of(json_array_get(merge, 0));
    const octavo_text right = text_of(json_array_get(merge, 1));
    *joined = text_of(merge);
    if (joined->data) return OCTAVO_OK;
    if (!left.data || !right.data) return fail(e, "a merge is neither a text nor a pair of texts");
    char *copy = octavo_arena_alloc(&e->arena, left.length + right.length + 2);
    if (!copy) return octavo_fail_memory(e->error, "merges", left.length + right.length);
    memcpy(copy, left.data, left.length);
    copy[left.length] = ' ';
    memcpy(copy + left.length + 1, right.data, right.length + 1);
    *joined = (octavo_text){copy, left.length + 1 + right.length};
    return OCTAVO_OK;
}

static octavo_status read_merges(exporter *e, const json_t *model) {
    const json_t *merges = json_object_get(model, "merges");
    const size_t n = json_array_size(merges);
    octavo_text *made = octavo_arena_alloc(&e->arena, (n ? n : 1) * sizeof *made);
    if (!made) return octavo_fail_memory(e->error, "merges", n * sizeof *made);
    for (size_t i = 0; i < n; i++) {
        octavo_status status = join(e, json_array_get(merges, i), &made[i]);
        if (status) return status;
    }
    e->vocab.merges = made;
    e->vocab.n_merges = n;
    return OCTAVO_OK;
}

/* SentencePiece has a score for each token in place of merges: what is merged first scores most. */
static octavo_status score_merges(exporter *e, const json_t *model) {
    const json_t *vocab = json_object_get(model, "vocab");
    for (size_t i = e->vocab.n_merges; i-- > 0;) {
        octavo_text merge = e->vocab.merges[i];
        const char *space = memchr(merge.data, ' ', merge.length);
        if (!space) return fail(e, "a merge has no space between its halves");
        octavo_buffer both = {0};
        octavo_buffer_append(&both, merge.data, (size_t)(space - merge.data));
        octavo_buffer_append(&both, space + 1, merge.length - (size_t)(space - merge.data) - 1);
        octavo_buffer_putc(&both, '\0');
        const json_t *id = both.failed ? NULL : json_object_get(vocab, both.data);
        if (json_is_integer(id) && (uint64_t)json_integer_value(id) < e->vocab.n_tokens)
            e->scores[json_integer_value(id)] = -(float)(i + 1);
        const bool has_failed = both.failed;
        octavo_buffer_deinit(&both);
        if (has_failed) return octavo_fail_memory(e->error, "merges", merge.length);
    }
    e->vocab.scores = e->scores;
    return OCTAVO_OK;
}

/* ---- single tokens ---- */

/* Of a name that is a text or an object about it. */
static int32_t id_of(const exporter *e, const json_t *value) {
    if (json_is_object(value)) value = json_object_get(value, "content");
    const octavo_text text = text_of(value);
    for (size_t i = 0; text.data && i < e->vocab.n_tokens; i++)
        if (e->tokens[i].length == text.length &&
            memcmp(e->tokens[i].data, text.data, text.length) == 0)
            return (int32_t)i;
    return -1;
}

static int32_t within(const exporter *e, int32_t id) {
    return id >= 0 && (size_t)id < e->vocab.n_tokens ? id : -1;
}

static octavo_status read_ends(exporter *e) {
    octavo_vocab *v = &e->vocab;
    int32_t ids[64];
    size_t n = 0;
    const bool is_bert = v->model && strcmp(v->model, "bert") == 0;
    v->bos = within(e, octavo_tokenizer_bos(e->truth));
    v->eos = within(e, octavo_tokenizer_eos(e->truth));
    if (is_bert) {
        v->bos = id_of(e, json_object_get(e->config, "cls_token"));
        v->eos = id_of(e, json_object_get(e->config, "sep_token"));
    }
    v->unk = id_of(e, json_object_get(json_object_get(e->json, "model"), "unk_token"));
    v->pad = id_of(e, json_object_get(e->config, "pad_token"));
    octavo_status status = octavo_tokenizer_encode(e->truth, "a", 1, OCTAVO_ENCODE_BEGIN_END, ids,
                                                   OCTAVO_COUNT(ids), &n, e->error);
    if (status) return status;
    v->add_bos = n > 0 && v->bos >= 0 && ids[0] == v->bos;
    v->add_eos = n > 0 && n <= OCTAVO_COUNT(ids) && v->eos >= 0 && ids[n - 1] == v->eos;
    for (int32_t i = 0; !is_bert && (size_t)i < v->n_tokens && i < octavo_tokenizer_size(e->truth);
         i++)
        if (i != v->eos && octavo_tokenizer_is_eog(e->truth, i)) {
            v->eot = i;
            break;
        }
    return OCTAVO_OK;
}

/* ---- the kind ---- */

static bool has_step(const json_t *step, const char *type) {
    const json_t *list = json_object_get(step, "pretokenizers");
    const char *name = json_string_value(json_object_get(step, "type"));
    if (name && strcmp(name, type) == 0) return true;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (has_step(json_array_get(list, i), type)) return true;
    return false;
}

static octavo_status choose_byte_level(exporter *e) {
    e->vocab.model = "gpt2";
    e->vocab.pre = e->pre;
    for (size_t i = 0; octavo_pretokenizer_name(i, e->pre); i++) {
        bool is_same = false;
        octavo_status status = octavo_vocab_compare(&e->vocab, e->truth, &is_same, e->error);
        if (status || is_same) return status;
    }
    return fail(e, "none of GGUF's pre-tokenizers that this version knows cuts text as it does");
}

static octavo_status choose_spm(exporter *e) {
    e->vocab.model = "llama";
    for (int prefix = 1; prefix >= 0; prefix--) {
        bool is_same = false;
        e->vocab.add_space_prefix = prefix;
        octavo_status status = octavo_vocab_compare(&e->vocab, e->truth, &is_same, e->error);
        if (status || is_same) return status;
    }
    return fail(e, "as GGUF's SentencePiece model it would cut text otherwise");
}

/* WordPiece: what begins a word is marked, and not what goes on with one. */
static octavo_status mark_words(exporter *e, const char *prefix) {
    const size_t length = strlen(prefix), mark = strlen(OCTAVO_SPACE_MARK);
    for (size_t i = 0; i < e->vocab.n_tokens; i++) {
        octavo_text *token = &e->tokens[i];
        if (e->types[i] != OCTAVO_TOKEN_NORMAL) continue;
        if (token->length > length && memcmp(token->data, prefix, length) == 0) {
            *token = (octavo_text){token->data + length, token->length - length};
            continue;
        }
        char *copy = octavo_arena_alloc(&e->arena, mark + token->length + 1);
        if (!copy) return octavo_fail_memory(e->error, "vocabulary", token->length);
        memcpy(copy, OCTAVO_SPACE_MARK, mark);
        memcpy(copy + mark, token->data, token->length + 1);
        *token = (octavo_text){copy, mark + token->length};
    }
    return OCTAVO_OK;
}

static octavo_status make_wordpiece(exporter *e, const json_t *model) {
    const char *prefix = json_string_value(json_object_get(model, "continuing_subword_prefix"));
    octavo_status status;
    e->vocab.model = "bert";
    if ((status = read_tokens(e, model, false)) || (status = read_ends(e)) ||
        (status = mark_words(e, prefix ? prefix : "##")))
        return status;
    for (int8_t lowers = 1; lowers >= 0; lowers--) {
        bool is_same = false;
        e->vocab.lowers = lowers;
        status = octavo_vocab_compare(&e->vocab, e->truth, &is_same, e->error);
        if (status || is_same) return status;
    }
    return fail(e, "as GGUF's WordPiece model it would cut text otherwise");
}

static octavo_status make(exporter *e) {
    const json_t *model = json_object_get(e->json, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    const bool is_byte_level = has_step(json_object_get(e->json, "pre_tokenizer"), "ByteLevel");
    const bool is_spm = !is_byte_level && json_is_true(json_object_get(model, "byte_fallback"));
    octavo_status status;
    if (type && strcmp(type, "WordPiece") == 0) return make_wordpiece(e, model);
    if ((type && strcmp(type, "BPE") != 0) || (!is_byte_level && !is_spm))
        return fail(e, "is no BPE over bytes, none of SentencePiece and no WordPiece, of which "
                       "alone this version makes GGUF's");
    if ((status = read_tokens(e, model, is_spm)) || (status = read_merges(e, model)) ||
        (status = read_ends(e)))
        return status;
    if (!is_spm) return choose_byte_level(e);
    status = score_merges(e, model);
    e->vocab.n_merges = 0;
    return status ? status : choose_spm(e);
}

/* ---- writing ---- */

static octavo_gguf_string string_of(octavo_text text) {
    return (octavo_gguf_string){text.data, text.length};
}

static void put_ids(const octavo_vocab *v, octavo_gguf_writer *writer) {
    const bool is_bert = strcmp(v->model, "bert") == 0;
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", v->bos},
        {"tokenizer.ggml.eos_token_id", v->eos},
        {"tokenizer.ggml.unknown_token_id", v->unk},
        {"tokenizer.ggml.padding_token_id", v->pad},
        {"tokenizer.ggml.eot_token_id", v->eot},
        {"tokenizer.ggml.cls_token_id", is_bert ? v->bos : -1},
        {"tokenizer.ggml.seperator_token_id", is_bert ? v->eos : -1},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(ids); i++)
        if (ids[i].id >= 0) octavo_gguf_writer_put_u32(writer, ids[i].key, (uint32_t)ids[i].id);
    if (is_bert)
        octavo_gguf_writer_put_bool(writer, "tokenizer.ggml.normalizer.lowercase", v->lowers != 0);
    octavo_gguf_writer_put_bool(writer, "tokenizer.ggml.add_bos_token", v->add_bos);
    octavo_gguf_writer_put_bool(writer, "tokenizer.ggml.add_eos_token", v->add_eos);
}

static void put_vocab(const octavo_vocab *v, octavo_gguf_writer *writer) {
    const octavo_text model = {v->model, strlen(v->model)};
    octavo_gguf_writer_put_string(writer, "tokenizer.ggml.model", string_of(model));
    if (v->pre)
        octavo_gguf_writer_put_string(writer, "tokenizer.ggml.pre",
                                      (octavo_gguf_string){v->pre, strlen(v->pre)});
    octavo_gguf_writer_put_array(writer, "tokenizer.ggml.tokens", OCTAVO_GGUF_STRING, v->n_tokens);
    for (size_t i = 0; i < v->n_tokens; i++)
        octavo_gguf_writer_put_text_item(writer, string_of(v->tokens[i]));
    octavo_gguf_writer_put_array(writer, "tokenizer.ggml.token_type", OCTAVO_GGUF_I32, v->n_tokens);
    for (size_t i = 0; i < v->n_tokens; i++)
        octavo_gguf_writer_put_item(writer, OCTAVO_GGUF_I32, (uint32_t)v->types[i]);
    if (v->added_flags) {
        octavo_gguf_writer_put_array(writer, OCTAVO_VOCAB_FLAGS_KEY, OCTAVO_GGUF_I32, v->n_tokens);
        for (size_t i = 0; i < v->n_tokens; i++)
            octavo_gguf_writer_put_item(writer, OCTAVO_GGUF_I32, v->added_flags[i]);
    }
    if (v->scores) {
        octavo_gguf_writer_put_array(writer, "tokenizer.ggml.scores", OCTAVO_GGUF_F32, v->n_tokens);
        for (size_t i = 0; i < v->n_tokens; i++)
            octavo_gguf_writer_put_item(writer, OCTAVO_GGUF_F32, octavo_f32_bits(v->scores[i]));
        octavo_gguf_writer_put_bool(writer, "tokenizer.ggml.add_space_prefix", v->add_space_prefix);
    }
    if (v->n_merges > 0) {
        octavo_gguf_writer_put_array(writer, "tokenizer.ggml.merges", OCTAVO_GGUF_STRING,
                                     v->n_merges);
        for (size_t i = 0; i < v->n_merges; i++)
            octavo_gguf_writer_put_text_item(writer, string_of(v->merges[i]));
    }
    put_ids(v, writer);
}

static bool is_json(const char *path) {
    static const char name[] = "tokenizer.json";
    const size_t length = strlen(path), end = sizeof name - 1;
    return length >= end && strcmp(path + length - end, name) == 0;
}

octavo_status octavo_vocab_export(const octavo_hf_folder *folder, int64_t n_tokens,
                                  octavo_gguf_writer *writer, octavo_error *error) {
    exporter e = {.folder = folder, .vocab = OCTAVO_VOCAB_INIT, .error = error};
    octavo_status status;
    if (!folder->tokenizer) {
        octavo_gguf_writer_put_string(writer, "tokenizer.ggml.model",
                                      (octavo_gguf_string){"none", 4});
        return OCTAVO_OK;
    }
    if (!is_json(folder->tokenizer))
        return fail(&e, "is no tokenizer.json, from which alone this version makes GGUF's");
    e.vocab.n_tokens = (size_t)n_tokens;
    if ((status = octavo_tokenizer_open(folder->path, &e.truth, error)) == OCTAVO_OK &&
        (status = octavo_hf_json_read(folder->tokenizer, &e.json, error)) == OCTAVO_OK &&
        folder->tokenizer_config)
        status = octavo_hf_json_read(folder->tokenizer_config, &e.config, error);
    if (status == OCTAVO_OK) status = make(&e);
    if (status == OCTAVO_OK) put_vocab(&e.vocab, writer);
    octavo_tokenizer_destroy(&e.truth);
    json_decref(e.json);
    json_decref(e.config);
    octavo_arena_deinit(&e.arena);
    return status;
}
