/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo calibrate: windows of the text are fed one after another while the model is measured.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include "octavo/calibrate.h"

#include <stdio.h>

typedef struct calibrate_options {
    const char *out;
    int64_t max_ids;
} calibrate_options;

#define FIELD(name) offsetof(calibrate_options, name)

static const octavo_option OPTIONS[] = {
    {"--out", OCTAVO_OPTION_TEXT, "FILE", "the file to write; needed", FIELD(out), 0, 0},
    {"--ids", OCTAVO_OPTION_INT, "N", "use only the first N token ids of the text (all)",
     FIELD(max_ids), 1, INT32_MAX},
};

static octavo_status feed_windows(octavo_model *model, octavo_ids *ids, size_t context,
                                  octavo_error *error) {
    const octavo_tokenizer *tokenizer = octavo_model_tokenizer(model);
    octavo_sequence *sequence = NULL;
    octavo_progress progress = octavo_progress_start("measuring");
    octavo_status status = octavo_sequence_create(model, &sequence, error);
    for (size_t done = 0; done < ids->n && status == OCTAVO_OK; done += context) {
        const size_t left = ids->n - done, n = left < context ? left : context;
        int32_t *window = ids->data + done;
        if (octavo_tokenizer_adds_bos(tokenizer)) window[0] = octavo_tokenizer_bos(tokenizer);
        octavo_sequence_truncate(sequence, 0);
        status = octavo_sequence_feed(sequence, window, n, OCTAVO_LOGITS_NONE, NULL, NULL, error);
        octavo_progress_update(&progress, done + n, ids->n);
    }
    octavo_terminal_clear_progress();
    octavo_sequence_destroy(&sequence);
    return status;
}

static octavo_status calibrate(octavo_model *model, const char *path,
                               const calibrate_options *options, size_t context,
                               octavo_error *error) {
    const octavo_model_facts facts = octavo_model_describe(model);
    octavo_calibration *calibration = NULL;
    octavo_ids ids = {0};
    octavo_status status = octavo_ids_read(&ids, octavo_model_tokenizer(model), path, error);
    if (options->max_ids && ids.n > (size_t)options->max_ids) ids.n = (size_t)options->max_ids;
    if (status == OCTAVO_OK && ids.n == 0)
        status = octavo_fail(error, OCTAVO_ERROR_INVALID,
                             "text (%s): empty; give one like those that the model is for", path);
    if (status || (status = octavo_calibration_create(model, &calibration, error)) ||
        (status = feed_windows(model, &ids, context, error)) ||
        (status = octavo_calibration_write(calibration, options->out, error)))
        goto cleanup;
    printf("%s: keys and values of %zu tokens, %lld layers, %lld kv heads\n", options->out, ids.n,
           (long long)facts.layers, (long long)facts.kv_heads);
cleanup:
    octavo_calibration_destroy(&calibration);
    octavo_ids_deinit(&ids);
    return status;
}

int octavo_command_calibrate(const octavo_command *command, int argc, char **argv) {
    calibrate_options options = {0};
    octavo_model_choice choice = octavo_model_choice_defaults();
    const octavo_option_group groups[] = {{"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options},
                                          octavo_model_choice_group(&choice)};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = groups, .n_groups = 2};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;
    if (!options.out)
        return octavo_cli_usage("calibrate (command line): --out FILE is missing; usage: octavo "
                                "calibrate MODEL FILE --out FILE");

    if ((exit_status = octavo_model_choice_check(&choice)) >= 0) return exit_status;
    octavo_error error;
    octavo_model *model = NULL;
    octavo_model_options opening = octavo_model_choice_options(&choice);
    /* what an 8-bit or a 16-bit cache does to later layers is not to be measured */
    if (opening.kv_dtype == OCTAVO_KV_DTYPE_AUTO) opening.kv_dtype = OCTAVO_DTYPE_F32;
    octavo_status status = octavo_model_load_windows(line.arguments[0], opening, &model, &error);
    if (status == OCTAVO_OK)
        status = calibrate(model, line.arguments[1], &options,
                           (size_t)octavo_model_describe(model).context, &error);
    octavo_model_close(&model);
    octavo_model_choice_deinit(&choice);
    return octavo_cli_exit(status, &error);
}
