/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/embed.h: texts are packed into steps in their order, each by itself where it is longer
 * than a step, and what a step gives is pooled before the next. Sums go by ascending position in
 * doubles, so that neither steps nor company matter.
 */
#include "octavo/embed.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/model.h"

#include <math.h>
#include <string.h>

struct octavo_embedder {
    octavo_model *model;
    octavo_pooling pooling;
    bool normalize;
    octavo_sequence **sequences; /* [max_sequences] */
    octavo_step_input *inputs;   /* [max_sequences] of the step at hand */
    float *rows;                 /* MEAN: [chunk, width] hidden states of a step */
    double *sum;                 /* MEAN: [width] */
};

void octavo_embedder_options_init(octavo_embedder_options *options) {
    *options = (octavo_embedder_options){.size = sizeof *options, .pooling = OCTAVO_POOLING_AUTO};
}

static octavo_status choose_pooling(const octavo_model *model, octavo_pooling *pooling,
                                    octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    if (*pooling == OCTAVO_POOLING_AUTO) *pooling = config->pooling;
    if (*pooling == OCTAVO_POOLING_AUTO)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "pooling (of the model): its own way to a vector is not in this version "
                           "(another pooling, or layers behind it); give --pooling mean, cls or "
                           "last");
    if (*pooling == OCTAVO_POOLING_POOLER && !config->has_pooler)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "pooling (pooler): \"%s\" has no pooler here; give mean, cls or last",
                           config->architecture);
    return OCTAVO_OK;
}

static octavo_status create_arrays(octavo_embedder *embedder, octavo_error *error) {
    const octavo_model *model = embedder->model;
    const size_t n = (size_t)model->max_sequences, width = (size_t)model->network.config.d;
    embedder->sequences = octavo_alloc_zero(n, sizeof(octavo_sequence *));
    embedder->inputs = octavo_alloc_zero(n, sizeof *embedder->inputs);
    if (!embedder->sequences || !embedder->inputs)
        return octavo_fail_memory(error, "embedder", n * sizeof *embedder->inputs);
    for (size_t i = 0; i < n; i++) {
        octavo_status status =
            octavo_sequence_create(embedder->model, &embedder->sequences[i], error);
        if (status) return status;
    }
    if (embedder->pooling != OCTAVO_POOLING_MEAN) return OCTAVO_OK;
    embedder->rows = octavo_alloc_zero((size_t)model->chunk * width, sizeof(float));
    embedder->sum = octavo_alloc_zero(width, sizeof *embedder->sum);
    return embedder->rows && embedder->sum
               ? OCTAVO_OK
               : octavo_fail_memory(error, "hidden states",
                                    (uint64_t)model->chunk * width * sizeof(float));
}

octavo_status octavo_embedder_create(octavo_model *model, const octavo_embedder_options *given,
                                     octavo_embedder **out, octavo_error *error) {
    octavo_embedder_options options;
    octavo_embedder_options_init(&options);
    if (given) options = *given;
    if (!model || !out || options.size != sizeof options || options.pooling < OCTAVO_POOLING_AUTO ||
        options.pooling > OCTAVO_POOLING_NONE)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_embedder_create (arguments): a model, a place for the embedder "
                           "and options of this version are needed");
    octavo_status status = choose_pooling(model, &options.pooling, error);
    if (status) return status;
    octavo_embedder *embedder = octavo_alloc_zero(1, sizeof *embedder);
    if (!embedder) return octavo_fail_memory(error, "embedder", sizeof *embedder);
    embedder->model = model;
    embedder->pooling = options.pooling;
    embedder->normalize = options.normalize;
    if ((status = create_arrays(embedder, error)))
        octavo_embedder_destroy(&embedder);
    else
        *out = embedder;
    return status;
}

