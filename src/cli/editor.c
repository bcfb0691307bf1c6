/* SPDX-License-Identifier: Apache-2.0
 *
 * The history lives in memory only: what was said in a chat is nobody's file.
 */
#include "cli/editor.h"

#include "base/error.h"
#include "base/memory.h"
#include "cli/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if OCTAVO_HAVE_EDIT

#include <histedit.h>
#include <stdlib.h>
#include <wchar.h>

enum { HISTORY_LINES = 500 };

struct octavo_editor {
    EditLine *edit;
    History *history;
    const char *prompt;  /* of the line being read */
    bool is_interrupted; /* while the line was read */
    bool is_empty;       /* and nothing had been typed */
};

static char *prompt_of(EditLine *edit) {
    octavo_editor *editor = NULL;
    static char none[] = "";
    /* libedit wants a pointer to text that it does not change. */
    union {
        const char *in;
        char *out;
    } prompt;
    if (el_get(edit, EL_CLIENTDATA, &editor) != 0 || !editor) return none;
    prompt.in = editor->prompt;
    return prompt.out;
}

/* One character. An interrupt ends the line: libedit by itself would go on reading. */
static int read_character(EditLine *edit, wchar_t *character) {
    octavo_editor *editor = NULL;
    mbstate_t state = {0};
    (void)el_get(edit, EL_CLIENTDATA, &editor);
    for (;;) {
        char byte;
        if (!octavo_interrupt_wait(STDIN_FILENO)) {
            const LineInfo *line = el_line(edit);
            editor->is_interrupted = true;
            editor->is_empty = line->lastchar == line->buffer;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return (int)n;
        size_t used = mbrtowc(character, &byte, 1, &state);
        if (used == (size_t)-2) continue;
        if (used == (size_t)-1) {
            state = (mbstate_t){0};
            *character = 0xfffd;
        }
        return 1;
    }
}

octavo_status octavo_editor_create(octavo_editor **out, octavo_error *error) {
    HistEvent event;
    octavo_editor *editor = octavo_alloc_zero(1, sizeof *editor);
    if (!editor) return octavo_fail_memory(error, "line editor", sizeof *editor);
    editor->prompt = "";
    editor->edit = el_init("octavo", stdin, stdout, stderr);
    editor->history = history_init();
    if (!editor->edit || !editor->history) {
        octavo_editor_destroy(&editor);
        return octavo_fail(error, OCTAVO_ERROR_IO,
                           "terminal: no line editing there; use -p or "
                           "-f, or another TERM");
    }
    history(editor->history, &event, H_SETSIZE, HISTORY_LINES);
    history(editor->history, &event, H_SETUNIQUE, 1);
    el_set(editor->edit, EL_CLIENTDATA, editor);
    el_set(editor->edit, EL_PROMPT_ESC, prompt_of, '\1');
    el_set(editor->edit, EL_EDITOR, "emacs");
    el_set(editor->edit, EL_SIGNAL, 0);
    el_set(editor->edit, EL_HIST, history, editor->history);
    el_set(editor->edit, EL_GETCFN, read_character);
    (void)el_source(editor->edit, NULL); /* the person's own ~/.editrc, if any */
    *out = editor;
    return OCTAVO_OK;
}

void octavo_editor_destroy(octavo_editor **editor) {
    if (!editor || !*editor) return;
    if ((*editor)->edit) el_end((*editor)->edit);
    if ((*editor)->history) history_end((*editor)->history);
    octavo_free(*editor);
    *editor = NULL;
}

octavo_editor_result octavo_editor_read(octavo_editor *editor, const char *prompt,
                                        octavo_buffer *line) {
    int length = 0;
    HistEvent event;
    editor->prompt = prompt;
    editor->is_interrupted = false;
    octavo_buffer_clear(line);
    octavo_buffer_puts(line, "");
    /* Before the prompt shows, or what is typed at once would be echoed twice. */
    el_set(editor->edit, EL_PREP_TERM, 1);
    const char *text = el_gets(editor->edit, &length);
    if (editor->is_interrupted) {
        octavo_interrupt_clear();
        el_reset(editor->edit);
        return editor->is_empty ? OCTAVO_EDITOR_INTERRUPTED_EMPTY : OCTAVO_EDITOR_INTERRUPTED;
    }
    if (!text || length <= 0) return OCTAVO_EDITOR_END;
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        length--;
    octavo_buffer_append(line, text, (size_t)length);
    if (length > 0 && !line->failed) history(editor->history, &event, H_ENTER, line->data);
    return OCTAVO_EDITOR_LINE;
}

#else

struct octavo_editor {
    char unused;
};

octavo_status octavo_editor_create(octavo_editor **out, octavo_error *error) {
    octavo_editor *editor = octavo_alloc_zero(1, sizeof *editor);
    if (!editor) return octavo_fail_memory(error, "line editor", sizeof *editor);
    *out = editor;
    return OCTAVO_OK;
}

void octavo_editor_destroy(octavo_editor **editor) {
    if (!editor || !*editor) return;
    octavo_free(*editor);
    *editor = NULL;
}

/* The terminal itself edits the line; it comes whole. */
octavo_editor_result octavo_editor_read(octavo_editor *editor, const char *prompt,
                                        octavo_buffer *line) {
    (void)editor;
    octavo_buffer_clear(line);
    octavo_buffer_puts(line, "");
    for (const char *p = prompt; *p; p++)
        if (*p != '\1') putchar(*p);
    fflush(stdout);
    for (;;) {
        char byte;
        if (!octavo_interrupt_wait(STDIN_FILENO)) {
            octavo_interrupt_clear();
            return line->size > 0 ? OCTAVO_EDITOR_INTERRUPTED : OCTAVO_EDITOR_INTERRUPTED_EMPTY;
        }
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return line->size > 0 ? OCTAVO_EDITOR_LINE : OCTAVO_EDITOR_END;
        if (byte == '\n') return OCTAVO_EDITOR_LINE;
        octavo_buffer_putc(line, byte);
    }
}

#endif
