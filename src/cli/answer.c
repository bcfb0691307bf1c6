/* SPDX-License-Identifier: Apache-2.0
 *
 * The generating loop. Invariant: session->ids are exactly the ids that its sequence holds.
 */
#include "cli/answer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/stop.h"

#include <math.h>

octavo_status octavo_session_init(octavo_session *out, octavo_model *model, octavo_error *error) {
    octavo_session session = {.model = model, .facts = octavo_model_describe(model)};
    const size_t vocabulary = (size_t)session.facts.vocabulary;
    int64_t slots = session.facts.pages * session.facts.page_size;
    session.room = slots < session.facts.context ? slots : session.facts.context;
    session.logits = octavo_alloc_zero(vocabulary, sizeof *session.logits);
    octavo_status status =
        session.logits ? octavo_sequence_create(model, &session.sequence, error)
                       : octavo_fail_memory(error, "logits", vocabulary * sizeof *session.logits);
    if (status)
        octavo_session_deinit(&session);
    else
        *out = session;
    return status;
}

void octavo_session_deinit(octavo_session *session) {
    octavo_sequence_destroy(&session->sequence);
    octavo_ids_deinit(&session->ids);
    octavo_free(session->logits);
    *session = (octavo_session){0};
}

/* Feeds ids and notes them. */
static octavo_status feed(octavo_session *session, const int32_t *ids, size_t n_ids,
                          const volatile int *cancel, octavo_error *error) {
    octavo_status status = octavo_sequence_feed(session->sequence, ids, n_ids, OCTAVO_LOGITS_LAST,
                                                session->logits, cancel, error);
    for (size_t i = 0; i < n_ids && status == OCTAVO_OK; i++)
        status = octavo_ids_append(&session->ids, ids[i], error);
    if (status) octavo_sequence_truncate(session->sequence, (int64_t)session->ids.n);
    return status;
}

static octavo_status feed_prompt(octavo_session *session, const octavo_ids *prompt,
                                 const volatile int *cancel, octavo_answer *answer,
                                 octavo_error *error) {
    size_t common = 0;
    if (prompt->n == 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "prompt (empty): there is nothing to go on from; give some text");
    if ((int64_t)prompt->n > session->room)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "prompt (%zu tokens): longer than the %s of %lld; shorten it or raise "
                           "%s",
                           prompt->n, session->room < session->facts.context ? "cache" : "context",
                           (long long)session->room,
                           session->room < session->facts.context ? "--kv-memory" : "--context");
    /* The last id is fed in any case: its logits are what the answer begins with. */
    while (common < session->ids.n && common + 1 < prompt->n &&
           session->ids.data[common] == prompt->data[common])
        common++;
    octavo_sequence_truncate(session->sequence, (int64_t)common);
    session->ids.n = common;
    answer->prompt_tokens = prompt->n;
    answer->reused_tokens = common;
    return feed(session, prompt->data + common, prompt->n - common, cancel, error);
}

/* ---- one token ---- */

typedef struct generation {
    octavo_session *session;
    const octavo_answer_options *options;
    octavo_answer *answer;
    octavo_sampler *sampler;
    octavo_detokenizer *detokenizer;
    octavo_stop_filter filter;
    int32_t *top_ids;    /* [logprobs] */
    float *top_logprobs; /* [logprobs] */
    size_t n_emitted;    /* bytes of the answer's text that were given away */
} generation;

static void put_logprob(const generation *g, int32_t id, double logprob, octavo_buffer *out) {
    size_t length = 0;
    const octavo_tokenizer *tokenizer = octavo_model_tokenizer(g->session->model);
    const char *piece = octavo_tokenizer_piece(tokenizer, id, &length);
    octavo_buffer_printf(out, "{\"id\":%ld,\"token\":", (long)id);
    octavo_buffer_json_string(out, piece ? piece : "", length);
    /* JSON has no infinity; a logit of -inf is as unlikely as a number can say. */
    octavo_buffer_printf(out, ",\"logprob\":%.7g", logprob > -1e30 ? logprob : -1e30);
}

static void put_logprobs(const generation *g, int32_t id) {
    octavo_buffer *out = &g->answer->logprobs;
    const float *logits = g->session->logits;
    const int32_t vocabulary = g->session->facts.vocabulary;
    const int k = (int)g->options->logprobs;
    if (out->size > 0) octavo_buffer_putc(out, ',');
    put_logprob(g, id, octavo_logprob_of(logits, vocabulary, id), out);
    octavo_buffer_puts(out, ",\"top\":[");
    if (k > 0) octavo_logprobs_top(logits, vocabulary, k, g->top_ids, g->top_logprobs);
    for (int i = 0; i < k; i++) {
        if (i > 0) octavo_buffer_putc(out, ',');
        put_logprob(g, g->top_ids[i], (double)g->top_logprobs[i], out);
        octavo_buffer_putc(out, '}');
    }
    octavo_buffer_puts(out, "]}");
}

/* Gives away what has come to the answer's text since; false to stop. */
static bool emit_new(generation *g) {
    const octavo_buffer *text = &g->answer->text;
    size_t n = text->size - g->n_emitted;
    if (n == 0 || !g->options->emit) return true;
    const char *from = text->data + g->n_emitted;
    g->n_emitted = text->size;
    return g->options->emit(g->options->cookie, from, n);
}