void octavo_embedder_destroy(octavo_embedder **handle) {
    if (!handle || !*handle) return;
    octavo_embedder *embedder = *handle;
    for (int i = 0; embedder->sequences && i < embedder->model->max_sequences; i++)
        octavo_sequence_destroy(&embedder->sequences[i]);
    octavo_free(embedder->sequences);
    octavo_free(embedder->inputs);
    octavo_free(embedder->rows);
    octavo_free(embedder->sum);
    octavo_free(embedder);
    *handle = NULL;
}

/* ---- what a step gives ---- */

/* Ids [done, done + n) of a text; `room` is where its rows go for a mean. */
static octavo_step_input input_of(const octavo_embedder *embedder, octavo_sequence *sequence,
                                  const octavo_embed_text *text, size_t done, int n, float *room) {
    const bool is_last = done + (size_t)n == text->n_ids;
    const int64_t width = embedder->model->network.config.d;
    octavo_step_input input = {.sequence = sequence,
                               .ids = text->ids + done,
                               .types = text->types ? text->types + done : NULL,
                               .n_ids = n};
    switch (embedder->pooling) {
    case OCTAVO_POOLING_MEAN:
        input.want = OCTAVO_LOGITS_ALL;
        input.hidden = room;
        break;
    case OCTAVO_POOLING_NONE:
        input.want = OCTAVO_LOGITS_ALL;
        input.hidden = text->out + (int64_t)done * width;
        break;
    case OCTAVO_POOLING_CLS:
        if (done == 0) input.want = OCTAVO_LOGITS_FIRST;
        input.hidden = text->out;
        break;
    case OCTAVO_POOLING_POOLER:
        if (done == 0) input.want = OCTAVO_LOGITS_FIRST;
        input.pooled = text->out;
        break;
    case OCTAVO_POOLING_AUTO:
    case OCTAVO_POOLING_LAST:
        if (is_last) input.want = OCTAVO_LOGITS_LAST;
        input.hidden = text->out;
        break;
    }
    return input;
}

static void add_rows(double *sum, const float *rows, int n, int64_t width) {
    for (int t = 0; t < n; t++)
        for (int64_t i = 0; i < width; i++)
            sum[i] += (double)rows[t * width + i];
}

static void normalize(float *row, int64_t width) {
    double squares = 0.0;
    for (int64_t i = 0; i < width; i++)
        squares += (double)row[i] * (double)row[i];
    if (!(squares > 0.0)) return;
    const double scale = 1.0 / sqrt(squares);
    for (int64_t i = 0; i < width; i++)
        row[i] = (float)((double)row[i] * scale);
}

/* The text's last ids are through, and their rows added up. */
static void finish(octavo_embedder *embedder, const octavo_embed_text *text) {
    const int64_t width = embedder->model->network.config.d;
    const size_t rows = embedder->pooling == OCTAVO_POOLING_NONE ? text->n_ids : 1;
    if (embedder->pooling == OCTAVO_POOLING_MEAN)
        for (int64_t i = 0; i < width; i++)
            text->out[i] = (float)(embedder->sum[i] / (double)text->n_ids);
    for (size_t i = 0; embedder->normalize && i < rows; i++)
        normalize(text->out + (int64_t)i * width, width);
}

/* ---- steps ---- */

/* Failures of a step name its inputs; these name the text. */
static octavo_status check_text(const octavo_embedder *embedder, const octavo_embed_text *text,
                                size_t index, octavo_error *error) {
    const octavo_model *model = embedder->model;
    if (!text->ids || text->n_ids == 0 || !text->out)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "text %zu (of no ids): at least one, and a place for the vector, are "
                           "needed",
                           index);
    if (text->n_ids > (size_t)model->context)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "text %zu (%zu ids): longer than the context of %lld; shorten it", index,
                           text->n_ids, (long long)model->context);
    return OCTAVO_OK;
}

