/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo template: conversations in, prompts out.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"

#include "octavo/inspect.h"
#include "octavo/template.h"
#include "octavo/tokenizer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct template_options {
    const char *file, *now;
} template_options;

#define FIELD(name) offsetof(template_options, name)

static const octavo_option OPTIONS[] = {
    {"--template", OCTAVO_OPTION_TEXT, "FILE",
     "use this template; then MODEL may be -, and bos_token and eos_token come with each line",
     FIELD(file), 0, 0},
    {"--now", OCTAVO_OPTION_TEXT, "TIME",
     "what the template's clock says, such as 2026-01-15T12:00:00 (the time)", FIELD(now), 0, 0},
};

/* What all lines share. */
typedef struct renderer {
    octavo_template *tmpl;
    octavo_template_time now;
    bool has_now;
    octavo_buffer tokens; /* "bos_token":"...","eos_token":"..." of the model; may be empty */
} renderer;

static bool parse_time(const char *text, octavo_template_time *time) {
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int end = 0;
    octavo_template_time t;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.year, &t.month, &t.day, &t.hour, &t.minute,
               &t.second, &end) != 6 ||
        end != 19 || text[end] || strspn(text, "0123456789-T:") != 19)
        return false;
    if (t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1 || t.day > days[t.month - 1] ||
        t.hour < 0 || t.hour > 23 || t.minute < 0 || t.minute > 59 || t.second < 0 || t.second > 60)
        return false;
    bool is_leap = (t.year % 4 == 0 && t.year % 100 != 0) || t.year % 400 == 0;
    if (t.month == 2 && t.day == 29 && !is_leap) return false;
    *time = t;
    return true;
}

static void put_token(octavo_buffer *out, const char *name, const octavo_tokenizer *tokenizer,
                      int32_t id) {
    size_t length = 0;
    const char *piece = octavo_tokenizer_piece(tokenizer, id, &length);
    if (!piece) return;
    octavo_buffer_printf(out, "%s\"%s\":", out->size > 0 ? "," : "", name);
    octavo_buffer_json_string(out, piece, length);
}

static octavo_status read_model_tokens(const char *path, octavo_buffer *tokens,
                                       octavo_error *error) {
    octavo_tokenizer *tokenizer = NULL;
    octavo_status status = octavo_tokenizer_open(path, &tokenizer, error);
    if (status) return status;
    put_token(tokens, "bos_token", tokenizer, octavo_tokenizer_bos(tokenizer));
    put_token(tokens, "eos_token", tokenizer, octavo_tokenizer_eos(tokenizer));
    octavo_tokenizer_destroy(&tokenizer);
    return OCTAVO_OK;
}

static octavo_status open_file_template(renderer *r, const char *path, octavo_error *error) {
    octavo_buffer text = {0};
    octavo_status status = octavo_input_read(path, &text, error);
    if (status == OCTAVO_OK) status = octavo_template_create(text.data, text.size, &r->tmpl, error);
    octavo_buffer_deinit(&text);
    return status;
}

static octavo_status open_model_template(renderer *r, const char *path, octavo_error *error) {
    char *text = NULL;
    octavo_status status = octavo_chat_template_open(path, &text, error);
    if (status) return status;
    if (!text)
        return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                           "model (%s): has no chat template; give one with --template FILE", path);
    status = octavo_template_create(text, strlen(text), &r->tmpl, error);
    octavo_text_free(text);
    return status;
}

static octavo_status open_renderer(renderer *r, const char *model, const char *file,
                                   octavo_error *error) {
    octavo_status status =
        file ? open_file_template(r, file, error) : open_model_template(r, model, error);
    if (status || strcmp(model, "-") == 0) return status;
    return read_model_tokens(model, &r->tokens, error);
}

/* The line's object with the model's tokens in front: a key that the line has itself comes later
 * and wins. What is no object goes through as it is, to be refused by the template's own reader. */
static const char *add_tokens(const renderer *r, const char *line, octavo_buffer *joined) {
    const char *p = line + strspn(line, " \t\r\n");
    if (*p != '{' || r->tokens.size == 0) return line;
    const char *rest = p + 1 + strspn(p + 1, " \t\r\n");
    octavo_buffer_clear(joined);
    octavo_buffer_printf(joined, "{%s%s%s", r->tokens.data, *rest == '}' ? "" : ",", p + 1);
    return joined->data;
}

/* Writes the prompt, or what went wrong, as one line; *has_failed tells which. `variables` is NULL
 * where the line is no text. */
static octavo_status render_line(const renderer *r, const char *variables, octavo_buffer *out,
                                 bool *has_failed, octavo_error *error) {
    octavo_error why;
    char *text = NULL;
    size_t length = 0;
    const octavo_template_options options = {.size = sizeof options,
                                             .now = r->has_now ? &r->now : NULL};
    octavo_status status =
        variables
            ? octavo_template_render(r->tmpl, variables, &options, &text, &length, &why)
            : octavo_fail(&why, OCTAVO_ERROR_FORMAT,
                          "template variables: a zero byte in the line; give one JSON object");
    octavo_buffer_clear(out);
    if (status) {
        const char *raised = octavo_template_raised(&why);
        const char *message = raised ? raised : why.message;
        octavo_buffer_puts(out, "{\"error\": ");
        octavo_buffer_json_string(out, message, strlen(message));
        octavo_buffer_puts(out, "}");
        *has_failed = true;
    } else {
        octavo_buffer_json_string(out, text, length);
    }
    octavo_text_free(text);
    octavo_buffer_putc(out, '\n');
    if (out->failed) return octavo_fail_memory(error, "line", out->size);
    fwrite(out->data, 1, out->size, stdout);
    if (fflush(stdout) != 0)
        return octavo_fail(error, OCTAVO_ERROR_IO, "standard output: cannot be written: %s",
                           strerror(errno));
    return OCTAVO_OK;
}

static octavo_status render_lines(const renderer *r, bool *has_failed, octavo_error *error) {
    octavo_buffer line = {0}, joined = {0}, out = {0};
    octavo_status status;
    for (;;) {
        bool has_line;
        if ((status = octavo_input_line(stdin, &line, &has_line, error)) || !has_line) break;
        const char *variables =
            strlen(line.data) == line.size ? add_tokens(r, line.data, &joined) : NULL;
        if (joined.failed) status = octavo_fail_memory(error, "line", line.size);
        if (status || (status = render_line(r, variables, &out, has_failed, error))) break;
    }
    octavo_buffer_deinit(&line);
    octavo_buffer_deinit(&joined);
    octavo_buffer_deinit(&out);
    return status;
}

int octavo_command_template(const octavo_command *command, int argc, char **argv) {
    template_options options = {0};
    renderer r = {0};
    bool has_failed = false;
    octavo_error error;
    const octavo_option_group group = {"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = &group, .n_groups = 1};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;
    if (options.now && !(r.has_now = parse_time(options.now, &r.now)))
        return octavo_cli_usage("option --now (%s): not a time; give one such as "
                                "2026-01-15T12:00:00",
                                options.now);
    if (strcmp(line.arguments[0], "-") == 0 && !options.file)
        return octavo_cli_usage("template (-): no model and no template; give a model or "
                                "--template FILE");

    octavo_status status = open_renderer(&r, line.arguments[0], options.file, &error);
    if (status == OCTAVO_OK) status = render_lines(&r, &has_failed, &error);
    octavo_template_destroy(&r.tmpl);
    octavo_buffer_deinit(&r.tokens);
    exit_status = octavo_cli_exit(status, &error);
    return has_failed ? OCTAVO_EXIT_FAILED : exit_status;
}
