/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation is rendered anew for every answer; the session finds what the model has seen of
 * it.
 */
#include "cli/conversation.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

#include <string.h>

struct octavo_message {
    const char *role; /* a literal */
    octavo_buffer text;
};

/* Where the parts of a raw conversation meet. */
static const char RAW_JOINT[] = "\n";
static const char MARK[] = OCTAVO_ENCODE_MARK;

/* ---- special tokens in users' text ---- */

static bool is_utf8_tail(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Lists the tokens whose text must not come from users. */
static octavo_status find_specials(const octavo_tokenizer *tokenizer, octavo_ids *specials,
                                   octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    for (int32_t id = 0; id < octavo_tokenizer_size(tokenizer) && status == OCTAVO_OK; id++)
        if (octavo_tokenizer_is_special(tokenizer, id))
            status = octavo_ids_append(specials, id, error);
    return status;
}

/* Whether the text of a special token begins here. */
static bool spells_special(const octavo_conversation *c, const char *text, size_t length) {
    for (size_t i = 0; i < c->specials.n; i++) {
        size_t n = 0;
        const char *piece = octavo_tokenizer_piece(c->tokenizer, c->specials.data[i], &n);
        if (n > 0 && n <= length && memcmp(piece, text, n) == 0) return true;
    }
    return false;
}

static void append_marked(octavo_buffer *out, const octavo_conversation *c, const char *text,
                          size_t length) {
    for (size_t i = 0; i < length;) {
        if (length - i >= sizeof MARK - 1 && memcmp(text + i, MARK, sizeof MARK - 1) == 0) {
            i += sizeof MARK - 1; /* no character, and none may come from users */
            continue;
        }
        bool is_special = spells_special(c, text + i, length - i);
        octavo_buffer_putc(out, text[i++]);
        while (i < length && is_utf8_tail(text[i]))
            octavo_buffer_putc(out, text[i++]);
        if (is_special) octavo_buffer_puts(out, MARK);
    }
}

/* ---- messages ---- */

octavo_status octavo_conversation_add(octavo_conversation *c, const char *role, const char *text,
                                      size_t length, octavo_error *error) {
    octavo_message message = {.role = role};
    octavo_buffer_puts(&message.text, "");
    if (c->tmpl && strcmp(role, "system") != 0)
        append_marked(&message.text, c, text, length);
    else
        octavo_buffer_append(&message.text, text, length);
    size_t bytes = (c->n_messages + 1) * sizeof *c->messages;
    octavo_message *messages = message.text.failed ? NULL : octavo_realloc(c->messages, bytes);
    if (!messages) {
        octavo_buffer_deinit(&message.text);
        return octavo_fail_memory(error, "conversation", bytes + length);
    }
    c->messages = messages;
    c->messages[c->n_messages++] = message;
    return OCTAVO_OK;
}

void octavo_conversation_drop(octavo_conversation *c) {
    if (c->n_messages > c->n_fixed) octavo_buffer_deinit(&c->messages[--c->n_messages].text);
}

void octavo_conversation_clear(octavo_conversation *c) {
    while (c->n_messages > c->n_fixed)
        octavo_conversation_drop(c);
}

void octavo_conversation_deinit(octavo_conversation *c) {
    c->n_fixed = 0;
    octavo_conversation_clear(c);
    octavo_free(c->messages);
    octavo_ids_deinit(&c->specials);
    octavo_template_destroy(&c->tmpl);
    *c = (octavo_conversation){0};
}

octavo_status octavo_conversation_init(octavo_conversation *out, const octavo_model *model,
                                       bool is_raw, const char *system, const octavo_log *log,
                                       octavo_error *error) {
    octavo_conversation c = {.tokenizer = octavo_model_tokenizer(model)};
    const char *text = is_raw ? NULL : octavo_model_chat_template(model);
    if (!c.tokenizer) return octavo_ids_no_tokenizer(error);
    octavo_status status = find_specials(c.tokenizer, &c.specials, error);
    if (status) {
        octavo_conversation_deinit(&c);
        return status;
    }
    if (text)
        status = octavo_template_create(text, strlen(text), &c.tmpl, error);
    else if (system)
        status = octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                             "system text (--system): the model has no chat template to put it "
                             "in; make it part of the prompt");
    else if (!is_raw)
        octavo_log_write(log, OCTAVO_LOG_INFO,
                         "the model has no chat template: the prompt is the text itself, as with "
                         "--raw");
    if (status == OCTAVO_OK && system)
        status = octavo_conversation_add(&c, "system", system, strlen(system), error);
    c.n_fixed = c.n_messages;
    if (status)
        octavo_conversation_deinit(&c);
    else
        *out = c;
    return status;
}

