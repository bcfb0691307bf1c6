/* SPDX-License-Identifier: Apache-2.0
 *
 * A step as processes tell it one another: its sizes, then its arrays. Tables have as many pages as
 * their sequences need, and of results it is told which rows are wanted, not where they go.
 */
#include "engine/job.h"

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/model.h"

#include <string.h>

typedef enum message_kind { MESSAGE_STEP, MESSAGE_END } message_kind;

typedef struct message {
    int32_t kind, n_tokens, n_sequences, n_rows, n_traced;
    uint32_t n_words;
} message;

enum { WANTS_LOGITS = 1, WANTS_HIDDEN = 2 };

octavo_status octavo_job_init(octavo_model *model, const octavo_log *log, octavo_error *error) {
    const size_t tokens = (size_t)model->chunk, sequences = (size_t)model->max_sequences;
    const size_t rows = tokens + sequences, groups = (size_t)model->n_groups + 1;
    size_t tables;
    if (!octavo_size_mul(sequences, (size_t)model->table_entries, &tables))
        return octavo_fail_memory(error, "arrays of a step", UINT64_MAX);
    model->job.capacity = 3 * tokens + 4 * sequences + 1 + tables + 2 * rows + 3 * groups;
    model->job.words = octavo_alloc_zero(model->job.capacity, sizeof(int32_t));
    model->job.rows = octavo_alloc_zero(1, sizeof(float));
    model->job.log = *log;
    if (model->job.words && model->job.rows) return OCTAVO_OK;
    return octavo_fail_memory(error, "arrays of a step", model->job.capacity * sizeof(int32_t));
}

octavo_status octavo_job_measure(octavo_model *model, octavo_error *error) {
    if (model->job.log.level < OCTAVO_LOG_INFO) return OCTAVO_OK;
    octavo_status status = octavo_comm_measure(model->comm, &model->job.link, error);
    if (status) return status;
    octavo_log_write(&model->job.log, OCTAVO_LOG_INFO,
                     "link between %d processes by %s: %.1f us and %.2f GB/s",
                     octavo_comm_processes(model->comm), octavo_comm_transport(model->comm),
                     model->job.link.latency_s * 1e6, model->job.link.bytes_per_s * 1e-9);
    return OCTAVO_OK;
}

/* Waiting for a process that computes longer counts as time of exchanges. */
static void log_exchanges(const octavo_model *model) {
    const octavo_exchange *e = &model->ranks.exchange;
    const octavo_link *link = &model->job.link;
    if (e->n_exchanges == 0 || link->bytes_per_s <= 0.0) return;
    octavo_log_write(
        &model->job.log, OCTAVO_LOG_INFO,
        "%lld exchanges, %.2f MB sent by this process, %.2f ms; the link model says "
        "%.2f ms",
        (long long)e->n_exchanges, (double)e->n_sent * 1e-6, e->seconds * 1e3,
        ((double)e->n_exchanges * link->latency_s + (double)e->n_sent / link->bytes_per_s) * 1e3);
}

/* What no process can go on without: there is no way back for the others. */
static void broadcast(octavo_model *model, void *data, size_t bytes) {
    octavo_error error;
    if (octavo_comm_broadcast(model->comm, 0, data, bytes, &error))
        octavo_comm_abort(model->comm, error.message);
}

static octavo_run *first_run(octavo_model *model) {
    return model->ranks.n > 0 ? model->ranks.runs[model->ranks.first] : &model->run;
}

static int64_t pages_of(const octavo_model *model, int32_t length) {
    return octavo_pages_for(length, model->page_size, model->cache_parts);
}

/* ---- leading ---- */

static int32_t *put(int32_t *at, const int32_t *array, int64_t n) {
    memcpy(at, array, (size_t)n * sizeof *array);
    return at + n;
}

static int32_t wants_of(const octavo_step *step, int row) {
    const bool has_logits = step->logits && step->logits[row];
    const bool has_hidden = step->hidden && step->hidden[row];
    return (has_logits ? WANTS_LOGITS : 0) | (has_hidden ? WANTS_HIDDEN : 0);
}

static size_t put_step(const octavo_model *model, const octavo_step *step) {
    int32_t *at = model->job.words;
    const int64_t groups = model->n_groups + 1;
    at = put(at, step->ids, step->n_tokens);
    at = put(at, step->positions, step->n_tokens);
    at = put(at, step->types, step->n_tokens);
    at = put(at, step->query_start_loc, step->n_sequences + 1);
    at = put(at, step->kv_lens, step->n_sequences);
    at = put(at, step->lengths, step->n_sequences);
    for (int s = 0; s < step->n_sequences; s++)
        at = put(at, step->block_tables + s * step->pages_per_sequence,
                 pages_of(model, step->kv_lens[s]));
    at = put(at, step->logit_rows, step->n_rows);
    for (int r = 0; r < step->n_rows; r++)
        *at++ = wants_of(step, r);
    at = put(at, step->trace_rows, step->n_traced);
    at = put(at, step->group_tokens, groups);
    at = put(at, step->group_sequences, groups);
    at = put(at, step->group_rows, groups);
    return (size_t)(at - model->job.words);
}

