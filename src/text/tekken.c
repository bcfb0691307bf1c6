/* SPDX-License-Identifier: Apache-2.0
 *
 * "config" says how many ids there are and how many of them are special; "vocab" has the others'
 * bytes, best first, and more of them than are used; "special_tokens" names the special ones. Files
 * of the first versions leave that out: then they are the twenty of version 3. Ids without a name
 * are "<SPECIAL_n>".
 */
#include "text/tekken.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/memory.h"
#include "text/bpe_alphabet.h"
#include "text/tokenizer_utf8.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SPECIAL = 1 << 16 }; /* they need no bytes of the file, so it could claim any number */

static const char *const first_names[] = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};

typedef struct tekken_file {
    const json_t *root;
    octavo_vocab_draft draft;
    size_t n_special, n_tokens;
    octavo_error *error;
} tekken_file;

static octavo_status read_count(tekken_file *file, const char *key, size_t *count) {
    const json_t *value = json_object_get(json_object_get(file->root, "config"), key);
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
    if (n < 0 || n > OCTAVO_VOCAB_TOKENS_MAX)
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "\"%s\" of its \"config\" is missing or no count; the file is damaged",
                           key);
    *count = (size_t)n;
    return OCTAVO_OK;
}

static octavo_status read_counts(tekken_file *file) {
    octavo_status status = read_count(file, "default_num_special_tokens", &file->n_special);
    if (status == OCTAVO_OK) status = read_count(file, "default_vocab_size", &file->n_tokens);
    if (status != OCTAVO_OK) return status;
    if (file->n_special > MAX_SPECIAL)
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "its \"config\" says %zu special tokens, more than %d; the file is "
                           "damaged",
                           file->n_special, (int)MAX_SPECIAL);
    size_t n_given = json_array_size(json_object_get(file->root, "vocab"));
    if (file->n_special > file->n_tokens || file->n_tokens - file->n_special > n_given)
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "its \"config\" says %zu tokens, of them %zu special, and \"vocab\" has "
                           "%zu; the file is incomplete",
                           file->n_tokens, file->n_special, n_given);
    return OCTAVO_OK;
}

/* Sets names[i] to what special token i is called, NULL where it has none: mostly by its place, but
 * its "rank" says it. */
static void find_specials(const json_t *list, const json_t **names, size_t n) {
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry) {
        const json_t *rank = json_object_get(entry, "rank");
        const json_int_t at = json_is_integer(rank) ? json_integer_value(rank) : -1;
        if (at >= 0 && at < (json_int_t)n && !names[at])
            names[at] = json_object_get(entry, "token_str");
    }
}

static octavo_status put_special(tekken_file *file, size_t i, const json_t *name, bool is_first) {
    char filler[32];
    (void)snprintf(filler, sizeof filler, "<SPECIAL_%zu>", i);
    octavo_text text = {filler, strlen(filler)};
    if (is_first && i < OCTAVO_COUNT(first_names))
        text = (octavo_text){first_names[i], strlen(first_names[i])};
    if (name != NULL) text = (octavo_text){json_string_value(name), json_string_length(name)};
    if (text.length == 0)
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "special token %zu has no text; the file is damaged", i);
    char *copy = octavo_arena_strndup(&file->draft.arena, text.data, text.length);
    if (copy == NULL) return octavo_fail_memory(file->error, "vocabulary", text.length);
    octavo_vocab_draft_put(&file->draft, (octavo_text){copy, text.length}, OCTAVO_TOKEN_CONTROL, 0);
    return OCTAVO_OK;
}

static octavo_status put_specials(tekken_file *file) {
    const json_t *list = json_object_get(file->root, "special_tokens");
    octavo_status status = OCTAVO_OK;
    if (list != NULL && !json_is_array(list) && !json_is_null(list))
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "its \"special_tokens\" is no array; the file is damaged");
    if (json_array_size(list) > file->n_special)
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "it has %zu \"special_tokens\" where its \"config\" says %zu; the file "
                           "is damaged",
                           json_array_size(list), file->n_special);
    const json_t **names = octavo_alloc_zero(file->n_special + 1, sizeof *names);
    if (names == NULL)
        return octavo_fail_memory(file->error, "vocabulary", file->n_special * sizeof *names);
    find_specials(list, names, json_array_size(list));
    for (size_t i = 0; i < file->n_special && status == OCTAVO_OK; i++)
        status = put_special(file, i, names[i], !json_is_array(list));
    octavo_free(names);
    return status;
}

