/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo logits: the model's raw output, for comparison with references. Rows go to the file as
 * they come, so that a vocabulary of 262144 does not need them all in memory.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/npy.h"
#include "cli/report.h"
#include "cli/rows.h"

#include <string.h>

typedef struct logits_options {
    const char *ids, *out, *hidden;
    bool has_last;
} logits_options;

#define FIELD(name) offsetof(logits_options, name)

static const octavo_option OPTIONS[] = {
    {"--ids", OCTAVO_OPTION_TEXT, "FILE", "one JSON array of token ids; - is standard input",
     FIELD(ids), 0, 0},
    {"--out", OCTAVO_OPTION_TEXT, "FILE.npy",
     "receives float32 [tokens, vocabulary]; - is standard output", FIELD(out), 0, 0},
    {"--hidden", OCTAVO_OPTION_TEXT, "FILE.npy",
     "receives float32 [layers + 1, width] of the final id: what each layer takes, then the state "
     "behind the last norm; without --out only this",
     FIELD(hidden), 0, 0},
    {"--last", OCTAVO_OPTION_FLAG, NULL, "only the final row: [1, vocabulary]", FIELD(has_last), 0,
     0},
};

static octavo_status read_ids(const char *path, octavo_ids *ids, octavo_error *error) {
    octavo_buffer text = {0};
    octavo_status status = octavo_input_read(path, &text, error);
    if (status == OCTAVO_OK) status = octavo_ids_parse(ids, text.data, text.size, path, error);
    if (status == OCTAVO_OK && ids->n == 0)
        status = octavo_fail(error, OCTAVO_ERROR_INVALID,
                             "token ids (%s): an empty list; give at least one id", path);
    octavo_buffer_deinit(&text);
    return status;
}

/* Everything that can be wrong with the ids, before a file is made. */
static octavo_status check_ids(const octavo_model_facts *facts, const octavo_ids *ids,
                               octavo_error *error) {
    if ((int64_t)ids->n > facts->context)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "token ids (%zu): longer than the context of %lld; give fewer or raise "
                           "--context",
                           ids->n, (long long)facts->context);
    for (size_t i = 0; i < ids->n; i++)
        if (ids->data[i] >= facts->vocabulary)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "token ids (item %zu, %ld): not in the vocabulary; give 0 to %ld", i,
                               (long)ids->data[i], (long)facts->vocabulary - 1);
    return OCTAVO_OK;
}

static octavo_status take_rows(void *cookie, size_t first, const float *rows, size_t n_rows,
                               int32_t vocabulary, octavo_error *error) {
    (void)first;
    return octavo_npy_write(cookie, rows, n_rows * (size_t)vocabulary, error);
}

static octavo_status write_all(octavo_sequence *sequence, const octavo_model_facts *facts,
                               const octavo_ids *ids, octavo_npy *npy, octavo_error *error) {
    return octavo_rows_feed(sequence, facts, ids->data, ids->n, take_rows, npy, error);
}

static octavo_status write_last(octavo_sequence *sequence, const octavo_model_facts *facts,
                                const octavo_ids *ids, octavo_npy *npy, octavo_error *error) {
    size_t n = (size_t)facts->vocabulary;
    float *row = octavo_alloc_zero(n, sizeof *row);
    if (!row) return octavo_fail_memory(error, "logits", n * sizeof *row);
    octavo_status status =
        octavo_sequence_feed(sequence, ids->data, ids->n, OCTAVO_LOGITS_LAST, row, NULL, error);
    if (status == OCTAVO_OK) status = octavo_npy_write(npy, row, n, error);
    octavo_free(row);
    return status;
}

static octavo_status write_logits(octavo_model *model, const logits_options *options,
                                  const octavo_ids *ids, octavo_error *error) {
    octavo_npy npy = {0};
    octavo_sequence *sequence = NULL;
    const octavo_model_facts facts = octavo_model_describe(model);
    octavo_status status = check_ids(&facts, ids, error);
    if (status || (status = octavo_sequence_create(model, &sequence, error))) return status;
    status = octavo_npy_open(&npy, options->out, options->has_last ? 1 : (int64_t)ids->n,
                             facts.vocabulary, error);
    if (status == OCTAVO_OK)
        status = options->has_last ? write_last(sequence, &facts, ids, &npy, error)
                                   : write_all(sequence, &facts, ids, &npy, error);
    if (status == OCTAVO_OK) status = octavo_npy_close(&npy, error);
    octavo_npy_discard(&npy);
    octavo_sequence_destroy(&sequence);
    return status;
}

