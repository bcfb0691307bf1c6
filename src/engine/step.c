/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/model.h: sequences and steps. A step is checked whole, then takes its pages, then runs:
 * what fails fails before anything changed, or is undone.
 */
#include "base/error.h"
#include "base/memory.h"
#include "engine/model.h"

#include <string.h>

/* The group with the most free pages; of equal ones that of fewer sequences would be the same,
 * since new sequences have none yet: they take turns. */
static int emptiest_group(const octavo_model *model) {
    int best = model->n_sequences % model->n_groups;
    for (int g = 0; g < model->n_groups; g++)
        if (octavo_page_pool_free_pages(model->pages[g]) >
            octavo_page_pool_free_pages(model->pages[best]))
            best = g;
    return best;
}

static octavo_page_pool *pages_of(const octavo_sequence *sequence) {
    return sequence->model->pages[sequence->group];
}

octavo_status octavo_sequence_create(octavo_model *model, octavo_sequence **out,
                                     octavo_error *error) {
    const size_t ids = model->short_length ? (size_t)model->context : 0;
    size_t bytes = sizeof(octavo_sequence) + ((size_t)model->table_entries + ids) * sizeof(int32_t);
    octavo_sequence *sequence = octavo_alloc_zero(1, bytes);
    if (!sequence) return octavo_fail_memory(error, "sequence", bytes);
    sequence->model = model;
    sequence->group = emptiest_group(model);
    if (ids) sequence->ids = sequence->row + model->table_entries;
    octavo_block_table_init(&sequence->table, sequence->row, (int32_t)model->table_entries,
                            model->page_size);
    sequence->table.n_parts = model->cache_parts;
    model->n_sequences++;
    *out = sequence;
    return OCTAVO_OK;
}

void octavo_sequence_destroy(octavo_sequence **handle) {
    if (!handle || !*handle) return;
    octavo_sequence_truncate(*handle, 0);
    (*handle)->model->n_sequences--;
    octavo_free(*handle);
    *handle = NULL;
}

int64_t octavo_sequence_length(const octavo_sequence *sequence) {
    return sequence->table.n_tokens;
}

void octavo_sequence_truncate(octavo_sequence *sequence, int64_t length) {
    octavo_block_table_truncate(&sequence->table, pages_of(sequence), length > 0 ? length : 0);
}

/* ---- a step ---- */

static octavo_status check_ids(const octavo_model *model, const octavo_step_input *input, int index,
                               octavo_error *error) {
    const int64_t vocab = model->network.config.vocab;
    for (int i = 0; i < input->n_ids; i++) {
        if (input->ids[i] < 0 || input->ids[i] >= vocab)
            return octavo_fail(
                error, OCTAVO_ERROR_INVALID,
                "token id %ld (input %d, index %d): not in 0 to %lld; was the text tokenized for "
                "another model?",
                (long)input->ids[i], index, i, (long long)vocab - 1);
    }
    return OCTAVO_OK;
}

static octavo_status check_types(const octavo_model *model, const octavo_step_input *input,
                                 int index, octavo_error *error) {
    const int64_t n_types = model->network.config.n_types;
    for (int i = 0; input->types && i < input->n_ids; i++) {
        if (input->types[i] == 0 || (input->types[i] > 0 && input->types[i] < n_types)) continue;
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "token type %ld (input %d, index %d): the model has %lld; give 0 to the "
                           "ids of a single text",
                           (long)input->types[i], index, i, (long long)n_types);
    }
    return OCTAVO_OK;
}

/* What the model has not. */
static octavo_status check_wants(const octavo_model *model, const octavo_step_input *input,
                                 octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    if (config->is_encoder && input->logits)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "logits (of \"%s\"): an encoder has none; take its hidden states, as "
                           "octavo embed does",
                           config->architecture);
    if (!config->has_pooler && input->pooled)
        return octavo_fail(
            error, OCTAVO_ERROR_UNSUPPORTED,
            "pooler (of \"%s\"): the model has none; take its hidden states by mean, "
            "cls or last",
            config->architecture);
    if (config->is_encoder && input->sequence->table.n_tokens > 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "sequence (%lld tokens): an encoder takes a text whole; truncate the "
                           "sequence to 0 before the next",
                           (long long)input->sequence->table.n_tokens);
    return OCTAVO_OK;
}