/* Takes a token into the answer; *is_done when it is the last. */
static octavo_status take_token(generation *g, int32_t id, bool *is_done, octavo_error *error) {
    octavo_answer *answer = g->answer;
    const char *text = NULL;
    size_t length = 0;
    octavo_status status = octavo_ids_append(&answer->ids, id, error);
    if (status == OCTAVO_OK)
        status = octavo_detokenizer_feed(g->detokenizer, id, &text, &length, error);
    if (status) return status;
    if (g->options->logprobs >= 0) put_logprobs(g, id);
    octavo_stop_filter_feed(&g->filter, text, length, &answer->text);
    if (answer->text.failed || answer->logprobs.failed || g->filter.held.failed)
        return octavo_fail_memory(error, "answer", answer->text.size + answer->logprobs.size);
    *is_done = true;
    if (!emit_new(g))
        answer->finish = OCTAVO_FINISH_CANCELLED;
    else if (g->filter.found)
        answer->finish = OCTAVO_FINISH_STOP;
    else if (g->options->max_tokens && answer->ids.n >= (size_t)g->options->max_tokens)
        answer->finish = OCTAVO_FINISH_LENGTH;
    else
        *is_done = false;
    return OCTAVO_OK;
}

static bool is_cancelled(const generation *g) {
    return g->options->cancel && *g->options->cancel;
}

static octavo_status generate(generation *g, octavo_error *error) {
    octavo_session *session = g->session;
    const octavo_tokenizer *tokenizer = octavo_model_tokenizer(session->model);
    bool is_done = false;
    for (;;) {
        if (is_cancelled(g)) {
            g->answer->finish = OCTAVO_FINISH_CANCELLED;
            return OCTAVO_OK;
        }
        int32_t id =
            octavo_sampler_next(g->sampler, session->logits, session->ids.data, session->ids.n);
        if (!isfinite(session->logits[id]))
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "answer (token %zu): the model's logits are not all numbers; its "
                               "file is damaged, or --precision exact helps",
                               g->answer->ids.n);
        if (!g->options->ignores_end && octavo_tokenizer_is_eog(tokenizer, id)) {
            g->answer->finish = OCTAVO_FINISH_STOP;
            return OCTAVO_OK;
        }
        octavo_status status = take_token(g, id, &is_done, error);
        if (status || is_done) return status;
        if ((int64_t)session->ids.n >= session->room) {
            g->answer->finish = OCTAVO_FINISH_LENGTH;
            return OCTAVO_OK;
        }
        if ((status = feed(session, &id, 1, NULL, error))) return status;
    }
}

/* What is still held back comes out, unless it is part of a stop text. */
static octavo_status finish_text(generation *g, octavo_error *error) {
    octavo_answer *answer = g->answer;
    size_t length;
    const char *rest = octavo_detokenizer_finish(g->detokenizer, &length);
    octavo_stop_filter_feed(&g->filter, rest, length, &answer->text);
    octavo_stop_filter_finish(&g->filter, &answer->text);
    answer->stop = g->filter.found;
    if (answer->text.failed || g->filter.held.failed)
        return octavo_fail_memory(error, "answer", answer->text.size);
    if (!emit_new(g)) answer->finish = OCTAVO_FINISH_CANCELLED;
    return OCTAVO_OK;
}

static octavo_status prepare(generation *g, octavo_error *error) {
    const int32_t vocabulary = g->session->facts.vocabulary;
    const octavo_answer_options *options = g->options;
    if (options->logprobs > vocabulary)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "option --logprobs (%lld): the vocabulary has only %ld tokens; give "
                           "fewer",
                           (long long)options->logprobs, (long)vocabulary);
    if (options->logprobs > 0) {
        g->top_ids = octavo_alloc_zero((size_t)options->logprobs, sizeof *g->top_ids);
        g->top_logprobs = octavo_alloc_zero((size_t)options->logprobs, sizeof *g->top_logprobs);
        if (!g->top_ids || !g->top_logprobs)
            return octavo_fail_memory(error, "logprobs", (uint64_t)options->logprobs * 8);
    }
    octavo_buffer_puts(&g->answer->text, "");
    octavo_status status =
        octavo_sampler_create(&options->sampling, vocabulary, &g->sampler, error);
    if (status) return status;
    return octavo_detokenizer_create(octavo_model_tokenizer(g->session->model),
                                     options->decode_flags, &g->detokenizer, error);
}

octavo_status octavo_session_answer(octavo_session *session, const octavo_ids *prompt,
                                    const octavo_answer_options *options, octavo_answer *answer,
                                    octavo_error *error) {
    generation g = {.session = session,
                    .options = options,
                    .answer = answer,
                    .filter = {.stops = options->stops}};
    octavo_status status = prepare(&g, error);
    double start = octavo_clock_seconds();
    if (status == OCTAVO_OK) status = feed_prompt(session, prompt, options->cancel, answer, error);
    double middle = octavo_clock_seconds();
    answer->prompt_s = middle - start;
    if (status == OCTAVO_ERROR_CANCELLED) {
        answer->finish = OCTAVO_FINISH_CANCELLED;
        status = OCTAVO_OK;
    } else if (status == OCTAVO_OK) {
        status = generate(&g, error);
        if (status == OCTAVO_OK) status = finish_text(&g, error);
        answer->generate_s = octavo_clock_seconds() - middle;
    }
    octavo_stop_filter_deinit(&g.filter);
    octavo_detokenizer_destroy(&g.detokenizer);
    octavo_sampler_destroy(&g.sampler);
    octavo_free(g.top_ids);
    octavo_free(g.top_logprobs);
    return status;
}

const char *octavo_finish_name(octavo_finish finish) {
    switch (finish) {
    case OCTAVO_FINISH_STOP:
        return "stop";
    case OCTAVO_FINISH_LENGTH:
        return "length";
    case OCTAVO_FINISH_CANCELLED:
        return "cancelled";
    }
    return "?";
}

void octavo_answer_deinit(octavo_answer *answer) {
    octavo_ids_deinit(&answer->ids);
    octavo_buffer_deinit(&answer->text);
    octavo_buffer_deinit(&answer->logprobs);
    *answer = (octavo_answer){0};
}