/* [layers + 1, width] of the last id. All before it are fed first, unless the model wants the text
 * whole. */
static octavo_status trace_last(octavo_sequence *sequence, octavo_model *model,
                                const octavo_ids *ids, float *trace, octavo_error *error) {
    const octavo_model_facts facts = octavo_model_describe(model);
    const size_t before = facts.is_encoder ? 0 : ids->n - 1;
    const octavo_step_input input = {.sequence = sequence,
                                     .ids = ids->data + before,
                                     .n_ids = (int)(ids->n - before),
                                     .trace = trace};
    octavo_status status =
        octavo_sequence_feed(sequence, ids->data, before, OCTAVO_LOGITS_NONE, NULL, NULL, error);
    return status ? status : octavo_model_step(model, &input, 1, error);
}

static octavo_status write_hidden(octavo_model *model, const char *path, const octavo_ids *ids,
                                  octavo_error *error) {
    octavo_npy npy = {0};
    octavo_sequence *sequence = NULL;
    const octavo_model_facts facts = octavo_model_describe(model);
    const size_t n = (size_t)(facts.layers + 1) * (size_t)facts.width;
    octavo_status status = check_ids(&facts, ids, error);
    if (status) return status;
    float *trace = octavo_alloc_zero(n, sizeof *trace);
    if (!trace) return octavo_fail_memory(error, "hidden states", n * sizeof *trace);
    if ((status = octavo_sequence_create(model, &sequence, error)) ||
        (status = trace_last(sequence, model, ids, trace, error)) ||
        (status = octavo_npy_open(&npy, path, facts.layers + 1, facts.width, error)) ||
        (status = octavo_npy_write(&npy, trace, n, error)))
        goto cleanup;
    status = octavo_npy_close(&npy, error);
cleanup:
    octavo_npy_discard(&npy);
    octavo_sequence_destroy(&sequence);
    octavo_free(trace);
    return status;
}

static octavo_status load(const char *path, const octavo_model_choice *choice, bool has_logits,
                          octavo_model **model, octavo_error *error) {
    const octavo_model_options options = octavo_model_choice_options(choice);
    return has_logits ? octavo_model_load_writer(path, options, model, error)
                      : octavo_model_load(path, options, model, error);
}

int octavo_command_logits(const octavo_command *command, int argc, char **argv) {
    logits_options options = {0};
    octavo_model_choice choice = octavo_model_choice_defaults();
    const octavo_option_group groups[] = {{"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options},
                                          octavo_model_choice_group(&choice)};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = groups, .n_groups = 2};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;
    if (!options.ids || (!options.out && !options.hidden))
        return octavo_cli_usage("logits (command line): %s is missing; usage: octavo logits MODEL "
                                "--ids FILE --out FILE.npy",
                                options.ids ? "--out FILE.npy" : "--ids FILE");
    if (options.out && options.hidden && strcmp(options.out, options.hidden) == 0)
        return octavo_cli_usage(
            "logits (command line): --out and --hidden would both write %s; give "
            "two names",
            options.out);

    if ((exit_status = octavo_model_choice_check(&choice)) >= 0) return exit_status;
    octavo_error error;
    octavo_ids ids = {0};
    octavo_model *model = NULL;
    octavo_status status = read_ids(options.ids, &ids, &error);
    if (status == OCTAVO_OK)
        status = load(line.arguments[0], &choice, options.out != NULL, &model, &error);
    if (status == OCTAVO_OK && options.out) status = write_logits(model, &options, &ids, &error);
    if (status == OCTAVO_OK && options.hidden)
        status = write_hidden(model, options.hidden, &ids, &error);
    octavo_model_close(&model);
    octavo_ids_deinit(&ids);
    octavo_model_choice_deinit(&choice);
    return octavo_cli_exit(status, &error);
}
