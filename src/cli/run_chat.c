/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo run on a terminal: a conversation. What goes wrong with one message is said, and the
 * conversation goes on as if that message had not been.
 */
#include "base/log.h"
#include "cli/editor.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>

typedef struct chat {
    octavo_session *session;
    octavo_conversation *conversation;
    octavo_answer_options answer;
    const octavo_log *log;
    octavo_editor *editor;
    octavo_buffer message, line;
    bool is_leaving; /* an interrupt came at an empty prompt: the next one ends */
} chat;

/* \1 marks what does not take room on the line. */
static const char *prompt_of(bool is_first) {
    if (octavo_terminal_has_color(stdout))
        return is_first ? "\1\033[1;32m\1>\1\033[0m\1 " : "\1\033[1;32m\1.\1\033[0m\1 ";
    return is_first ? "> " : ". ";
}

/* Reads a message: lines that end in a backslash go on. False when the chat is over. */
static bool read_message(chat *c) {
    octavo_buffer_clear(&c->message);
    octavo_buffer_puts(&c->message, "");
    for (bool is_first = true;;) {
        octavo_editor_result result = octavo_editor_read(c->editor, prompt_of(is_first), &c->line);
        if (result == OCTAVO_EDITOR_END || c->line.failed) {
            putchar('\n');
            return false;
        }
        if (result != OCTAVO_EDITOR_LINE) {
            bool is_empty = result == OCTAVO_EDITOR_INTERRUPTED_EMPTY && c->message.size == 0;
            putchar('\n');
            if (is_empty && c->is_leaving) return false;
            if (is_empty) fputs("(Ctrl-C again, or Ctrl-D, ends the chat)\n", stdout);
            c->is_leaving = is_empty;
            octavo_buffer_clear(&c->message);
            octavo_buffer_puts(&c->message, "");
            is_first = true;
            continue;
        }
        c->is_leaving = false;
        bool goes_on = c->line.size > 0 && c->line.data[c->line.size - 1] == '\\';
        octavo_buffer_append(&c->message, c->line.data, c->line.size - goes_on);
        if (!goes_on) return true;
        octavo_buffer_putc(&c->message, '\n');
        is_first = false;
    }
}

/* The answer to the messages so far, streamed; it joins them. */
static octavo_status answer_message(chat *c, octavo_error *error) {
    octavo_ids prompt = {0};
    octavo_answer answer = {0};
    octavo_interrupt_clear();
    octavo_status status = octavo_conversation_prompt(c->conversation, &prompt, error);
    if (status == OCTAVO_OK)
        status = octavo_session_answer(c->session, &prompt, &c->answer, &answer, error);
    if (answer.text.size > 0 || answer.finish == OCTAVO_FINISH_CANCELLED) putchar('\n');
    fflush(stdout);
    octavo_interrupt_clear();
    if (status == OCTAVO_OK && answer.finish == OCTAVO_FINISH_LENGTH)
        octavo_log_write(c->log, OCTAVO_LOG_WARN,
                         "the answer was cut after %zu tokens; give more with -n, or /clear when "
                         "the context is full",
                         answer.ids.n);
    if (status == OCTAVO_OK) {
        octavo_run_log_speed(c->log, &answer);
        if (answer.ids.n > 0)
            status = octavo_conversation_add(c->conversation, "assistant", answer.text.data,
                                             answer.text.size, error);
        else
            octavo_conversation_drop(c->conversation);
    }
    octavo_answer_deinit(&answer);
    octavo_ids_deinit(&prompt);
    return status;
}

/* False: the message was no command. */
static bool run_chat_command(chat *c, bool *is_over) {
    const char *text = c->message.data;
    if (strcmp(text, "/exit") == 0 || strcmp(text, "/quit") == 0) {
        *is_over = true;
        return true;
    }
    if (strcmp(text, "/clear") == 0) {
        octavo_conversation_clear(c->conversation);
        return true;
    }
    if (strcmp(text, "/help") == 0) {
        fputs("/clear forgets the conversation, /exit ends the chat. Ctrl-C stops an answer.\n"
              "A backslash at the end of a line continues it on the next.\n",
              stdout);
        return true;
    }
    return false;
}

static void talk(chat *c) {
    bool is_over = false;
    while (!is_over && read_message(c)) {
        octavo_error error;
        if (c->message.size == 0 || run_chat_command(c, &is_over)) continue;
        octavo_status status = octavo_conversation_add(c->conversation, "user", c->message.data,
                                                       c->message.size, &error);
        if (status == OCTAVO_OK && (status = answer_message(c, &error)))
            octavo_conversation_drop(c->conversation);
        if (status) octavo_cli_fail(&error);
        if (ferror(stdout)) return;
    }
}

octavo_status octavo_run_chat(octavo_session *session, octavo_conversation *conversation,
                              const octavo_run_choice *choice, const octavo_log *log,
                              octavo_error *error) {
    chat c = {
        .session = session,
        .conversation = conversation,
        .answer = octavo_run_answer_options(choice, conversation->tmpl != NULL),
        .log = log,
    };
    octavo_interrupt_catch();
    octavo_status status = octavo_editor_create(&c.editor, error);
    if (status == OCTAVO_OK) talk(&c);
    octavo_editor_destroy(&c.editor);
    octavo_interrupt_release();
    octavo_buffer_deinit(&c.message);
    octavo_buffer_deinit(&c.line);
    return status;
}