/* ---- the prompt ---- */

static void put_token(octavo_buffer *out, const char *name, const octavo_tokenizer *tokenizer,
                      int32_t id) {
    size_t n = 0;
    const char *piece = octavo_tokenizer_piece(tokenizer, id, &n);
    octavo_buffer_printf(out, ",\"%s\":", name);
    octavo_buffer_json_string(out, piece ? piece : "", piece ? n : 0);
}

static void put_variables(octavo_buffer *out, const octavo_conversation *c) {
    octavo_buffer_puts(out, "{\"messages\":[");
    for (size_t i = 0; i < c->n_messages; i++) {
        const octavo_message *message = &c->messages[i];
        octavo_buffer_printf(out, "%s{\"role\":\"%s\",\"content\":", i > 0 ? "," : "",
                             message->role);
        octavo_buffer_json_string(out, message->text.data, message->text.size);
        octavo_buffer_putc(out, '}');
    }
    octavo_buffer_puts(out, "],\"add_generation_prompt\":true");
    put_token(out, "bos_token", c->tokenizer, octavo_tokenizer_bos(c->tokenizer));
    put_token(out, "eos_token", c->tokenizer, octavo_tokenizer_eos(c->tokenizer));
    octavo_buffer_putc(out, '}');
}

static octavo_status render(const octavo_conversation *c, octavo_buffer *prompt,
                            octavo_error *error) {
    octavo_buffer variables = {0};
    char *text = NULL;
    size_t length = 0;
    put_variables(&variables, c);
    octavo_status status =
        variables.failed
            ? octavo_fail_memory(error, "conversation", variables.size)
            : octavo_template_render(c->tmpl, variables.data, NULL, &text, &length, error);
    if (status == OCTAVO_OK) octavo_buffer_append(prompt, text, length);
    octavo_text_free(text);
    octavo_buffer_deinit(&variables);
    return status;
}

static void join_raw(const octavo_conversation *c, octavo_buffer *prompt) {
    for (size_t i = 0; i < c->n_messages; i++) {
        if (i > 0) octavo_buffer_puts(prompt, RAW_JOINT);
        octavo_buffer_append(prompt, c->messages[i].text.data, c->messages[i].text.size);
    }
}

/* Whether the text itself begins with the begin-of-text token. */
static bool has_bos(const octavo_tokenizer *tokenizer, const octavo_buffer *prompt) {
    size_t n = 0;
    const char *bos = octavo_tokenizer_piece(tokenizer, octavo_tokenizer_bos(tokenizer), &n);
    return bos && n > 0 && n <= prompt->size && memcmp(prompt->data, bos, n) == 0;
}

octavo_status octavo_conversation_prompt(const octavo_conversation *c, octavo_ids *ids,
                                         octavo_error *error) {
    octavo_buffer prompt = {0};
    octavo_status status = OCTAVO_OK;
    octavo_buffer_puts(&prompt, "");
    if (c->tmpl)
        status = render(c, &prompt, error);
    else
        join_raw(c, &prompt);
    if (status == OCTAVO_OK && prompt.failed)
        status = octavo_fail_memory(error, "prompt", prompt.size);
    /* Begin of text is put in by hand: an end of text, which some models' tokenizers add as well,
     * has no place in front of an answer. */
    if (status == OCTAVO_OK && octavo_tokenizer_adds_bos(c->tokenizer) &&
        !has_bos(c->tokenizer, &prompt))
        status = octavo_ids_append(ids, octavo_tokenizer_bos(c->tokenizer), error);
    if (status == OCTAVO_OK)
        status = octavo_ids_encode(
            ids, c->tokenizer, prompt.data, prompt.size,
            OCTAVO_ENCODE_SPECIAL_TEXT | (c->tmpl ? OCTAVO_ENCODE_MARKED : 0u), error);
    octavo_buffer_deinit(&prompt);
    return status;
}
