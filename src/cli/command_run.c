/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo run: one answer, or a chat (run_chat.c).
 */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_MAX_TOKENS = 512 };

#define FIELD(name) offsetof(octavo_run_choice, name)

static const octavo_option OPTIONS[] = {
    {"-p", OCTAVO_OPTION_TEXT, "TEXT", "the prompt", FIELD(prompt), 0, 0},
    {"-f", OCTAVO_OPTION_TEXT, "FILE",
     "the prompt is in this file; without -p and -f it comes from standard input", FIELD(file), 0,
     0},
    {"--system", OCTAVO_OPTION_TEXT, "TEXT", "the system message", FIELD(system), 0, 0},
    {"--raw", OCTAVO_OPTION_FLAG, NULL,
     "no chat template: continue the text itself, in which special tokens are recognised",
     FIELD(is_raw), 0, 0},
    {"-n", OCTAVO_OPTION_INT, "N",
     "most tokens of an answer; 0: as many as the context holds (512; in a chat 0)",
     FIELD(max_tokens), 0, INT32_MAX},
    {"--temperature", OCTAVO_OPTION_REAL, "X", "0: always the most likely token (0)",
     FIELD(temperature), 0, 100},
    {"--top-k", OCTAVO_OPTION_INT, "K", "only the K most likely tokens; 0: off (0)", FIELD(top_k),
     0, INT32_MAX},
    {"--top-p", OCTAVO_OPTION_REAL, "P",
     "only the most likely tokens that together reach P; 1: off (1)", FIELD(top_p), 1e-6, 1},
    {"--min-p", OCTAVO_OPTION_REAL, "P",
     "only tokens of at least P times the likeliest one's probability; 0: off (0)", FIELD(min_p), 0,
     1},
    {"--repeat-penalty", OCTAVO_OPTION_REAL, "X",
     "makes the last 64 tokens less likely to come again; 1: off (1)", FIELD(repeat_penalty), 1e-6,
     100},
    {"--seed", OCTAVO_OPTION_SEED, "N", "of the random numbers (0)", FIELD(seed), 0, 0},
    {"--stop", OCTAVO_OPTION_TEXTS, "TEXT", "end the answer in front of this text; may be repeated",
     FIELD(stops), 0, 0},
    {"--ignore-eos", OCTAVO_OPTION_FLAG, NULL, "go on where the model would end",
     FIELD(ignores_end), 0, 0},
    {"--logprobs", OCTAVO_OPTION_INT, "K",
     "with --json: the log probability of each token and of the K most likely ones",
     FIELD(logprobs), 0, 1000},
    {"--json", OCTAVO_OPTION_FLAG, NULL,
     "one JSON document: ids, text, finish reason, timings, log probabilities", FIELD(is_json), 0,
     0},
};

static octavo_run_choice default_choice(void) {
    return (octavo_run_choice){
        .max_tokens = -1, .top_p = 1.0, .repeat_penalty = 1.0, .logprobs = -1};
}

/* ---- one answer to standard output ---- */

/* Text of a model must not steer a terminal: of the control characters only line ends and tabs pass
 * there. */
static bool emit_text(void *cookie, const char *text, size_t length) {
    const bool *is_terminal = cookie;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!*is_terminal || (c >= ' ' && c != 0x7f) || c == '\n' || c == '\t') putchar(c);
    }
    return fflush(stdout) == 0;
}

octavo_answer_options octavo_run_answer_options(const octavo_run_choice *choice,
                                                bool has_template) {
    static bool is_terminal;
    octavo_answer_options options = {
        .max_tokens = choice->max_tokens > 0 ? choice->max_tokens : 0,
        .stops = &choice->stops,
        .logprobs = choice->logprobs,
        .ignores_end = choice->ignores_end,
        .decode_flags = OCTAVO_DECODE_SKIP_SPECIAL | (has_template ? 0 : OCTAVO_DECODE_CONTINUE),
        .cancel = octavo_interrupt_flag(),
    };
    octavo_sampling_init(&options.sampling);
    options.sampling.temperature = (float)choice->temperature;
    options.sampling.top_k = (int)choice->top_k;
    options.sampling.top_p = (float)choice->top_p;
    options.sampling.min_p = (float)choice->min_p;
    options.sampling.repeat_penalty = (float)choice->repeat_penalty;
    options.sampling.seed = choice->seed;
    is_terminal = isatty(STDOUT_FILENO);
    if (!choice->is_json) {
        options.emit = emit_text;
        options.cookie = &is_terminal;
    }
    return options;
}