/* Entry i of "vocab", its bytes spelled in the byte alphabet. */
static octavo_status put_token(tekken_file *file, const char *const spelling[256], size_t i,
                               octavo_buffer *bytes, octavo_buffer *text) {
    const json_t *entry = json_array_get(json_object_get(file->root, "vocab"), i);
    const json_t *base64 = json_object_get(entry, "token_bytes");
    const json_t *rank = json_object_get(entry, "rank");
    octavo_buffer_clear(bytes);
    octavo_buffer_clear(text);
    bool is_right =
        json_is_string(base64) && json_string_length(base64) != 0 &&
        octavo_base64_decode(json_string_value(base64), json_string_length(base64), bytes);
    if (!is_right || json_integer_value(rank) != (json_int_t)i)
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "entry %zu of \"vocab\": its \"%s\"; the file is damaged", i,
                           is_right ? "rank\" is not its place" : "token_bytes\" are no base64");
    for (size_t k = 0; k < bytes->size && !bytes->failed; k++)
        octavo_buffer_puts(text, spelling[(unsigned char)bytes->data[k]]);
    char *copy = NULL;
    if (!bytes->failed && !text->failed)
        copy = octavo_arena_strndup(&file->draft.arena, text->data, text->size);
    if (copy == NULL) return octavo_fail_memory(file->error, "vocabulary", text->size);
    octavo_vocab_draft_put(&file->draft, (octavo_text){copy, text->size}, OCTAVO_TOKEN_NORMAL, 0);
    return OCTAVO_OK;
}

static octavo_status put_tokens(tekken_file *file) {
    int16_t table[OCTAVO_ALPHABET];
    char spelled[256][3] = {{0}};
    const char *spelling[256];
    octavo_buffer bytes = {0}, text = {0};
    octavo_status status = OCTAVO_OK;
    octavo_alphabet_init(table);
    for (unsigned point = 0; point < OCTAVO_ALPHABET; point++) {
        if (table[point] < 0) continue;
        char *out = spelled[table[point]];
        if (point < 0x80) {
            out[0] = (char)point;
        } else {
            out[0] = (char)(0xc0 | point >> 6);
            out[1] = (char)(0x80 | (point & 0x3f));
        }
    }
    for (size_t byte = 0; byte < 256; byte++)
        spelling[byte] = spelled[byte];
    for (size_t i = 0; i < file->n_tokens - file->n_special && status == OCTAVO_OK; i++)
        status = put_token(file, spelling, i, &bytes, &text);
    octavo_buffer_deinit(&bytes);
    octavo_buffer_deinit(&text);
    return status;
}

/* The special token of a name, or -1. */
static int32_t find_name(const tekken_file *file, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < file->n_special; i++)
        if (file->draft.tokens[i].length == length &&
            memcmp(file->draft.tokens[i].data, name, length) == 0)
            return (int32_t)i;
    return -1;
}

static octavo_status read_file(tekken_file *file, const octavo_vocab_source *source) {
    const json_t *pattern = json_object_get(json_object_get(file->root, "config"), "pattern");
    octavo_vocab *vocab = &file->draft.vocab;
    if (!json_is_string(pattern) || strlen(json_string_value(pattern)) == 0)
        return octavo_fail(file->error, OCTAVO_ERROR_FORMAT,
                           "\"pattern\" of its \"config\" is missing; the file is incomplete");
    octavo_status status = read_counts(file);
    if (status == OCTAVO_OK)
        status = octavo_vocab_draft_init(&file->draft, file->n_tokens, source, file->error);
    if (status == OCTAVO_OK) status = put_specials(file);
    if (status == OCTAVO_OK) status = put_tokens(file);
    if (status != OCTAVO_OK) return status;
    vocab->model = "tekken";
    vocab->pre = json_string_value(pattern);
    vocab->scores = NULL;
    vocab->bos = find_name(file, "<s>");
    vocab->eos = find_name(file, "</s>");
    vocab->unk = find_name(file, "<unk>");
    vocab->add_bos = vocab->bos >= 0;
    return octavo_vocab_configure(&file->draft, source, file->error);
}

octavo_status octavo_tokenizer_from_tekken(const octavo_vocab_source *source, const json_t *tekken,
                                           octavo_tokenizer **tokenizer, octavo_error *error) {
    octavo_error inner = {0};
    tekken_file file = {.root = tekken, .error = &inner};
    octavo_status status = read_file(&file, source);
    if (status == OCTAVO_OK) status = octavo_tokenizer_create(&file.draft.vocab, tokenizer, &inner);
    octavo_vocab_draft_deinit(&file.draft);
    if (status != OCTAVO_OK)
        status = octavo_fail(error, status, "tokenizer (%s): %s", source->name, inner.message);
    return status;
}
