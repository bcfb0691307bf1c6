/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo embed: lines of text to lines of vectors. Lines that are here already go through the model
 * together.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/input.h"
#include "cli/line_reader.h"
#include "cli/model_options.h"
#include "cli/report.h"

#include "octavo/embed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct embed_options {
    int pooling;
    bool normalize;
} embed_options;

#define FIELD(name) offsetof(embed_options, name)

/* In the order of octavo_pooling. */
static const char POOLINGS[] = "auto|mean|cls|last|pooler|none";

static const octavo_option OPTIONS[] = {
    {"--pooling", OCTAVO_OPTION_CHOICE, POOLINGS,
     "how the states of a text become its vector; none: they do not, an array of them a line "
     "(auto: as the model says, else mean of an encoder and last of other models)",
     FIELD(pooling), 0, 0},
    {"--normalize", OCTAVO_OPTION_FLAG, NULL, "vectors of length 1", FIELD(normalize), 0, 0},
};

enum { MAX_LINES = 256 };

/* Lines that go through the model together. */
typedef struct embed_batch {
    octavo_model *model;
    octavo_model_facts facts;
    octavo_embedder *embedder;
    octavo_line_reader reader;
    long number;           /* of the last line read */
    octavo_ids ids, types; /* of all its lines, and as many types */
    size_t end[MAX_LINES]; /* of each line's ids */
    int n_lines;
    bool is_whole; /* a vector for each id, not for each line */
    float *vectors;
    size_t capacity;
    octavo_buffer out;
} embed_batch;

/* ---- a line ---- */

static octavo_status add_ids(embed_batch *batch, const json_t *value, const char *where,
                             octavo_error *error) {
    const json_t *ids = json_is_object(value) ? json_object_get(value, "ids") : value;
    const json_t *types = json_is_object(value) ? json_object_get(value, "types") : NULL;
    char of_types[48];
    octavo_status status = octavo_ids_add(&batch->ids, ids, where, error);
    if (status || !types) return status;
    snprintf(of_types, sizeof of_types, "%s, types", where);
    if ((status = octavo_ids_add(&batch->types, types, of_types, error))) return status;
    if (batch->types.n == batch->ids.n) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "token types (%s): %zu for %zu ids; give one for each", where,
                       json_array_size(types), json_array_size(ids));
}

static octavo_status add_value(embed_batch *batch, const json_t *value, const char *where,
                               octavo_error *error) {
    const unsigned flags = OCTAVO_ENCODE_BEGIN_END | OCTAVO_ENCODE_SPECIAL_TEXT;
    if (json_is_string(value))
        return octavo_ids_encode(&batch->ids, octavo_model_tokenizer(batch->model),
                                 json_string_value(value), json_string_length(value), flags, error);
    if (json_is_array(value) || json_is_object(value)) return add_ids(batch, value, where, error);
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "text (%s): not a JSON string; give one such as \"Hello\", an array of "
                       "token ids, or {\"ids\": [...], \"types\": [...]}",
                       where);
}

/* What the model would refuse, with the line's name. */
static octavo_status check_line(const embed_batch *batch, size_t begin, const char *where,
                                octavo_error *error) {
    const octavo_model_facts *facts = &batch->facts;
    const size_t n = batch->ids.n - begin;
    if (n == 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "text (%s): no token ids; give a text that is not empty", where);
    if (n > (size_t)facts->context)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "text (%s, %zu ids): longer than the context of %lld; shorten it", where,
                           n, (long long)facts->context);
    for (size_t i = 0; i < n; i++) {
        const int32_t id = batch->ids.data[begin + i], type = batch->types.data[begin + i];
        if (id >= facts->vocabulary)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "token ids (%s, item %zu, %ld): not in the vocabulary; give 0 to "
                               "%ld",
                               where, i, (long)id, (long)facts->vocabulary - 1);
        if (type != 0 && type >= facts->token_types)
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "token types (%s, item %zu, %ld): the model has %ld; give smaller "
                               "ones or none",
                               where, i, (long)type, (long)facts->token_types);
    }
    return OCTAVO_OK;
}

static octavo_status add_line(embed_batch *batch, const char *line, size_t length,
                              octavo_error *error) {
    const size_t begin = batch->ids.n;
    json_t *value = NULL;
    char where[32];
    snprintf(where, sizeof where, "line %ld", ++batch->number);
    octavo_status status = octavo_input_json(line, length, where, &value, error);
    if (status == OCTAVO_OK) status = add_value(batch, value, where, error);
    while (status == OCTAVO_OK && batch->types.n < batch->ids.n)
        status = octavo_ids_append(&batch->types, 0, error);
    if (status == OCTAVO_OK) status = check_line(batch, begin, where, error);
    json_decref(value);
    if (status) {
        batch->ids.n = begin;
        return status;
    }
    batch->end[batch->n_lines++] = batch->ids.n;
    return OCTAVO_OK;
}

/* ---- a batch ---- */

/* Waits for the first line only. A line that is bad ends the batch, whose lines before it are good.
 */
static octavo_status read_lines(embed_batch *batch, octavo_error *error) {
    batch->ids.n = batch->types.n = 0;
    batch->n_lines = 0;
    while (batch->n_lines < MAX_LINES && batch->ids.n < (size_t)batch->facts.chunk) {
        const char *line;
        size_t length;
        bool has_line;
        octavo_status status = octavo_line_reader_next(&batch->reader, batch->n_lines == 0, &line,
                                                       &length, &has_line, error);
        if (status || !has_line) return status;
        if ((status = add_line(batch, line, length, error))) return status;
    }
    return OCTAVO_OK;
}