static octavo_status check_input(octavo_model *model, const octavo_step_input *input, int index,
                                 octavo_error *error) {
    octavo_sequence *sequence = input->sequence;
    if (!sequence || sequence->model != model || input->n_ids < 1 || !input->ids ||
        (input->want != OCTAVO_LOGITS_NONE && !input->logits && !input->hidden && !input->pooled))
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            "step (input %d): a sequence of this model, its ids and a place for the logits or what "
            "else is wanted are needed",
            index);
    if (sequence->in_step == model->step_count)
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            "step (input %d): its sequence is there already; give it all its ids in one input",
            index);
    sequence->in_step = model->step_count;
    if (sequence->table.n_tokens + input->n_ids > model->context)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "sequence (%lld tokens and %d more): longer than the context of %lld; "
                           "shorten the text or "
                           "raise --context",
                           (long long)sequence->table.n_tokens, input->n_ids,
                           (long long)model->context);
    octavo_status status;
    if ((status = check_wants(model, input, error)) ||
        (status = check_types(model, input, index, error)))
        return status;
    return check_ids(model, input, index, error);
}

/* Of the sequences of one group. */
static octavo_status check_pages(octavo_model *model, const octavo_step_input *inputs, int n_inputs,
                                 int group, octavo_error *error) {
    int64_t needed = 0;
    for (int i = 0; i < n_inputs; i++)
        if (inputs[i].sequence->group == group)
            needed += octavo_block_table_need(&inputs[i].sequence->table, inputs[i].n_ids);
    if (needed <= octavo_page_pool_free_pages(model->pages[group])) return OCTAVO_OK;
    return octavo_fail(
        error, OCTAVO_ERROR_LIMIT,
        "cache (%lld pages of %d slots needed, %lld free): full; shorten or end a sequence, or "
        "raise --kv-memory",
        (long long)needed, model->page_size,
        (long long)octavo_page_pool_free_pages(model->pages[group]));
}

static octavo_status check_inputs(octavo_model *model, const octavo_step_input *inputs,
                                  int n_inputs, octavo_error *error) {
    int64_t n_tokens = 0;
    octavo_status status = OCTAVO_OK;
    if (n_inputs < 1 || n_inputs > model->max_sequences)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "step (%d sequences): this model takes 1 to %d in a step", n_inputs,
                           model->max_sequences);
    model->step_count++;
    for (int i = 0; i < n_inputs; i++) {
        if ((status = check_input(model, &inputs[i], i, error))) return status;
        n_tokens += inputs[i].n_ids;
    }
    if (n_tokens > model->chunk)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "step (%lld tokens): more than a chunk of %d; feed it in parts",
                           (long long)n_tokens, model->chunk);
    for (int g = 0; g < model->n_groups && !status; g++)
        status = check_pages(model, inputs, n_inputs, g, error);
    return status;
}

/* Takes the pages; gives them back when one sequence gets none after all. */
static octavo_status grow_tables(const octavo_step_input *inputs, int n_inputs,
                                 octavo_error *error) {
    for (int i = 0; i < n_inputs; i++) {
        octavo_status status = octavo_block_table_append(
            &inputs[i].sequence->table, pages_of(inputs[i].sequence), inputs[i].n_ids, error);
        if (status == OCTAVO_OK) continue;
        while (--i >= 0)
            octavo_sequence_truncate(inputs[i].sequence,
                                     inputs[i].sequence->table.n_tokens - inputs[i].n_ids);
        return status;
    }
    return OCTAVO_OK;
}

/* Group behind group; in each decode rows first, as the attention's distribution wants them, and
 * otherwise in the caller's order. */
static void order_inputs(const octavo_model *model, const octavo_step_input *inputs, int n_inputs) {
    int32_t *order = model->arrays.order;
    int n = 0;
    for (int g = 0; g < model->n_groups; g++) {
        for (int is_rest = 0; is_rest < 2; is_rest++)
            for (int i = 0; i < n_inputs; i++)
                if (inputs[i].sequence->group == g && (inputs[i].n_ids != 1) == is_rest)
                    order[n++] = i;
    }
}

static float *row_of(float *rows, int64_t row, int64_t width) {
    return rows ? rows + row * width : NULL;
}

/* What comes next belongs to groups from `group` on. */
static void begin_groups(const octavo_model *model, const octavo_step *step, int *next, int group) {
    const octavo_step_arrays *a = &model->arrays;
    for (; *next <= group; ++*next) {
        a->group_tokens[*next] = step->n_tokens;
        a->group_sequences[*next] = step->n_sequences;
        a->group_rows[*next] = step->n_rows;
    }
}