static double per_second(size_t n, double seconds) {
    return seconds > 0.0 ? (double)n / seconds : 0.0;
}

void octavo_run_log_speed(const octavo_log *log, const octavo_answer *answer) {
    size_t fed = answer->prompt_tokens - answer->reused_tokens;
    octavo_log_write(log, OCTAVO_LOG_INFO,
                     "prompt: %zu tokens, %zu of them known, %.1f tokens/s; answer: %zu tokens, "
                     "%.1f tokens/s",
                     answer->prompt_tokens, answer->reused_tokens,
                     per_second(fed, answer->prompt_s), answer->ids.n,
                     per_second(answer->ids.n, answer->generate_s));
}

static octavo_status print_json(const octavo_ids *prompt, const octavo_answer *answer,
                                double load_s, bool has_logprobs, octavo_error *error) {
    octavo_buffer out = {0};
    octavo_status status = OCTAVO_OK;
    octavo_buffer_puts(&out, "{\"prompt_ids\":");
    octavo_ids_print(prompt, &out);
    octavo_buffer_puts(&out, ",\"ids\":");
    octavo_ids_print(&answer->ids, &out);
    octavo_buffer_puts(&out, ",\"text\":");
    octavo_buffer_json_string(&out, answer->text.data, answer->text.size);
    octavo_buffer_printf(&out,
                         ",\"finish_reason\":\"%s\",\"stop\":", octavo_finish_name(answer->finish));
    if (answer->stop)
        octavo_buffer_json_string(&out, answer->stop, strlen(answer->stop));
    else
        octavo_buffer_puts(&out, "null");
    octavo_buffer_printf(&out,
                         ",\"timings\":{\"load_s\":%.6g,\"prompt_tokens\":%zu,\"prompt_s\":%.6g,"
                         "\"prompt_tokens_per_s\":%.6g,\"generated_tokens\":%zu,"
                         "\"generate_s\":%.6g,\"generate_tokens_per_s\":%.6g}",
                         load_s, answer->prompt_tokens, answer->prompt_s,
                         per_second(answer->prompt_tokens, answer->prompt_s), answer->ids.n,
                         answer->generate_s, per_second(answer->ids.n, answer->generate_s));
    if (has_logprobs) {
        octavo_buffer_puts(&out, ",\"logprobs\":[");
        octavo_buffer_append(&out, answer->logprobs.data, answer->logprobs.size);
        octavo_buffer_puts(&out, "]");
    }
    octavo_buffer_puts(&out, "}\n");
    if (out.failed)
        status = octavo_fail_memory(error, "JSON", out.size);
    else
        fwrite(out.data, 1, out.size, stdout);
    octavo_buffer_deinit(&out);
    return status;
}

static octavo_status answer_once(octavo_session *session, octavo_conversation *conversation,
                                 const octavo_run_choice *choice, const octavo_buffer *text,
                                 double load_s, const octavo_log *log, octavo_error *error) {
    octavo_ids prompt = {0};
    octavo_answer answer = {0};
    const octavo_answer_options options =
        octavo_run_answer_options(choice, conversation->tmpl != NULL);
    octavo_status status =
        octavo_conversation_add(conversation, "user", text->data, text->size, error);
    if (status == OCTAVO_OK) status = octavo_conversation_prompt(conversation, &prompt, error);
    octavo_interrupt_catch();
    if (status == OCTAVO_OK)
        status = octavo_session_answer(session, &prompt, &options, &answer, error);
    octavo_interrupt_release();
    if (status == OCTAVO_OK && choice->is_json)
        status = print_json(&prompt, &answer, load_s, choice->logprobs >= 0, error);
    else if (answer.text.size > 0 || answer.finish == OCTAVO_FINISH_CANCELLED)
        putchar('\n');
    if (status == OCTAVO_OK) octavo_run_log_speed(log, &answer);
    octavo_answer_deinit(&answer);
    octavo_ids_deinit(&prompt);
    return status;
}

/* ---- the command ---- */

