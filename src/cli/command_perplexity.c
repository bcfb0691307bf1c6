/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo perplexity: windows of the text are fed one after another, and each id but the first of a
 * window is judged by the logits before it.
 */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/rows.h"
#include "cli/terminal.h"

#include "octavo/sampler.h"

#include <math.h>
#include <stdio.h>

typedef struct perplexity_options {
    int64_t max_ids, max_windows;
    bool is_json;
} perplexity_options;

#define FIELD(name) offsetof(perplexity_options, name)

static const octavo_option OPTIONS[] = {
    {"--ids", OCTAVO_OPTION_INT, "N", "use only the first N token ids of the text (all)",
     FIELD(max_ids), 1, INT32_MAX},
    {"--windows", OCTAVO_OPTION_INT, "N", "use only the first N windows (all)", FIELD(max_windows),
     1, INT32_MAX},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "one JSON document", FIELD(is_json), 0, 0},
};

/* Negative log likelihoods, summed. */
typedef struct nll_sum {
    double sum, squares;
    int64_t n;
} nll_sum;

static void add_nll(nll_sum *s, double nll) {
    s->sum += nll;
    s->squares += nll * nll;
    s->n++;
}

static double perplexity_of(const nll_sum *s) {
    return exp(s->sum / (double)s->n);
}

/* Standard error of the perplexity: that of the mean, carried through the exponential. */
static double error_of(const nll_sum *s) {
    double mean = s->sum / (double)s->n;
    if (s->n < 2) return 0.0;
    double variance = (s->squares / (double)s->n - mean * mean) * (double)s->n / (double)(s->n - 1);
    return exp(mean) * sqrt(fmax(variance, 0.0) / (double)s->n);
}

typedef struct evaluation {
    const int32_t *window; /* [context] */
    size_t context;
    nll_sum all, second_half;
} evaluation;

static octavo_status take_rows(void *cookie, size_t first, const float *rows, size_t n_rows,
                               int32_t vocabulary, octavo_error *error) {
    evaluation *e = cookie;
    (void)error;
    for (size_t i = 0; i < n_rows; i++) {
        size_t predicted = first + i + 1;
        if (predicted >= e->context) break;
        double nll =
            -octavo_logprob_of(rows + i * (size_t)vocabulary, vocabulary, e->window[predicted]);
        add_nll(&e->all, nll);
        if (predicted >= e->context / 2) add_nll(&e->second_half, nll);
    }
    return OCTAVO_OK;
}

static octavo_status evaluate(octavo_model *model, const octavo_ids *ids, size_t n_windows,
                              evaluation *e, octavo_error *error) {
    const octavo_model_facts facts = octavo_model_describe(model);
    const octavo_tokenizer *tokenizer = octavo_model_tokenizer(model);
    octavo_sequence *sequence = NULL;
    octavo_progress progress = octavo_progress_start("measuring");
    octavo_status status = octavo_sequence_create(model, &sequence, error);
    if (status) return status;
    for (size_t w = 0; w < n_windows && status == OCTAVO_OK; w++) {
        int32_t *window = ids->data + w * e->context;
        if (octavo_tokenizer_adds_bos(tokenizer)) window[0] = octavo_tokenizer_bos(tokenizer);
        e->window = window;
        octavo_sequence_truncate(sequence, 0);
        status = octavo_rows_feed(sequence, &facts, window, e->context - 1, take_rows, e, error);
        octavo_progress_update(&progress, w + 1, n_windows);
    }
    octavo_terminal_clear_progress();
    octavo_sequence_destroy(&sequence);
    return status;
}

static void print_result(const evaluation *e, size_t n_windows, double seconds, bool is_json) {
    double speed = (double)(n_windows * e->context) / seconds;
    if (is_json)
        printf("{\"perplexity\":%.9g,\"error\":%.9g,\"mean_nll\":%.9g,\"predicted\":%lld,"
               "\"second_half\":{\"perplexity\":%.9g,\"error\":%.9g,\"predicted\":%lld},"
               "\"context\":%zu,\"windows\":%zu,\"tokens\":%zu,\"seconds\":%.6g,"
               "\"tokens_per_s\":%.6g}\n",
               perplexity_of(&e->all), error_of(&e->all), e->all.sum / (double)e->all.n,
               (long long)e->all.n, perplexity_of(&e->second_half), error_of(&e->second_half),
               (long long)e->second_half.n, e->context, n_windows, n_windows * e->context, seconds,
               speed);
    else
        printf("perplexity %.4f +- %.4f (%lld tokens predicted, %zu windows of %zu), %.1f "
               "tokens/s\n",
               perplexity_of(&e->all), error_of(&e->all), (long long)e->all.n, n_windows,
               e->context, speed);
}

static octavo_status measure(octavo_model *model, const char *path,
                             const perplexity_options *options, size_t context,
                             octavo_error *error) {
    octavo_ids ids = {0};
    octavo_status status = octavo_ids_read(&ids, octavo_model_tokenizer(model), path, error);
    evaluation e = {.context = context};
    size_t n = ids.n;
    if (options->max_ids && n > (size_t)options->max_ids) n = (size_t)options->max_ids;
    size_t n_windows = n / context;
    if (options->max_windows && n_windows > (size_t)options->max_windows)
        n_windows = (size_t)options->max_windows;
    if (status == OCTAVO_OK && n_windows == 0)
        status = octavo_fail(error, OCTAVO_ERROR_INVALID,
                             "text (%s, %zu tokens): shorter than one window of %zu; give a longer "
                             "one or lower --context",
                             path, n, context);
    if (status == OCTAVO_OK) {
        double start = octavo_clock_seconds();
        status = evaluate(model, &ids, n_windows, &e, error);
        if (status == OCTAVO_OK && !isfinite(e.all.sum))
            status = octavo_fail(error, OCTAVO_ERROR_FORMAT,
                                 "perplexity (%s): the model's logits are not all numbers; its "
                                 "file is damaged",
                                 path);
        if (status == OCTAVO_OK)
            print_result(&e, n_windows, octavo_clock_seconds() - start, options->is_json);
    }
    octavo_ids_deinit(&ids);
    return status;
}

int octavo_command_perplexity(const octavo_command *command, int argc, char **argv) {
    perplexity_options options = {0};
    octavo_model_choice choice = octavo_model_choice_defaults();
    const octavo_option_group groups[] = {{"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options},
                                          octavo_model_choice_group(&choice)};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = groups, .n_groups = 2};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;
    if (choice.context > 0 && choice.context < 4)
        return octavo_cli_usage("option --context (%lld): too short to predict anything; give at "
                                "least 4",
                                (long long)choice.context);

    if ((exit_status = octavo_model_choice_check(&choice)) >= 0) return exit_status;
    octavo_error error;
    octavo_model *model = NULL;
    octavo_status status = octavo_model_load_windows(
        line.arguments[0], octavo_model_choice_options(&choice), &model, &error);
    if (status == OCTAVO_OK)
        status = measure(model, line.arguments[1], &options,
                         (size_t)octavo_model_describe(model).context, &error);
    octavo_model_close(&model);
    octavo_model_choice_deinit(&choice);
    return octavo_cli_exit(status, &error);
}