static octavo_status put_vector(octavo_buffer *out, const float *vector, int64_t width,
                                octavo_error *error) {
    octavo_buffer_putc(out, '[');
    for (int64_t i = 0; i < width; i++) {
        if (!isfinite(vector[i]))
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "vector (item %lld): not a finite number, which JSON does not have; "
                               "is the model damaged? --precision exact may help",
                               (long long)i);
        octavo_buffer_printf(out, "%s%.9g", i > 0 ? "," : "", (double)vector[i]);
    }
    octavo_buffer_putc(out, ']');
    return OCTAVO_OK;
}

/* Vectors [n, width] of one line. */
static octavo_status put_line(octavo_buffer *out, const float *vectors, size_t n, int64_t width,
                              bool is_whole, octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    if (is_whole) octavo_buffer_putc(out, '[');
    for (size_t i = 0; i < n && !status; i++) {
        if (i > 0) octavo_buffer_putc(out, ',');
        status = put_vector(out, vectors + (int64_t)i * width, width, error);
    }
    if (is_whole) octavo_buffer_putc(out, ']');
    octavo_buffer_putc(out, '\n');
    return status;
}

static octavo_status reserve_vectors(embed_batch *batch, octavo_error *error) {
    const size_t n = batch->is_whole ? batch->ids.n : (size_t)batch->n_lines;
    size_t floats, bytes;
    if (!octavo_size_mul(n, (size_t)batch->facts.width, &floats) ||
        !octavo_size_mul(floats, sizeof(float), &bytes))
        return octavo_fail_memory(error, "vectors", UINT64_MAX);
    if (floats <= batch->capacity) return OCTAVO_OK;
    float *vectors = octavo_realloc(batch->vectors, bytes);
    if (!vectors) return octavo_fail_memory(error, "vectors", bytes);
    batch->vectors = vectors;
    batch->capacity = floats;
    return OCTAVO_OK;
}

static octavo_status embed_lines(embed_batch *batch, octavo_error *error) {
    const int64_t width = batch->facts.width;
    octavo_embed_text texts[MAX_LINES];
    size_t rows[MAX_LINES], begin = 0, row = 0;
    octavo_status status = reserve_vectors(batch, error);
    if (status) return status;
    for (int i = 0; i < batch->n_lines; i++) {
        texts[i] = (octavo_embed_text){.ids = batch->ids.data + begin,
                                       .types = batch->types.data + begin,
                                       .n_ids = batch->end[i] - begin,
                                       .out = batch->vectors + (int64_t)row * width};
        rows[i] = batch->is_whole ? texts[i].n_ids : 1;
        row += rows[i];
        begin = batch->end[i];
    }
    status = octavo_embedder_run(batch->embedder, texts, (size_t)batch->n_lines, error);
    octavo_buffer_clear(&batch->out);
    for (int i = 0; i < batch->n_lines && !status; i++)
        status = put_line(&batch->out, texts[i].out, rows[i], width, batch->is_whole, error);
    if (status) return status;
    if (batch->out.failed) return octavo_fail_memory(error, "line", batch->out.size);
    fwrite(batch->out.data, 1, batch->out.size, stdout);
    if (fflush(stdout) != 0)
        return octavo_fail(error, OCTAVO_ERROR_IO, "standard output: cannot be written: %s",
                           strerror(errno));
    return OCTAVO_OK;
}

static octavo_status embed_all(octavo_model *model, const embed_options *options,
                               octavo_error *error) {
    embed_batch batch = {.model = model, .facts = octavo_model_describe(model)};
    octavo_embedder_options how;
    octavo_embedder_options_init(&how);
    how.pooling = (octavo_pooling)options->pooling;
    how.normalize = options->normalize;
    batch.is_whole = (how.pooling == OCTAVO_POOLING_AUTO ? batch.facts.pooling : how.pooling) ==
                     OCTAVO_POOLING_NONE;
    octavo_status status = octavo_embedder_create(model, &how, &batch.embedder, error);
    while (status == OCTAVO_OK) {
        octavo_error bad_line;
        octavo_status read = read_lines(&batch, &bad_line);
        if (batch.n_lines > 0) status = embed_lines(&batch, error);
        if (status) break;
        if (read) *error = bad_line;
        status = read;
        if (batch.n_lines == 0) break;
    }
    octavo_embedder_destroy(&batch.embedder);
    octavo_line_reader_deinit(&batch.reader);
    octavo_ids_deinit(&batch.ids);
    octavo_ids_deinit(&batch.types);
    octavo_free(batch.vectors);
    octavo_buffer_deinit(&batch.out);
    return status;
}

int octavo_command_embed(const octavo_command *command, int argc, char **argv) {
    embed_options options = {0};
    octavo_model_choice choice = octavo_model_choice_defaults();
    const octavo_option_group groups[] = {{"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options},
                                          octavo_model_choice_group(&choice)};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = groups, .n_groups = 2};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;

    if ((exit_status = octavo_model_choice_check(&choice)) >= 0) return exit_status;
    octavo_error error;
    octavo_model *model = NULL;
    octavo_status status =
        octavo_model_load(line.arguments[0], octavo_model_choice_options(&choice), &model, &error);
    if (status == OCTAVO_OK) status = embed_all(model, &options, &error);
    octavo_model_close(&model);
    octavo_model_choice_deinit(&choice);
    return octavo_cli_exit(status, &error);
}