/* The prompt of -p, -f or standard input. The last line end of a file is the file's, not the
 * prompt's. */
static octavo_status read_prompt(const octavo_run_choice *choice, octavo_buffer *text,
                                 octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    octavo_buffer_puts(text, choice->prompt ? choice->prompt : "");
    if (!choice->prompt) status = octavo_input_read(choice->file ? choice->file : "-", text, error);
    if (status) return status;
    if (!choice->prompt && text->size > 0 && text->data[text->size - 1] == '\n')
        text->data[--text->size] = '\0';
    if (!choice->prompt && text->size > 0 && text->data[text->size - 1] == '\r')
        text->data[--text->size] = '\0';
    if (text->failed) return octavo_fail_memory(error, "prompt", text->size);
    if (text->size == 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "prompt (%s): empty; give some text with -p TEXT, -f FILE or on "
                           "standard input",
                           choice->prompt ? "-p"
                           : choice->file ? choice->file
                                          : "standard input");
    return OCTAVO_OK;
}

static int check_choice(const octavo_run_choice *choice) {
    if (choice->prompt && choice->file)
        return octavo_cli_usage("run (-p -f): two prompts; give one of them");
    if (choice->is_raw && choice->system)
        return octavo_cli_usage("run (--raw --system): without a template there is no system "
                                "message; make it part of the prompt");
    if (choice->logprobs >= 0 && !choice->is_json)
        return octavo_cli_usage("option --logprobs: part of the JSON document; give --json too");
    for (size_t i = 0; i < choice->stops.n; i++)
        if (!choice->stops.items[i][0])
            return octavo_cli_usage("option --stop: an empty text is everywhere; give some text");
    return -1;
}

static octavo_status run_model(const char *path, octavo_run_choice *choice,
                               const octavo_model_choice *model_choice, octavo_error *error) {
    const octavo_log log = octavo_model_choice_log(model_choice);
    const bool is_chat = !choice->prompt && !choice->file && !choice->is_json &&
                         isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    octavo_model *model = NULL;
    octavo_session session = {0};
    octavo_conversation conversation = {0};
    octavo_buffer text = {0};
    octavo_status status = is_chat || octavo_model_choice_follows(model_choice)
                               ? OCTAVO_OK
                               : read_prompt(choice, &text, error);
    double start = octavo_clock_seconds();
    if (choice->max_tokens < 0) choice->max_tokens = is_chat ? 0 : DEFAULT_MAX_TOKENS;
    if (status == OCTAVO_OK)
        status = octavo_model_load_writer(path, octavo_model_choice_options(model_choice), &model,
                                          error);
    double load_s = octavo_clock_seconds() - start;
    if (status == OCTAVO_OK) status = octavo_session_init(&session, model, error);
    if (status == OCTAVO_OK)
        status = octavo_conversation_init(&conversation, model, choice->is_raw, choice->system,
                                          &log, error);
    if (status == OCTAVO_OK)
        status = is_chat ? octavo_run_chat(&session, &conversation, choice, &log, error)
                         : answer_once(&session, &conversation, choice, &text, load_s, &log, error);
    octavo_conversation_deinit(&conversation);
    octavo_session_deinit(&session);
    octavo_model_close(&model);
    octavo_buffer_deinit(&text);
    return status;
}

int octavo_command_run(const octavo_command *command, int argc, char **argv) {
    octavo_run_choice choice = default_choice();
    octavo_model_choice model_choice = octavo_model_choice_defaults();
    const octavo_option_group groups[] = {{"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &choice},
                                          octavo_model_choice_group(&model_choice)};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = groups, .n_groups = 2};
    octavo_error error;
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status < 0) exit_status = octavo_model_choice_check(&model_choice);
    if (exit_status < 0) exit_status = check_choice(&choice);
    if (exit_status < 0)
        exit_status =
            octavo_cli_exit(run_model(line.arguments[0], &choice, &model_choice, &error), &error);
    octavo_texts_deinit(&choice.stops);
    octavo_model_choice_deinit(&model_choice);
    /* A shell that runs us in a loop shall see that the person wanted to stop. */
    if (*octavo_interrupt_flag()) {
        fflush(stdout);
        octavo_interrupt_die();
    }
    return exit_status;
}
