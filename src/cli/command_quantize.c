/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo quantize: a model written anew with weights of another type, and what that costs.
 */
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include "octavo/quantize.h"

#include <stdio.h>
#include <string.h>

typedef struct quantize_options {
    const char *type;
    octavo_texts keep;
    int64_t threads;
    bool is_json;
} quantize_options;

#define FIELD(name) offsetof(quantize_options, name)

static const octavo_option OPTIONS[] = {
    {"--type", OCTAVO_OPTION_TEXT,
     "f32|f16|bf16|q8_0|q6_k|q5_1|q5_0|q4_k|q4_1|q4_0|mxfp4|tq2_0|tq1_0", "of the matrices; needed",
     FIELD(type), 0, 0},
    {"--keep", OCTAVO_OPTION_TEXTS, "REGEX=TYPE",
     "matrices in whose names REGEX (POSIX, extended) is found get TYPE; without =TYPE they stay "
     "as they are; repeatable, the first that fits counts",
     FIELD(keep), 0, 0},
    {"--threads", OCTAVO_OPTION_INT, "N", "threads (physical cores)", FIELD(threads), 1, 1024},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "one JSON document instead of lines", FIELD(is_json), 0,
     0},
};

typedef struct quantize_work {
    const quantize_options *options;
    octavo_progress progress;
    octavo_buffer json; /* the tensors so far */
} quantize_work;

/* ---- the report ---- */

static void print_tensor(const octavo_quantized_tensor *tensor) {
    octavo_terminal_clear_progress();
    printf("%-36s %-6s", tensor->name, tensor->from);
    if (tensor->is_copied)
        printf("           %10.2f MB", (double)tensor->to_bytes * 1e-6);
    else
        printf(" -> %-6s  %10.2f MB  error %.6f, at most %.6f", tensor->to,
               (double)tensor->to_bytes * 1e-6, tensor->rms_error, tensor->max_error);
    if (tensor->note) printf("  (%s)", tensor->note);
    putchar('\n');
    fflush(stdout);
}

static void put_text(octavo_buffer *out, const char *key, const char *text) {
    octavo_buffer_printf(out, "\"%s\":", key);
    if (text)
        octavo_buffer_json_string(out, text, strlen(text));
    else
        octavo_buffer_puts(out, "null");
    octavo_buffer_putc(out, ',');
}

static void put_tensor(octavo_buffer *out, const octavo_quantized_tensor *tensor) {
    octavo_buffer_puts(out, out->size > 0 ? ",{" : "{");
    put_text(out, "name", tensor->name);
    put_text(out, "from", tensor->from);
    put_text(out, "to", tensor->to);
    octavo_buffer_puts(out, "\"shape\":[");
    for (int i = 0; i < tensor->n_dims; i++)
        octavo_buffer_printf(out, "%s%llu", i > 0 ? "," : "",
                             (unsigned long long)tensor->extent[i]);
    octavo_buffer_puts(out, "],");
    put_text(out, "note", tensor->note);
    octavo_buffer_printf(out,
                         "\"from_bytes\":%llu,\"to_bytes\":%llu,\"copied\":%s,"
                         "\"rms_error\":%.9g,\"max_error\":%.9g}",
                         (unsigned long long)tensor->from_bytes,
                         (unsigned long long)tensor->to_bytes, tensor->is_copied ? "true" : "false",
                         tensor->rms_error, tensor->max_error);
}

static void take_tensor(void *cookie, const octavo_quantized_tensor *tensor) {
    quantize_work *work = cookie;
    if (work->options->is_json)
        put_tensor(&work->json, tensor);
    else
        print_tensor(tensor);
}

static int take_progress(void *cookie, uint64_t done, uint64_t total) {
    quantize_work *work = cookie;
    octavo_progress_update(&work->progress, done, total);
    return *octavo_interrupt_flag();
}