/* A text in as many steps as it takes. Its length counts from the first on. */
static octavo_status run_long(octavo_embedder *embedder, const octavo_embed_text *text,
                              octavo_error *error) {
    octavo_model *model = embedder->model;
    octavo_sequence *sequence = embedder->sequences[0];
    const int64_t width = model->network.config.d;
    octavo_status status = OCTAVO_OK;
    if (embedder->sum) memset(embedder->sum, 0, (size_t)width * sizeof *embedder->sum);
    sequence->target = (int64_t)text->n_ids;
    for (size_t done = 0; done < text->n_ids && !status;) {
        const size_t left = text->n_ids - done;
        const int n = left < (size_t)model->chunk ? (int)left : model->chunk;
        const octavo_step_input input = input_of(embedder, sequence, text, done, n, embedder->rows);
        status = octavo_model_step(model, &input, 1, error);
        if (!status && embedder->sum) add_rows(embedder->sum, embedder->rows, n, width);
        done += (size_t)n;
    }
    sequence->target = 0;
    octavo_sequence_truncate(sequence, 0);
    if (status == OCTAVO_OK) finish(embedder, text);
    return status;
}

/* Pages that the first n texts need in the group of the last of them. */
static int64_t pages_needed(const octavo_embedder *embedder, const octavo_embed_text *texts,
                            size_t n) {
    const int group = embedder->sequences[n - 1]->group;
    int64_t pages = 0;
    for (size_t i = 0; i < n; i++)
        if (embedder->sequences[i]->group == group)
            pages +=
                octavo_block_table_need(&embedder->sequences[i]->table, (int64_t)texts[i].n_ids);
    return pages;
}

/* So many of the texts fit a step; at least 1. */
static size_t count_fitting(const octavo_embedder *embedder, const octavo_embed_text *texts,
                            size_t n_texts) {
    const octavo_model *model = embedder->model;
    int64_t ids = 0;
    size_t n = 0;
    for (; n < n_texts && n < (size_t)model->max_sequences; n++) {
        const octavo_embed_text *text = &texts[n];
        if (text->n_ids > (size_t)(model->chunk - ids)) break;
        ids += (int64_t)text->n_ids;
        if (pages_needed(embedder, texts, n + 1) >
            octavo_page_pool_free_pages(model->pages[embedder->sequences[n]->group]))
            break;
    }
    return n > 0 ? n : 1;
}

static octavo_status run_together(octavo_embedder *embedder, const octavo_embed_text *texts,
                                  size_t n, octavo_error *error) {
    const int64_t width = embedder->model->network.config.d;
    int64_t row = 0;
    for (size_t i = 0; i < n; i++) {
        float *room = embedder->rows ? embedder->rows + row * width : NULL;
        embedder->inputs[i] =
            input_of(embedder, embedder->sequences[i], &texts[i], 0, (int)texts[i].n_ids, room);
        row += (int64_t)texts[i].n_ids;
    }
    octavo_status status = octavo_model_step(embedder->model, embedder->inputs, (int)n, error);
    for (size_t i = 0; i < n; i++) {
        octavo_sequence_truncate(embedder->sequences[i], 0);
        if (status) continue;
        if (embedder->sum) {
            memset(embedder->sum, 0, (size_t)width * sizeof *embedder->sum);
            add_rows(embedder->sum, embedder->inputs[i].hidden, embedder->inputs[i].n_ids, width);
        }
        finish(embedder, &texts[i]);
    }
    return status;
}

octavo_status octavo_embedder_run(octavo_embedder *embedder, const octavo_embed_text *texts,
                                  size_t n_texts, octavo_error *error) {
    octavo_status status;
    for (size_t i = 0; i < n_texts; i++)
        if ((status = check_text(embedder, &texts[i], i, error))) return status;
    for (size_t done = 0; done < n_texts;) {
        const octavo_embed_text *text = &texts[done];
        size_t n = 1;
        if (text->n_ids > (size_t)embedder->model->chunk) {
            status = run_long(embedder, text, error);
        } else {
            n = count_fitting(embedder, text, n_texts - done);
            status = run_together(embedder, text, n, error);
        }
        if (status) return status;
        done += n;
    }
    return OCTAVO_OK;
}