static void add_row(octavo_model *model, octavo_step *step, int row, float *logits, float *hidden) {
    const octavo_step_arrays *a = &model->arrays;
    a->logit_rows[step->n_rows] = row;
    a->logits[step->n_rows] = logits;
    a->hidden[step->n_rows++] = hidden;
}

/* The rows that want something of an input whose first one is `row`. Where the head ends with a
 * pooler, its rows are the program's logits. */
static void add_rows(octavo_model *model, octavo_step *step, const octavo_step_input *input,
                     int row) {
    const octavo_step_arrays *a = &model->arrays;
    const octavo_model_config *config = &model->network.config;
    const int last = input->n_ids - 1;
    const int begin = input->want == OCTAVO_LOGITS_LAST ? last : 0;
    int end = input->want == OCTAVO_LOGITS_FIRST ? 1 : input->n_ids;
    if (input->want == OCTAVO_LOGITS_NONE) end = begin;
    for (int i = begin; i < end; i++)
        add_row(model, step, row + i,
                config->is_encoder ? row_of(input->pooled, i - begin, config->d)
                                   : row_of(input->logits, i - begin, config->vocab),
                row_of(input->hidden, i - begin, config->d));
    if (!input->trace) return;
    a->trace_rows[step->n_traced] = row + last;
    a->traces[step->n_traced++] = input->trace;
    add_row(model, step, row + last, NULL, input->trace + config->n_layers * config->d);
}

/* By which ropes choose their speeds: once a sequence is fed to a length, it counts from the first
 * step on, so that chunks make no difference. */
static int64_t length_of(const octavo_sequence *sequence) {
    return sequence->target > sequence->table.n_tokens ? sequence->target
                                                       : sequence->table.n_tokens;
}

static void run_step(octavo_model *model, const octavo_step *step) {
    if (model->comm) octavo_job_tell(model, step);
    octavo_run_step(model->ranks.n > 0 ? model->ranks.runs[model->ranks.first] : &model->run, step);
}

/* Keys and values of the first n ids, anew for the length that the sequence has by now. */
static void compute_again(octavo_model *model, const octavo_sequence *sequence, int64_t n) {
    const octavo_step_arrays *a = &model->arrays;
    for (int64_t done = 0; done < n; done += model->chunk) {
        const int n_ids = n - done < model->chunk ? (int)(n - done) : model->chunk;
        const octavo_step step = {
            .n_tokens = n_ids,
            .ids = sequence->ids + done,
            .positions = a->positions,
            .types = a->types,
            .n_sequences = 1,
            .query_start_loc = a->query_start_loc,
            .kv_lens = a->kv_lens,
            .lengths = a->lengths,
            .block_tables = sequence->row,
            .pages_per_sequence = model->table_entries,
            .group_tokens = a->group_tokens,
            .group_sequences = a->group_sequences,
            .group_rows = a->group_rows,
        };
        const octavo_step none = {0};
        int group = 0;
        begin_groups(model, &none, &group, sequence->group);
        begin_groups(model, &step, &group, model->n_groups);
        for (int i = 0; i < n_ids; i++)
            a->positions[i] = (int32_t)(done + i);
        a->query_start_loc[0] = 0;
        a->query_start_loc[1] = n_ids;
        a->kv_lens[0] = (int32_t)(done + n_ids);
        a->lengths[0] = (int32_t)length_of(sequence);
        run_step(model, &step);
    }
}

/* Where ropes go by the length of a sequence, it may come to another side of the limit in this
 * step; what it has in the cache is then of the other side. */
static void follow_lengths(octavo_model *model, const octavo_step_input *inputs, int n_inputs) {
    if (model->short_length == 0) return;
    for (int i = 0; i < n_inputs; i++) {
        octavo_sequence *sequence = inputs[i].sequence;
        const int64_t before = sequence->table.n_tokens - inputs[i].n_ids;
        const bool is_long = length_of(sequence) > model->short_length;
        if (is_long != sequence->is_long) compute_again(model, sequence, before);
        sequence->is_long = is_long;
        memcpy(sequence->ids + before, inputs[i].ids,
               (size_t)inputs[i].n_ids * sizeof *sequence->ids);
    }
}