void octavo_job_tell(octavo_model *model, const octavo_step *step) {
    message head = {MESSAGE_STEP, step->n_tokens, step->n_sequences,
                    step->n_rows, step->n_traced, (uint32_t)put_step(model, step)};
    broadcast(model, &head, sizeof head);
    broadcast(model, model->job.words, head.n_words * sizeof(int32_t));
}

octavo_status octavo_job_result(const octavo_model *model, octavo_error *error) {
    const octavo_exchange *exchange = &model->ranks.exchange;
    if (exchange->status == OCTAVO_OK) return OCTAVO_OK;
    return octavo_fail(error, exchange->status, "%s", exchange->error.message);
}

void octavo_job_end(octavo_model *model) {
    if (model->job.words && !model->job.is_over && octavo_comm_process(model->comm) == 0) {
        message head = {.kind = MESSAGE_END};
        broadcast(model, &head, sizeof head);
        log_exchanges(model);
    }
    octavo_free(model->job.words);
    octavo_free(model->job.rows);
    model->job = (octavo_job){0};
}

/* ---- following ---- */

static const int32_t *take(const int32_t *at, int32_t *array, int64_t n) {
    memcpy(array, at, (size_t)n * sizeof *array);
    return at + n;
}

static void take_step(octavo_model *model, const message *head) {
    const octavo_step_arrays *a = &model->arrays;
    const int32_t *at = model->job.words;
    const int64_t groups = model->n_groups + 1;
    at = take(at, a->ids, head->n_tokens);
    at = take(at, a->positions, head->n_tokens);
    at = take(at, a->types, head->n_tokens);
    at = take(at, a->query_start_loc, head->n_sequences + 1);
    at = take(at, a->kv_lens, head->n_sequences);
    at = take(at, a->lengths, head->n_sequences);
    for (int s = 0; s < head->n_sequences; s++)
        at = take(at, a->block_tables + s * model->table_entries, pages_of(model, a->kv_lens[s]));
    at = take(at, a->logit_rows, head->n_rows);
    for (int r = 0; r < head->n_rows; r++, at++) {
        a->logits[r] = *at & WANTS_LOGITS ? model->job.rows : NULL;
        a->hidden[r] = *at & WANTS_HIDDEN ? model->job.rows : NULL;
    }
    at = take(at, a->trace_rows, head->n_traced);
    for (int r = 0; r < head->n_traced; r++)
        a->traces[r] = model->job.rows;
    at = take(at, a->group_tokens, groups);
    at = take(at, a->group_sequences, groups);
    (void)take(at, a->group_rows, groups);
}

static void follow_step(octavo_model *model, const message *head) {
    const octavo_step_arrays *a = &model->arrays;
    const octavo_step step = {
        .n_tokens = head->n_tokens,
        .ids = a->ids,
        .positions = a->positions,
        .types = a->types,
        .n_sequences = head->n_sequences,
        .query_start_loc = a->query_start_loc,
        .kv_lens = a->kv_lens,
        .lengths = a->lengths,
        .block_tables = a->block_tables,
        .pages_per_sequence = model->table_entries,
        .n_rows = head->n_rows,
        .logit_rows = a->logit_rows,
        .logits = a->logits,
        .hidden = a->hidden,
        .n_traced = head->n_traced,
        .trace_rows = a->trace_rows,
        .traces = a->traces,
        .group_tokens = a->group_tokens,
        .group_sequences = a->group_sequences,
        .group_rows = a->group_rows,
    };
    octavo_run_step(first_run(model), &step);
}

octavo_status octavo_model_follow(octavo_model *model, octavo_error *error) {
    if (!model->comm || octavo_comm_process(model->comm) == 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "octavo_model_follow (process 0): only processes that follow another "
                           "one of their job call this");
    for (;;) {
        message head;
        broadcast(model, &head, sizeof head);
        if (head.kind == MESSAGE_END) break;
        broadcast(model, model->job.words, head.n_words * sizeof(int32_t));
        take_step(model, &head);
        follow_step(model, &head);
        octavo_status status = octavo_job_result(model, error);
        if (status) return status;
    }
    model->job.is_over = true;
    return OCTAVO_OK;
}
