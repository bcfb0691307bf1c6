/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo tokenize: lines of text to lines of ids and back.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/input.h"
#include "cli/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct tokenize_options {
    bool is_decode, is_text, has_no_bos, has_no_special, is_json;
} tokenize_options;

#define FIELD(name) offsetof(tokenize_options, name)

static const octavo_option OPTIONS[] = {
    {"--decode", OCTAVO_OPTION_FLAG, NULL,
     "the other way: one JSON array of ids a line to one JSON string a line", FIELD(is_decode), 0,
     0},
    {"--text", OCTAVO_OPTION_FLAG, NULL,
     "standard input is one text as it stands; prints an id and its piece a line", FIELD(is_text),
     0, 0},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "with --text: one JSON array", FIELD(is_json), 0, 0},
    {"--no-bos", OCTAVO_OPTION_FLAG, NULL, "add no begin and end tokens", FIELD(has_no_bos), 0, 0},
    {"--no-special", OCTAVO_OPTION_FLAG, NULL,
     "special tokens in the text are plain text; with --decode they are left out",
     FIELD(has_no_special), 0, 0},
};

static unsigned encode_flags(const tokenize_options *options) {
    return (options->has_no_bos ? 0u : OCTAVO_ENCODE_BEGIN_END) |
           (options->has_no_special ? 0u : OCTAVO_ENCODE_SPECIAL_TEXT);
}

static octavo_status encode_line(const octavo_tokenizer *tokenizer, const tokenize_options *options,
                                 const octavo_buffer *line, const char *where, octavo_buffer *out,
                                 octavo_error *error) {
    json_t *value = NULL;
    octavo_ids ids = {0};
    octavo_status status = octavo_input_json(line->data, line->size, where, &value, error);
    if (status) return status;
    if (!json_is_string(value))
        status = octavo_fail(error, OCTAVO_ERROR_FORMAT,
                             "text (%s): not a JSON string; give one such as \"Hello\", or raw "
                             "text with --text",
                             where);
    else
        status = octavo_ids_encode(&ids, tokenizer, json_string_value(value),
                                   json_string_length(value), encode_flags(options), error);
    if (status == OCTAVO_OK) octavo_ids_print(&ids, out);
    octavo_ids_deinit(&ids);
    json_decref(value);
    return status;
}

static octavo_status decode_ids(const octavo_tokenizer *tokenizer, const octavo_ids *ids,
                                unsigned flags, octavo_buffer *text, octavo_error *error) {
    size_t length = 0;
    octavo_status status =
        octavo_tokenizer_decode(tokenizer, ids->data, ids->n, flags, NULL, 0, &length, error);
    if (status) return status;
    if (!octavo_buffer_reserve(text, length + 1)) return octavo_fail_memory(error, "text", length);
    status = octavo_tokenizer_decode(tokenizer, ids->data, ids->n, flags, text->data, length,
                                     &text->size, error);
    return status;
}

static octavo_status decode_line(const octavo_tokenizer *tokenizer, const tokenize_options *options,
                                 const octavo_buffer *line, const char *where, octavo_buffer *out,
                                 octavo_error *error) {
    octavo_ids ids = {0};
    octavo_buffer text = {0};
    unsigned flags = options->has_no_special ? OCTAVO_DECODE_SKIP_SPECIAL : 0;
    octavo_status status = octavo_ids_parse(&ids, line->data, line->size, where, error);
    if (status == OCTAVO_OK) status = decode_ids(tokenizer, &ids, flags, &text, error);
    if (status == OCTAVO_OK) octavo_buffer_json_string(out, text.data, text.size);
    octavo_buffer_deinit(&text);
    octavo_ids_deinit(&ids);
    return status;
}

static octavo_status write_line(octavo_buffer *out, octavo_error *error) {
    octavo_buffer_putc(out, '\n');
    if (out->failed) return octavo_fail_memory(error, "line", out->size);
    fwrite(out->data, 1, out->size, stdout);
    octavo_buffer_clear(out);
    /* Whoever feeds lines one by one wants the answer to each. */
    if (fflush(stdout) != 0)
        return octavo_fail(error, OCTAVO_ERROR_IO, "standard output: cannot be written: %s",
                           strerror(errno));
    return OCTAVO_OK;
}

static octavo_status convert_lines(const octavo_tokenizer *tokenizer,
                                   const tokenize_options *options, octavo_error *error) {
    octavo_buffer line = {0}, out = {0};
    octavo_status status;
    for (long number = 1;; number++) {
        char where[32];
        bool has_line;
        snprintf(where, sizeof where, "line %ld", number);
        if ((status = octavo_input_line(stdin, &line, &has_line, error)) || !has_line) break;
        status = options->is_decode ? decode_line(tokenizer, options, &line, where, &out, error)
                                    : encode_line(tokenizer, options, &line, where, &out, error);
        if (status || (status = write_line(&out, error))) break;
    }
    octavo_buffer_deinit(&line);
    octavo_buffer_deinit(&out);
    return status;
}

static void print_pieces(const octavo_tokenizer *tokenizer, const octavo_ids *ids, bool is_json,
                         octavo_buffer *out) {
    if (is_json) octavo_buffer_putc(out, '[');
    for (size_t i = 0; i < ids->n; i++) {
        size_t length;
        const char *piece = octavo_tokenizer_piece(tokenizer, ids->data[i], &length);
        octavo_buffer_printf(out, is_json ? "%s{\"id\":%ld,\"piece\":" : "%s%ld\t",
                             is_json && i > 0 ? "," : "", (long)ids->data[i]);
        octavo_buffer_json_string(out, piece, length);
        octavo_buffer_puts(out, is_json ? "}" : "\n");
    }
    if (is_json) octavo_buffer_puts(out, "]\n");
}

static octavo_status convert_text(const octavo_tokenizer *tokenizer,
                                  const tokenize_options *options, octavo_error *error) {
    octavo_buffer text = {0}, out = {0};
    octavo_ids ids = {0};
    octavo_status status = octavo_input_read("-", &text, error);
    if (status == OCTAVO_OK)
        status =
            octavo_ids_encode(&ids, tokenizer, text.data, text.size, encode_flags(options), error);
    if (status == OCTAVO_OK) {
        print_pieces(tokenizer, &ids, options->is_json, &out);
        if (out.failed)
            status = octavo_fail_memory(error, "pieces", out.size);
        else if (out.size > 0)
            fwrite(out.data, 1, out.size, stdout);
    }
    octavo_ids_deinit(&ids);
    octavo_buffer_deinit(&text);
    octavo_buffer_deinit(&out);
    return status;
}

int octavo_command_tokenize(const octavo_command *command, int argc, char **argv) {
    tokenize_options options = {0};
    const octavo_option_group group = {"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = &group, .n_groups = 1};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;
    if (options.is_text && options.is_decode)
        return octavo_cli_usage("tokenize (--text --decode): one goes to ids, the other back; give "
                                "one of them");

    octavo_error error;
    octavo_tokenizer *tokenizer = NULL;
    octavo_status status = octavo_tokenizer_open(line.arguments[0], &tokenizer, &error);
    if (status == OCTAVO_OK)
        status = options.is_text ? convert_text(tokenizer, &options, &error)
                                 : convert_lines(tokenizer, &options, &error);
    octavo_tokenizer_destroy(&tokenizer);
    return octavo_cli_exit(status, &error);
}