static octavo_step fill_step(octavo_model *model, const octavo_step_input *inputs, int n_inputs) {
    const octavo_step_arrays *a = &model->arrays;
    octavo_step step = {
        .ids = a->ids,
        .positions = a->positions,
        .query_start_loc = a->query_start_loc,
        .kv_lens = a->kv_lens,
        .lengths = a->lengths,
        .block_tables = a->block_tables,
        .pages_per_sequence = model->table_entries,
        .logit_rows = a->logit_rows,
        .logits = a->logits,
        .hidden = a->hidden,
        .trace_rows = a->trace_rows,
        .traces = a->traces,
        .types = a->types,
        .group_tokens = a->group_tokens,
        .group_sequences = a->group_sequences,
        .group_rows = a->group_rows,
    };
    int group = 0;
    order_inputs(model, inputs, n_inputs);
    for (int s = 0; s < n_inputs; s++) {
        const octavo_step_input *input = &inputs[a->order[s]];
        const octavo_block_table *table = &input->sequence->table;
        int64_t first = table->n_tokens - input->n_ids;
        begin_groups(model, &step, &group, input->sequence->group);
        memcpy(a->ids + step.n_tokens, input->ids, (size_t)input->n_ids * sizeof *a->ids);
        for (int i = 0; i < input->n_ids; i++) {
            a->positions[step.n_tokens + i] = (int32_t)(first + i);
            a->types[step.n_tokens + i] = input->types ? input->types[i] : 0;
        }
        memcpy(a->block_tables + s * model->table_entries, table->pages,
               (size_t)table->n_pages * sizeof *a->block_tables);
        a->query_start_loc[s] = step.n_tokens;
        a->kv_lens[s] = (int32_t)table->n_tokens;
        a->lengths[s] = (int32_t)length_of(input->sequence);
        add_rows(model, &step, input, step.n_tokens);
        step.n_tokens += input->n_ids;
        step.n_sequences++;
    }
    begin_groups(model, &step, &group, model->n_groups);
    a->query_start_loc[n_inputs] = step.n_tokens;
    return step;
}

octavo_status octavo_model_step(octavo_model *model, const octavo_step_input *inputs, int n_inputs,
                                octavo_error *error) {
    octavo_status status = check_inputs(model, inputs, n_inputs, error);
    if (status || (status = grow_tables(inputs, n_inputs, error))) return status;
    follow_lengths(model, inputs, n_inputs);
    octavo_step step = fill_step(model, inputs, n_inputs);
    run_step(model, &step);
    return model->comm ? octavo_job_result(model, error) : OCTAVO_OK;
}

static octavo_status feed(octavo_sequence *sequence, const int32_t *ids, size_t n_ids,
                          octavo_logits want, float *logits, const volatile int *cancel,
                          octavo_error *error) {
    octavo_model *model = sequence->model;
    const int64_t before = sequence->table.n_tokens;
    for (size_t done = 0; done < n_ids;) {
        size_t left = n_ids - done;
        int n = left < (size_t)model->chunk ? (int)left : model->chunk;
        bool is_last = (size_t)n == left;
        octavo_step_input input = {
            .sequence = sequence, .ids = ids + done, .n_ids = n, .want = want};
        if (want == OCTAVO_LOGITS_LAST && !is_last) input.want = OCTAVO_LOGITS_NONE;
        if (want == OCTAVO_LOGITS_ALL)
            input.logits = logits + (int64_t)done * model->network.config.vocab;
        if (want == OCTAVO_LOGITS_LAST && is_last) input.logits = logits;
        if (want == OCTAVO_LOGITS_FIRST && done > 0) input.want = OCTAVO_LOGITS_NONE;
        if (want == OCTAVO_LOGITS_FIRST && done == 0) input.logits = logits;
        octavo_status status =
            cancel && *cancel
                ? octavo_fail(error, OCTAVO_ERROR_CANCELLED,
                              "feeding (%zu of %zu ids done): stopped by the caller", done, n_ids)
                : octavo_model_step(model, &input, 1, error);
        if (status) {
            octavo_sequence_truncate(sequence, before);
            return status;
        }
        done += (size_t)n;
    }
    return OCTAVO_OK;
}

octavo_status octavo_sequence_feed(octavo_sequence *sequence, const int32_t *ids, size_t n_ids,
                                   octavo_logits want, float *logits, const volatile int *cancel,
                                   octavo_error *error) {
    const octavo_model *model = sequence->model;
    const int64_t before = sequence->table.n_tokens;
    if (n_ids > (size_t)(model->context - before))
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "sequence (%lld tokens and %zu more): longer than the context of %lld; "
                           "shorten the text or "
                           "raise --context",
                           (long long)before, n_ids, (long long)model->context);
    sequence->target = before + (int64_t)n_ids;
    octavo_status status = feed(sequence, ids, n_ids, want, logits, cancel, error);
    sequence->target = 0;
    return status;
}