static octavo_status print_json(quantize_work *work, const char *const *arguments,
                                const octavo_quantize_total *total, octavo_error *error) {
    octavo_buffer out = {0};
    octavo_status status = OCTAVO_OK;
    octavo_buffer_putc(&out, '{');
    put_text(&out, "in", arguments[0]);
    put_text(&out, "out", arguments[1]);
    put_text(&out, "type", work->options->type);
    octavo_buffer_puts(&out, "\"tensors\":[");
    if (work->json.size > 0) octavo_buffer_append(&out, work->json.data, work->json.size);
    octavo_buffer_printf(&out,
                         "],\"total\":{\"tensors\":%llu,\"converted\":%llu,\"requantized\":%llu,"
                         "\"from_bytes\":%llu,\"to_bytes\":%llu,\"file_bytes\":%llu,"
                         "\"rms_error\":%.9g,\"max_error\":%.9g}}\n",
                         (unsigned long long)total->n_tensors,
                         (unsigned long long)total->n_converted,
                         (unsigned long long)total->n_requantized,
                         (unsigned long long)total->from_bytes, (unsigned long long)total->to_bytes,
                         (unsigned long long)total->file_bytes, total->rms_error, total->max_error);
    if (out.failed || work->json.failed)
        status = octavo_fail_memory(error, "report", out.size);
    else
        fwrite(out.data, 1, out.size, stdout);
    octavo_buffer_deinit(&out);
    return status;
}

static void print_total(const octavo_quantize_total *total) {
    printf("%llu tensors, %llu converted: %.2f MB -> %.2f MB, error %.6f, at most %.6f\n",
           (unsigned long long)total->n_tensors, (unsigned long long)total->n_converted,
           (double)total->from_bytes * 1e-6, (double)total->to_bytes * 1e-6, total->rms_error,
           total->max_error);
}

static void warn_requantized(const octavo_quantize_total *total) {
    char line[160];
    const octavo_log log = octavo_cli_log(OCTAVO_LOG_WARN);
    if (total->n_requantized == 0) return;
    snprintf(line, sizeof line,
             "%llu tensors were quantised before; their errors come on top of those they had",
             (unsigned long long)total->n_requantized);
    log.write(log.cookie, OCTAVO_LOG_WARN, line);
}

/* ---- the command ---- */

static octavo_status quantize(const quantize_options *options, const char *const *arguments,
                              octavo_error *error) {
    octavo_quantize_options how;
    octavo_quantize_total total;
    quantize_work work = {.options = options, .progress = octavo_progress_start("quantising")};
    octavo_quantize_options_init(&how);
    how.type = options->type;
    how.keep = options->keep.items;
    how.n_keep = options->keep.n;
    how.threads = (int)options->threads;
    how.report = take_tensor;
    how.progress = take_progress;
    how.cookie = &work;
    octavo_interrupt_catch();
    octavo_status status = octavo_quantize(arguments[0], arguments[1], &how, &total, error);
    octavo_interrupt_release();
    octavo_terminal_clear_progress();
    if (status == OCTAVO_OK) {
        warn_requantized(&total);
        if (options->is_json)
            status = print_json(&work, arguments, &total, error);
        else
            print_total(&total);
    }
    octavo_buffer_deinit(&work.json);
    return status;
}

int octavo_command_quantize(const octavo_command *command, int argc, char **argv) {
    quantize_options options = {0};
    const octavo_option_group group = {"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = &group, .n_groups = 1};
    octavo_error error;
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status < 0 && !options.type)
        exit_status = octavo_cli_usage("quantize (command line): --type TYPE is missing; usage: "
                                       "octavo quantize IN OUT --type TYPE");
    if (exit_status < 0) {
        octavo_status status = quantize(&options, line.arguments, &error);
        /* types, patterns and names that make no sense */
        exit_status = status == OCTAVO_ERROR_INVALID ? octavo_cli_usage("%s", error.message)
                                                     : octavo_cli_exit(status, &error);
    }
    octavo_texts_deinit(&options.keep);
    if (*octavo_interrupt_flag()) {
        fflush(stdout);
        octavo_interrupt_die();
    }
    return exit_status;
}
